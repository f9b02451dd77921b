// SPDX-License-Identifier: Apache-2.0
// The published analysis of two LUMI-G tables was done by hand: the same must be found here, and
// must not be found in shuffled or flat tables.
#include "analysis/report/outliers.h"
#include "analysis/report/rank_groups.h"
#include "analysis/stats/contention.h"
#include "analysis/stats/curve.h"

#include "formats/import.h"
#include "tests/unit/analysis/published.h"
#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

#define MIB(n) ((int64_t)(n) << 20)

static struct topo_cache l3[] = {{.level = 3, .bytes = MIB(32)}};
static const struct topology milan = {.n_caches = 1, .caches = l3};

struct found {
    struct curve curve;
    struct groups groups;
    struct anomalies anomalies;
};

static struct found *look(const struct import *i)
{
    static struct found f;
    const struct matrix *m = &i->matrices[0];
    const struct curve_machine machine = {.topology = &milan};
    curve_find(&f.curve, m, &machine, NULL);
    groups_find(&f.groups, m, i->ranks, i->n_ranks, NULL, curve_plateau(&f.curve), NULL);
    anomaly_find(&f.anomalies, m, &f.groups, NULL);
    return &f;
}

static void check_steps(const struct curve *c, const char *mode)
{
    CHECK(c->n == 2 && c->steps[0].from_bytes == MIB(16) && c->steps[1].from_bytes == MIB(32),
          "%s: steps at 16 to 32 and 32 to 64 MiB (%d found)", mode, c->n);
    CHECK(c->steps[0].match == CURVE_CACHE_FULL && c->steps[0].level == 3 &&
              c->steps[1].match == CURVE_CACHE_EXCEEDED,
          "%s: the L3 fills, then is exceeded", mode);
}

static void check_concurrent(const struct import *i)
{
    const struct found *f = look(i);
    check_steps(&f->curve, "concurrent");
    printf("# p %.4f, nodes %d, %.1f %%\n", f->groups.p, f->groups.nodes,
           f->groups.node_spread_percent);
    bool even = f->groups.n == 4;
    for (int k = 0; k < f->groups.n; k++)
        even = even && f->groups.slow[k].rank == 2 * k;
    CHECK(even, "ranks 0, 2, 4, 6 are slow");
    CHECK(f->groups.slow[1].worst > 1.6 && f->groups.slow[1].worst < 1.7, "by up to 64 %%");
    CHECK(f->groups.nodes == NODES_ALIKE, "NUMA domains are alike");
    bool inversion = false;
    for (int k = 0; k < f->anomalies.n; k++)
        inversion =
            inversion ||
            (f->anomalies.list[k].kind == ANOMALY_INVERSION && f->anomalies.list[k].rank == 0 &&
             f->anomalies.list[k].other_rank == 1 && f->anomalies.list[k].bytes == MIB(16384));
    CHECK(inversion, "ranks 0 and 1 change places at 16384 MiB");
}

static void test_published(struct import *concurrent, struct import *serial)
{
    check_concurrent(concurrent);
    const struct found *f = look(serial);
    check_steps(&f->curve, "serial");
    CHECK(f->groups.known && f->groups.n == 0, "serial: no slow ranks");
    CHECK(f->groups.nodes == NODES_ALIKE, "serial: NUMA domains are alike");
    struct contention c;
    CHECK(contention_find(&c, &serial->matrices[0], &concurrent->matrices[0], NULL) == 0 && c.parts,
          "the modes part");
    CHECK(c.from_bytes == MIB(128), "from 128 MiB on (%lld)", (long long)c.from_bytes >> 20);
    CHECK(c.worst > 1.65 && c.worst < 1.7 && c.worst_rank % 2 == 0 && c.worst_bytes == MIB(4096),
          "at most by 67 %%, at 4096 MiB");
}

static void swap(struct matrix *m, int a, int b)
{
    struct cell c = m->cells[a];
    m->cells[a] = m->cells[b];
    m->cells[b] = c;
}

static void shuffle(struct matrix *m, unsigned long long *seed)
{
    for (int k = m->row.n * m->col.n - 1; k > 0; k--)
        swap(m, k, dist_below(seed, k + 1));
}

static void flatten(struct matrix *m, unsigned long long *seed)
{
    for (int k = 0; k < m->row.n * m->col.n; k++)
        m->cells[k].v[CELL_MEDIAN] = 100 * (1 + 0.01 * sim_normal(seed));
}

static void test_nothing(struct import *concurrent, struct import *serial, const char *how,
                         void (*spoil)(struct matrix *, unsigned long long *))
{
    unsigned long long seed = 91;
    int steps = 0, slow = 0, parts = 0, odd = 0, differ = 0, tables = 400;
    printf("# %s, seed %llu, %d tables\n", how, seed, tables);
    for (int k = 0; k < tables; k++) {
        struct contention c;
        spoil(&concurrent->matrices[0], &seed);
        spoil(&serial->matrices[0], &seed);
        const struct found *f = look(concurrent);
        steps += f->curve.n > 0;
        slow += f->groups.n > 0;
        odd += f->anomalies.n > 0;
        differ += f->groups.nodes == NODES_DIFFER;
        contention_find(&c, &serial->matrices[0], &concurrent->matrices[0], NULL);
        parts += c.parts;
    }
    printf("# steps %d, slow %d, parts %d, anomalies %d, nodes differ %d\n", steps, slow, parts,
           odd, differ);
    CHECK(steps <= 4 && slow <= 4 && parts <= 4 && odd <= 4, "%s: found in at most 1 %%", how);
    CHECK(differ <= 20, "%s: nodes differ in at most 5 %%", how);
}

// The largest tables, a rank in two slow by a fifth or none: as cheap as others and still right.
static void test_large(int rows, int cols, bool slow)
{
    unsigned long long seed = 92;
    static struct groups g;
    static struct rank_info ranks[GROUPS_RANKS_MAX];
    struct matrix m = {0};
    matrix_init(&m, "serial", "latency", "ns", rows, cols, NULL);
    for (int i = 0; i < rows; i++) {
        m.row.values[i] = i;
        ranks[i] = (struct rank_info){.rank = rows - 1 - i, .mem_node = i % 64};
    }
    for (int k = 0; k < rows * cols; k++)
        m.cells[k].v[CELL_MEDIAN] =
            100 * (1 + 0.01 * sim_normal(&seed)) * (slow && k / cols >= rows / 2 ? 1.2 : 1);
    CHECK(groups_find(&g, &m, ranks, rows, NULL, 0, NULL) == 0 && g.known, "%d x %d", rows, cols);
    printf("# p %.4f, %lld moves\n", g.p, (long long)g.steps);
    CHECK(g.steps > 0 && g.steps <= GROUPS_STEPS_MAX, "no more is moved than is allowed");
    CHECK(slow ? g.p <= 0.005 && g.n == rows / 2 : g.p > 0.005 && g.n == 0,
          "%d slow ranks are named", g.n);
    matrix_fini(&m);
}

// Two strong cores and two weak ones on each of two nodes: that they differ is no finding, and a
// slow one among its own kind is.
static void test_kinds(void)
{
    enum { ROWS = 12, COLS = 12 };
    unsigned long long seed = 7;
    static struct groups g;
    struct topo_cpu cpus[ROWS];
    struct rank_info ranks[ROWS];
    const struct topology t = {.n_cpus = ROWS, .cpus = cpus, .n_kinds = 2};
    struct matrix m = {0};
    matrix_init(&m, "serial", "latency", "ns", ROWS, COLS, NULL);
    for (int i = 0; i < ROWS; i++) {
        m.row.values[i] = i;
        cpus[i] = (struct topo_cpu){.os = i, .core = i, .l3 = -1, .kind = i % 2};
        ranks[i] = (struct rank_info){.rank = i, .cpu = i, .cpu_node = i / 6, .mem_node = i / 6};
    }
    for (int slow = 0; slow < 2; slow++) {
        for (int k = 0; k < ROWS * COLS; k++)
            m.cells[k].v[CELL_MEDIAN] = (k / COLS % 2 ? 10 : 20) * (1 + 0.01 * sim_normal(&seed)) *
                                        (slow && k / COLS == 3 ? 1.3 : 1);
        CHECK(groups_find(&g, &m, ranks, ROWS, &t, 0, NULL) == 0 && g.known && g.n_nodes == 2,
              "two nodes of two kinds of cores");
        CHECK(g.n == slow && (!slow || g.slow[0].rank == 3) && g.nodes == NODES_UNKNOWN,
              "%d slow ranks among their own kind", g.n);
    }
    matrix_fini(&m);
}

// Four cores share a second level of 4 MiB: at once each has 1 MiB of it, and alone all.
static void test_module(void)
{
    enum { ROWS = 4, COLS = 5 };
    static const int64_t sizes[COLS] = {MIB(1) / 2, MIB(1), MIB(2), MIB(4), MIB(8)};
    struct topo_cpu cpus[ROWS];
    struct rank_info ranks[ROWS];
    struct topo_cache caches[] = {{2, MIB(4), 64, ROWS, 0}, {3, MIB(96), 64, ROWS, 0}};
    const struct topology t = {.n_cpus = ROWS, .cpus = cpus, .n_caches = 2, .caches = caches};
    struct matrix m = {0};
    matrix_init(&m, "concurrent", "latency", "ns", ROWS, COLS, NULL);
    memcpy(m.col.values, sizes, sizeof sizes);
    for (int i = 0; i < ROWS; i++) {
        m.row.values[i] = i;
        cpus[i] = (struct topo_cpu){.os = i, .core = i, .l3 = 1};
        ranks[i] = (struct rank_info){.rank = i, .cpu = i};
    }
    for (int together = 0; together < 2; together++) {
        static struct curve c;
        const struct curve_machine machine = {&t, ranks, ROWS, together};
        int64_t share = together ? MIB(1) : MIB(4);
        for (int k = 0; k < ROWS * COLS; k++)
            m.cells[k].v[CELL_MEDIAN] = m.col.values[k % COLS] <= share ? 5 : 25;
        CHECK(curve_find(&c, &m, &machine, NULL) == 0 && c.n == 1 &&
                  c.steps[0].from_bytes == share && c.steps[0].match == CURVE_CACHE_EXCEEDED &&
                  c.steps[0].level == 2 && c.steps[0].sharers == (together ? ROWS : 1),
              "%s the second level is exceeded (level %d)", together ? "a quarter of" : "all of",
              c.steps[0].level);
    }
    matrix_fini(&m);
}

int main(void)
{
    test_module();
    test_kinds();
    test_large(GROUPS_RANKS_MAX, 48, false);
    test_large(GROUPS_RANKS_MAX, 48, true);
    test_large(GROUPS_RANKS_MAX, 256, false);
    test_large(GROUPS_RANKS_MAX, 256, true);
    struct import concurrent = {0}, serial = {0};
    CHECK(published_load(&concurrent, "concurrent") == 0 && published_load(&serial, "serial") == 0,
          "the published tables can be read");
    test_published(&concurrent, &serial);
    test_nothing(&concurrent, &serial, "shuffled", shuffle);
    test_nothing(&concurrent, &serial, "flat", flatten);
    import_fini(&concurrent);
    import_fini(&serial);
    return tap_done();
}
