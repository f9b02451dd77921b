// SPDX-License-Identifier: Apache-2.0
// cancel: one run, or all that wait or are running. With --wait it also sees them end, for the
// prolog of a batch job: a run is final only when its processes have ended.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/commands.h"
#include "client/follow.h"
#include "client/http.h"
#include "client/result.h"
#include "model/run.h"

enum { LOOK_MS = 50, WAIT_MAX_S = 3600 };

struct cancel_flags {
    bool all;
    int64_t wait_s;
};

static const struct param cancel_params[] = {
    {.name = "all",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct cancel_flags, all),
     .def = "false",
     .help = "Cancel every run that is waiting or running."},
    {.name = "wait",
     .kind = PARAM_INT,
     .offset = offsetof(struct cancel_flags, wait_s),
     .max = WAIT_MAX_S,
     .def = "0",
     .unit = "s",
     .help = "Wait until the runs and their processes have ended, at most this long. The exit "
             "status is 6 if one has not ended by then. Default: do not wait."},
};
const struct param_table cancel_options = {cancel_params, COUNT_OF(cancel_params)};

// A run that ends meanwhile, or is deleted, needs no cancelling.
static int cancel_one(const struct cli *c, int64_t id, bool all, struct err *err)
{
    char path[80];
    CLEANUP_REPLY struct http_reply r = {0};
    snprintf(path, sizeof path, "/v1/runs/%lld/cancel", (long long)id);
    if (http_call(c, "POST", path, NULL, NULL, &r, err) < 0)
        return -1;
    bool gone = all && (r.status == err_info(ERR_CONFLICT)->http ||
                        r.status == err_info(ERR_NOT_FOUND)->http);
    if (r.status >= 200 && r.status <= 299)
        printf("run %lld is being stopped\n", (long long)id);
    else if (!gone)
        return http_problem(&r, err);
    fflush(stdout);
    return 0;
}

// Cancels the runs in this state that have not been canceled yet: those above *newest. *n: how many
// there are.
static int cancel_in_state(const struct cli *c, enum run_state state, int64_t *newest, int *n,
                           struct err *err)
{
    char path[80];
    int64_t above = *newest;
    CLEANUP_JSON struct json *page = NULL;
    snprintf(path, sizeof path, "/v1/runs?state=%s&limit=200", run_state_names[state]);
    if (http_json(c, "GET", path, NULL, &page, err) < 0)
        return -1;
    for (const struct json *r = json_first(json_get(page, "runs")); r; r = json_next(r)) {
        int64_t id = json_get_i64(r, "id", 0);
        ++*n;
        if (id > above && cancel_one(c, id, true, err) < 0)
            return -1;
        *newest = id > *newest ? id : *newest;
    }
    return 0;
}

// Waiting runs first: else the next of them begins.
static int cancel_all(const struct cli *c, int64_t newest[RUN_STATES], int *left, struct err *err)
{
    *left = 0;
    return cancel_in_state(c, RUN_QUEUED, &newest[RUN_QUEUED], left, err) < 0
               ? -1
               : cancel_in_state(c, RUN_RUNNING, &newest[RUN_RUNNING], left, err);
}

static int count_unless_final(const struct cli *c, int64_t id, int *left, struct err *err)
{
    CLEANUP_JSON struct json *run = NULL;
    if (result_get_run(c, id, 0, &run, err) < 0)
        return -1;
    int state = run_state_find(json_get_text(run, "state", ""));
    *left = state < 0 || !run_state_final((enum run_state)state);
    return 0;
}

// Looks until nothing is left. `id` 0: at all runs; those that are requested meanwhile are canceled
// too.
static int wait_for_end(struct cli *c, int64_t id, int64_t newest[RUN_STATES], int64_t wait_s,
                        int64_t until_ms, struct err *err)
{
    for (int left = 1;;) {
        int64_t now_ms = clock_mono_ms(), left_s = (until_ms - now_ms + 999) / 1000;
        c->timeout_s = left_s < 1 ? 1 : left_s < c->timeout_s ? left_s : c->timeout_s;
        if ((id ? count_unless_final(c, id, &left, err) : cancel_all(c, newest, &left, err)) < 0)
            return -1;
        if (!left)
            return 0;
        now_ms = clock_mono_ms();
        if (now_ms >= until_ms)
            return err_set(err, ERR_BUSY, "", "%d run%s not ended within %lld s", left,
                           left == 1 ? " has" : "s have", (long long)wait_s);
        follow_pause_until(now_ms + LOOK_MS < until_ms ? now_ms + LOOK_MS : until_ms);
    }
}

int cmd_cancel(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct cancel_flags *f = i->options;
    const int64_t until_ms = clock_mono_ms() + f->wait_s * 1000;
    int64_t id = 0, newest[RUN_STATES] = {0};
    int found = 0;
    if (f->all == (i->n > 0))
        return err_set(err, ERR_USAGE, "", "name a run, or --all (numaprobe help cancel)");
    if (!f->all && result_find(c, i->operands, i->n, &id, err) < 0)
        return -1;
    if ((f->all ? cancel_all(c, newest, &found, err) : cancel_one(c, id, false, err)) < 0)
        return -1;
    if (f->all && !found)
        puts("no run is waiting or running");
    return f->wait_s ? wait_for_end(c, id, newest, f->wait_s, until_ms, err) : 0;
}
