// SPDX-License-Identifier: Apache-2.0
// Metrics from made-up matrices with known answers; the table of rules against docs/METRICS.md.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/metrics/metrics.h"
#include "base/cleanup.h"
#include "model/shape.h"
#include "tests/unit/analysis/hierarchy_machine.h"
#include "tests/unit/data.h"
#include "tests/unit/tap.h"

enum { MIB = 1 << 20, RANKS = 4 };

// Two nodes of two cores without siblings; an L3 of 32 MiB a node.
static struct topo_cpu cpus[] = {
    {.os = 0, .core = 0, .package = 0, .node = 0, .l3 = 4},
    {.os = 1, .core = 1, .package = 0, .node = 0, .l3 = 4},
    {.os = 2, .core = 2, .package = 1, .node = 1, .l3 = 5},
    {.os = 3, .core = 3, .package = 1, .node = 1, .l3 = 5},
};
static struct topo_cache caches[] = {
    {1, 32 << 10, 64, 1, 0}, {1, 32 << 10, 64, 1, 1}, {2, MIB, 64, 1, 0},
    {2, MIB, 64, 1, 1},      {3, 32 * MIB, 64, 2, 0}, {3, 32 * MIB, 64, 2, 2},
};
static const struct topology machine = {
    .n_cpus = 4, .cpus = cpus, .n_caches = 6, .caches = caches, .line_bytes = 64};

static const struct topology *here = &machine; // that runs are of
static struct rank_info ranks[RANKS];

static void place(int remote_rank)
{
    for (int i = 0; i < RANKS; i++)
        ranks[i] = (struct rank_info){.rank = i,
                                      .cpu = i,
                                      .cpu_node = i / 2,
                                      .mem_node = i == remote_rank ? 1 - i / 2 : i / 2,
                                      .off_cpu_share = NAN,
                                      .clock_ghz = NAN,
                                      .load_cycles = NAN};
}

static void set(struct matrix *m, int row, int col, double v)
{
    struct cell *c = matrix_at(m, row, col);
    c->v[CELL_N] = 16;
    c->v[CELL_MEDIAN] = v;
    c->v[CELL_LO] = v * 0.99;
    c->v[CELL_HI] = v * 1.01;
}

// Matrix i of the spec's; cells are base + 10 row + col.
static void make(struct matrix *m, const struct spec *s, int i, int rows, int cols, double base)
{
    struct shape list[SHAPES_MAX];
    shape_list(s, list);
    shape_make(m, &list[i], rows, cols, NULL);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            set(m, r, c, base + 10 * r + c);
}

static const struct metric *find(const struct metrics *m, const char *name)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->list[i].name, name) == 0)
            return &m->list[i];
    return NULL;
}

static double value(const struct metrics *m, const char *name)
{
    const struct metric *k = find(m, name);
    return k ? k->value : NAN;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9 * fabs(b);
}

static int64_t found_bytes; // of a cache that the kernel does not list

static struct metrics *run(const struct spec *s, const struct matrix *list, int n, bool known)
{
    static struct metrics out;
    const struct metrics_input in = {.spec = s,
                                     .matrices = list,
                                     .n_matrices = n,
                                     .ranks = known ? ranks : NULL,
                                     .n_ranks = known ? RANKS : 0,
                                     .topology = known ? here : NULL,
                                     .found_bytes = found_bytes};
    CHECK(metrics_find(&out, &in, NULL) == 0, "metrics of %s", benchmarks[s->benchmark].name);
    for (int i = 0; i < out.n; i++) {
        const struct metric_rule *rule = metric_rule_find(out.list[i].name, NULL);
        CHECK(rule && strcmp(rule->unit, out.list[i].unit) == 0 && out.list[i].value > 0,
              "%s is in the table", out.list[i].name);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(out.list[i].name, out.list[k].name) != 0, "and comes once");
    }
    return &out;
}

// Ranks 0 and 2 on weak cores, 1 and 3 on strong ones: no median is over both.
static void test_kinds(void)
{
    struct matrix m;
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    place(-1);
    make(&m, &s, 0, RANKS, 1, 100);
    m.col.values[0] = 512 * MIB;
    for (int i = 0; i < RANKS; i++)
        cpus[i].kind = i % 2;
    const struct metrics *got = run(&s, &m, 1, true);
    CHECK(near(value(got, "latency.dram.median_ns"), 120), "median of 110 and 130");
    CHECK(near(value(got, "latency.n0.n0.median_ns"), 110), "of a node: its strong core");
    for (int i = 0; i < RANKS; i++)
        cpus[i].kind = 0;
    CHECK(near(value(run(&s, &m, 1, true), "latency.dram.median_ns"), 115), "all are alike");
    found_bytes = 256 * MIB;
    CHECK(find(run(&s, &m, 1, true), "latency.dram.median_ns"),
          "two ranks of a node have four times an unlisted cache of 256 MiB");
    found_bytes = 257 * MIB;
    got = run(&s, &m, 1, true);
    CHECK(!find(got, "latency.dram.median_ns") && find(got, "latency.largest.median_ns"),
          "of a larger one they have less: it may be the cache's latency");
    found_bytes = 0;
    matrix_fini(&m);
}

static void test_latency(void)
{
    static const int64_t sizes[] = {16 << 10, 8 * MIB, 16 * MIB, 512 * MIB};
    struct matrix m[2];
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    s.mode = MODE_BOTH;
    place(3);
    make(&m[0], &s, 0, RANKS, 4, 100);
    make(&m[1], &s, 1, RANKS, 4, 50);
    for (int i = 0; i < 2; i++)
        for (int c = 0; c < 4; c++)
            m[i].col.values[c] = sizes[c];
    const struct metrics *got = run(&s, m, 2, true);
    CHECK(near(value(got, "latency.largest.median_ns"), 118), "median of 103, 113, 123, 133");
    CHECK(near(value(got, "latency.dram.median_ns"), 118), "which is memory: 16 times the L3");
    CHECK(near(value(got, "latency.local.dram.median_ns"), 113), "local: without rank 3");
    CHECK(near(value(got, "latency.n0.n0.median_ns"), 108), "pairs of nodes");
    CHECK(near(value(got, "latency.n1.n0.median_ns"), 133), "initiator first");
    CHECK(!find(got, "latency.n0.n1.median_ns"), "not the other way round");
    CHECK(near(value(got, "latency.l1.median_ns"), 115), "16 KiB are half of the L1");
    CHECK(!find(got, "latency.l2.median_ns"), "nothing lies inside the L2");
    CHECK(near(value(got, "latency.l3.median_ns"), 116), "two ranks share an L3: 8 MiB each");
    CHECK(near(value(got, "latency.serial.l3.median_ns"), 67), "one alone has 16");
    CHECK(!find(got, "latency.l1.median_cycles"), "no clock, no cycles");
    for (int r = 0; r < RANKS; r++)
        ranks[r].clock_ghz = 2;
    got = run(&s, m, 2, true);
    CHECK(near(value(got, "latency.l1.median_cycles"), 230), "115 ns at 2 GHz");
    CHECK(near(value(got, "latency.serial.dram.median_ns"), 68), "modes do not mix");
    CHECK(near(value(got, "contention.max_ratio"), 103.0 / 53) ||
              value(got, "contention.max_ratio") >= 103.0 / 53,
          "contention");
    const struct metric *worst = find(got, "contention.max_ratio");
    CHECK(worst && near(worst->lo, worst->value * 0.99 / 1.01) &&
              near(worst->hi, worst->value * 1.01 / 0.99),
          "with the interval of its cells");
    CHECK(near(value(got, "contention.median_ratio"), (113.0 / 63 + 123.0 / 73) / 2),
          "rank by rank");
    const struct metric *local = find(got, "latency.local.dram.median_ns");
    CHECK(local && near(local->lo, 113 * 0.99) && near(local->hi, 113 * 1.01), "with an interval");
    m[0].col.values[3] = 32 * MIB;
    got = run(&s, m, 1, true);
    CHECK(!find(got, "latency.dram.median_ns") && find(got, "latency.largest.median_ns"),
          "2 x 32 MiB in an L3 of 32 are no memory");
    m[0].col.values[3] = 64 * MIB;
    CHECK(find(run(&s, m, 1, true), "latency.dram.median_ns"), "2 x 64 MiB are");
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

// Without topology and ranks the curve must tell: a step, and a plateau far beyond it.
static void test_import(void)
{
    struct matrix m;
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    make(&m, &s, 0, 3, 6, 100);
    for (int c = 0; c < 6; c++)
        m.col.values[c] = (int64_t)8 * MIB << c;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 6; c++)
            set(&m, r, c, c < 2 ? 20 + r : 100 + r);
    const struct metrics *got = run(&s, &m, 1, false);
    CHECK(near(value(got, "latency.dram.median_ns"), 101), "the plateau after the last step");
    CHECK(!find(got, "latency.local.dram.median_ns"), "whose memory it was is not known");
    for (int r = 0; r < 3; r++)
        set(&m, r, 0, 100 + r), set(&m, r, 1, 100 + r);
    CHECK(!find(run(&s, &m, 1, false), "latency.dram.median_ns"), "a flat curve does not tell");
    matrix_at(&m, 1, 5)->v[CELL_LO] = NAN;
    const struct metric *k = find(run(&s, &m, 1, false), "latency.largest.median_ns");
    CHECK(k && isnan(k->lo) && isfinite(k->hi), "an end that one rank does not know is not known");
    matrix_at(&m, 1, 5)->v[CELL_MEDIAN] = NAN;
    k = find(run(&s, &m, 1, false), "latency.largest.median_ns");
    CHECK(k && near(k->value, 101) && near(k->lo, 101 * 0.99), "a hole is left out");
    matrix_fini(&m);
}

static void test_matrix(void)
{
    struct matrix m;
    struct spec s;
    spec_init(&s, BENCHMARK_MATRIX);
    place(-1);
    make(&m, &s, 0, RANKS, 2, 100);
    m.col.values[1] = 1;
    const struct metrics *got = run(&s, &m, 1, true);
    CHECK(near(value(got, "matrix.n0.n0.median_ns"), 105), "two ranks a node: their median");
    CHECK(near(value(got, "matrix.n0.n1.median_ns"), 106), "to the other node");
    CHECK(near(value(got, "matrix.local.median_ns"), 115.5), "of 100, 110, 121, 131");
    CHECK(near(value(got, "matrix.remote.median_ns"), 115.5), "of 101, 111, 120, 130");
    CHECK(near(value(got, "matrix.remote.ratio"), 1), "their ratio");
    got = run(&s, &m, 1, false);
    CHECK(got->n == 2 && find(got, "matrix.median_ns") && find(got, "matrix.worst_ns"),
          "without ranks only all together");
    matrix_fini(&m);
}

static void test_bandwidth(void)
{
    struct matrix m[6];
    struct spec s;
    spec_init(&s, BENCHMARK_BANDWIDTH);
    for (int i = 0; i < 6; i++) {
        make(&m[i], &s, i, 2, 2, 20000);
        m[i].row.values[1] = m[i].col.values[1] = 1;
    }
    const struct metrics *got = run(&s, m, 6, true);
    CHECK(near(value(got, "bandwidth.triad.peak.gbps"), 20.011), "the largest, in GB/s");
    CHECK(near(value(got, "bandwidth.triad.n1.n0.gbps"), 20.010), "pairs of nodes");
    CHECK(!find(got, "bandwidth.triad.single.gbps"), "no threads counted here");
    for (int i = 0; i < 6; i++)
        matrix_fini(&m[i]);
    s.sweep = SWEEP_THREADS;
    make(&m[0], &s, 0, 2, 2, 20000);
    m[0].row.values[0] = 1;
    m[0].row.values[1] = 2;
    got = run(&s, m, 1, true);
    CHECK(near(value(got, "bandwidth.copy.single.gbps"), 20.001), "one thread, the better target");
    CHECK(!find(got, "bandwidth.copy.n1.n0.gbps"), "threads are no nodes");
    matrix_fini(&m[0]);
    s.sweep = SWEEP_MEMCPY;
    make(&m[0], &s, 0, 2, 2, 20000);
    m[0].row.values[1] = m[0].col.values[1] = 1;
    got = run(&s, m, 1, true);
    CHECK(near(value(got, "bandwidth.memcpy.from.n1.n0.gbps"), 20.010), "from node 1 to node 0");
    CHECK(near(value(got, "bandwidth.memcpy.peak.gbps"), 20.011), "the best copy");
    matrix_fini(&m[0]);
}

// 16K, 64K, 1M, 16M, 128M: with one rank L1, L2, none, L3, memory. Two ranks share an L3.
static void test_bandwidth_levels(void)
{
    static const int64_t sizes[] = {16 << 10, 64 << 10, MIB, 16 * MIB, 128 * MIB};
    struct matrix m;
    struct spec s;
    spec_init(&s, BENCHMARK_BANDWIDTH);
    s.sweep = SWEEP_SIZES;
    s.kernel = 1;
    make(&m, &s, 0, 2, 5, 20000);
    memcpy(m.col.values, sizes, sizeof sizes);
    m.row.values[0] = 1;
    m.row.values[1] = 4;
    const struct metrics *got = run(&s, &m, 1, true);
    CHECK(near(value(got, "bandwidth.copy.level.l1.single.gbps"), 20.000), "L1, one rank");
    CHECK(near(value(got, "bandwidth.copy.level.l2.single.gbps"), 20.001), "L2");
    CHECK(near(value(got, "bandwidth.copy.level.l3.single.gbps"), 20.003), "L3");
    CHECK(near(value(got, "bandwidth.copy.level.memory.gbps"), 20.014), "memory, all ranks");
    CHECK(!find(got, "bandwidth.copy.level.l3.gbps"), "16 MiB of each of two fill their L3");
    CHECK(!find(got, "bandwidth.copy.peak.gbps"), "a cache's bandwidth is not the memory's peak");
    found_bytes = 64 * MIB;
    got = run(&s, &m, 1, true);
    CHECK(find(got, "bandwidth.copy.level.l2.single.gbps") &&
              !find(got, "bandwidth.copy.level.memory.gbps"),
          "128 MiB are not beyond an unlisted cache of 64 MiB");
    found_bytes = 0;
    s.stores = STORES_STREAMING;
    got = run(&s, &m, 1, true);
    CHECK(!find(got, "bandwidth.copy.level.l1.single.gbps") &&
              find(got, "bandwidth.copy.level.memory.gbps"),
          "streaming stores go around the caches");
    s.stores = STORES_CACHED;
    snprintf(m.name, sizeof m.name, "write");
    got = run(&s, &m, 1, true);
    CHECK(!find(got, "bandwidth.write.level.l2.single.gbps") &&
              find(got, "bandwidth.write.level.memory.single.gbps"),
          "and so does write");
    snprintf(m.name, sizeof m.name, "copy");
    got = run(&s, &m, 1, false);
    CHECK(got->n == 0, "levels are not known without a topology");
    matrix_fini(&m);
}

// Four cores of a module, whose second level they share.
static void test_modules(void)
{
    static struct topo_cache of_module[] = {
        {1, 64 << 10, 64, 1, 0}, {1, 64 << 10, 64, 1, 1}, {1, 64 << 10, 64, 1, 2},
        {1, 64 << 10, 64, 1, 3}, {2, 4 * MIB, 64, 4, 0},  {3, 96 * MIB, 64, 4, 0},
    };
    static const struct topology module = {
        .n_cpus = 4, .cpus = cpus, .n_caches = 6, .caches = of_module, .line_bytes = 64};
    static const int64_t sizes[] = {32 << 10, 256 << 10, 2 * MIB};
    struct matrix m[2];
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    s.mode = MODE_BOTH;
    place(-1);
    here = &module;
    for (int i = 0; i < 2; i++) {
        make(&m[i], &s, i, RANKS, 3, i ? 50 : 100);
        memcpy(m[i].col.values, sizes, sizeof sizes);
    }
    const struct metrics *got = run(&s, m, 2, true);
    CHECK(near(value(got, "latency.l1.median_ns"), 115), "each has a first level");
    CHECK(near(value(got, "latency.l2.median_ns"), 116), "at once, a quarter of the second");
    CHECK(near(value(got, "latency.serial.l2.median_ns"), 67), "alone, all of it");
    here = &machine;
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

// Two cores of two threads. With ranks on all of them, a rank has half of its core's caches.
static void test_siblings(void)
{
    static struct topo_cpu threads[] = {{.os = 0, .core = 0},
                                        {.os = 1, .core = 1},
                                        {.os = 2, .core = 0, .thread = 1},
                                        {.os = 3, .core = 1, .thread = 1}};
    static struct topo_cache of_cores[] = {{1, 32 << 10, 64, 2, 0}, {1, 32 << 10, 64, 2, 1}};
    static const struct topology siblings = {
        .n_cpus = 4, .cpus = threads, .n_caches = 2, .caches = of_cores, .line_bytes = 64};
    static const int64_t sizes[] = {8 << 10, 16 << 10, 24 << 10};
    struct matrix m;
    struct spec s;
    spec_init(&s, BENCHMARK_BANDWIDTH);
    s.sweep = SWEEP_SIZES;
    s.kernel = 1;
    place(-1);
    here = &siblings;
    make(&m, &s, 0, 3, 3, 20000);
    memcpy(m.col.values, sizes, sizeof sizes);
    m.row.values[0] = 1;
    m.row.values[1] = 2;
    m.row.values[2] = 4;
    const struct metrics *got = run(&s, &m, 1, true);
    CHECK(near(value(got, "bandwidth.copy.level.l1.single.gbps"), 20.001), "8K to 24K of one rank");
    CHECK(near(value(got, "bandwidth.copy.level.l1.gbps"), 20.020), "8K of each of four");
    m.row.n = 2; // ranks 0 and 1, which are on two cores
    got = run(&s, &m, 1, true);
    CHECK(near(value(got, "bandwidth.copy.level.l1.gbps"), 20.011), "8K to 24K of each of two");
    m.row.n = 3;
    here = &machine;
    matrix_fini(&m);
}

static void test_pagefault(void)
{
    struct matrix m[2];
    struct spec s;
    spec_init(&s, BENCHMARK_PAGEFAULT);
    place(-1);
    for (int i = 0; i < 2; i++) {
        make(&m[i], &s, i, 2, 2, 1);
        m[i].row.values[0] = 1;
        m[i].row.values[1] = 4;
        for (int c = 0; c < 2; c++) {
            set(&m[i], 0, c, (i ? 65536 : 512) * (1 + c));
            set(&m[i], 1, c, (i ? 131072 : 1024) * (1 + c));
        }
    }
    for (int r = 0; r < RANKS; r++)
        ranks[r].huge_share = 1;
    const struct metrics *got = run(&s, m, 2, true);
    CHECK(near(value(got, "pagefault.4k.single_ns"), 512), "one thread, the better target");
    CHECK(near(value(got, "pagefault.4k.all_ns"), 1024), "all threads");
    CHECK(near(value(got, "pagefault.4k.peak.gbps"), 16), "4 threads, 4 KiB in 1,024 ns");
    CHECK(near(value(got, "pagefault.thp.peak.gbps"), 64), "4 threads, 2 MiB in 131,072 ns");
    const struct metric *k = find(got, "pagefault.thp.peak.gbps");
    CHECK(k && k->lo <= k->value && k->hi >= k->value, "its interval is the right way up");
    ranks[1].huge_share = 0.5;
    got = run(&s, m, 2, true);
    CHECK(find(got, "pagefault.4k.single_ns") && !find(got, "pagefault.thp.single_ns"),
          "no metric of huge pages that were not given");
    ranks[1].huge_share = 1;
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

// Four ranks; the core of rank 2 is odd in memory's latency, and reads at half the speed.
static void test_scan(void)
{
    struct matrix m[3] = {0};
    struct spec s;
    spec_init(&s, BENCHMARK_SCAN);
    place(-1);
    make(&m[0], &s, 0, 4, 2, 1);
    make(&m[1], &s, 1, 4, 1, 1);
    make(&m[2], &s, 3, 4, AXIS_ASPECTS, 1);
    for (int r = 0; r < 4; r++) {
        set(&m[0], r, 0, 4);
        set(&m[0], r, 1, 100);
        set(&m[1], r, 0, 2000);
        for (int a = 0; a < AXIS_ASPECTS; a++) {
            set(&m[2], r, a, r == 2 && a == ASPECT_MEMORY ? 112 : 100);
            struct cell *c = matrix_at(&m[2], r, a);
            c->v[CELL_N] = a == ASPECT_TRANSFER ? 0 : 18;
            c->v[CELL_LO] = r == 2 && a == ASPECT_MEMORY ? 110 : 98;
        }
    }
    const struct metrics *got = run(&s, m, 3, true);
    CHECK(near(value(got, "scan.l2_ns"), 4) && near(value(got, "scan.memory_ns"), 100) &&
              near(value(got, "scan.bandwidth.gbps"), 2),
          "medians over ranks");
    CHECK(near(value(got, "scan.core.worst_ratio"), 1.12) && near(value(got, "scan.odd"), 1) &&
              near(value(got, "scan.alike_ratio"), 1 - 1.0 / 12),
          "one of twelve comparisons is odd: those without peers do not count");
    matrix_at(&m[2], 2, ASPECT_MEMORY)->v[CELL_LO] = 99;
    got = run(&s, m, 3, true);
    CHECK(!find(got, "scan.odd") && near(value(got, "scan.alike_ratio"), 1), "nothing is odd");
    matrix_at(&m[2], 2, ASPECT_MEMORY)->v[CELL_CONVERGED] = 0;
    got = run(&s, m, 3, true);
    CHECK(find(got, "scan.core.worst_ratio") && !find(got, "scan.alike_ratio"),
          "what deviates and was not confirmed is not alike");
    for (int i = 0; i < 3; i++)
        matrix_fini(&m[i]);
}

static void test_atomics(void)
{
    struct matrix m[5];
    struct spec s;
    spec_init(&s, BENCHMARK_ATOMICS);
    place(-1);
    for (int i = 0; i < 5; i++) {
        make(&m[i], &s, i, i < 4 ? 2 : 1, i < 4 ? 6 : 3, 100 * (i + 1));
        for (int r = 0; r < m[i].row.n; r++)
            m[i].row.values[r] = m[i].row.n - r == 1 ? 4 : 1;
        for (int c = 0; c < m[i].col.n; c++)
            m[i].col.values[c] = c + (i < 4 ? 0 : OPERATION_TAS);
    }
    set(&m[2], 1, OPERATION_TAS, 0.5);
    const struct metrics *got = run(&s, m, 5, true);
    CHECK(near(value(got, "atomics.fetch_add.single_ns"), 100), "by one rank");
    CHECK(near(value(got, "atomics.cas.all_ns"), 111), "by all");
    CHECK(near(value(got, "atomics.mcs.handover_ns"), 502), "a lock");
    CHECK(!find(got, "atomics.cas.handover_ns"), "what is no lock is not handed over");
    const struct metric *k = find(got, "atomics.tas.unfairness.ratio");
    CHECK(k && near(k->value, 2) && k->lo < 2 && k->hi > 2, "an index of 0.5");
    for (int i = 0; i < 4; i++) // one rank alone
        m[i].row.n = 1;
    got = run(&s, m, 4, true);
    CHECK(find(got, "atomics.cas.single_ns") && !find(got, "atomics.cas.all_ns") &&
              !find(got, "atomics.cas.unfairness.ratio"),
          "alone there is nothing to share");
    for (int i = 0; i < 5; i++)
        matrix_fini(&m[i]);
}

static void test_hierarchy(void)
{
    struct matrix m[HIERARCHY_PARTS] = {0};
    struct spec s;
    spec_init(&s, BENCHMARK_HIERARCHY);
    place(-1);
    for (int r = 0; r < RANKS; r++)
        ranks[r].huge_share = 1;
    int n = hierarchy_matrices(m, 2);
    const struct metrics *got = run(&s, m, n, false);
    CHECK(near(value(got, "hierarchy.memory_ns"), 96) && near(value(got, "hierarchy.hop_ns"), 63),
          "memory and the hop");
    CHECK(near(value(got, "hierarchy.parallel.loads"), 12) &&
              near(value(got, "hierarchy.parallel.access_ns"), 8),
          "loads at once");
    CHECK(near(value(got, "hierarchy.cycle_ns"), 0.25) &&
              near(value(got, "hierarchy.stride.4096.ns"), 48),
          "the clock, and a stride");
    static const char *const measured[] = {"hierarchy.memory_ns", "hierarchy.parallel.access_ns",
                                           "hierarchy.cycle_ns", "hierarchy.stride.4096.ns"};
    for (size_t i = 0; i < COUNT_OF(measured); i++) {
        const struct metric *k = find(got, measured[i]);
        CHECK(k && near(k->lo, 0.99 * k->value) && near(k->hi, 1.01 * k->value),
              "%s has its interval", measured[i]);
    }
    CHECK(value(got, "hierarchy.l3.bytes") > 28e6 && value(got, "hierarchy.l3.ns") > 12 &&
              !find(got, "hierarchy.l4.bytes"),
          "three levels");
    CHECK(value(got, "hierarchy.tlb.base.l2.entries") > 1350 &&
              value(got, "hierarchy.tlb.huge.l1.entries") > 28 &&
              fabs(value(got, "hierarchy.tlb.base.l1.miss_ns") - 2) < 0.1,
          "translations");
    CHECK_STR(m[n - 1].name, "nodes", "the second rank is near the second node");
    for (int c = 0; c < 2; c++)
        *matrix_at(&m[n - 1], 1, c) = *matrix_at(&m[n - 1], 0, 1 - c);
    got = run(&s, m, n, false);
    CHECK(near(value(got, "hierarchy.memory_ns"), 96) && near(value(got, "hierarchy.hop_ns"), 63),
          "memory of each rank's nearest node, not the mean of near and far");
    for (int i = 0; i < RANKS; i++)
        cpus[i].kind = i % 2;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < m[i].col.n; c++)
            matrix_at(&m[i], 0, c)->v[CELL_MEDIAN] *= 3;
    got = run(&s, m, n, true);
    CHECK(near(value(got, "hierarchy.memory_ns"), 96) && near(value(got, "hierarchy.hop_ns"), 63) &&
              near(value(got, "hierarchy.cycle_ns"), 0.25) &&
              near(value(got, "hierarchy.stride.4096.ns"), 48) &&
              near(value(got, "hierarchy.parallel.access_ns"), 8),
          "of the rank on the strong core alone");
    for (int i = 0; i < RANKS; i++)
        cpus[i].kind = 0;
    for (int i = 0; i < n; i++)
        matrix_fini(&m[i]);
}

static void test_lines(const struct spec *s)
{
    struct matrix m;
    make(&m, s, 2, 3, 4, 100);
    for (int i = 0; i < 3; i++)
        m.row.values[i] = axis_pair(0, i + 1);
    for (int i = 0; i < 4; i++)
        m.col.values[i] = i + 1;
    const struct metrics *got = run(s, &m, 1, true);
    CHECK(near(value(got, "c2c.cas.lines.ratio"), 113. / 110), "103/100, 113/110, 123/120");
    CHECK(!find(got, "c2c.cas_lines.median_ns"), "a line is no pair");
    matrix_fini(&m);
}

static void test_pairs(void)
{
    struct matrix m[2];
    struct spec s;
    spec_init(&s, BENCHMARK_C2C);
    place(-1);
    make(&m[0], &s, 0, RANKS, RANKS, 100);
    make(&m[1], &s, 1, RANKS, RANKS, 200);
    const struct metrics *got = run(&s, m, 2, true);
    CHECK(near(value(got, "c2c.cas.same_l3.median_ns"), 112), "0-1 and 2-3: 101, 123");
    CHECK(near(value(got, "c2c.cas.other_socket.median_ns"), 107.5), "102, 103, 112, 113");
    CHECK(near(value(got, "c2c.load.median_ns"), 207.5), "all six, the other definition");
    CHECK(!find(got, "c2c.cas.siblings.median_ns"), "no siblings, no metric");
    test_lines(&s);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
    snprintf(s.pairs, sizeof s.pairs, "0-1,0-2,1-2");
    make(&m[0], &s, 0, 3, 1, 100);
    for (int i = 0; i < 3; i++)
        m[0].row.values[i] = axis_pair(i / 2, i ? 2 : 1);
    got = run(&s, m, 1, true);
    CHECK(near(value(got, "c2c.cas.median_ns"), 110), "of three that are listed: 100, 110, 120");
    CHECK(near(value(got, "c2c.cas.same_l3.median_ns"), 100) &&
              near(value(got, "c2c.cas.other_socket.median_ns"), 115),
          "0-1; 0-2 and 1-2");
    matrix_fini(&m[0]);
    spec_init(&s, BENCHMARK_PINGPONG);
    make(&m[0], &s, 0, 2, 2, 1);
    m[0].row.values[0] = axis_pair(0, 1);
    m[0].row.values[1] = axis_pair(0, 2);
    m[0].col.values[1] = 12000;
    got = run(&s, m, 1, true);
    CHECK(near(value(got, "pingpong.latency.same_l3.us"), 1), "the smallest message");
    CHECK(near(value(got, "pingpong.latency.other_socket.us"), 11), "by what the two share");
    CHECK(near(value(got, "pingpong.bandwidth.same_l3.gbps"), 6), "12,000 bytes in 2 us");
    const struct metric *k = find(got, "pingpong.bandwidth.other_socket.gbps");
    CHECK(k && near(k->value, 1) && k->lo < 1 && k->hi > 1, "its interval is the right way up");
    matrix_fini(&m[0]);
}

// The second of three nodes has no loaders: its rank is idle whatever the load.
static void test_nodes_without_load(void)
{
    struct matrix m[2];
    struct spec s;
    spec_init(&s, BENCHMARK_LOADED);
    for (int i = 0; i < 2; i++) {
        make(&m[i], &s, i, 3, 2, 100);
        m[i].col.values[1] = 100;
    }
    for (int r = 0; r < 3; r++) {
        set(&m[0], r, 1, r == 1 ? 110 : 200 + r);
        set(&m[1], r, 0, 0);
        set(&m[1], r, 1, r == 1 ? 0 : 40000);
    }
    const struct metrics *got = run(&s, m, 2, true);
    CHECK(near(value(got, "loaded.idle_ns"), 110), "idle is each of them");
    CHECK(near(value(got, "loaded.full_ns"), 201), "full are two: %g",
          value(got, "loaded.full_ns"));
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

static void test_touch_and_load(void)
{
    static const double latency[] = {100, 101, 103, 108, 130, 220};
    static const double width[] = {1, 10000, 20000, 30000, 39000, 41000};
    struct matrix m[2];
    struct spec s;
    spec_init(&s, BENCHMARK_FIRSTTOUCH);
    make(&m[0], &s, 0, 3, AXIS_ACCESSES, 1);
    for (int r = 0; r < 3; r++) {
        set(&m[0], r, ACCESS_OWN, 1);
        set(&m[0], r, ACCESS_SHARED, 2 + r);
        set(&m[0], r, ACCESS_CROSSED, 1.5);
    }
    const struct metrics *got = run(&s, m, 1, true);
    CHECK(near(value(got, "firsttouch.shared.ratio"), 3), "median of 2, 3, 4");
    CHECK(near(value(got, "firsttouch.crossed.ratio"), 1.5), "crossed");
    matrix_fini(&m[0]);
    make(&m[0], &s, 0, 1, AXIS_ACCESSES, 1);
    got = run(&s, m, 1, true);
    CHECK(find(got, "firsttouch.own.median_ns") && !find(got, "firsttouch.shared.ratio") &&
              !find(got, "firsttouch.crossed.ratio"),
          "one rank has nothing of another");
    matrix_fini(&m[0]);
    spec_init(&s, BENCHMARK_LOADED);
    make(&m[0], &s, 0, 1, 6, 1);
    make(&m[1], &s, 1, 1, 6, 1);
    for (int c = 0; c < 6; c++) {
        m[0].col.values[c] = m[1].col.values[c] = 20 * c;
        set(&m[0], 0, c, latency[c]);
        set(&m[1], 0, c, width[c]);
    }
    got = run(&s, m, 2, true);
    CHECK(near(value(got, "loaded.idle_ns"), 100), "idle");
    CHECK(near(value(got, "loaded.full_ns"), 220), "full");
    CHECK(near(value(got, "loaded.full_gbps"), 41), "what is moved");
    CHECK(near(value(got, "loaded.knee_gbps"), 39), "where it bends");
    CHECK(near(value(got, "loaded.knee_ns"), 130), "and at what price");
    const struct metric *busy = find(got, "loaded.busy_ns");
    CHECK(busy && near(busy->lo, 0.99 * busy->value) && near(busy->hi, 1.01 * busy->value),
          "between two loads: %.1f ns, and its interval", busy ? busy->value : NAN);
    matrix_at(&m[0], 0, 4)->v[CELL_HI] = NAN;
    busy = find(run(&s, m, 2, true), "loaded.busy_ns");
    CHECK(busy && isnan(busy->hi), "one of them has no end");
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
    test_nodes_without_load();
}

// --- The largest there may be --------------------------------------------------------------------

enum { MANY = SPEC_RANKS_MAX };
static struct rank_info many[MANY];
static struct topo_cpu many_cpus[MANY];
static struct topo_cache many_caches[MANY];

// A node and a last-level cache each, and ranks in no order: what looks each of them up by a search
// for each of the others takes minutes.
static struct metrics *run_many(const struct spec *s, const struct matrix *m,
                                const struct topology *t)
{
    static struct metrics out;
    for (int i = 0; i < MANY; i++) {
        many[i] = (struct rank_info){
            .rank = MANY - 1 - (i ^ 1), .cpu = MANY - 1 - i, .cpu_node = i, .mem_node = i};
        many[i].off_cpu_share = many[i].clock_ghz = NAN;
        many_cpus[i] = (struct topo_cpu){.os = i, .core = i, .package = i, .node = i, .l3 = i};
        many_caches[i] = (struct topo_cache){3, 32 * MIB, 64, 1, i};
    }
    const struct metrics_input in = {
        .spec = s, .matrices = m, .n_matrices = 1, .ranks = many, .n_ranks = MANY, .topology = t};
    CHECK(metrics_find(&out, &in, NULL) == 0, "metrics of %d ranks", MANY);
    return &out;
}

static void test_many_ranks(const struct topology *t, const char *what)
{
    struct matrix m CLEANUP(matrix_fini) = {0};
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    make(&m, &s, 0, MANY, 48, 100);
    for (int c = 0; c < 48; c++)
        m.col.values[c] = (int64_t)MIB * (c + 1) * (c + 1);
    for (int r = 0; r < MANY; r++)
        for (int c = 0; c < 48; c++)
            set(&m, r, c, (c < 5 ? 20 : 100) + r / 2048.0);
    const struct metrics *got = run_many(&s, &m, t);
    CHECK(near(value(got, "latency.dram.median_ns"), 100 + 511.5 / 2048), "%s: memory", what);
    CHECK(got->n > MANY && !got->omitted, "%s: a metric for each of 1,024 nodes", what);
    CHECK(near(value(got, "latency.n1023.n1023.median_ns"), 100 + 1 / 2048.0) &&
              near(value(got, "latency.n1022.n1022.median_ns"), 100 + 0 / 2048.0),
          "%s: each rank's own", what);
}

static void test_many_targets(void)
{
    struct matrix m CLEANUP(matrix_fini) = {0};
    struct spec s;
    spec_init(&s, BENCHMARK_MATRIX);
    make(&m, &s, 0, MANY, 256, 100);
    for (int c = 0; c < 256; c++)
        m.col.values[c] = c;
    for (int k = 256; k < MANY * 256; k++)
        m.cells[k].v[CELL_MEDIAN] = NAN;
    const struct metrics *got = run_many(&s, &m, NULL);
    CHECK(got->n == 259 && near(value(got, "matrix.n1022.n255.median_ns"), 355),
          "the one rank that measured anything (%d)", got->n);
    CHECK(near(value(got, "matrix.worst_ns"), 355), "and the slowest of its pairs");
    for (int k = 0; k < MANY * 256; k++)
        m.cells[k].v[CELL_MEDIAN] = k == MANY * 256 - 1 ? 900 : 100;
    got = run_many(&s, &m, NULL);
    CHECK(got->n == METRICS_MAX && near(value(got, "matrix.worst_ns"), 900) &&
              near(value(got, "metrics.omitted"), MANY * 256 + 5 - (METRICS_MAX - 1)),
          "pairs of nodes without room are counted, and the slowest is told (%.0f)",
          value(got, "metrics.omitted"));
}

// 24 nodes by 24 nodes by 6 kernels.
static void test_bandwidth_of_24_nodes(void)
{
    enum { NODES = 24 };
    struct matrix m[SHAPES_MAX];
    struct shape list[SHAPES_MAX];
    struct spec s;
    spec_init(&s, BENCHMARK_BANDWIDTH);
    int n = shape_list(&s, list);
    for (int i = 0; i < n; i++) {
        make(&m[i], &s, i, NODES, NODES, 1000);
        for (int k = 0; k < NODES; k++)
            m[i].row.values[k] = m[i].col.values[k] = k;
    }
    static struct metrics out;
    const struct metrics_input in = {.spec = &s, .matrices = m, .n_matrices = n};
    CHECK(metrics_find(&out, &in, NULL) == 0 && out.n == n * (NODES * NODES + 2) && !out.omitted,
          "all %d metrics of bandwidth between 24 nodes", out.n);
    CHECK(find(&out, "bandwidth.write.n23.n23.gbps") &&
              near(value(&out, "bandwidth.copy.least.gbps"),
                   value(&out, "bandwidth.copy.n0.n0.gbps")),
          "the last pair, and the slowest");
    for (int i = 0; i < n; i++)
        matrix_fini(&m[i]);
}

static void test_many_pairs(void)
{
    struct matrix m CLEANUP(matrix_fini) = {0};
    struct spec s;
    const struct topology t = {.n_cpus = MANY, .cpus = many_cpus};
    spec_init(&s, BENCHMARK_C2C);
    make(&m, &s, 0, 512, 512, 100);
    const struct metrics *got = run_many(&s, &m, &t);
    CHECK(got->n == 2 &&
              near(value(got, "c2c.cas.median_ns"), value(got, "c2c.cas.other_socket.median_ns")),
          "all pairs are of two sockets");
}

static void check_variant(struct metrics_input *in, const char *want, const char *what)
{
    CLEANUP_BUF struct buf got = BUF_INIT;
    metrics_variant(in, &got);
    CHECK(strcmp(buf_text(&got), want) == 0, "%s: \"%s\"", what, buf_text(&got));
}

static void test_variant(void)
{
    struct spec s;
    struct metrics_input in = {.spec = &s, .method = "prp4-v2", .n_ranks = 8};
    spec_init(&s, BENCHMARK_LATENCY);
    check_variant(&in, "n_ranks=8", "the machine chose how many");
    s.mode = MODE_SERIAL;
    check_variant(&in, "n_ranks=8", "the mode is in the names");
    snprintf(s.cpus, sizeof s.cpus, "1,9");
    check_variant(&in, "cpus=1,9", "CPUs that were asked for count themselves");
    struct spec pairs;
    struct metrics_input of_pairs = {.spec = &pairs, .method = "c2c-v2", .n_ranks = 8};
    spec_init(&pairs, BENCHMARK_C2C);
    pairs.pairs_most = 27;
    check_variant(&of_pairs, "pairs_most=27 n_ranks=8", "some of 28 pairs");
    pairs.pairs_most = 28;
    check_variant(&of_pairs, "n_ranks=8", "all of them are all");
    in.method = "prp3-v0";
    check_variant(&in, "cpus=1,9 by=prp3-v0", "another method is another line");
    s.method = METHOD_CLASSIC;
    in.method = "classic-v1";
    check_variant(&in, "method=classic cpus=1,9", "a method that was asked for is told once");
    in.imported = true;
    check_variant(&in, "method=classic cpus=1,9 imported=true", "imports stand apart");
    spec_init(&s, BENCHMARK_MATRIX);
    s.quick = true;
    s.precision = 5;
    check_variant(&(struct metrics_input){.spec = &s}, "", "effort makes no variant");
}

static void test_rules(void)
{
    struct metric_labels labels;
    const struct metric_rule *r = metric_rule_find("latency.serial.n0.n12.median_ns", &labels);
    CHECK(r && labels.n == 3, "a name with three holes");
    CHECK_STR(labels.list[0].value, "serial", "mode");
    CHECK_STR(labels.list[1].name, "initiator", "initiator");
    CHECK_STR(labels.list[2].value, "12", "a node is a number");
    r = metric_rule_find("latency.n0.i0_2_4_6_8_10_12_14_16_18.median_ns", &labels);
    CHECK(r && labels.n == 3, "memory that is interleaved over many nodes");
    CHECK_STR(labels.list[2].value, "i0_2_4_6_8_10_12_14_16_18", "is named whole");
    r = metric_rule_find("latency.l3.median_ns", &labels);
    CHECK(r && labels.n == 2, "a cache level");
    CHECK_STR(labels.list[1].value, "l3", "keeps its letter");
    static const char *const bad[] = {"",
                                      "latency",
                                      "latency.n0.median_ns",
                                      "latency.dram.median_ns.x",
                                      "bandwidth..peak.gbps",
                                      "x",
                                      "latency.n.n0.median_ns"};
    for (unsigned i = 0; i < COUNT_OF(bad); i++)
        CHECK(!metric_rule_find(bad[i], NULL), "\"%s\" is no metric", bad[i]);
    struct metric_labels wide = {0};
    CHECK(metric_rule_find("bandwidth.triad.n0.w0-1_3.gbps", &wide) && wide.n == 3 &&
              strcmp(wide.list[2].value, "w0-1_3") == 0,
          "interleaved memory is a target: %s", wide.list[2].value);
    CHECK(metric_base_factor("ns") == 1e-9 && metric_base_factor("GB/s") == 1e9, "base units");
    CHECK(metric_more_is_better("entries") && metric_more_is_better("bytes"), "of capacity more");
    CHECK(metric_more_is_better("GB/s") && !metric_more_is_better("ns"), "what is better");
    CHECK(metric_more_is_better(metric_rule_find("scan.alike_ratio", NULL)->unit) &&
              !metric_more_is_better(metric_rule_find("scan.core.worst_ratio", NULL)->unit),
          "of ratios too");
}

static void test_disturbed_ranks(void)
{
    static const double off[] = {0.001, 0.004, 0.2, NAN}, ghz[] = {3, 3.2, 2, NAN};
    struct matrix m;
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    place(-1);
    make(&m, &s, 0, RANKS, 2, 100);
    CHECK(isnan(value(run(&s, &m, 1, true), "latency.off_cpu.worst_ratio")) &&
              isnan(value(run(&s, &m, 1, true), "latency.clock.median_ghz")),
          "not known: no metric");
    for (int r = 0; r < RANKS; r++) {
        ranks[r].off_cpu_share = off[r % 4];
        ranks[r].clock_ghz = ghz[r % 4];
    }
    const struct metrics *got = run(&s, &m, 1, true);
    CHECK(near(value(got, "latency.off_cpu.worst_ratio"), 0.2), "of the rank that lost most");
    CHECK(near(value(got, "latency.clock.least_ghz"), 2) &&
              near(value(got, "latency.clock.median_ghz"), 3),
          "of ranks whose clock is known");
    CHECK(strcmp(got->list[got->n - 1].name, "latency.clock.least_ghz") == 0, "listed last");
    for (int r = 0; r < RANKS; r++)
        ranks[r].off_cpu_share = 0.001;
    CHECK(near(value(run(&s, &m, 1, true), "latency.off_cpu.worst_ratio"), 0.01), "less is 0.01");
    CHECK(metric_base_factor("GHz") == 1e9 && metric_more_is_better("GHz"), "hertz");
    place(-1);
    matrix_fini(&m);
}

static void test_disturbed(void)
{
    struct matrix m;
    struct spec s;
    spec_init(&s, BENCHMARK_MATRIX);
    place(-1);
    make(&m, &s, 0, RANKS, 2, 100);
    CHECK(isnan(value(run(&s, &m, 1, true), "matrix.disturbed_ratio")), "not known: no metric");
    for (int k = 0; k < RANKS * 2; k++)
        m.cells[k].v[CELL_DISTURBED] = k ? 4 : 0;
    double want = 4.0 * (RANKS * 2 - 1), share = want / (want + 16 * RANKS * 2);
    CHECK(near(value(run(&s, &m, 1, true), "matrix.disturbed_ratio"), share),
          "the share of all cells' samples");
    for (int k = 0; k < RANKS * 2; k++)
        m.cells[k].v[CELL_DISTURBED] = 0;
    CHECK(near(value(run(&s, &m, 1, true), "matrix.disturbed_ratio"), 0.01),
          "0.01 stands for less: a change of it is no change");
    struct metric_labels labels;
    CHECK(metric_rule_find("matrix.disturbed_ratio", &labels) && labels.n == 1 &&
              strcmp(labels.list[0].name, "benchmark") == 0 &&
              strcmp(labels.list[0].value, "matrix") == 0,
          "the benchmark is a label");
    matrix_fini(&m);
}

// The variant of a run of another method than today's names it ("by=prp4-v1"). It is stored with
// the metrics, so a new method needs a new version of them: else runs of both are one series.
static void test_methods(void)
{
    CLEANUP_BUF struct buf methods = BUF_INIT;
    for (int b = 0; b < BENCHMARKS; b++)
        buf_fmt(&methods, "%s ", benchmarks[b].method);
    CHECK(METRICS_VERSION == 7 &&
              strcmp(buf_text(&methods),
                     "prp4-v2 prp4-v2 stream-v2 pingpong-v1 c2c-v2 touch-v2 loaded-v1 pagefault-v1 "
                     "hierarchy-v1 scan-v1 atomics-v1 ") == 0,
          "METRICS_VERSION is raised with each new method; now %d: %s", METRICS_VERSION,
          buf_text(&methods));
}

// It says what each placeholder of a name is, before the table.
static void test_placeholders(const char *text)
{
    const char *table = text ? strstr(text, "\n| `") : NULL;
    for (const struct metric_rule *r = metric_rules; r->pattern && table; r++)
        for (const char *at = r->pattern; (at = strchr(at, '{')); at++) {
            char want[64];
            snprintf(want, sizeof want, "`%.*s`", (int)strcspn(at, "}") + 1, at);
            const char *said = strstr(text, want);
            CHECK(said && said < table, "docs/METRICS.md says what %s of %s is", want, r->pattern);
        }
}

// docs/METRICS.md has each rule's line, and no other.
static void test_document(void)
{
    CLEANUP_MEM char *text = calloc(1, 1 << 20);
    char path[600];
    source_path(path, sizeof path, "docs/METRICS.md");
    FILE *f = fopen(path, "r");
    CHECK(f && text && fread(text, 1, (1 << 20) - 1, f) > 0, "docs/METRICS.md can be read");
    if (f)
        fclose(f);
    int rules = 0, lines = 0;
    for (const struct metric_rule *r = metric_rules; r->pattern; r++, rules++) {
        char want[512];
        snprintf(want, sizeof want, "| `%s` | %s | `numaprobe_%s` | %s |\n", r->pattern,
                 *r->unit ? r->unit : "ratio", r->family, r->help);
        CHECK(text && strstr(text, want), "docs/METRICS.md has %s as it is in the table",
              r->pattern);
    }
    for (const char *at = text; at && (at = strstr(at, "\n| `")); at++)
        lines++;
    CHECK(lines == rules, "docs/METRICS.md has %d lines for %d rules", lines, rules);
    test_placeholders(text);
}

int main(void)
{
    test_latency();
    test_kinds();
    test_import();
    test_matrix();
    test_bandwidth();
    test_bandwidth_levels();
    test_modules();
    test_siblings();
    test_pagefault();
    test_scan();
    test_atomics();
    test_hierarchy();
    test_pairs();
    test_touch_and_load();
    const struct topology t = {
        .n_cpus = MANY, .cpus = many_cpus, .n_caches = MANY, .caches = many_caches};
    test_many_ranks(&t, "by the topology");
    test_many_ranks(NULL, "by the curve");
    test_many_targets();
    test_bandwidth_of_24_nodes();
    test_many_pairs();
    test_variant();
    test_rules();
    test_disturbed();
    test_disturbed_ranks();
    test_methods();
    test_document();
    return tap_done();
}
