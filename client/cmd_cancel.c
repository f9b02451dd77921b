// SPDX-License-Identifier: Apache-2.0
// cancel: one run, or all that wait or are running. With --wait it also sees them end, for the
// prolog of a batch job: a run is final only when its processes have ended.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "client/commands.h"
#include "client/follow.h"
#include "client/http.h"
#include "client/print.h"
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

// What is canceled. For a program that reads JSON the runs of --all are one list.
struct canceling {
    struct cli *cli;
    bool all;
    int64_t *canceled; // of --all, owned: one that was waiting is running when those are listed
    int n, room;
    struct jsonw list;
};

static void tell_canceled(struct canceling *k, int64_t id, const struct json *run)
{
    if (k->all && k->cli->output == OUTPUT_JSON)
        json_write(run, &k->list, NULL);
    else if (!print_if_json(k->cli, run))
        printf("run %lld is being stopped\n", (long long)id);
    fflush(stdout);
}

// A run that ends meanwhile, or is deleted, needs no cancelling.
static int cancel_one(struct canceling *k, int64_t id, struct err *err)
{
    char path[80];
    CLEANUP_JSON struct json *run = NULL;
    snprintf(path, sizeof path, "/v1/runs/%lld/cancel", (long long)id);
    if (http_json(k->cli, "POST", path, NULL, &run, err) < 0)
        return k->all && (err->code == ERR_CONFLICT || err->code == ERR_NOT_FOUND) ? 0 : -1;
    tell_canceled(k, id, run);
    return 0;
}

static bool is_canceled(const struct canceling *k, int64_t id)
{
    for (int i = 0; i < k->n; i++)
        if (k->canceled[i] == id)
            return true;
    return false;
}

static int cancel_once(struct canceling *k, int64_t id, struct err *err)
{
    if (is_canceled(k, id))
        return 0;
    if (k->n == k->room) {
        int room = k->room ? 2 * k->room : 64;
        int64_t *more = realloc(k->canceled, (size_t)room * sizeof *more);
        if (!more)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for the runs");
        k->canceled = more;
        k->room = room;
    }
    k->canceled[k->n++] = id;
    return cancel_one(k, id, err);
}

// Cancels the runs in this state that have not been canceled yet. *n: how many there are.
static int cancel_in_state(struct canceling *k, enum run_state state, int *n, struct err *err)
{
    char path[80];
    CLEANUP_JSON struct json *page = NULL;
    snprintf(path, sizeof path, "/v1/runs?state=%s&limit=200", run_state_names[state]);
    if (http_json(k->cli, "GET", path, NULL, &page, err) < 0)
        return -1;
    for (const struct json *r = json_first(json_get(page, "runs")); r; r = json_next(r)) {
        ++*n;
        if (cancel_once(k, json_get_i64(r, "id", 0), err) < 0)
            return -1;
    }
    return 0;
}

// Waiting runs first: else the next of them begins.
static int cancel_all(struct canceling *k, int *left, struct err *err)
{
    *left = 0;
    return cancel_in_state(k, RUN_QUEUED, left, err) < 0
               ? -1
               : cancel_in_state(k, RUN_RUNNING, left, err);
}

// One that was deleted meanwhile had ended.
static int count_unless_final(const struct cli *c, int64_t id, int *left, struct err *err)
{
    CLEANUP_JSON struct json *run = NULL;
    *left = 0;
    if (result_get_run(c, id, 0, &run, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    int state = run_state_find(json_get_text(run, "state", ""));
    *left = state < 0 || !run_state_final((enum run_state)state);
    return 0;
}

// Looks until nothing is left. `id` 0: at all runs; those that are requested meanwhile are canceled
// too.
static int wait_for_end(struct canceling *k, int64_t id, int64_t wait_s, int64_t until_ms,
                        struct err *err)
{
    struct cli *c = k->cli;
    for (int left = 1;;) {
        int64_t now_ms = clock_mono_ms(), left_s = (until_ms - now_ms + 999) / 1000;
        c->timeout_s = left_s < 1 ? 1 : left_s < c->timeout_s ? left_s : c->timeout_s;
        if ((id ? count_unless_final(c, id, &left, err) : cancel_all(k, &left, err)) < 0)
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

static int cancel_every(struct canceling *k, int64_t wait_s, int64_t until_ms, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    int found = 0;
    k->list = jsonw_to(&text);
    jsonw_object(&k->list, NULL);
    jsonw_array(&k->list, "runs");
    int rc = cancel_all(k, &found, err);
    if (rc == 0 && !found && k->cli->output == OUTPUT_TABLE)
        puts("no run is waiting or running");
    if (rc == 0 && wait_s)
        rc = wait_for_end(k, 0, wait_s, until_ms, err);
    jsonw_end(&k->list);
    jsonw_end(&k->list);
    if (k->cli->output == OUTPUT_JSON) // after a failure too: these are canceled
        print_json_text(&text);
    return rc;
}

int cmd_cancel(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct cancel_flags *f = i->options;
    const int64_t until_ms = clock_mono_ms() + f->wait_s * 1000;
    struct canceling k = {.cli = c, .all = f->all};
    int64_t id = 0;
    if (f->all == (i->n > 0))
        return err_set(err, ERR_USAGE, "", "name a run, or --all (numaprobe help cancel)");
    if (print_refuse_csv(c, "a canceled run is", err) < 0)
        return -1;
    if (f->all) {
        int rc = cancel_every(&k, f->wait_s, until_ms, err);
        free(k.canceled);
        return rc;
    }
    if (result_find(c, i->operands, i->n, &id, err) < 0 || cancel_one(&k, id, err) < 0)
        return -1;
    return f->wait_s ? wait_for_end(&k, id, f->wait_s, until_ms, err) : 0;
}
