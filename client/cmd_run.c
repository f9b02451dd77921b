// SPDX-License-Identifier: Apache-2.0
// numaprobe run: prints the plan, starts the run, shows its progress and prints the result.
// Ctrl-C, SIGTERM and SIGHUP cancel the run, unless --keep-on-interrupt leaves it to the daemon.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/exits.h"
#include "client/follow.h"
#include "client/http.h"
#include "client/interrupts.h"
#include "client/other_version.h"
#include "client/print.h"
#include "client/problem.h"
#include "client/result.h"
#include "model/budget.h"
#include "model/run.h"
#include "model/spec.h"
#include "model/spec_request.h"

struct run_flags {
    bool dry_run, detach, keep_on_interrupt;
    char key[64];
};

static const struct param flag_params[] = {
    {.name = "dry_run",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct run_flags, dry_run),
     .def = "false",
     .help = "Print plan, command and blockers; start nothing."},
    {.name = "detach",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct run_flags, detach),
     .def = "false",
     .help = "Start the run, print its number and return. The daemon continues it."},
    {.name = "keep_on_interrupt",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct run_flags, keep_on_interrupt),
     .def = "false",
     .help = "On Ctrl-C, SIGTERM and SIGHUP leave the run to the daemon. Default: they cancel the "
             "run."},
    {.name = "idempotency_key",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct run_flags, key),
     .room = sizeof((struct run_flags *)0)->key,
     .def = "",
     .metavar = "KEY",
     .help = "Idempotency key: a repeated request with the same key returns the existing run."},
};
const struct param_table run_options = {flag_params, COUNT_OF(flag_params)};

// No setting of the daemon lets such a run start, and the text states what would.
static bool never_passes(const struct json *blocker)
{
    static const char *const kinds[] = {"topology_not_live", "memory", "cgroup_memory",
                                        "reserved_pages"};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (strcmp(json_get_text(blocker, "kind", ""), kinds[i]) == 0)
            return true;
    return false;
}

// One blocker is the error itself; several are a line each, and counted.
static int print_blockers(const struct json *blockers)
{
    int n = json_count(blockers);
    for (const struct json *b = json_first(blockers); b && n > 1; b = json_next(b)) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        buf_plain(&line, json_get_text(b, "text", ""));
        fprintf(stderr, "numaprobe: the run is blocked: %s\n", buf_text(&line));
    }
    return n;
}

static void hint_to_wait(const struct spec *s, const struct json *blockers)
{
    bool never = s->queue_s > 0;
    for (const struct json *b = json_first(blockers); b; b = json_next(b))
        never |= never_passes(b);
    if (!never)
        problem_hint(
            "--wait-for-node=10m waits up to 10 minutes for the node. With admission = warn in "
            "numaprobed.conf the run starts and the condition is recorded");
}

static int run_refused(const struct cli *c, const struct spec *s, const struct http_reply *r,
                       struct err *err)
{
    CLEANUP_JSON struct json *problem = json_parse(buf_text(&r->body), r->body.len, NULL);
    const struct json *blockers = json_get(problem, "blockers");
    int n = print_blockers(blockers);
    if (strcmp(json_get_text(problem, "type", ""), "/problems/busy") == 0)
        hint_to_wait(s, blockers);
    http_problem(r, err);
    if (r->status == 422) // our own spec_check_request() is behind us
        other_version_hint(c, s, json_get_text(problem, "member", ""));
    if (n > 1)
        return err_set(err, err->code, "", "%d conditions block the run", n);
    return n ? err_prefix(err, "the run is blocked") : -1;
}

static int post(const struct cli *c, const struct invocation *i, bool dry, struct json **out,
                struct err *err)
{
    const struct run_flags *f = i->options;
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_REPLY struct http_reply r = {0};
    struct jsonw w = jsonw_to(&body);
    char header[100];
    spec_write_request(i->spec, i->given, &w, NULL);
    snprintf(header, sizeof header, "Idempotency-Key: %s", f->key);
    if (http_call(c, "POST", dry ? "/v1/runs?dry_run=true" : "/v1/runs", buf_text(&body),
                  *f->key && !dry ? header : NULL, &r, err) < 0)
        return -1;
    if (r.status != 200 && r.status != 202)
        return run_refused(c, i->spec, &r, err);
    *out = json_parse(buf_text(&r.body), r.body.len, err);
    return *out ? 0 : err_prefix(err, "the response of the server");
}

static void print_numbers(struct buf *to, const struct json *list)
{
    for (const struct json *n = json_first(list); n; n = json_next(n)) {
        int64_t number = -1;
        json_i64(n, &number);
        buf_fmt(to, "%s %lld", n == json_first(list) ? "" : ",", (long long)number);
    }
}

// "CPU 1 -> node 0" for a few ranks, a count for many; a node only where the plan gives the rank
// one.
static void print_ranks(struct buf *to, const struct json *ranks, bool nodes)
{
    int shown = 0, n = json_count(ranks);
    for (const struct json *r = json_first(ranks); r && shown < 8; r = json_next(r), shown++) {
        long long node = json_get_i64(r, "mem_node", -1);
        buf_fmt(to, "%s CPU %lld", shown ? "," : "", (long long)json_get_i64(r, "cpu", -1));
        if (nodes && node >= 0)
            buf_fmt(to, " -> node %lld", node);
    }
    if (n > shown)
        buf_fmt(to, " and %d more", n - shown);
}

static void print_interleaved(struct buf *to, const struct json *list)
{
    for (const struct json *k = json_first(list); k; k = json_next(k))
        buf_fmt(to, "; memory: %s", json_text(k) ? json_text(k) : "");
}

static void print_time(const struct cli *c, FILE *to, const struct json *plan)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    print_estimate(&text, plan);
    if (json_get_number(plan, "estimate_s", 0) > 0)
        print_line_to(c, to, buf_text(&text));
    for (const struct json *k = json_first(json_get(plan, "shortened")); k; k = json_next(k)) {
        const char *name = json_get_text(k, "name", "");
        long long from = json_get_i64(k, "from", 0), less = json_get_i64(k, "to", 0);
        CLEANUP_BUF struct buf line = BUF_INIT;
        if (strcmp(name, "pairs_most") == 0)
            budget_pairs_text(less, from, 0, &line);
        else
            buf_fmt(&line, "to fit the budget: %s %lld -> %lld", name, from, less);
        print_line_to(c, to, buf_text(&line));
    }
}

static void print_plan(const struct cli *c, FILE *to, const struct json *plan)
{
    const struct json *ranks = json_get(plan, "ranks"), *targets = json_get(plan, "targets");
    bool has_targets = json_get_number(plan, "bytes_per_target", 0) > 0;
    const char *load = json_get_text(plan, "load_cpus", "");
    CLEANUP_BUF struct buf head = BUF_INIT;
    char bytes[32];
    double most = json_get_number(plan, has_targets ? "bytes_per_target" : "bytes_per_rank", 0);
    str_rough_size(most, bytes, sizeof bytes);
    buf_fmt(&head, "%d rank%s", json_count(ranks), str_plural(json_count(ranks)));
    if (most > 0)
        buf_fmt(&head, ", up to %s %s", bytes, has_targets ? "on each target" : "each");
    buf_char(&head, ':');
    print_ranks(&head, ranks, !has_targets);
    buf_str(&head, json_count(targets) ? "; targets: node" : "");
    print_numbers(&head, targets);
    print_interleaved(&head, json_get(plan, "interleaved"));
    if (*load)
        buf_fmt(&head, "; load on CPU %s", load);
    print_line_to(c, to, buf_text(&head));
    print_time(c, to, plan);
    for (const struct json *k = json_first(json_get(plan, "notes")); k; k = json_next(k)) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        buf_fmt(&line, "note: %s", json_text(k) ? json_text(k) : "");
        print_line_to(c, to, buf_text(&line));
    }
}

// The plan is there whatever the node does; the exit status is that of the run that it stands for.
static int dry_blocked(const struct spec *s, const struct json *admission, struct err *err)
{
    CLEANUP_BUF struct buf first = BUF_INIT;
    const struct json *blockers = json_get(admission, "blockers");
    bool waits = json_get_bool(admission, "waits", false);
    if (json_get_bool(admission, "admitted", true))
        return 0;
    buf_plain(&first, json_get_text(json_first(blockers), "text", "no reason given"));
    if (waits) {
        fprintf(stderr, "numaprobe: the run would wait: %s\n", buf_text(&first));
        return 0;
    }
    fflush(stdout);
    hint_to_wait(s, blockers);
    int n = print_blockers(blockers);
    return n > 1 ? err_set(err, ERR_BUSY, "", "%d conditions block the run", n)
                 : err_set(err, ERR_BUSY, "", "the run is blocked: %s", buf_text(&first));
}

static int show_dry(const struct cli *c, const struct spec *s, const struct json *dry,
                    struct err *err)
{
    if (c->output != OUTPUT_TABLE) {
        print_json(dry);
    } else {
        CLEANUP_BUF struct buf command = BUF_INIT;
        buf_plain(&command, json_get_text(dry, "command", ""));
        print_plan(c, stdout, json_get(dry, "plan"));
        printf("%s\n", buf_text(&command));
    }
    return dry_blocked(s, json_get(dry, "admission"), err);
}

// A run that is canceled has ended when its processes have: nothing is left then.
static int cancel_and_wait(const struct cli *c, int64_t id, struct err *err)
{
    char path[80];
    CLEANUP_JSON struct json *answer = NULL;
    snprintf(path, sizeof path, "/v1/runs/%lld/cancel", (long long)id);
    if (http_json(c, "POST", path, NULL, &answer, err) < 0)
        return -1;
    CLEANUP_JSON struct json *run = NULL;
    return follow_to_end(c, id, &run, err);
}

static int interrupted(const struct cli *c, int64_t id, bool keep)
{
    struct err err = {0};
    long long n = id;
    if (keep)
        fprintf(stderr,
                "numaprobe: run %lld is still running on the daemon\n"
                "  follow it: numaprobe show %lld --follow\n  stop it:   numaprobe cancel %lld\n",
                n, n, n);
    else if (cancel_and_wait(c, id, &err) == 0)
        fprintf(stderr, "numaprobe: interrupted: run %lld is canceled\n", n);
    else
        fprintf(stderr, "numaprobe: run %lld could not be canceled: %s\n", n, err.text);
    return CLI_EXIT_INTERRUPTED;
}

// What interrupts has to find a run that is known by its number: it waits until the daemon has
// responded.
static int run_start(const struct cli *c, const struct invocation *i, struct json **queued,
                     int64_t *id, struct err *err)
{
    const struct run_flags *f = i->options;
    if (!f->detach)
        interrupts_block(true); // follow() ends this
    if (post(c, i, false, queued, err) == 0 && result_run_id(*queued, id, err) == 0)
        return 0;
    interrupts_block(false);
    return -1;
}

// The daemon has the run, and ends it as interrupted where it is stopped itself.
static int run_lost(int64_t id, const struct err *err)
{
    long long n = id;
    if (err->code == ERR_UNREACHABLE)
        fprintf(stderr,
                "numaprobe: run %lld is not followed any more\n"
                "  see what became of it: numaprobe show %lld\n",
                n, n);
    return -1;
}

static int cmd_run_finish(const struct cli *c, const struct json *run, struct err *err)
{
    int64_t id = json_get_i64(run, "id", 0);
    if (strcmp(json_get_text(run, "state", ""), run_state_names[RUN_SUCCEEDED]) != 0) {
        if (json_get_i64(run, "cells", 0) > 0 && result_print_run(c, run, false, err) < 0)
            return -1; // what its time limit left
        const struct json *error = json_get(run, "error");
        if (!json_text(json_get(run, "started"))) // then nothing was printed
            return err_set(err, ERR_CONFLICT, json_get_text(error, "member", ""),
                           "run %lld %s: %.220s", (long long)id, json_get_text(run, "state", "?"),
                           json_get_text(error, "text", "no reason given"));
        return err_set(err, ERR_CONFLICT, json_get_text(error, "member", ""),
                       "run %lld %s: %.180s (numaprobe log %lld shows what was printed)",
                       (long long)id, json_get_text(run, "state", "?"),
                       json_get_text(error, "text", "no reason given"), (long long)id);
    }
    return result_print_run(c, run, false, err);
}

int cmd_run(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct run_flags *f = i->options;
    const struct spec *s = i->spec;
    CLEANUP_JSON struct json *dry = NULL, *queued = NULL, *run = NULL;
    int64_t id = 0;
    const char *what = f->dry_run ? "with --dry-run the output is" : "with --detach the output is";
    if ((f->dry_run || f->detach) && print_refuse_csv(c, what, err) < 0)
        return -1;
    if (spec_check(s, err) < 0 || spec_check_request(s, err) < 0) {
        err->code = ERR_USAGE;
        return -1;
    }
    if (post(c, i, true, &dry, err) < 0)
        return -1;
    if (f->dry_run)
        return show_dry(c, s, dry, err);
    print_plan(c, stderr, json_get(dry, "plan"));
    if (run_start(c, i, &queued, &id, err) < 0)
        return -1;
    if (f->detach) {
        if (!print_if_json(c, queued))
            printf("run %lld is queued\n", (long long)id);
        return 0;
    }
    if (follow(c, id, &run, err) < 0)
        return err->code == ERR_TIMEOUT ? interrupted(c, id, f->keep_on_interrupt)
                                        : run_lost(id, err);
    return cmd_run_finish(c, run, err);
}
