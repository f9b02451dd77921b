// SPDX-License-Identifier: Apache-2.0
// A table says which matrix is of which quantity. Each pair of nodes pools its cells of one matrix:
// the median of their medians, and of the ends of their intervals.
#include "analysis/stats/node_costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/beyond_caches.h"
#include "analysis/stats/median.h"
#include "analysis/stats/rank_places.h"
#include "base/cleanup.h"

const struct node_cost_info node_cost_kinds[NODE_COST_KINDS] = {
    [NODE_COST_LATENCY] = {"latency_ns", "idle latency", NULL},
    [NODE_COST_CONCURRENT] = {"concurrent_latency_ns", "latency with all ranks at once", NULL},
    [NODE_COST_TRIAD] = {"triad_mbps", "triad bandwidth", "triad"},
    [NODE_COST_COPY] = {"copy_mbps", "copy bandwidth", "copy"},
    [NODE_COST_READ] = {"read_mbps", "read bandwidth", "read"},
    [NODE_COST_WRITE] = {"write_mbps", "write bandwidth", "write"},
    [NODE_COST_ADD] = {"add_mbps", "add bandwidth", "add"},
    [NODE_COST_SCALE] = {"scale_mbps", "scale bandwidth", "scale"},
};

static const double placed_share = 0.99; // of the pages, as reports and conditions have it

// Matrices of latencies; those of bandwidths are initiator by target and named by their kernel.
static const struct {
    enum benchmark_id benchmark;
    const char *matrix, *cols;
    enum node_cost_kind kind;
} latencies[] = {
    {BENCHMARK_MATRIX, "idle", "target", NODE_COST_LATENCY},
    {BENCHMARK_LATENCY, "serial", "working_set", NODE_COST_LATENCY},
    {BENCHMARK_LATENCY, "concurrent", "working_set", NODE_COST_CONCURRENT},
};

struct pooling {
    struct node_costs *costs;
    const struct node_cost_run *run;
    const struct matrix *m;
    struct places places;          // owned
    struct node_cost_tally *tally; // of all matrices
    // Room for all rows; owned. Nodes are indices of the topology; -1: none of its nodes.
    int *initiator, *memory;
    bool *verified;
    double *v, *lo, *hi; // of one pair
};

void node_costs_init(struct node_costs *c, const struct topology *t)
{
    *c = (struct node_costs){.topology = t};
}

void node_costs_fini(struct node_costs *c)
{
    for (int k = 0; k < NODE_COST_KINDS; k++)
        free(c->of[k]);
    *c = (struct node_costs){0};
}

static void pooling_fini(struct pooling *p)
{
    places_fini(&p->places);
    free(p->initiator);
    free(p->memory);
    free(p->verified);
    free(p->v);
    free(p->lo);
    free(p->hi);
}

// ---- Which cells count --------------------------------------------------------------------------

static bool rank_is_verified(const struct rank_info *k)
{
    return k && k->cpu_node >= 0 && k->migrations <= 0 &&
           (k->cpu_wanted < 0 || k->cpu == k->cpu_wanted) && k->pages_checked > 0 &&
           k->mem_share >= placed_share;
}

// All ranks of a node work for a cell of bandwidth.
static bool node_is_verified(const struct pooling *p, int64_t node)
{
    int ranks = 0;
    for (int i = 0; i < p->places.n; i++) {
        const struct rank_info *k = p->places.list[i].info;
        if (k->cpu_node == node && !rank_is_verified(k))
            return false;
        ranks += k->cpu_node == node;
    }
    return ranks > 0;
}

static bool cell_is_undisturbed(const struct cell *c)
{
    return c->v[CELL_N] > 1 || (c->v[CELL_N] > 0 && c->v[CELL_DISTURBED] == 0);
}

static bool has_targets(const struct matrix *m)
{
    return strcmp(m->col.name, "target") == 0;
}

static void look_at_row(struct pooling *p, int row)
{
    const struct topology *t = p->costs->topology;
    int64_t value = p->m->row.values[row];
    const struct rank_info *k = NULL;
    if (strcmp(p->m->row.name, "rank") == 0) {
        k = places_info(&p->places, value);
        p->verified[row] = rank_is_verified(k);
        value = k ? k->cpu_node : -1;
    } else {
        p->verified[row] = node_is_verified(p, value);
    }
    p->initiator[row] = topology_node_index(t, (int)value);
    p->memory[row] = k ? topology_node_index(t, (int)k->mem_node) : -1;
}

// Does the cell count? The tally says why not. `target`: its node's index.
static bool cell_counts(const struct pooling *p, int row, int col, int target)
{
    const struct cell *c = matrix_at(p->m, row, col);
    if (!(c->v[CELL_MEDIAN] > 0) || !isfinite(c->v[CELL_MEDIAN]))
        return false;
    if (!p->verified[row])
        p->tally->unverified++;
    else if (!cell_is_undisturbed(c))
        p->tally->disturbed++;
    else if (p->initiator[row] < 0 || target < 0)
        p->tally->elsewhere++;
    else {
        p->tally->counted++;
        return true;
    }
    return false;
}

// ---- Pools --------------------------------------------------------------------------------------

// The median; NaN if one is not known.
static double median_if_known(double *v, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return NAN;
    return middle_of(v, n);
}

// Rows of `initiator` at a column; where columns are no targets, those with memory on `target`.
static struct node_cost pool_pair(struct pooling *p, const bool *counts, int col, int initiator,
                                  int target)
{
    int n = 0;
    for (int r = 0; r < p->m->row.n; r++) {
        const double *v = matrix_at(p->m, r, col)->v;
        if (p->initiator[r] != initiator || !counts[r * p->m->col.n + col] ||
            (!has_targets(p->m) && p->memory[r] != target))
            continue;
        p->v[n] = v[CELL_MEDIAN];
        p->lo[n] = v[CELL_LO];
        p->hi[n++] = v[CELL_HI];
    }
    return (struct node_cost){middle_of(p->v, n), median_if_known(p->lo, n),
                              median_if_known(p->hi, n)};
}

static void pool_node_pairs(struct pooling *p, const bool *counts, struct node_cost *of)
{
    const struct topology *t = p->costs->topology;
    for (int j = 0; j < t->n_nodes; j++) {
        int col = has_targets(p->m) ? axis_index(&p->m->col, t->nodes[j].os) : p->m->col.n - 1;
        for (int i = 0; i < t->n_nodes; i++)
            of[i * t->n_nodes + j] =
                col < 0 ? (struct node_cost){NAN, NAN, NAN} : pool_pair(p, counts, col, i, j);
    }
}

// Columns from `from` on. A target of -1 is each rank's own memory, which is no column of a node.
static int pool_all(struct pooling *p, enum node_cost_kind kind, int from, struct err *err)
{
    const struct topology *t = p->costs->topology;
    size_t nodes = (size_t)t->n_nodes, cells = (size_t)p->m->row.n * (size_t)p->m->col.n;
    CLEANUP_MEM bool *counts = calloc(cells + 1, sizeof *counts);
    CLEANUP_MEM struct node_cost *of = calloc(nodes * nodes + 1, sizeof *of);
    int before = p->tally->counted;
    if (!counts || !of)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the costs between nodes");
    for (int c = from; c < p->m->col.n; c++) {
        int target = has_targets(p->m) ? topology_node_index(t, (int)p->m->col.values[c]) : -1;
        for (int r = 0; r < p->m->row.n; r++)
            counts[r * p->m->col.n + c] =
                cell_counts(p, r, c, has_targets(p->m) ? target : p->memory[r]);
    }
    if (p->tally->counted == before)
        return 0;
    pool_node_pairs(p, counts, of);
    p->costs->of[kind] = steal_ptr(&of);
    return 0;
}

// The quantity of a matrix; NODE_COST_KINDS: none of ours.
static enum node_cost_kind kind_of_matrix(const struct node_cost_run *run, const struct matrix *m)
{
    for (size_t i = 0; i < COUNT_OF(latencies); i++)
        if (latencies[i].benchmark == run->benchmark && strcmp(latencies[i].matrix, m->name) == 0 &&
            strcmp(m->row.name, "rank") == 0 && strcmp(latencies[i].cols, m->col.name) == 0)
            return latencies[i].kind;
    bool nodes = strcmp(m->row.name, "initiator") == 0 && strcmp(m->col.name, "target") == 0;
    for (int k = 0; nodes && run->benchmark == BENCHMARK_BANDWIDTH && k < NODE_COST_KINDS; k++)
        if (node_cost_kinds[k].kernel && strcmp(node_cost_kinds[k].kernel, m->name) == 0)
            return (enum node_cost_kind)k;
    return NODE_COST_KINDS;
}

static bool has_working_sets(const struct matrix *m)
{
    return strcmp(m->col.name, "working_set") == 0;
}

// Whether its values are those of memory; of a latency over working sets, that of the largest.
static int is_of_memory(const struct pooling *p, enum node_cost_kind kind, bool *is,
                        struct err *err)
{
    const struct node_cost_run *run = p->run;
    const struct curve_machine machine = {.topology = p->costs->topology,
                                          .ranks = run->ranks,
                                          .n_ranks = run->n_ranks,
                                          .together = kind == NODE_COST_CONCURRENT,
                                          .found_bytes = run->found_bytes};
    if (has_working_sets(p->m))
        return beyond_caches(p->m, &machine, is, err);
    *is = !run->size_bytes || size_beyond_caches(run->size_bytes, &machine);
    return 0;
}

static int pool_matrix(struct pooling *p, enum node_cost_kind kind, struct err *err)
{
    bool of_memory;
    for (int r = 0; r < p->m->row.n; r++)
        look_at_row(p, r);
    if (is_of_memory(p, kind, &of_memory, err) < 0)
        return -1;
    if (of_memory)
        return pool_all(p, kind, has_working_sets(p->m) ? p->m->col.n - 1 : 0, err);
    p->tally->cached += p->m->row.n;
    return 0;
}

static int make_room(struct pooling *p, struct err *err)
{
    size_t rows = 1;
    for (int i = 0; i < p->run->n_matrices; i++)
        rows = (size_t)p->run->matrices[i].row.n > rows ? (size_t)p->run->matrices[i].row.n : rows;
    p->initiator = calloc(rows, sizeof *p->initiator);
    p->memory = calloc(rows, sizeof *p->memory);
    p->verified = calloc(rows, sizeof *p->verified);
    p->v = calloc(rows, sizeof *p->v);
    p->lo = calloc(rows, sizeof *p->lo);
    p->hi = calloc(rows, sizeof *p->hi);
    return p->initiator && p->memory && p->verified && p->v && p->lo && p->hi
               ? 0
               : err_set(err, ERR_NO_MEMORY, "", "no memory for the costs between nodes");
}

int node_costs_add(struct node_costs *c, const struct node_cost_run *run,
                   struct node_cost_tally *tally, struct err *err)
{
    struct pooling p CLEANUP(pooling_fini) = {.costs = c, .run = run, .tally = tally};
    *tally = (struct node_cost_tally){.no_nodes = true};
    if (places_init(&p.places, run->ranks, run->n_ranks, c->topology, err) < 0 ||
        make_room(&p, err) < 0)
        return -1;
    for (int i = 0; i < run->n_matrices; i++) {
        enum node_cost_kind kind = kind_of_matrix(run, &run->matrices[i]);
        if (kind == NODE_COST_KINDS || !run->matrices[i].row.n || !run->matrices[i].col.n)
            continue;
        tally->no_nodes = false;
        p.m = &run->matrices[i];
        if (!c->of[kind] && pool_matrix(&p, kind, err) < 0)
            return -1;
    }
    return 0;
}

// ---- What was found -----------------------------------------------------------------------------

struct node_cost node_cost_at(const struct node_costs *c, enum node_cost_kind kind, int initiator,
                              int target)
{
    if (kind == NODE_COST_KINDS || !c->of[kind])
        return (struct node_cost){NAN, NAN, NAN};
    return c->of[kind][initiator * c->topology->n_nodes + target];
}

bool node_cost_more_is_better(enum node_cost_kind kind)
{
    return node_cost_kinds[kind].kernel != NULL;
}

static enum node_cost_kind first_measured(const struct node_costs *c, bool bandwidth)
{
    for (int k = 0; k < NODE_COST_KINDS; k++)
        if (c->of[k] && node_cost_more_is_better((enum node_cost_kind)k) == bandwidth)
            return (enum node_cost_kind)k;
    return NODE_COST_KINDS;
}

enum node_cost_kind node_costs_latency(const struct node_costs *c)
{
    return first_measured(c, false);
}

enum node_cost_kind node_costs_bandwidth(const struct node_costs *c)
{
    return first_measured(c, true);
}

int node_costs_pairs(const struct node_costs *c, enum node_cost_kind kind)
{
    int n = 0;
    for (int i = 0; c->of[kind] && i < c->topology->n_nodes * c->topology->n_nodes; i++)
        n += isfinite(c->of[kind][i].v);
    return n;
}
