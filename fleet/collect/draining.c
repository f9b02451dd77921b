// SPDX-License-Identifier: Apache-2.0
// One process at a time. What it has done is taken line by line, so that a process that is ended in
// the middle leaves no drain that is not logged.
#include "fleet/collect/draining.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/os/child.h"

struct draining {
    struct loop *loop;
    struct poller *poller;
    struct loop_timer *timer; // the end of a process that takes too long
    struct loop_watch *watch;
    int pipe; // -1: no process runs
    pid_t pid;
    struct buf text; // a line that is not whole yet
    int64_t last_ms;
    char problem[INGEST_TEXT];
};

static void draining_failed(struct draining *d, const char *node, const char *why)
{
    snprintf(d->problem, sizeof d->problem, "%s%s%s", node, *node ? ": " : "", why);
    log_event(LOG_LVL_WARN, "drain", "node=%s text=\"%s\"", node, why);
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
              node, (long long)finding, reason);
    store_drained(d, finding);
}

static void take_lines(struct draining *d)
{
    for (char *end; d->text.len && (end = memchr(d->text.data, '\n', d->text.len));) {
        *end = '\0';
        take_drained(d, d->text.data);
        buf_drop(&d->text, (size_t)(end - d->text.data) + 1);
    }
}

// False: nothing more comes now.
static bool draining_read(struct draining *d)
{
    char bytes[4096];
    ssize_t got = read(d->pipe, bytes, sizeof bytes);
    if (got <= 0)
        return false;
    buf_add(&d->text, bytes, (size_t)got);
    take_lines(d);
    return true;
}

static void draining_end(struct draining *d, const char *killed)
{
    int status = 0;
    if (d->pipe < 0)
        return;
    loop_unwatch(d->watch);
    d->watch = NULL;
    if (killed)
        kill(d->pid, SIGKILL); // and with it the program that it waits for (nodes/program.h)
    while (waitpid(d->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    while (draining_read(d))
        continue; // what it had said
    fd_cleanup(&d->pipe);
    d->pid = 0;
    d->last_ms = clock_mono_ms();
    loop_timer_set(d->timer, -1);
    if (killed)
        draining_failed(d, "", killed);
    else if (status != 0 && !*d->problem)
        draining_failed(d, "", "the process that drains nodes ended");
    buf_free(&d->text);
}

static void on_drained(void *ctx, uint32_t events)
{
    struct draining *d = ctx;
    (void)events;
    errno = 0;
    if (!draining_read(d) && errno != EAGAIN && errno != EINTR)
        draining_end(d, NULL);
    else if (!buf_ok(&d->text) || d->text.len > DRAINING_LINE_MAX)
        draining_end(d, "the process that drains nodes printed something else");
}

static void on_draining_limit(void *ctx, uint32_t events)
{
    (void)events;
    draining_end(ctx, "Slurm took too long to drain nodes");
}

static int exec_draining(struct draining *d, int in, int out)
{
    char program[] = "numaprobe-fleetd", option[] = "--drain", none[] = "";
    char *path = getenv("PATH"); // where scontrol is
    const struct child_fd fds[] = {{in, STDIN_FILENO}, {out, STDOUT_FILENO}};
    char *argv[] = {program, option, path ? path : none, NULL};
    return child_exec(&d->pid, argv, fds, COUNT_OF(fds), false);
}

static int draining_start(struct draining *d, const char *lines, struct err *err)
{
    int pair[2];
    CLEANUP_FD int in = child_text(lines, err);
    if (in < 0)
        return -1;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    CLEANUP_FD int ours = pair[0], theirs = pair[1];
    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "fcntl");
    d->watch = loop_watch_fd(d->loop, ours, EPOLLIN, on_drained, d, err);
    if (!d->watch)
        return -1;
    errno = exec_draining(d, in, theirs);
    if (errno) {
        err_sys(err, "starting the process that drains nodes");
        loop_unwatch(d->watch);
        d->watch = NULL;
        return -1;
    }
    d->pipe = steal_fd(&ours);
    loop_timer_set(d->timer, DRAINING_LIMIT_S * 1000);
    return 0;
}

void draining_begin(struct draining *d, const char *lines)
{
    struct err err = {0};
    if (d->pipe >= 0 || !*lines)
        return;
    *d->problem = '\0';
    if (draining_start(d, lines, &err) < 0)
        draining_failed(d, "", err.text);
}

int64_t draining_last_ms(const struct draining *d)
{
    return d->pipe >= 0 ? INT64_MAX : d->last_ms;
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
    *d = (struct draining){.loop = loop, .poller = p, .pipe = -1, .last_ms = INT64_MIN};
    d->timer = loop_timer_new(loop, on_draining_limit, d, err);
    if (d->timer)
        return d;
    free(d);
    return NULL;
}

void draining_free(struct draining *d)
{
    if (!d)
        return;
    draining_end(d, "the collector stops");
    loop_timer_free(d->timer);
    free(d);
}
