// SPDX-License-Identifier: Apache-2.0
// Which metrics runs have, and that a node that names thousands takes nothing from the others.
#include "analysis/peers/columns.h"

#include "analysis/peers/fleet_findings.h"
#include "base/cleanup.h"
#include "model/metric.h"
#include "tests/unit/analysis/fleet_pages.h"
#include "tests/unit/tap.h"

static bool map_is(struct columns_map *m, struct columns_lists *lists, const int *column, int n,
                   int *added)
{
    if (columns_map_room(m, n, NULL) < 0)
        return false;
    memcpy(m->column, column, (size_t)n * sizeof *column);
    return columns_map_to(m, n, lists, added, NULL) == 0;
}

static void test_lists(void)
{
    static const int mixed[] = {7, -1, 2, 5, 2}, sorted[] = {2, 5, 7}, plain[] = {0, 1, 2},
                     none[] = {-1, -1};
    struct columns_map m = {0};
    struct columns_lists lists = {0};
    int added = 0;
    CHECK(map_is(&m, &lists, mixed, 5, &added) && added > 0 && m.to->n == 3, "a list of three");
    CHECK(m.from[0] == 4 && m.from[1] == 3 && m.from[2] == 0, "of two with one column the last");
    CHECK(columns_place(m.to, 2) == 0 && columns_place(m.to, 7) == 2 &&
              columns_place(m.to, 1) == -1 && columns_place(m.to, 8) == -1,
          "places of columns");
    const struct columns *first = m.to;
    CHECK(map_is(&m, &lists, sorted, 3, &added) && added == 0 && m.to == first,
          "one list for both");
    CHECK(map_is(&m, &lists, plain, 3, &added) && added > 0 && columns_place(m.to, 1) == 1 &&
              columns_place(m.to, 3) == -1,
          "columns from 0 on");
    CHECK(map_is(&m, &lists, none, 2, &added) && m.to->n == 0 && columns_place(m.to, 0) == -1,
          "a list of none");
    CHECK_INT(lists.n, 3, "lists");
    columns_map_fini(&m);
    columns_lists_fini(&lists);
}

enum { NAMES = METRICS_MAX, NODES = 20, RUNS = 6 };

// A page: runs of each node from `id` on, with other metrics than page_add() has: "x<first>" and
// those behind it. Variant "": of the same probe.
static void name_in_runs(struct fleet *f, const char *const *nodes, int n, const char *variant,
                         int first, int64_t id, int runs)
{
    CLEANUP_MEM struct summary_metric *names = calloc(NAMES, sizeof *names);
    CLEANUP_MEM float *values = calloc(NAMES, sizeof *values);
    CLEANUP_MEM struct summary *s = calloc((size_t)n * (size_t)runs, sizeof *s);
    struct summary_layout layout = {NAMES, names};
    struct summary_page page = {.n_layouts = 1, .n_runs = n * runs, .layouts = &layout, .runs = s};
    if (!names || !values || !s)
        abort();
    other_metrics(names, values, first, NAMES);
    for (int i = 0; i < n * runs; i++)
        s[i] = other_run(nodes[i / runs], variant, id + i % runs, values);
    if (fleet_add_page(f, &page, NULL) < 0)
        abort();
}

static void name_others(struct fleet *f, const char *const *nodes, int n, const char *variant,
                        int first, int64_t id)
{
    name_in_runs(f, nodes, n, variant, first, id, 1);
}

static void measure_usual(struct fleet *f)
{
    unsigned long long seed = 77;
    char name[16];
    for (int i = 0; i < NODES * RUNS; i++) {
        snprintf(name, sizeof name, "n%02d", i % NODES);
        struct page_run r = {.node = name,
                             .class = "A",
                             .config = "SET",
                             .id = 1 + i / NODES,
                             .noise = 0.003,
                             .factor = {i % NODES == 3 ? 1.2 : 1, 1, 1},
                             .measured_ms = PAGES_NOW - (RUNS - i / NODES) * PAGES_DAY};
        page_add(f, &r, &seed);
    }
}

static const struct fleet_series *series_of(const struct fleet *f, const char *node)
{
    const int at = interned_find(&f->nodes, node);
    return at < 0 || f->node[at].n != 1 ? NULL : &f->one[f->node[at].series[0]];
}

// What the others have does not depend on who was first to say what the probe measures.
static void check_usual(const struct fleet *f, const char *when)
{
    const struct fleet_series *s = series_of(f, "n07");
    struct fleet_findings list;
    CHECK(s && s->n == RUNS && s->runs[0].columns->n == PAGE_METRICS,
          "%s: a run has the metrics that it named", when);
    CHECK(fleet_findings_find(&list, f, NULL) == 0 && list.metrics == PAGE_METRICS && list.n == 1 &&
              strcmp(f->nodes.list[list.list[0].nodes[0]], "n03") == 0 &&
              strcmp(list.list[0].metric, page_names[0].name) == 0,
          "%s: the slow node is found", when);
    fleet_findings_fini(&list);
}

static void test_thousands_of_names(void)
{
    static const char *const nodes[] = {"liar", "other"};
    CLEANUP_FLEET struct fleet *f = no_nodes();
    name_others(f, nodes, 1, "", 0, 1);
    measure_usual(f);
    check_usual(f, "after a run of 4,096 metrics");
    name_others(f, nodes, 1, "", NAMES, 2);
    CHECK(f->left_out[LEFT_OUT_CROWDED] == 1 && series_of(f, "liar")->n == 2 &&
              series_of(f, "liar")->runs[0].columns->n == 0,
          "a node that names others for the same probe is measured, and not compared by them");
    char variant[16];
    int runs = 0;
    while (runs < 100 && f->left_out[LEFT_OUT_CROWDED] == 1) {
        snprintf(variant, sizeof variant, "v%d", runs);
        name_others(f, nodes, 1, variant, 0, ++runs);
    }
    const struct fleet_node *liar = &f->node[interned_find(&f->nodes, "liar")];
    CHECK(runs < 100 && liar->taken <= NODE_ROOM && liar->taken > NODE_ROOM / 4 * 3,
          "a node has room for some probes: %lld bytes after %d", (long long)liar->taken, runs);
    name_others(f, nodes, 2, variant, 0, runs + 1);
    CHECK(f->left_out[LEFT_OUT_CROWDED] == 3 && series_of(f, "other") &&
              series_of(f, "other")->runs[0].columns->n == NAMES,
          "another node on the same page has its own");
    check_usual(f, "after all that");
}

// Each is within its room, and together they are beyond that of all.
static void test_many_liars(void)
{
    enum { LIARS = 96, KEPT = 25 };
    static char text[LIARS][16];
    static const char *nodes[LIARS];
    CLEANUP_FLEET struct fleet *f = no_nodes();
    for (int i = 0; i < LIARS; i++) {
        snprintf(text[i], sizeof text[i], "liar%d", i);
        nodes[i] = text[i];
    }
    char variant[16];
    for (int i = 0; i < 8; i++) {
        snprintf(variant, sizeof variant, "v%d", i);
        name_in_runs(f, nodes, LIARS, variant, 0, 1, KEPT);
    }
    CHECK(f->left_out[LEFT_OUT_CROWDED] > 0 && f->runs == 8 * LIARS * KEPT &&
              f->taken <= RUNS_ROOM && f->taken > RUNS_ROOM / 4 * 3,
          "all of them have one room: %lld bytes", (long long)f->taken);
    measure_usual(f);
    check_usual(f, "after all of them");
}

// Which way is worse depends on the unit. A known metric has its own, and an unknown one that of
// the node that named it first.
static void test_units(void)
{
    static struct summary_metric names[] = {{"latency.local.dram.median_ns", "GB/s"},
                                            {"latency.n0.n1.median_ns", ""},
                                            {"bandwidth.triad.peak.gbps", "ns"},
                                            {"latency.not_known", "ns"}};
    static const char *const nodes[] = {"a", "liar"};
    float v[] = {5, 6, 7, 8};
    CLEANUP_FLEET struct fleet *f = no_nodes();
    for (int i = 0; i < 2; i++) {
        struct summary_layout layout = {COUNT_OF(names), names};
        struct summary s = other_run(nodes[i], "", 1, v);
        struct summary_page page = {.n_layouts = 1, .n_runs = 1, .layouts = &layout, .runs = &s};
        CHECK_INT(fleet_add_page(f, &page, NULL), 0, "runs with other units");
        snprintf(names[3].unit, sizeof names[3].unit, "GB/s");
    }
    CHECK(series_of(f, "a")->runs[0].columns->n == 1 && f->probe[0].metrics.n == 1 &&
              strcmp(f->probe[0].units[0], "ns") == 0,
          "what is not known is what the first one says");
    CHECK_INT(series_of(f, "liar")->runs[0].columns->n, 0, "and the others do not change it");
    measure_usual(f);
    check_usual(f, "after runs with other units");
}

// What is displaced by newer runs makes room.
static void test_many_runs(void)
{
    static const char *const nodes[] = {"busy"};
    CLEANUP_FLEET struct fleet *f = no_nodes();
    for (int i = 0; i < 2000; i++)
        name_others(f, nodes, 1, "", 0, i + 1);
    CHECK(series_of(f, "busy")->n == f->o.runs_max && f->left_out[LEFT_OUT_CROWDED] == 0 &&
              series_of(f, "busy")->runs[0].id == 2000,
          "the newest of 2,000 runs: %d", series_of(f, "busy")->n);
}

int main(void)
{
    test_lists();
    test_thousands_of_names();
    test_many_liars();
    test_units();
    test_many_runs();
    return tap_done();
}
