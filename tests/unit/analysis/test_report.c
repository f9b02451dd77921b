// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/report.h"

#include "analysis/compare/fact_changes.h"
#include "analysis/report/hierarchy.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "formats/import.h"
#include "model/scan.h"
#include "model/shape.h"
#include "model/target.h"
#include "tests/unit/analysis/hierarchy_machine.h"
#include "tests/unit/analysis/published.h"
#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

static void test_published(void)
{
    struct import c = {0}, s = {0};
    CHECK(published_load(&c, "concurrent") == 0 && published_load(&s, "serial") == 0,
          "the published tables can be read");
    static struct topo_cache l3[] = {{.level = 3, .bytes = 32 << 20}};
    const struct topology t = {.n_caches = 1, .caches = l3};
    const struct report_source serial = {.matrices = s.matrices,
                                         .n = s.n_matrices,
                                         .ranks = s.ranks,
                                         .n_ranks = s.n_ranks,
                                         .topology = &t};
    const struct report_source concurrent = {.matrices = c.matrices,
                                             .n = c.n_matrices,
                                             .ranks = c.ranks,
                                             .n_ranks = c.n_ranks,
                                             .topology = &t};
    struct report *r = report_new(&serial, &concurrent, NULL);
    struct buf md = BUF_INIT, js = BUF_INIT;
    struct jsonw w = jsonw_to(&js);
    report_write_markdown(r, &md);
    report_write_json(r, &w, NULL);
    static const char *const says[] = {"From 16M to 32M",
                                       "From 32M to 64M",
                                       "the 32M L3 cache runs out",
                                       "Concurrent and serial diverge from 128M on",
                                       "rank 6 is typically",
                                       "No slow group",
                                       "The 4 NUMA nodes are alike",
                                       "At 16G rank 0 takes 130.8 ns, rank 1 156.6 ns",
                                       "(+67 %)"};
    for (size_t k = 0; k < sizeof says / sizeof *says; k++)
        CHECK(strstr(buf_text(&md), says[k]) != NULL, "says: %s", says[k]);
    printf("# %zu bytes of Markdown\n", md.len);
    if (getenv("SHOW") != NULL)
        fputs(buf_text(&md), stderr);
    struct json *root = json_parse(buf_text(&js), js.len, NULL);
    CHECK(json_get_bool(json_get(root, "contention"), "diverge", false),
          "JSON is JSON and says so");
    json_free(root);
    buf_free(&md);
    buf_free(&js);
    report_free(r);
    import_fini(&c);
    import_fini(&s);
}

static void test_changes(void)
{
    static struct fingerprint a, b;
    static struct changes c;
    facts_add(&a.machine_class, "cpu_model", "one");
    facts_add(&b.machine_class, "cpu_model", "two");
    facts_add(&a.config, "kernel", "6.1");
    facts_add(&b.config, "kernel", "6.2");
    facts_add(&a.config, "same", "x");
    facts_add(&b.config, "same", "x");
    facts_add(&b.config, "thp_enabled", "never");
    changes_find(&c, &a, &b);
    CHECK(c.n == 3 && c.list[0].is_class, "class first");
    CHECK_STR(c.list[1].name, "thp_enabled", "then the most suspicious");
    CHECK(c.list[1].a == NULL && c.list[2].weight < c.list[1].weight, "unknown is said to be so");
}

// ---- Other benchmarks ---------------------------------------------------------------------------

// Four ranks, two a node; node 0 has CPUs 0 and 1 behind one L3, node 1 has CPUs 2 and 3.
static struct rank_info ranks[4];
static struct topo_cpu cpus[4];
static int distance[4] = {10, 21, 21, 10};
static struct topo_node nodes[2] = {{.os = 0}, {.os = 1}};
static struct topo_cache caches[2] = {{.level = 3, .bytes = 32 << 20},
                                      {.level = 3, .bytes = 32 << 20}};
static const struct topology machine = {.n_cpus = 4,
                                        .cpus = cpus,
                                        .n_nodes = 2,
                                        .nodes = nodes,
                                        .n_caches = 2,
                                        .caches = caches,
                                        .distance = distance};

static void build_machine(void)
{
    for (int i = 0; i < 4; i++) {
        ranks[i] = (struct rank_info){.rank = i, .cpu = i, .cpu_node = i / 2, .mem_node = i / 2};
        cpus[i] = (struct topo_cpu){.os = i, .core = i, .node = i / 2, .l3 = i / 2};
    }
}

static int shaped(struct matrix *m, enum benchmark_id id, const char *pairs, const char *name,
                  int rows, int cols)
{
    struct spec s;
    struct shape list[SHAPES_MAX];
    spec_init(&s, id);
    if (pairs)
        param_set_text(spec_param(&s, strchr(pairs, '-')          ? "sweep"
                                      : id == BENCHMARK_PAGEFAULT ? "cost"
                                                                  : "pairs"),
                       &s, strchr(pairs, '-') ? strchr(pairs, '-') + 1 : pairs, NULL);
    const struct shape *shape = shape_find(list, shape_list(&s, list), name);
    return shape ? shape_make(m, shape, rows, cols, NULL) : -1;
}

static void put(struct matrix *m, int row, int col, double v)
{
    struct cell *c = matrix_at(m, row, col);
    c->v[CELL_N] = 16;
    c->v[CELL_DISTURBED] = 0;
    c->v[CELL_MEDIAN] = v;
    c->v[CELL_LO] = 0.99 * v;
    c->v[CELL_HI] = 1.01 * v;
}

// Says each of `says` (ends with NULL) and none of `not`; JSON's findings are the same sentences.
static const struct json *conditions;        // of the next run; NULL: not known
static const struct fingerprint *facts_then; // likewise

static void check_report(enum benchmark_id id, const struct matrix *list, int n,
                         const char *const *says, const char *const * not )
{
    const struct report_source run = {.benchmark = id,
                                      .matrices = list,
                                      .n = n,
                                      .ranks = ranks,
                                      .n_ranks = 4,
                                      .topology = &machine,
                                      .conditions = conditions,
                                      .machine = facts_then};
    CLEANUP_BUF struct buf md = BUF_INIT, js = BUF_INIT;
    struct jsonw w = jsonw_to(&js);
    struct err err = {0};
    struct report *r = report_new(&run, NULL, &err);
    CHECK(r != NULL, "%s has a report %s", benchmarks[id].name, err.text);
    if (!r)
        return;
    report_write_markdown(r, &md);
    report_write_json(r, &w, NULL);
    report_free(r);
    if (getenv("SHOW") != NULL)
        fputs(buf_text(&md), stderr);
    for (; *says; says++)
        CHECK(strstr(buf_text(&md), *says) != NULL, "says: %s", *says);
    for (; not &&*not ; not ++)
        CHECK(strstr(buf_text(&md), *not ) == NULL, "does not say: %s", *not );
    CLEANUP_JSON struct json *root = json_parse(buf_text(&js), js.len, &err);
    bool same = json_count(json_get(root, "findings")) > 0;
    for (const struct json *f = json_first(json_get(root, "findings")); f; f = json_next(f))
        same = same && strstr(buf_text(&md), json_get_text(f, "text", "?")) != NULL &&
               json_get_text(f, "kind", NULL) != NULL && json_count(f) > 2;
    CHECK(same, "JSON has the same sentences, each with its kind and numbers %s", err.text);
}

static void test_idle(void)
{
    struct matrix m = {0};
    shaped(&m, BENCHMARK_MATRIX, NULL, "idle", 4, 2);
    m.col.values[1] = 1;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
            put(&m, i, j, i / 2 == j ? 100 : 150);
    static const char *const says[] = {"Node 0: own memory 100.0 ns, node 1's 150.0 ns (× 1.50)",
                                       "the largest difference of 1 is 0.0 %", NULL};
    static const char *const not [] = {"in the opposite direction", "are typical", NULL};
    check_report(BENCHMARK_MATRIX, &m, 1, says, not );
    put(&m, 0, 1, 180);
    put(&m, 1, 1, 180);
    static const char *const odd[] = {"From node 0 to node 1's memory it takes 180.0 ns, in the "
                                      "opposite direction 150.0 ns (20 %",
                                      NULL};
    check_report(BENCHMARK_MATRIX, &m, 1, odd, NULL);
    static const char text[] =
        "[{\"kind\":\"clock\",\"severity\":\"notice\",\"rank\":null,\"text\":\"no caveat\"},"
        "{\"kind\":\"two_modes\",\"severity\":\"notice\",\"rank\":null,"
        "\"text\":\"the repetitions have two levels\"}]";
    static const char *const two[] = {"Caveats", "- The repetitions have two levels.\n", NULL},
                             *const other[] = {"no caveat", NULL};
    CLEANUP_JSON struct json *given = json_parse(text, strlen(text), NULL);
    conditions = given;
    check_report(BENCHMARK_MATRIX, &m, 1, two, other);
    conditions = NULL;
    matrix_at(&m, 0, 1)->v[CELL_LO] = 100; // now it is not sure
    static const char *const sure[] = {"in the opposite direction", NULL};
    static const char *const open[] = {"the largest difference of 1 is 20.0 %", NULL};
    check_report(BENCHMARK_MATRIX, &m, 1, open, sure);
    matrix_fini(&m);
}

// Four nodes of a rank each, the last without memory of its own.
static void test_idle_of_four(void)
{
    struct matrix m = {0};
    shaped(&m, BENCHMARK_MATRIX, NULL, "idle", 4, 4);
    for (int i = 0; i < 4; i++) {
        ranks[i].cpu_node = m.col.values[i] = i;
        for (int j = 0; j < 4; j++)
            put(&m, i, j, i == j ? 100 : i / 2 == j / 2 ? 130 : 200);
    }
    static const char *const says[] = {
        "Node 0: own memory 100.0 ns, nearest node 1 130.0 ns (× 1.30), farthest node 2 200.0 ns "
        "(× 2.00).",
        "No node differs significantly (95 %) from the others: own memory typically takes 100.0 "
        "ns, and the 4 nodes "
        "are within 0.0 % of that.",
        NULL};
    static const char *const not [] = {"are typical of the nodes", NULL};
    check_report(BENCHMARK_MATRIX, &m, 1, says, not );
    put(&m, 1, 1, 120);
    static const char *const odd[] = {"Node 1 reaches its own memory in 120.0 ns, where 100.0 ns "
                                      "are typical of the nodes (+20 %).",
                                      NULL};
    static const char *const alike[] = {"No node differs significantly", NULL};
    check_report(BENCHMARK_MATRIX, &m, 1, odd, alike);
    for (int i = 0; i < 4; i++)
        matrix_at(&m, i, 3)->v[CELL_MEDIAN] = NAN;
    static const char *const none[] = {
        "Node 3 has no memory of its own in this matrix; its row holds remote latencies.", NULL};
    check_report(BENCHMARK_MATRIX, &m, 1, none, NULL);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (i != j)
                matrix_at(&m, i, j)->v[CELL_MEDIAN] = NAN;
    static const char *const alone[] = {"Node 0: own memory 100.0 ns; no other was measured.",
                                        NULL};
    check_report(BENCHMARK_MATRIX, &m, 1, alone, NULL);
    for (int i = 0; i < 4; i++)
        ranks[i].cpu_node = -1;
    static const char *const lost[] = {"Where the 4 ranks ran is not recorded, so local and remote "
                                       "memory cannot be distinguished.",
                                       NULL};
    check_report(BENCHMARK_MATRIX, &m, 1, lost, NULL);
    build_machine();
    matrix_fini(&m);
}

// As many ranks as there may be, 64 nodes, 256 targets: each way is asked for with all ranks.
static void test_idle_of_many(void)
{
    enum { MANY = SPEC_RANKS_MAX, NODES = 64, TARGETS = 256 };
    static struct rank_info many[MANY];
    struct matrix m = {0};
    CLEANUP_BUF struct buf md = BUF_INIT;
    shaped(&m, BENCHMARK_MATRIX, NULL, "idle", MANY, TARGETS);
    for (int j = 0; j < TARGETS; j++)
        m.col.values[j] = j;
    for (int i = 0; i < MANY; i++) {
        many[MANY - 1 - i] = (struct rank_info){.rank = i, .cpu = i, .cpu_node = i % NODES};
        for (int j = 0; j < TARGETS; j++)
            put(&m, i, j, 100 + (i % NODES > j ? i % NODES - j : j - i % NODES));
    }
    const struct report_source run = {
        .benchmark = BENCHMARK_MATRIX, .matrices = &m, .n = 1, .ranks = many, .n_ranks = MANY};
    struct report *r = report_new(&run, NULL, NULL);
    CHECK(r != NULL, "%d ranks have a report", MANY);
    if (r)
        report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "Node 63: own memory 100.0 ns, nearest node 62 101.0 ns (× 1.01), "
                                "farthest node 255 292.0 ns (× 2.92)."),
          "with the last node's own, nearest and farthest memory");
    CHECK(strstr(buf_text(&md), "the largest difference of 2016 is 0.0 %"), "and all ways");
    report_free(r);
    matrix_fini(&m);
}

// Two nodes of 80 GB/s each, and what their modules could deliver.
static void check_modules(const struct matrix *m, const char *dimms, const char *speed,
                          const char *said)
{
    static struct fingerprint f;
    const char *const says[] = {said ? said : "Node 0", NULL};
    static const char *const none[] = {"memory modules", NULL};
    f = (struct fingerprint){0};
    facts_add(&f.machine_class, "dimms", "%s", dimms);
    if (speed)
        facts_add(&f.config, "dimm_speed", "%s", speed);
    facts_then = &f;
    check_report(BENCHMARK_BANDWIDTH, m, 2, says, said ? NULL : none);
    facts_then = NULL;
}

static void test_modules(const struct matrix *m)
{
    static const char *const none[] = {"memory modules", NULL};
    static const char *const some[] = {"Node 0", NULL};
    check_modules(m, "8x64G DDR5-4800 2R; slots 0-7 of 16", "4400 MT/s",
                  "8 memory modules at 4400 MT/s deliver at most 281.6 GB/s, if each has a channel "
                  "of its own. The nodes reach 160.0 GB/s together, 57 % of that.");
    check_modules(m, "8x64G DDR5-4800 2R, 4x32G DDR5-5600 1R; slots 0-11 of 16", NULL,
                  "12 memory modules at 4800 MT/s deliver at most 460.8 GB/s");
    check_modules(m, "4x64G DDR4; slots 0-3 of 4", "3200 MT/s, 2933 MT/s",
                  "4 memory modules at 2933 MT/s deliver at most 93.9 GB/s");
    check_modules(m, "4x64G DDR4; slots 0-3 of 4", NULL, NULL);
    check_modules(m, "", NULL, NULL);
    check_modules(m, "x; 8", "4800 MT/s", NULL);
    check_report(BENCHMARK_BANDWIDTH, m, 2, some, none);
}

static void test_bandwidth(void)
{
    struct matrix m[2] = {0};
    shaped(&m[0], BENCHMARK_BANDWIDTH, NULL, "triad", 2, 2);
    shaped(&m[1], BENCHMARK_BANDWIDTH, NULL, "read", 2, 2);
    for (int k = 0; k < 2; k++) {
        m[k].row.values[1] = m[k].col.values[1] = 1;
        for (int i = 0; i < 4; i++)
            put(&m[k], i / 2, i % 2, (i / 2 == i % 2 ? 40000 : 10000) * (1 + k));
    }
    static const char *const says[] = {
        "Node 0 and its own memory: best is read with 80.0 GB/s; triad gives 40.0 GB/s, 50 % of "
        "that.",
        "Node 1, triad: node 0's memory gives 10.0 GB/s, 25 % of its own", NULL};
    check_report(BENCHMARK_BANDWIDTH, m, 2, says, NULL);
    test_modules(m);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
    shaped(&m[0], BENCHMARK_BANDWIDTH, NULL, "triad", 1, 2);
    m[0].col.values[1] = target_interleaved(3, true);
    put(&m[0], 0, 0, 40000);
    put(&m[0], 0, 1, 50000);
    static const char *const spread[] = {
        "Node 0, triad: memory on nodes 0-1, interleaved by weight gives 50.0 GB/s, 125 % of its "
        "own memory.",
        NULL};
    static const char *const remote[] = {"'s memory gives", NULL};
    check_report(BENCHMARK_BANDWIDTH, m, 1, spread, remote);
    matrix_fini(&m[0]);
    struct matrix t = {0};
    static const double grows[] = {10000, 20000, 30000, 30500};
    shaped(&t, BENCHMARK_BANDWIDTH, "sweep-threads", "triad", 4, 1);
    for (int i = 0; i < 4; i++) {
        t.row.values[i] = i + 1;
        put(&t, i, 0, grows[i]);
    }
    static const char *const full[] = {"30.0 GB/s with 3 of 4 threads is 98 % of the maximum",
                                       NULL};
    check_report(BENCHMARK_BANDWIDTH, &t, 1, full, NULL);
    put(&t, 3, 0, 40000);
    static const char *const more[] = {
        "grows up to the last thread, 40.0 GB/s with 4 threads, × 4.00", NULL};
    check_report(BENCHMARK_BANDWIDTH, &t, 1, more, NULL);
    matrix_fini(&t);
    struct matrix all[2] = {0};
    shaped(&all[0], BENCHMARK_BANDWIDTH, "sweep-threads", "triad", 1, 1);
    shaped(&all[1], BENCHMARK_BANDWIDTH, "sweep-threads", "read", 1, 1);
    for (int k = 0; k < 2; k++) {
        all[k].row.values[0] = 4;
        put(&all[k], 0, 0, 20000 * (1 + k));
    }
    static const char *const together[] = {
        "4 threads together, ", "best is read with 40.0 GB/s; triad gives 20.0 GB/s, 50 % of that.",
        NULL};
    check_report(BENCHMARK_BANDWIDTH, all, 2, together, NULL);
    matrix_fini(&all[0]);
    matrix_fini(&all[1]);
}

// Of one kernel by working set: with the machine's caches, and without them.
static void test_bandwidth_levels(void)
{
    static const double mbps[] = {90000, 80000, 15000};
    struct matrix m = {0};
    shaped(&m, BENCHMARK_BANDWIDTH, "sweep-sizes", "read", 2, 3);
    m.row.values[0] = 1;
    m.row.values[1] = 4;
    for (int c = 0; c < 3; c++) {
        m.col.values[c] = (int64_t)(8 << 20) << (2 * c); // 8, 32, 128 MiB
        put(&m, 0, c, mbps[c]);
        put(&m, 1, c, 2 * mbps[c]);
    }
    static const char *const says[] = {"read, 1 thread, GB/s: L3 90.0, memory 15.0.",
                                       "read, 4 threads, GB/s: L3 180.0, memory 30.0.", NULL};
    check_report(BENCHMARK_BANDWIDTH, &m, 1, says, NULL);
    m.col.values[0] = 48 << 20; // neither cache nor memory
    m.col.values[1] = 64 << 20;
    m.col.values[2] = 96 << 20;
    static const char *const ends[] = {"read, 1 thread: 90.0 GB/s at 48M, 15.0 GB/s at 96M.", NULL};
    check_report(BENCHMARK_BANDWIDTH, &m, 1, ends, NULL);
    matrix_fini(&m);
}

static void test_copies(void)
{
    struct matrix m[2] = {0};
    for (int k = 0; k < 2; k++) {
        shaped(&m[k], BENCHMARK_BANDWIDTH, "sweep-memcpy", k ? "streaming" : "memcpy", 2, 2);
        for (int i = 0; i < 4; i++)
            put(&m[k], i / 2, i % 2, 20000 - 4000 * i);
        m[k].row.values[1] = m[k].col.values[1] = 1;
    }
    static const char *const says[] = {
        "memcpy: best is node 0 to node 0 with 20.0 GB/s, read and written; worst is node 1 to "
        "node 1 with 8.0 GB/s, 40 % of that.",
        "streaming: best is node 0", NULL};
    check_report(BENCHMARK_BANDWIDTH, m, 2, says, NULL);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
    shaped(&m[0], BENCHMARK_BANDWIDTH, "sweep-memcpy", "memcpy", 1, 1);
    put(&m[0], 0, 0, 12000);
    static const char *const one[] = {"memcpy: node 0 to node 0 12.0 GB/s, read and written.",
                                      NULL};
    check_report(BENCHMARK_BANDWIDTH, m, 1, one, NULL);
    matrix_fini(&m[0]);
}

static void test_atomics(void)
{
    static const char *const names[] = {"time", "rate", "fairness", "share", "handover"};
    static const double values[][2] = {{5, 50}, {200, 40}, {1, 0.99}, {100, 90}, {100, 100}};
    struct matrix m[5] = {0};
    for (int i = 0; i < 5; i++) {
        bool handover = i == 4;
        shaped(&m[i], BENCHMARK_ATOMICS, NULL, names[i], handover ? 1 : 2, handover ? 2 : 3);
        for (int r = 0; r < m[i].row.n; r++) {
            m[i].row.values[r] = r || handover ? 4 : 1;
            for (int c = 0; c < m[i].col.n; c++)
                put(&m[i], r, c, values[i][r]);
        }
        for (int c = 0; c < m[i].col.n; c++)
            m[i].col.values[c] = (handover ? OPERATION_TAS : OPERATION_EXCHANGE) + c;
    }
    put(&m[1], 1, 1, 60);
    put(&m[4], 0, 1, 80);
    static const char *const says[] = {
        "exchange: 5 ns by one rank. 4 ranks on one line: 50 ns each, 40 million per second "
        "together. Jain's index is 0.99, the least rank gets 90 % of what the greatest gets.",
        "ticket: 5 ns by one rank. 4 ranks on one line: 50 ns each, 40 million per second "
        "together, "
        "handed over every 80 ns.",
        "With 4 ranks, tas is taken most often (60 million times per second), and ticket is handed "
        "over fastest (80 ns).",
        NULL};
    static const char *const unfair[] = {"unfair", NULL};
    check_report(BENCHMARK_ATOMICS, m, 5, says, unfair);
    put(&m[2], 1, 1, 0.5);
    static const char *const tas[] = {
        "tas is unfair: 4 ranks share it as if 2.0 of them had all turns.", NULL};
    check_report(BENCHMARK_ATOMICS, m, 5, tas, NULL);
    for (int i = 0; i < 4; i++)
        m[i].row.n = 1;
    static const char *const alone[] = {"exchange: 5 ns by one rank.", NULL};
    static const char *const shared[] = {"on one line:", "most often", NULL};
    check_report(BENCHMARK_ATOMICS, m, 4, alone, shared);
    for (int i = 0; i < 5; i++)
        matrix_fini(&m[i]);
}

static void test_lines(void)
{
    struct matrix m = {0};
    shaped(&m, BENCHMARK_C2C, NULL, "load_lines", 2, 3);
    for (int k = 0; k < 6; k++)
        put(&m, k / 3, k % 3, 50 + k % 3);
    m.row.values[0] = axis_pair(0, 1);
    m.row.values[1] = axis_pair(0, 2);
    static const char *const alike[] = {
        "load: the cache lines of a pair differ by less than 10 %, or by less than the noise; most "
        "(4.0 % over 3 lines) those of ranks 0 and 1.",
        NULL};
    static const char *const matters[] = {"it matters where", NULL};
    check_report(BENCHMARK_C2C, &m, 1, alike, matters);
    put(&m, 1, 2, 80);
    static const char *const says[] = {
        "load: it matters where a cache line is, for 1 of 2 pairs. Ranks 0 and 2 take 50 ns on the "
        "fastest of 3 lines, 80 on the slowest (1.60 times).",
        NULL};
    check_report(BENCHMARK_C2C, &m, 1, says, NULL);
    matrix_at(&m, 1, 2)->v[CELL_LO] = 49;
    check_report(BENCHMARK_C2C, &m, 1, (const char *const[]){NULL}, matters);
    matrix_fini(&m);
}

static void test_pairs(void)
{
    struct matrix m = {0}, p = {0};
    shaped(&m, BENCHMARK_C2C, NULL, "cas", 4, 4);
    for (int i = 0; i < 4; i++)
        for (int j = i + 1; j < 4; j++)
            put(&m, i, j, i / 2 == j / 2 ? 50 : 200 + i);
    static const char *const says[] = {"cas, same L3: typically 50 ns, 50 to 50 over 2 pairs",
                                       "cas, same socket: typically 200.5 ns", NULL};
    static const char *const not [] = {"typical of their class", NULL};
    check_report(BENCHMARK_C2C, &m, 1, says, not );
    put(&m, 0, 3, 400);
    static const char *const odd[] = {"ranks 0 and 3 have 400 ns", NULL};
    check_report(BENCHMARK_C2C, &m, 1, odd, NULL);
    test_lines();
    shaped(&p, BENCHMARK_PINGPONG, NULL, "pingpong", 1, 2);
    p.row.values[0] = axis_pair(0, 2);
    p.col.values[1] = 1 << 20;
    put(&p, 0, 0, 0.4);
    put(&p, 0, 1, 100);
    static const char *const talk[] = {
        "Ranks 0 and 2 (same socket): a message of 0 bytes takes 0.40 µs, one of 1M 100 µs, which "
        "is 10.5 GB/s",
        NULL};
    check_report(BENCHMARK_PINGPONG, &p, 1, talk, NULL);
    matrix_fini(&m);
    matrix_fini(&p);
}

// A machine whose three caches the kernel lists, and one that hides the last.
static void test_hierarchy(void)
{
    static struct topo_cache listed[] = {{.level = 1, .bytes = 32 << 10},
                                         {.level = 2, .bytes = 1 << 20},
                                         {.level = 3, .bytes = 32 << 20}};
    static struct topo_cache fewer[] = {{.level = 1, .bytes = 32 << 10},
                                        {.level = 2, .bytes = 1 << 20}};
    struct topology t = {.n_caches = 3, .caches = listed};
    static const char *const says[] = {
        "Rank 1: L1 5 cycles, L2 14, L3 50, walk +22.3 ns, memory 96.0 ns, hop +63.0 ns, 12.0 "
        "loads "
        "at once (4.00 GHz).",
        "L2: 3.51 ns (14.1 cycles), up to 1.0 MiB.",
        "Beyond, a load takes 9",
        "The TLB holds 3",
        "A core has 12.0 loads of memory under way at once: 8.0 ns per load instead of 96.0.",
        "8.0 at 64 B (× 12.0)",
        "128 MiB, reaches only 84 % of the latency at 512 MiB (91.0 ns). Use size=256M",
        NULL};
    struct matrix m[HIERARCHY_PARTS] = {0};
    struct report_source s = {.benchmark = BENCHMARK_HIERARCHY,
                              .matrices = m,
                              .n = hierarchy_matrices(m, 2),
                              .topology = &t};
    struct report *r = report_new(&s, NULL, NULL);
    struct buf md = BUF_INIT, lines = BUF_INIT;
    report_write_markdown(r, &md);
    for (int i = 0; says[i]; i++)
        CHECK(strstr(buf_text(&md), says[i]), "hierarchy: \"%s\"", says[i]);
    report_free(r);
    buf_reset(&md);
    t = (struct topology){.n_caches = 2, .caches = fewer};
    r = report_new(&s, NULL, NULL);
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "The kernel lists no such cache"),
          "a cache that the kernel does not list");
    report_free(r);
    const struct rank_info poor = {.rank = 1, .huge_share = 0.25};
    s.ranks = &poor;
    s.n_ranks = 1;
    buf_reset(&md);
    r = report_new(&s, NULL, NULL);
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "huge pages for 25 % of the memory only (rank 1)") &&
              !strstr(buf_text(&md), "holds 32 huge"),
          "a kernel without huge pages to give");
    report_free(r);
    s.topology = NULL;
    CHECK(hierarchy_write_lines(&s, &lines, NULL) == 0 &&
              strstr(buf_text(&lines), "rank 0: L1 5 cycles, L2 14, L3 50"),
          "without a topology levels are counted");
    for (int i = 0; i < s.n; i++)
        matrix_fini(&m[i]);
    buf_free(&md);
    buf_free(&lines);
}

// The core of rank 1 and node 2 are odd.
static void test_scan(void)
{
    struct matrix m[3] = {0};
    shaped(&m[0], BENCHMARK_SCAN, NULL, SCAN_LATENCY, 4, 2);
    shaped(&m[1], BENCHMARK_SCAN, NULL, SCAN_OF_CORE, 4, AXIS_ASPECTS);
    shaped(&m[2], BENCHMARK_SCAN, NULL, SCAN_OF_NODE, 2, ASPECT_TRANSFER);
    m[0].col.values[0] = 1 << 18;
    m[0].col.values[1] = 1 << 26;
    m[2].row.values[1] = 2;
    for (int i = 1; i < 3; i++) {
        for (int a = 0; a < m[i].col.n; a++)
            m[i].col.values[a] = a;
        for (int k = 0; k < m[i].row.n * m[i].col.n; k++)
            m[i].cells[k].v[CELL_MEDIAN] = 100.5, m[i].cells[k].v[CELL_N] = 9,
            m[i].cells[k].v[CELL_LO] = 99, m[i].cells[k].v[CELL_HI] = 101,
            m[i].cells[k].v[CELL_SD] = 1;
    }
    put(&m[0], 1, 0, 8.1);
    struct cell *core = matrix_at(&m[1], 1, ASPECT_L2), *node = matrix_at(&m[2], 1, 2);
    core->v[CELL_MEDIAN] = 111, core->v[CELL_LO] = 110, core->v[CELL_HI] = 112;
    node->v[CELL_MEDIAN] = 120, node->v[CELL_LO] = 118, node->v[CELL_HI] = 121;
    static const char *const says[] = {
        "The node 2: +20.0 % in bandwidth, +18.0 to +21.0 %, measured 9 times.",
        "+11.0 % in latency in L2 (8.1 ns; its peers 7.297 ± 0.073), +10.0 to +12.0 %",
        "Compared with their peers: 2 nodes, 4 cores. Of what is not odd, the ", NULL};
    static const char *const missing[] = {"0 of", NULL};
    check_report(BENCHMARK_SCAN, m, 3, says, missing);
    core->v[CELL_LO] = node->v[CELL_LO] = 99;
    static const char *const nothing[] = {"0 of 22 comparisons with peers found anything odd",
                                          "the node 2 deviates most: +20.0 % in bandwidth", NULL};
    static const char *const named[] = {"measured", NULL};
    check_report(BENCHMARK_SCAN, m, 3, nothing, named);
    for (int i = 0; i < 3; i++)
        matrix_fini(&m[i]);
}

static void test_pagefault(void)
{
    struct matrix m[2] = {0};
    shaped(&m[0], BENCHMARK_PAGEFAULT, NULL, "4k", 2, 1);
    shaped(&m[1], BENCHMARK_PAGEFAULT, NULL, "thp", 2, 1);
    for (int i = 0; i < 2; i++) {
        m[i].row.values[0] = 1;
        m[i].row.values[1] = 4;
        put(&m[i], 0, 0, i ? 65536 : 512);
        put(&m[i], 1, 0, i ? 131072 : 768);
    }
    static const char *const says[] = {
        "4 KiB pages on node 0: 1 thread takes 512.0 ns per page (8.0 GB/s); each of 4 threads at "
        "once takes 768.0 ns, × 1.50 (21.3 GB/s together).",
        "2 MiB pages on node 0: 1 thread takes 65536.0 ns per page (32.0 GB/s)", NULL};
    static const char *const missing[] = {"did not give", NULL};
    for (int i = 0; i < 4; i++)
        ranks[i].huge_share = 1;
    check_report(BENCHMARK_PAGEFAULT, m, 2, says, missing);
    struct matrix moved = {0};
    shaped(&moved, BENCHMARK_PAGEFAULT, "migrate", "migrate", 2, 1);
    for (int i = 0; i < 2; i++) {
        moved.row.values[i] = 1 + i;
        put(&moved, i, 0, 1024);
    }
    moved.col.values[0] = axis_pair(0, 2);
    static const char *const path[] = {
        "4 KiB pages moved from node to node 0->2: 1 thread takes 1024.0 ns per page (4.0 GB/s)",
        NULL};
    check_report(BENCHMARK_PAGEFAULT, &moved, 1, path, missing);
    matrix_fini(&moved);
    const struct rank_info rank = {.rank = 3, .huge_share = 0.25};
    const struct report_source s = {
        .benchmark = BENCHMARK_PAGEFAULT, .matrices = m, .n = 2, .ranks = &rank, .n_ranks = 1};
    struct report *r = report_new(&s, NULL, NULL);
    struct buf md = BUF_INIT;
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "did not give all huge pages (rank 3: 25 %"),
          "missing huge pages are reported");
    buf_free(&md);
    report_free(r);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

static void test_touch_and_load(void)
{
    struct matrix m = {0}, l[2] = {0};
    shaped(&m, BENCHMARK_FIRSTTOUCH, NULL, "access", 4, 3);
    for (int i = 0; i < 4; i++) {
        put(&m, i, ACCESS_OWN, 10);
        put(&m, i, ACCESS_SHARED, i / 2 ? 15 : 10);
        put(&m, i, ACCESS_CROSSED, i == 3 ? 20 : 10);
    }
    static const char *const says[] = {
        "typically takes 10.00 ns per access", "(shared) takes 12.50 ns, × 1.25",
        "(crossed) takes 10.00 ns, × 1.00 of a rank's own; at most × 2.00 (rank 3)", NULL};
    check_report(BENCHMARK_FIRSTTOUCH, &m, 1, says, NULL);
    shaped(&l[0], BENCHMARK_LOADED, NULL, "latency", 1, 5);
    shaped(&l[1], BENCHMARK_LOADED, NULL, "bandwidth", 1, 5);
    static const double ns[] = {100, 102, 105, 110, 300}, mbps[] = {0, 5000, 10000, 15000, 20000};
    for (int j = 0; j < 5; j++) {
        l[0].col.values[j] = l[1].col.values[j] = 25 * j;
        put(&l[0], 0, j, ns[j]);
        put(&l[1], 0, j, mbps[j]);
    }
    static const char *const knee[] = {"100.0 ns idle, 148.0 ns at 80 % of the highest bandwidth, "
                                       "300.0 ns at full load (20.0 GB/s, × 3.00); "
                                       "the knee is at 75 % of load, 15.0 GB/s and 110.0 ns",
                                       NULL};
    check_report(BENCHMARK_LOADED, l, 2, knee, NULL);
    put(&l[0], 0, 4, 112);
    static const char *const flat[] = {"no distinct knee", NULL};
    check_report(BENCHMARK_LOADED, l, 2, flat, NULL);
    snprintf(l[0].name, sizeof l[0].name, "latency_3r1w");
    snprintf(l[1].name, sizeof l[1].name, "bandwidth_3r1w");
    for (int i = 0; i < 2; i++) {
        snprintf(l[i].row.name, sizeof l[i].row.name, "path");
        l[i].row.values[0] = axis_pair(0, 2);
    }
    static const char *const path[] = {"Node 0 to node 2, 3:1: 100.0 ns idle", NULL};
    check_report(BENCHMARK_LOADED, l, 2, path, NULL);
    l[0].row.values[0] = l[1].row.values[0] = axis_pair(0, target_interleaved(5, false));
    static const char *const wide[] = {"Node 0 to nodes 0,2, interleaved, 3:1: 100.0 ns idle",
                                       NULL};
    check_report(BENCHMARK_LOADED, l, 2, wide, NULL);
    matrix_fini(&m);
    matrix_fini(&l[0]);
    matrix_fini(&l[1]);
}

// ---- Latency: shared caches and pairs of runs ---------------------------------------------------

static int curve(struct matrix *m, const char *mode, double fast, int64_t until)
{
    if (matrix_init(m, mode, "latency", "ns", 4, 6, NULL) < 0)
        return -1;
    strcpy(m->row.name, "rank");
    strcpy(m->col.name, "working_set");
    for (int j = 0; j < 6; j++) {
        m->col.values[j] = (int64_t)4 << 20 << j;
        for (int i = 0; i < 4; i++) {
            m->row.values[i] = i;
            put(m, i, j, m->col.values[j] < until ? fast : 10 * fast);
        }
    }
    return 0;
}

// Two ranks behind each L3 of 32M: together they run out of it at 16M each, alone at 32.
static void test_shared_cache(void)
{
    struct matrix c = {0}, s = {0};
    curve(&c, "concurrent", 10, 16 << 20);
    curve(&s, "serial", 10, 32 << 20);
    struct report_source one = {
        .matrices = &s, .n = 1, .ranks = ranks, .n_ranks = 4, .topology = &machine};
    struct report_source all = one;
    all.matrices = &c;
    CLEANUP_BUF struct buf md = BUF_INIT;
    struct report *r = report_new(&one, &all, NULL), *turned = report_new(&all, &one, NULL);
    report_write_markdown(r, &md);
    CHECK(strstr(buf_text(&md), "From 16M to 32M latency grows from 10.0 to 100.0 ns (× 10.00): "
                                "the 32M L3 cache runs out"),
          "alone a rank has the whole cache");
    CHECK(strstr(buf_text(&md), "the 32M L3 cache, shared by 2 ranks (16M each), runs out"),
          "together each has its share");
    CLEANUP_BUF struct buf other = BUF_INIT;
    report_write_markdown(turned, &other);
    CHECK_STR(buf_text(&md), buf_text(&other), "which run is named first does not matter");
    report_free(r);
    report_free(turned);
    struct err err = {0};
    CHECK(!report_new(&one, &one, &err) && err.code == ERR_CONFLICT && !strcmp(err.member, "with"),
          "two serial runs are no pair: %s", err.text);
    static struct rank_info moved[4];
    memcpy(moved, ranks, sizeof moved);
    moved[2].cpu = 3;
    all.ranks = moved;
    CHECK(!report_new(&one, &all, &err) && strstr(err.text, "rank 2 was on CPU 2"),
          "other places are no pair: %s", err.text);
    matrix_fini(&c);
    matrix_fini(&s);
}

// ---- What was not computed is not said ----------------------------------------------------------

static int many(struct matrix *m, struct rank_info *list, int rows, int cols, int node_size)
{
    if (matrix_init(m, "concurrent", "latency", "ns", rows, cols, NULL) < 0)
        return -1;
    strcpy(m->row.name, "rank");
    strcpy(m->col.name, "working_set");
    for (int j = 0; j < cols; j++)
        m->col.values[j] = (int64_t)1 << (20 + j);
    for (int i = 0; i < rows; i++) {
        m->row.values[i] = i;
        list[i] = (struct rank_info){
            .rank = i, .cpu = i, .cpu_node = i / node_size, .mem_node = i / node_size};
    }
    return 0;
}

static void show(const struct report_source *s, struct buf *md, struct buf *js)
{
    struct jsonw w = jsonw_to(js);
    struct report *r = report_new(s, NULL, NULL);
    CHECK(r != NULL, "there is a report");
    report_write_markdown(r, md);
    report_write_json(r, &w, NULL);
    report_free(r);
    if (getenv("SHOW") != NULL)
        fputs(buf_text(md), stderr);
}

static void check_says(const struct report_source *s, const char *what, const char *says,
                       const char *not_this)
{
    CLEANUP_BUF struct buf md = BUF_INIT, js = BUF_INIT;
    show(s, &md, &js);
    CHECK(!says || strstr(buf_text(&md), says), "%s: says %s", what, says ? says : "nothing of it");
    CHECK(!not_this || !strstr(buf_text(&md), not_this), "%s: does not say %s", what,
          not_this ? not_this : "");
    CHECK(!strstr(buf_text(&md), "nan") && !strstr(buf_text(&md), "inf "), "%s: all numbers are",
          what);
}

// One size, the default of runs: nodes against the spread of their ranks, or no word of nodes.
static void test_few_sizes(void)
{
    static struct rank_info list[16];
    struct matrix m = {0};
    struct report_source s = {.matrices = &m, .n = 1, .ranks = list, .n_ranks = 16};
    many(&m, list, 16, 1, 2);
    for (int i = 0; i < 16; i++)
        put(&m, i, 0, i % 2 ? 100 : 285 * (1 + 0.005 * (i / 2)));
    check_says(&s, "ranks from 100 to 285 ns",
               "The 8 NUMA nodes are shown neither to differ nor to be alike: the one furthest",
               "against 0.0 %");
    for (int i = 0; i < 16; i++)
        put(&m, i, 0, (i / 2 == 3 ? 141 : 100) * (1 + 0.001 * (i % 2)));
    check_says(&s, "a slow node",
               "The 8 NUMA nodes differ: the one furthest from the mean (node 3)", "against 0.0 %");
    for (int i = 0; i < 16; i++)
        put(&m, i, 0, 100 * (1 + 0.001 * (i % 3)));
    check_says(&s, "equal nodes", "The 8 NUMA nodes are alike", NULL);
    matrix_fini(&m);
    many(&m, list, 8, 1, 1);
    s.n_ranks = 8;
    for (int i = 0; i < 8; i++)
        put(&m, i, 0, 100 + 5 * i);
    check_says(&s, "a rank a node", NULL, "NUMA nodes");
    CLEANUP_BUF struct buf md = BUF_INIT, js = BUF_INIT;
    show(&s, &md, &js);
    CLEANUP_JSON struct json *root = json_parse(buf_text(&js), js.len, NULL);
    const struct json *g = json_get(json_get(root, "concurrent"), "groups");
    CHECK(json_is_null(json_get(g, "node_spread_percent")) &&
              json_is_null(json_get(g, "within_percent")) &&
              json_is_null(json_get(g, "node_worst")) && json_is_null(json_get(g, "p")),
          "JSON has null for what was not computed");
    matrix_fini(&m);
}

// Enough sizes, one rank a node: nodes differ, and there is no spread inside one.
static void test_a_rank_a_node(void)
{
    static struct rank_info list[8];
    struct matrix m = {0};
    const struct report_source s = {.matrices = &m, .n = 1, .ranks = list, .n_ranks = 8};
    many(&m, list, 8, 4, 1);
    for (int k = 0; k < 32; k++)
        put(&m, k / 4, k % 4, (k / 4 == 3 ? 141 : 100) * (1 + 0.001 * (k % 3)));
    check_says(&s, "a slow node", "(node 3) is off by +35.0 %.", "against");
    matrix_fini(&m);
}

// ---- Many ranks ---------------------------------------------------------------------------------

// As published tables of 128 ranks look: the last four of each node ran alone at their end, and one
// rank does not climb with the others.
static void test_many_ranks(void)
{
    static struct rank_info list[128];
    static const double ns[] = {12, 13, 15, 20, 55, 110, 150, 190, 210, 224};
    struct matrix m = {0};
    unsigned long long seed = 17;
    const struct report_source s = {.matrices = &m, .n = 1, .ranks = list, .n_ranks = 128};
    many(&m, list, 128, 10, 16);
    for (int k = 0; k < 1280; k++) {
        int i = k / 10, j = k % 10;
        double fast = i % 16 >= 12 && j > 4 ? 0.6 : 1;
        put(&m, i, j, ns[j] * fast * (1 + 0.05 * sim_normal(&seed)));
    }
    put(&m, 77, 4, 14);
    CLEANUP_BUF struct buf md = BUF_INIT, js = BUF_INIT;
    show(&s, &md, &js);
    int lines = 0;
    for (const char *at = buf_text(&md); (at = strstr(at, "\n  - ")); at++)
        lines++;
    CHECK(strstr(buf_text(&md), "(× 2.7") && strstr(buf_text(&md), "for 127 of 128 ranks"),
          "a step that one rank does not make is one, and says so");
    CHECK(
        strstr(buf_text(&md), "all but the last 4 ranks of each NUMA node (correct for 128 of 128"),
        "what slow ranks have in common");
    CHECK(lines <= 12, "in %d lines", lines);
    CHECK(strstr(buf_text(&md), "It is not recorded whether all ranks measured at the same time"),
          "and why that may be so");
    for (int k = 0; k < 1280; k++)
        m.cells[k].v[CELL_OVERLAP] = 1;
    buf_reset(&md);
    buf_reset(&js);
    show(&s, &md, &js);
    CHECK(!strstr(buf_text(&md), "It is not recorded whether"), "unless the overlap is known");
    for (int k = 0; k < 1280; k++)
        put(&m, k / 10, k % 10, k / 10 % 3 ? ns[k % 10] : 100);
    check_says(&s, "a third of the ranks goes its own way", "No step: at no size", NULL);
    check_says(&s, "the largest growth is told",
               "The typical latency grows most from 8M to 16M, from 20.0 to 55.0 ns (× 2.75), "
               "for 85 of 128",
               NULL);
    matrix_fini(&m);
}

// ---- A slow memory node, a slow rank ------------------------------------------------------------

static void fill_ways(struct matrix *m, int slow_row, int slow_col)
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            double v = i == j ? 100 : i / 4 == j / 4 ? 140 : 200;
            put(m, i, j, v * (i == slow_row || j == slow_col ? 1.182 : 1) * (1 + 0.001 * (j % 3)));
        }
}

static void test_slow_parts(void)
{
    static struct rank_info list[8];
    struct matrix m = {0};
    const struct report_source s = {
        .benchmark = BENCHMARK_MATRIX, .matrices = &m, .n = 1, .ranks = list, .n_ranks = 8};
    shaped(&m, BENCHMARK_MATRIX, NULL, "idle", 8, 8);
    for (int i = 0; i < 8; i++) {
        m.col.values[i] = i;
        list[i] = (struct rank_info){.rank = i, .cpu = i, .cpu_node = i, .mem_node = i};
    }
    fill_ways(&m, -1, 3);
    check_says(&s, "column",
               "Memory of node 3 is slower than that of other nodes, for local and remote CPUs: "
               "typically +18.",
               "in the opposite direction");
    fill_ways(&m, 5, -1);
    check_says(&s, "row", "Rank 5 is slower than others, to local and remote memory: typically +18",
               "Memory of node 5 is slower");
    fill_ways(&m, -1, -1);
    check_says(&s, "nothing", "No node differs significantly", "slower");
    for (int i = 0; i < 7; i++) // far away, and its own memory as fast as any
        put(&m, i, 7, 400);
    check_says(&s, "a far node", NULL, "Memory of node 7 is slower");
    matrix_fini(&m);
}

// ---- Nothing is compared with itself; doubts come first -----------------------------------------

static void test_alone(void)
{
    struct matrix m = {0}, t = {0}, f = {0};
    shaped(&m, BENCHMARK_BANDWIDTH, NULL, "triad", 1, 1);
    put(&m, 0, 0, 12300);
    static const char *const says[] = {
        "Node 0 and its own memory: triad gives 12.3 GB/s; no other kernel was measured.", NULL};
    static const char *const not [] = {"100 %", "best is", NULL};
    check_report(BENCHMARK_BANDWIDTH, &m, 1, says, not );
    shaped(&t, BENCHMARK_BANDWIDTH, "sweep-threads", "triad", 3, 1);
    for (int i = 0; i < 3; i++) {
        t.row.values[i] = i + 1;
        put(&t, i, 0, 10000);
    }
    static const char *const enough[] = {"1 thread reaches 10.0 GB/s, 95 % or more", NULL};
    static const char *const itself[] = {"alone reaches", "100 % of the maximum", NULL};
    check_report(BENCHMARK_BANDWIDTH, &t, 1, enough, itself);
    shaped(&f, BENCHMARK_FIRSTTOUCH, NULL, "access", 1, 3);
    for (int j = 0; j < 3; j++)
        put(&f, 0, j, 10);
    static const char *const own[] = {"typically takes 10.00 ns per access", NULL};
    static const char *const other[] = {"× 1.00", "(crossed)", NULL};
    check_report(BENCHMARK_FIRSTTOUCH, &f, 1, own, other);
    matrix_fini(&m);
    matrix_fini(&t);
    matrix_fini(&f);
}

static void test_doubts_first(void)
{
    struct matrix m = {0};
    shaped(&m, BENCHMARK_BANDWIDTH, NULL, "triad", 1, 1);
    put(&m, 0, 0, 12300);
    m.cells[0].v[CELL_N] = 1;
    m.cells[0].v[CELL_DISTURBED] = 2;
    const struct report_source s = {.benchmark = BENCHMARK_BANDWIDTH, .matrices = &m, .n = 1};
    CLEANUP_BUF struct buf md = BUF_INIT, js = BUF_INIT;
    show(&s, &md, &js);
    CHECK(str_starts(buf_text(&md), "## Caveats\n\n- 67 % of the samples were disturbed") &&
              strstr(buf_text(&md), "- 1 of 1 cells have at most one undisturbed sample"),
          "what makes numbers doubtful is the first that is said");
    CLEANUP_JSON struct json *root = json_parse(buf_text(&js), js.len, NULL);
    CHECK(json_count(json_get(root, "caveats")) == 2, "in JSON, too");
    m.cells[0].v[CELL_N] = 30;
    buf_reset(&md);
    buf_reset(&js);
    show(&s, &md, &js);
    CHECK(!strstr(buf_text(&md), "Caveats"), "nothing doubtful, not a word");
    matrix_fini(&m);
}

int main(void)
{
    struct err err = {0};
    const struct report_source nothing = {0};
    CHECK(report_new(&nothing, NULL, &err) == NULL && err.code == ERR_INVALID,
          "a report needs data");
    test_published();
    test_changes();
    build_machine();
    test_idle();
    test_idle_of_four();
    test_idle_of_many();
    test_bandwidth();
    test_bandwidth_levels();
    test_copies();
    test_pairs();
    test_scan();
    test_pagefault();
    test_atomics();
    test_hierarchy();
    test_touch_and_load();
    test_shared_cache();
    test_few_sizes();
    test_a_rank_a_node();
    test_many_ranks();
    test_slow_parts();
    test_alone();
    test_doubts_first();
    return tap_done();
}
