// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/report.h"

#include "analysis/compare/fact_changes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "formats/import.h"
#include "model/shape.h"
#include "model/target.h"
#include "tests/unit/analysis/published.h"
#include "tests/unit/analysis/report_checks.h"
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
        "\"text\":\"the repetitions have two levels\"},"
        "{\"kind\":\"one_repetition\",\"severity\":\"notice\",\"rank\":null,"
        "\"text\":\"one repetition of each cell\"}]";
    static const char *const two[] = {"Caveats", "- The repetitions have two levels.\n",
                                      "- One repetition of each cell.\n", NULL},
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
    matrix_at(&m, 0, 2)->v[CELL_MEDIAN] = NAN;
    put(&m, 0, 3, 210);
    static const char *const some[] = {
        "idle: 12 of 16 pairs were measured; the others have no value.",
        "Node 0: own memory 100.0 ns, nearest measured node 1 130.0 ns (× 1.30), farthest measured "
        "node 3 210.0 ns (× 2.10).",
        NULL};
    check_report(BENCHMARK_MATRIX, &m, 1, some, NULL);
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
    CHECK(str_starts(buf_text(&md), "## Caveats\n\n- 100 % of the samples were disturbed"),
          "two of two: the least disturbed one stands in");
    m.cells[0].v[CELL_MEAN] = 12300; // of an undisturbed one
    buf_reset(&md);
    buf_reset(&js);
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
    test_shared_cache();
    test_few_sizes();
    test_a_rank_a_node();
    test_many_ranks();
    test_slow_parts();
    test_alone();
    test_doubts_first();
    return tap_done();
}
