// SPDX-License-Identifier: Apache-2.0
// A run counts only for the machine that it was measured on: of the same name, with the same nodes
// and CPUs. Kernels and sizes of memory may have changed since, so the topologies need not be
// equal.
#include "core/results/measured_nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/results/stored_run.h"
#include "core/store/unreadable.h"
#include "model/plan.h"
#include "model/spec_values.h"

// In the order in which their quantities are taken.
static const enum benchmark_id of_nodes[] = {BENCHMARK_MATRIX, BENCHMARK_LATENCY,
                                             BENCHMARK_BANDWIDTH};
_Static_assert(COUNT_OF(of_nodes) == MEASURED_RUNS_MAX, "one run of each");

void measured_nodes_fini(struct measured_nodes *n)
{
    node_costs_fini(&n->costs);
    for (int i = 0; i < n->n_runs; i++)
        run_fini(&n->runs[i].run);
    *n = (struct measured_nodes){0};
}

// ---- Is it of this machine? ---------------------------------------------------------------------

static bool has_same_cpus(const struct topology *a, const struct topology *b)
{
    if (a->n_cpus != b->n_cpus)
        return false;
    for (int i = 0; i < a->n_cpus; i++)
        if (a->cpus[i].os != b->cpus[i].os || a->cpus[i].node != b->cpus[i].node)
            return false;
    return true;
}

static bool has_same_nodes(const struct topology *a, const struct topology *b)
{
    if (a->n_nodes != b->n_nodes)
        return false;
    for (int i = 0; i < a->n_nodes; i++)
        if (a->nodes[i].os != b->nodes[i].os || strcmp(a->nodes[i].kind, b->nodes[i].kind) != 0)
            return false;
    return true;
}

static int check_machine(struct store *s, const struct machine *m, const struct run *run,
                         struct err *err)
{
    struct topology room CLEANUP(topology_fini) = {0};
    const struct topology *then;
    if (strcmp(run->node, m->hostname) != 0)
        return err_set(err, ERR_CONFLICT, "measured",
                       "run %" PRId64 " was measured on %.63s, and this node is %.63s", run->id,
                       run->node, m->hostname);
    struct err why = {0};
    if (stored_run_topology(s, m, run->id, &room, &then, &why) < 0) {
        *err = why;
        return -1;
    }
    if (!then)
        return err_set(err, ERR_CONFLICT, "measured",
                       "run %" PRId64 " has no topology, so it cannot be placed on this machine",
                       run->id);
    if (!has_same_nodes(then, &m->topology) || !has_same_cpus(then, &m->topology))
        return err_set(err, ERR_CONFLICT, "measured",
                       "run %" PRId64 " was measured on a machine with other nodes or CPUs than "
                       "this one has now",
                       run->id);
    return 0;
}

// ---- One run ------------------------------------------------------------------------------------

static int check_tally(const struct node_cost_tally *t, const struct run *run, struct err *err)
{
    if (t->counted)
        return 0;
    if (!t->no_nodes && !t->cached && !t->disturbed && !t->unverified && !t->elsewhere)
        return err_set(err, ERR_CONFLICT, "measured",
                       "run %" PRId64 " adds nothing to the runs that are named before it",
                       run->id);
    if (t->no_nodes)
        return err_set(err, ERR_CONFLICT, "measured",
                       "run %" PRId64 " (%s) has no values between nodes. Runs of matrix, latency "
                       "and bandwidth (sweep nodes) have some",
                       run->id, benchmarks[run->spec.benchmark].name);
    if (t->cached)
        return err_set(err, ERR_CONFLICT, "measured",
                       "the largest working set of run %" PRId64 " may be in a cache, so "
                       "its values are not those of memory",
                       run->id);
    return err_set(err, ERR_CONFLICT, "measured",
                   "no cell of run %" PRId64 " counts: %d disturbed, %d not verified, %d of other "
                   "memory",
                   run->id, t->disturbed, t->unverified, t->elsewhere);
}

static int add_stored(struct measured_nodes *n, struct stored_run *stored, struct err *err)
{
    const struct node_cost_run from = {.benchmark = (enum benchmark_id)stored->run.spec.benchmark,
                                       .matrices = stored->list,
                                       .n_matrices = stored->n,
                                       .ranks = stored->ranks,
                                       .n_ranks = stored->n_ranks,
                                       .found_bytes = plan_read_found(stored->run.plan_json),
                                       .size_bytes =
                                           (int64_t)spec_bytes_per_rank(&stored->run.spec, 0)};
    struct measured_run *r = &n->runs[n->n_runs];
    bool had[NODE_COST_KINDS];
    for (int k = 0; k < NODE_COST_KINDS; k++)
        had[k] = n->costs.of[k] != NULL;
    *r = (struct measured_run){0};
    if (node_costs_add(&n->costs, &from, &r->tally, err) < 0 ||
        check_tally(&r->tally, &stored->run, err) < 0)
        return -1;
    for (int k = 0; k < NODE_COST_KINDS; k++)
        r->of[k] = !had[k] && n->costs.of[k];
    r->run = stored->run; // with what it owns
    stored->run = (struct run){0};
    n->n_runs++;
    return 0;
}

static int measured_add_run(struct measured_nodes *n, struct store *s, const struct machine *m,
                            int64_t id, struct err *err)
{
    struct stored_run stored CLEANUP(stored_run_fini) = {0};
    if (stored_run_load(s, id, &stored, err) < 0)
        return err->code != ERR_NOT_FOUND
                   ? -1
                   : err_set(err, ERR_NOT_FOUND, "measured", "there is no run %" PRId64, id);
    if (stored.run.state != RUN_SUCCEEDED)
        return err_set(err, ERR_CONFLICT, "measured",
                       "run %" PRId64 " is %s; only a run that succeeded counts", id,
                       run_state_names[stored.run.state]);
    return check_machine(s, m, &stored.run, err) < 0 ? -1 : add_stored(n, &stored, err);
}

// ---- Which runs ---------------------------------------------------------------------------------

static int measured_read_numbers(const char *which, int64_t ids[MEASURED_RUNS_MAX], int *n,
                                 struct err *err)
{
    *n = 0;
    for (const char *at = which; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char number[24];
        int64_t id;
        size_t len = strcspn(at, ",");
        snprintf(number, sizeof number, "%.*s", len < sizeof number ? (int)len : 0, at);
        if (!str_to_i64(number, &id) || id < 1)
            return err_set(err, ERR_INVALID, "measured",
                           "must be last or the numbers of runs, such as 17 or 17,18, got "
                           "\"%.40s\"",
                           which);
        if (*n == MEASURED_RUNS_MAX)
            return err_set(err, ERR_INVALID, "measured", "takes %d runs at most",
                           MEASURED_RUNS_MAX);
        ids[(*n)++] = id;
    }
    return 0;
}

static int add_named(struct measured_nodes *n, struct store *s, const struct machine *m,
                     const char *which, struct err *err)
{
    int64_t ids[MEASURED_RUNS_MAX];
    int count;
    if (measured_read_numbers(which, ids, &count, err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (measured_add_run(n, s, m, ids[i], err) < 0)
            return -1;
    return 0;
}

static int add_newest(struct measured_nodes *n, struct store *s, const struct machine *m,
                      enum benchmark_id benchmark, struct err *err)
{
    const struct run_filter filter = {.state = RUN_SUCCEEDED,
                                      .benchmark = benchmarks[benchmark].name,
                                      .node = m->hostname,
                                      .limit = MEASURED_RUNS_TRIED};
    int64_t ids[MEASURED_RUNS_TRIED];
    int count, before = n->n_runs;
    bool more;
    if (store_run_list_ids(s, &filter, ids, &count, &more, err) < 0)
        return -1;
    for (int i = 0; i < count && n->n_runs == before; i++) {
        struct run run CLEANUP(run_fini) = {0};
        struct err why = {0};
        if (store_run_get(s, ids[i], &run, err) < 0)
            return -1;
        if (!run.imported && measured_add_run(n, s, m, ids[i], &why) < 0 &&
            !store_of_one_run(&why)) {
            *err = why;
            return -1;
        }
    }
    return 0;
}

static int add_last(struct measured_nodes *n, struct store *s, const struct machine *m,
                    struct err *err)
{
    for (size_t i = 0; i < COUNT_OF(of_nodes); i++)
        if (add_newest(n, s, m, of_nodes[i], err) < 0)
            return -1;
    return n->n_runs ? 0
                     : err_set(err, ERR_NOT_FOUND, "measured",
                               "this node has no run of matrix, latency or bandwidth with a cell "
                               "that counts. Start one, or name an imported run by its number");
}

int measured_nodes_load(struct store *s, const struct machine *m, const char *which,
                        struct measured_nodes *out, struct err *err)
{
    struct measured_nodes n CLEANUP(measured_nodes_fini) = {0};
    node_costs_init(&n.costs, &m->topology);
    if ((strcmp(which, "last") == 0 ? add_last(&n, s, m, err) : add_named(&n, s, m, which, err)) <
        0)
        return -1;
    *out = n;
    n = (struct measured_nodes){0};
    return 0;
}
