// SPDX-License-Identifier: Apache-2.0
// One process at a time. What it has done is taken line by line, so that a process that is ended in
// the middle leaves no drain that is not logged.
#include "fleet/collect/draining.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/os/child_output.h"
#include "nodes/program.h"

struct draining {
    struct loop *loop;
    struct poller *poller;
    struct child_output child; // its text: a line that is not whole yet
    int64_t last_ms;
    char problem[INGEST_TEXT];
};

static void draining_failed(struct draining *d, const char *node, const char *why)
{
    snprintf(d->problem, sizeof d->problem, "%s%s%s", node, *node ? ": " : "", why);
    log_event(LOG_LVL_WARN, "drain", "node=%s text=\"%s\"", node, log_quote(why).text);
}

// The node has the reason in Slurm by now. If this is lost, that keeps it from being drained again.
static void store_drained(struct draining *d, int64_t finding)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct err err = {0};
    const struct ingest_item item = {.kind = INGEST_DRAINED, .node = ""};
    const struct ingest_drained drained = {finding, clock_wall_ms()};
    buf_add(&body, &drained, sizeof drained);
    if (!buf_ok(&body))
        err_set(&err, ERR_NO_MEMORY, "", "no memory to store a drain");
    if (!buf_ok(&body) || poller_keep(d->poller, &item, &body, &err) < 0)
        log_error("drain", &err);
}

static void take_drained(struct draining *d, char *line)
{
    int64_t finding = 0;
    if (*line == '!') {
        draining_failed(d, "", line + 1);
        return;
    }
    const char *id = strsep(&line, "\t"), *node = strsep(&line, "\t"),
               *reason = strsep(&line, "\t");
    if (!line || !str_to_i64(id, &finding)) {
        draining_failed(d, "", "the process that drains nodes printed something else");
        return;
    }
    if (*line) {
        draining_failed(d, node, line);
        return;
    }
    log_event(LOG_LVL_INFO, "drained", "node=%s finding=%lld reason=\"%s\" by=\"drain = apply\"",
              node, (long long)finding, log_quote(reason).text);
    store_drained(d, finding);
}

static void take_lines(void *ctx, struct buf *text)
{
    for (char *end; text->len && (end = memchr(text->data, '\n', text->len));) {
        *end = '\0';
        take_drained(ctx, text->data);
        buf_drop(text, (size_t)(end - text->data) + 1);
    }
}

static void draining_ended(void *ctx, const struct child_output_end *end)
{
    struct draining *d = ctx;
    d->last_ms = clock_mono_ms();
    if (end->late)
        draining_failed(d, "", "Slurm took too long to drain nodes");
    else if (!buf_ok(end->text))
        draining_failed(d, "", "the process that drains nodes printed something else");
    else if (end->status != 0 && !*d->problem)
        draining_failed(d, "", "the process that drains nodes ended");
}

// A process that is ended takes with it the program that it waits for (nodes/program.h).
static int draining_start(struct draining *d, const char *lines, struct err *err)
{
    const struct child_output_use use = {.most = DRAINING_LINE_MAX,
                                         .limit_ms = DRAINING_LIMIT_S * 1000,
                                         .variables = program_variables, // for scontrol
                                         .more = take_lines,
                                         .ended = draining_ended,
                                         .ctx = d};
    char program[] = "numaprobe-fleetd", option[] = "--drain";
    char *argv[] = {program, option, NULL};
    CLEANUP_FD int in = child_text(lines, err);
    return in < 0 ? -1 : child_output_start(&d->child, d->loop, &use, argv, in, err);
}

void draining_begin(struct draining *d, const char *lines)
{
    struct err err = {0};
    if (d->child.pid || !*lines)
        return;
    *d->problem = '\0';
    if (draining_start(d, lines, &err) < 0)
        draining_failed(d, "", err.text);
}

int64_t draining_last_ms(const struct draining *d)
{
    return d->child.pid ? INT64_MAX : d->last_ms;
}

const char *draining_problem(const struct draining *d)
{
    return d->problem;
}

struct draining *draining_new(struct loop *loop, struct poller *p, struct err *err)
{
    struct draining *d = calloc(1, sizeof *d);
    if (!d) {
        err_set(err, ERR_NO_MEMORY, "", "no memory to drain nodes");
        return NULL;
    }
    d->loop = loop;
    d->poller = p;
    d->last_ms = INT64_MIN;
    return d;
}

void draining_free(struct draining *d)
{
    if (!d)
        return;
    if (d->child.pid) {
        child_output_stop(&d->child);
        draining_failed(d, "", "the collector stops");
    }
    free(d);
}
