// SPDX-License-Identifier: Apache-2.0
// The spec of each newest run of the benchmark is read until enough are the same.
#include "core/results/past_runs.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "core/store/history.h"
#include "model/run.h"
#include "model/spec_request.h"

struct past_look {
    const struct spec *wanted;
    struct past_runs *out;
};

// Specs of other versions may be none of today's; those that wanted other things are left out.
static bool past_fits(const struct past_look *l, const char *text, struct spec *spec)
{
    struct err unread;
    CLEANUP_JSON struct json *o = json_parse(text, strlen(text), &unread);
    return o && spec_from_run(spec, o, &unread) == 0 &&
           spec_difference(l->wanted, spec, NULL, 0) == 0;
}

static bool past_take(void *ctx, const struct run_took *r)
{
    struct past_look *l = ctx;
    struct past_run *to = &l->out->list[l->out->n];
    double seconds = run_seconds(RUN_SUCCEEDED, r->started_ms, r->finished_ms);
    if (!(seconds > 0) || !past_fits(l, r->spec, &to->spec))
        return true;
    to->run = r->id;
    to->n_ranks = r->n_ranks;
    to->seconds = seconds;
    to->processes = r->without_mpi || to->spec.launcher == LAUNCHER_PROCESSES;
    return ++l->out->n < PAST_RUNS_MAX;
}

int past_runs_look(struct past_runs *out, struct store *store, const struct machine *m,
                   const struct spec *s, struct err *err)
{
    struct past_look look = {s, out};
    const struct run_like like = {.node = m->hostname,
                                  .benchmark = (enum benchmark_id)s->benchmark,
                                  .class_hash = m->fingerprint.machine_class.hash,
                                  .config_hash = m->fingerprint.config.hash,
                                  .method = spec_method(s)};
    out->n = 0;
    return s->benchmark == BENCHMARK_SCAN ? 0
                                          : store_runs_like(store, &like, past_take, &look, err);
}
