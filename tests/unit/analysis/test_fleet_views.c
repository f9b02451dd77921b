// SPDX-License-Identifier: Apache-2.0
// A fleet to look at: classes, ranking, nodes by a fact, history and rollouts.
#include "analysis/peers/coverage.h"
#include "analysis/peers/fleet_effect.h"
#include "analysis/peers/fleet_history.h"
#include "analysis/peers/fleet_order.h"
#include "analysis/peers/fleet_view.h"
#include "analysis/peers/peers.h"
#include "analysis/peers/table.h"
#include "base/cleanup.h"
#include "tests/unit/analysis/fleet_pages.h"
#include "tests/unit/tap.h"

static struct fleet *fleet_with(int runs_max)
{
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = PAGES_NOW;
    o.runs_max = runs_max;
    return fleet_new(&o, NULL);
}

// 30 nodes of a class and 3 of another. n05 is 4 % slow; n20 to n29 have a microcode that costs 2 %
// of bandwidth. n31 was measured twice only.
static void fill(struct fleet *f, unsigned long long *seed)
{
    char name[16];
    for (int i = 0; i < 33; i++)
        for (int k = 0; k < (i == 31 ? 2 : 6); k++) {
            snprintf(name, sizeof name, "n%02d", i);
            struct page_run r = {.node = name,
                                 .class = i < 30 ? "AAA" : "ABB",
                                 .id = k + 1,
                                 .config = i >= 20 && i < 30 ? "NEW" : "OLD",
                                 .noise = 0.001,
                                 .measured_ms = PAGES_NOW - (6 - k) * PAGES_DAY};
            r.factor[0] = i == 5 ? 1.04 : 1;
            r.factor[2] = i >= 20 && i < 30 ? 1 / 0.98 : 1;
            page_add(f, &r, seed);
        }
    page_facts(f, "OLD", "microcode=0x1 kernel=6.1");
    page_facts(f, "NEW", "microcode=0x2 kernel=6.1");
    page_facts(f, "AAA", "cpu_model=EPYC shape=2x96");
}

static void test_classes(const struct fleet *f)
{
    struct fleet_class_row *list;
    struct err err = {0};
    CHECK_INT(fleet_classes(&list, f, NULL), 2, "two classes");
    CHECK(list[0].nodes == 30 && list[0].enough == 30 && list[0].setups == 2, "the larger first");
    CHECK(list[1].nodes == 3 && list[1].enough == 2 && list[1].setups == 1, "the other");
    CHECK(list[0].cpu && strcmp(list[0].cpu, "EPYC") == 0 && list[1].cpu == NULL, "its CPU");
    CHECK(list[0].newest_ms == PAGES_NOW - PAGES_DAY, "its newest run");
    free(list);
    CHECK(fleet_class_find(f, "", NULL) == 0 && fleet_class_find(f, "AB", NULL) == 1, "by prefix");
    CHECK(fleet_class_find(f, "A", &err) < 0, "two begin with A");
    CHECK_STR(err.text, "several classes begin with \"A\": write more of the hash",
              "which is refused");
    CHECK(fleet_class_find(f, "X", &err) < 0 && err.code == ERR_NOT_FOUND, "none with X");
}

// Of the fleet above: n31 is down, n30 no longer counts, x has no run. n40 was not measured for 20
// days, and n41 for 40.
static void test_coverage(struct fleet *f, unsigned long long *seed)
{
    char names[33][16];
    struct covered_node asked[36] = {{.name = "x", .up = true}, {.name = "n40"}, {.name = "n41"}};
    CLEANUP_COVERAGE struct coverage c = {0}, none = {0};
    const char *classes[] = {"AAA", "ABB"};
    int n = 3;
    for (int k = 0; k < 2; k++) {
        struct page_run r = {.node = asked[1 + k].name, .class = classes[k], .config = "OLD"};
        r.id = 1;
        r.measured_ms = PAGES_NOW - 20 * (k + 1) * PAGES_DAY;
        page_add(f, &r, seed);
    }
    for (int i = 0; i < 33; i++) {
        snprintf(names[i], sizeof names[i], "n%02d", i);
        if (i != 30)
            asked[n++] = (struct covered_node){.name = names[i], .up = i != 31};
    }
    CHECK(fleet_arrange(f, NULL) == 0 && coverage_make(&c, f, asked, n, NULL) == 0, "it is made");
    CHECK_INT(c.n, 3, "two classes, and the node without a run");
    CHECK(c.list[0].nodes == 31 && c.list[0].up == 30 && c.list[0].fresh == 30, "the larger");
    CHECK(c.list[0].enough == 30 && strcmp(c.list[0].cpu, "EPYC") == 0, "its runs and CPU");
    CHECK(c.list[1].nodes == 3 && c.list[1].up == 1 && c.list[1].fresh == 2, "the other");
    CHECK_INT(c.list[1].enough, 1, "one of them has three runs");
    CHECK(c.list[2].class == -1 && c.list[2].nodes == 1 && c.list[2].up == 1, "no run");
    CHECK(covered_class_age(&c, &c.list[0], 50) == PAGES_DAY &&
              covered_class_age(&c, &c.list[0], 100) == 20 * PAGES_DAY &&
              covered_class_age(&c, &c.list[1], 100) == 40 * PAGES_DAY &&
              covered_class_age(&c, &c.list[2], 100) == -1,
          "ages of the newest runs");
    const struct covered_node *last = &c.node[c.list[1].first + 2];
    CHECK_STR(last->name, "n41", "the oldest is the last of its class");
    CHECK(!last->fresh && !last->enough && last->age_ms == 40 * PAGES_DAY, "it is stale");
    CHECK(c.n_ages == n - 1 && c.ages[0] == PAGES_DAY && c.ages[n - 2] == 40 * PAGES_DAY, "all");
    CHECK(coverage_make(&none, f, NULL, 0, NULL) == 0 && none.n == 0, "no nodes, no classes");
}

static void test_ranking(const struct fleet *f)
{
    struct fleet_view v;
    struct fleet_ranking r;
    struct err err = {0};
    CHECK(fleet_view_open(&v, f, 0, NULL) == 0, "a view");
    int metric = fleet_view_metric(&v, "latency.local.dram.median_ns", NULL);
    CHECK(fleet_ranking_make(&r, &v, metric, NULL) == 0 && r.n == 30, "all nodes in order");
    CHECK_STR(f->nodes.list[r.list[0].node], "n05", "the worst first");
    CHECK(fabs(r.list[0].percent - 4) < 0.5 && fabs(r.median - 90) < 0.2 && r.list[0].runs == 5,
          "by 4 %% of the median");
    CHECK(r.list[0].lo < 93.6 && r.list[0].hi > 93.5 && r.list[0].hi - r.list[0].lo < 0.5,
          "with an interval: %.2f to %.2f", r.list[0].lo, r.list[0].hi);
    fleet_ranking_fini(&r);
    metric = fleet_view_metric(&v, "bandwidth.triad.peak.gbps", NULL);
    CHECK(fleet_ranking_make(&r, &v, metric, NULL) == 0 && r.list[0].value < r.list[29].value,
          "of a bandwidth the least is the worst");
    fleet_ranking_fini(&r);
    CHECK(fleet_view_metric(&v, "bandwidth.triad.peak.gbp", &err) < 0 &&
              strstr(err.text, "did you mean"),
          "a metric that no node has: %s", err.text);
    fleet_view_close(&v);
    CHECK(fleet_view_open(&v, f, 1, NULL) == 0, "a small class");
    CHECK(fleet_ranking_make(&r, &v, 0, NULL) == 0 && r.n == 3 && r.list[0].lo < r.list[0].value,
          "is in order too");
    fleet_ranking_fini(&r);
    fleet_view_close(&v);
}

static void test_few_runs(void)
{
    struct fleet *f = fleet_with(5);
    unsigned long long seed = 312;
    struct fleet_view v;
    struct fleet_ranking r;
    page_add(f, &(struct page_run){.node = "n", .class = "A", .measured_ms = PAGES_NOW}, &seed);
    CHECK(fleet_view_open(&v, f, 0, NULL) == 0 && fleet_ranking_make(&r, &v, 0, NULL) == 0 &&
              r.n == 1,
          "one run of one node");
    CHECK(fabs(r.list[0].lo - 89.1) < 0.01 && fabs(r.list[0].hi - 90.9) < 0.01,
          "has the interval of the run");
    fleet_ranking_fini(&r);
    fleet_view_close(&v);
    fleet_cleanup(&f);
}

// Of two groups that are as large, the one that is listed first is what the other is compared with,
// whichever node comes first.
static void test_shares_as_large(void)
{
    enum { SIDE = 8, RUNS = 5 };
    struct fleet *f = fleet_with(RUNS);
    unsigned long long seed = 313;
    struct fleet_view v;
    struct fleet_shares s;
    for (int i = 0; i < 2 * SIDE * RUNS; i++) {
        char node[16];
        bool odd = i / RUNS % 2;
        snprintf(node, sizeof node, "n%02d", i / RUNS);
        page_add(f,
                 &(struct page_run){.node = node,
                                    .class = "A",
                                    .config = odd ? "S1" : "S2",
                                    .id = i % RUNS + 1,
                                    .noise = 0.001,
                                    .factor = {odd ? 1 : 1.1},
                                    .measured_ms = PAGES_NOW - (RUNS - i % RUNS) * PAGES_DAY},
                 &seed);
    }
    page_facts(f, "S1", "kernel=6.1");
    page_facts(f, "S2", "kernel=6.2");
    CHECK(fleet_view_open(&v, f, 0, NULL) == 0 && fleet_shares_make(&s, &v, 0, "kernel", NULL) == 0,
          "two kernels on as many nodes");
    CHECK(s.n == 2 && s.list[0].nodes == s.list[1].nodes && strcmp(s.list[0].value, "6.1") == 0,
          "by value");
    CHECK(s.list[0].percent == 0 && isnan(s.list[0].q), "the first is what is compared with: %.1f",
          s.list[0].percent);
    CHECK(fabs(s.list[1].percent - 10) < 0.5, "the other differs: %.1f", s.list[1].percent);
    CHECK_STR(fleet_share_verdict(&s, 1), "slower", "and is judged");
    fleet_shares_fini(&s);
    fleet_view_close(&v);
    fleet_cleanup(&f);
}

static void test_shares(const struct fleet *f)
{
    struct fleet_view v;
    struct fleet_shares s;
    struct err err = {0};
    CHECK(fleet_view_open(&v, f, 0, NULL) == 0, "a view");
    int metric = fleet_view_metric(&v, "bandwidth.triad.peak.gbps", NULL);
    CHECK(fleet_shares_make(&s, &v, metric, "microcode", NULL) == 0 && s.n == 2, "two microcodes");
    CHECK(s.list[0].nodes == 20 && strcmp(s.list[0].value, "0x1") == 0 && !s.list[0].differs,
          "the larger group first");
    CHECK(s.list[1].differs && fabs(s.list[1].percent + 2) < 0.2 && s.list[1].percent_lo < -1.9 &&
              s.list[1].percent_hi > -2.1,
          "the other has 2 %% less: %.2f", s.list[1].percent);
    CHECK(fabs(s.list[1].median - 196) < 0.3 && s.list[1].lo < s.list[1].median &&
              s.list[1].median < s.list[1].hi,
          "its median, with an interval");
    fleet_shares_fini(&s);
    CHECK(fleet_shares_make(&s, &v, 0, "microcode", NULL) == 0 && !s.list[1].differs,
          "latency is the same");
    fleet_shares_fini(&s);
    CHECK(fleet_shares_make(&s, &v, 0, "cpu_model", NULL) == 0 && s.n == 1,
          "hardware is a fact too");
    fleet_shares_fini(&s);
    CHECK(fleet_shares_make(&s, &v, 0, "nonsense", &err) < 0 && strcmp(err.member, "fact") == 0,
          "no such fact");
    fleet_view_close(&v);
}

static void test_history(void)
{
    struct fleet *f = fleet_with(40);
    struct fleet_history h;
    struct err err = {0};
    unsigned long long seed = 313;
    char name[16];
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 30; k++) {
            snprintf(name, sizeof name, "n%02d", i);
            struct page_run r = {.node = name,
                                 .class = "A",
                                 .id = k + 1,
                                 .noise = 0.002,
                                 .config = i == 3 && k >= 18 ? "NEW" : "OLD",
                                 .measured_ms = PAGES_NOW - (30 - k) * PAGES_DAY};
            r.factor[0] = (1 + 0.002 * k) * (i == 3 && k >= 20 ? 1.05 : 1);
            page_add(f, &r, &seed);
        }
    CHECK(fleet_history_make(&h, f, "n03", "latency.local.dram.median_ns", NULL) == 0 && h.n == 30,
          "30 points");
    int setups = 0, changes = 0;
    for (int i = 0; i < h.n; i++) {
        setups += h.list[i].setup_changed;
        changes += h.list[i].change_percent != 0;
    }
    CHECK(setups == 1 && h.list[18].setup_changed, "another set-up from the 19th on");
    CHECK(changes == 1 && fabs(h.list[20].change_percent - 5) < 1,
          "one change, though the class drifts");
    CHECK(h.list[20].cause.found && h.list[20].cause.runs == -2, "the set-up changed before it");
    CHECK(h.list[0].run == 1 && h.list[29].run == 30 && !h.more, "oldest first");
    CHECK(h.list[5].low < h.list[5].median && h.list[5].median < h.list[5].high &&
              fabs(h.list[5].median - 90.9) < 0.5,
          "inside the band of its class");
    CHECK(h.list[25].value > h.list[25].high, "and out of it");
    fleet_history_fini(&h);
    CHECK(fleet_history_make(&h, f, "x", "y", &err) < 0 && strcmp(err.member, "node") == 0,
          "no node");
    CHECK(fleet_history_make(&h, f, "n03", "y", &err) < 0 && strcmp(err.member, "metric") == 0,
          "no metric");
    fleet_cleanup(&f);
}

// n0 to n9 are updated after their run `before`, and n10 to n19 are not. Each has 15 runs.
static struct fleet *half_updated(int before)
{
    struct fleet *f = fleet_with(40);
    unsigned long long seed = 18;
    char name[16];
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 15; k++) {
            snprintf(name, sizeof name, "n%d", i);
            struct page_run r = {.node = name, .class = "A", .id = k + 1, .noise = 0.001};
            r.config = "OLD";
            r.updated = i < 10 && k >= before;
            r.measured_ms = PAGES_NOW - (15 - k) * PAGES_DAY / 2;
            page_add(f, &r, &seed);
        }
    page_facts(f, "OLD", "microcode=0x1");
    return f;
}

static void test_update(void)
{
    struct fleet *f = half_updated(10);
    struct fleet_history h = {0};
    struct fleet_view v;
    struct fleet_ranking r = {0};
    const char *metric = "latency.local.dram.median_ns";
    CHECK(fleet_history_make(&h, f, "n3", metric, NULL) == 0 && h.n == 5 && h.list[4].run == 15,
          "a history is that of the newest version, though more runs have an earlier one");
    CHECK_INT(h.others, 10, "and counts those");
    fleet_history_fini(&h);
    CHECK(fleet_history_make(&h, f, "n13", metric, NULL) == 0 && h.n == 15 && h.others == 0,
          "one that was not updated has all");
    fleet_history_fini(&h);
    CHECK(fleet_view_open(&v, f, 0, NULL) == 0, "a view");
    int at = fleet_view_metric(&v, metric, NULL);
    CHECK(fleet_ranking_make(&r, &v, at, NULL) == 0 && r.n == 20 && r.others == 0,
          "where all have an earlier version, it ranks all: %d", r.n);
    fleet_ranking_fini(&r);
    fleet_view_close(&v);
    fleet_cleanup(&f);
    f = half_updated(0);
    CHECK(fleet_view_open(&v, f, 0, NULL) == 0, "a view");
    at = fleet_view_metric(&v, metric, NULL);
    CHECK(fleet_ranking_make(&r, &v, at, NULL) == 0 && r.n == 10 && r.others == 10,
          "else those of one version, and counts the others: %d, %d", r.n, r.others);
    fleet_ranking_fini(&r);
    struct fleet_shares s = {0};
    CHECK(fleet_shares_make(&s, &v, at, "microcode", NULL) == 0 && s.others == 10,
          "and so do groups: %d", s.others);
    fleet_shares_fini(&s);
    fleet_view_close(&v);
    fleet_cleanup(&f);
}

// The rule is that of a node and of a collector: neighbours, of both of which the set-up is known.
static void test_history_setups(void)
{
    static const char *const configs[] = {"OLD", "OLD", "", "NEW", "NEW", "OLD"};
    enum { RUNS = COUNT_OF(configs) };
    struct fleet *f = fleet_with(40);
    struct fleet_history h = {0};
    unsigned long long seed = 17;
    for (int k = 0; k < RUNS; k++) {
        struct page_run r = {.node = "n1", .class = "A", .id = k + 1, .config = configs[k]};
        r.measured_ms = PAGES_NOW - (RUNS - k) * PAGES_DAY;
        page_add(f, &r, &seed);
    }
    CHECK(fleet_history_make(&h, f, "n1", "latency.local.dram.median_ns", NULL) == 0 && h.n == RUNS,
          "%d points", h.n);
    for (int k = 1; k < h.n; k++) {
        const struct setup_hashes a = {"A", configs[k - 1]}, b = {"A", configs[k]};
        CHECK(h.list[k].setup_changed == setup_hashes_differ(&a, &b), "\"%s\" after \"%s\"",
              configs[k], configs[k - 1]);
    }
    fleet_history_fini(&h);
    fleet_cleanup(&f);
}

// 60 nodes; 36 get a microcode in three waves, with another kernel, which costs 2 % of bandwidth.
static void test_effect(void)
{
    struct fleet *f = fleet_with(40);
    struct fleet_effect e;
    struct err err = {0};
    unsigned long long seed = 314;
    char name[16];
    for (int i = 0; i < 60; i++)
        for (int k = 0; k < 30; k++) {
            bool after = i < 36 && k >= 12 + 3 * (i % 3);
            snprintf(name, sizeof name, "n%02d", i);
            struct page_run r = {.node = name,
                                 .class = "A",
                                 .id = k + 1,
                                 .noise = 0.004,
                                 .config = after ? "NEW" : "OLD",
                                 .measured_ms = PAGES_NOW - (30 - k) * PAGES_DAY};
            r.factor[0] = r.factor[1] = 1 + 0.002 * k;
            r.factor[2] = (1 + 0.002 * k) * (after ? 1.02 : 1);
            page_add(f, &r, &seed);
        }
    CHECK(fleet_effect_find(&e, f, "microcode", NULL, NULL, &err) < 0 && err.code == ERR_NOT_FOUND,
          "without facts there is no change");
    page_facts(f, "OLD", "microcode=0x1 kernel=6.1 thp=always");
    page_facts(f, "NEW", "microcode=0x2 kernel=6.2 thp=always");
    CHECK(fleet_effect_find(&e, f, "microcode", NULL, NULL, NULL) == 0, "an effect");
    CHECK(strcmp(e.change.from, "0x1") == 0 && strcmp(e.change.to, "0x2") == 0 &&
              e.change.nodes == 36 && e.untouched == 24 && e.days == 3,
          "of a change in three waves");
    CHECK(e.last - e.first == 6 * PAGES_DAY, "first and last");
    CHECK(e.n_together == 1 && strcmp(e.together[0].fact, "kernel") == 0 &&
              e.together[0].nodes == 36,
          "the kernel changed with it");
    CHECK(e.n == 3 && e.list[0].effect.verdict == EFFECT_WORSE && e.list[0].more,
          "bandwidth is worse");
    CHECK(fabs(e.list[0].effect.percent + 1.96) < 0.4 && e.list[0].effect.lo < -1.9 &&
              e.list[0].effect.hi > -2.1,
          "by 2 %%: %.2f", e.list[0].effect.percent);
    CHECK(e.list[0].effect.waves == 3 && e.list[0].effect.worse_waves == 3, "in every wave");
    CHECK(e.list[1].effect.verdict == EFFECT_NO && e.list[2].effect.verdict == EFFECT_NO,
          "latency is not, though the class drifts");
    fleet_effect_fini(&e);
    CHECK(fleet_effect_find(&e, f, "microcode", "0x1", "0x3", &err) < 0, "no such change");
    CHECK_STR(err.text,
              "microcode changed on no node from and to these values; on 36 it changed from "
              "\"0x1\" to \"0x2\"",
              "is said, with the one that there is");
    CHECK(fleet_effect_find(&e, f, "thp", NULL, NULL, &err) < 0, "nor one of a fact that stayed");
    CHECK_STR(err.text, "thp changed on no node", "is said");
    CHECK(fleet_effect_find(&e, f, "microcod", NULL, NULL, &err) < 0, "nor of one that is none");
    CHECK_STR(err.text, "no node has the fact \"microcod\"; did you mean \"microcode\"?",
              "and the nearest one is named");
    fleet_cleanup(&f);
}

enum { NODES = 2000 };

// So many runs of each, a day apart. Half of the nodes have another set-up from the 15th on.
static void bring_nodes(struct fleet *f, int runs)
{
    unsigned long long seed = 21;
    char name[16];
    for (int i = 0; i < NODES; i++)
        for (int k = 0; k < runs; k++) {
            snprintf(name, sizeof name, "n%04d", i);
            struct page_run r = {.node = name,
                                 .class = "A",
                                 .id = k + 1,
                                 .noise = 0.004,
                                 .config = k >= 15 && i % 2 ? "NEW" : "OLD",
                                 .measured_ms = PAGES_NOW - (runs - k) * PAGES_DAY};
            page_add(f, &r, &seed);
        }
}

// A run of one node for each of so many variants.
static void bring_variants(struct fleet *f, const char *node, int variants, int metrics)
{
    CLEANUP_MEM struct summary_metric *names = calloc((size_t)metrics, sizeof *names);
    CLEANUP_MEM float *values = calloc((size_t)metrics, sizeof *values);
    if (!names || !values)
        abort();
    other_metrics(names, values, 0, metrics);
    for (int k = 0; k < variants; k++) {
        char variant[16];
        snprintf(variant, sizeof variant, "v%d", k);
        struct summary_layout layout = {metrics, names};
        struct summary s = other_run(node, variant, k + 1, values);
        s.measured_ms = PAGES_NOW - PAGES_DAY;
        snprintf(s.config_hash, sizeof s.config_hash, "NEW");
        struct summary_page page = {.n_layouts = 1, .n_runs = 1, .layouts = &layout, .runs = &s};
        fleet_add_page(f, &page, NULL);
    }
}

// What a table takes, with what is found from it.
static size_t table_room(const struct peers_input *in)
{
    size_t cells = (size_t)in->nodes * in->metrics, runs = (size_t)in->nodes * in->runs;
    return cells * (in->runs * sizeof *in->v + NEWEST_ROOM) + runs * in->probes * sizeof *in->day;
}

// Enough nodes to be compared share so many variants that there is no memory for all.
static void test_variants_of_few_nodes(void)
{
    enum { VARIANTS = 600, METRICS = 200 };
    CLEANUP_FLEET struct fleet *f = fleet_with(40);
    long left_out[LEFT_OUT_KINDS] = {0};
    struct fleet_table t;
    struct err err = {0};
    char name[16];
    bring_nodes(f, RUNS_MIN);
    for (int i = 0; i < PEERS_MIN; i++) {
        snprintf(name, sizeof name, "other%d", i);
        bring_variants(f, name, VARIANTS, METRICS);
    }
    if (fleet_table_make(&t, f, 0, left_out, &err) < 0) {
        CHECK(false, "a table: %s", err.text);
        return;
    }
    int common = 0;
    for (int m = 0; m < t.in.metrics; m++)
        common += f->probe[t.probe[t.metric_probe[m]]].metrics.n == PAGE_METRICS;
    CHECK_INT(common, PAGE_METRICS, "what most nodes have is in the table");
    CHECK(table_room(&t.in) <= TABLES_ROOM && table_room(&t.in) > TABLES_ROOM / 4 * 3,
          "of the others as many as have room: %zu MiB", table_room(&t.in) >> 20);
    CHECK_INT(left_out[LEFT_OUT_ROOM] + t.in.metrics, PAGE_METRICS + VARIANTS * METRICS,
              "the rest is counted");
    fleet_table_fini(&t);
}

// What no other node measures costs the others nothing. Else the table would have a place for each
// variant of each run of each node, and an effect would not be there within the test's time limit.
static void test_variants_of_one_node(void)
{
    enum { RUNS = 30, VARIANTS = 1200, METRICS = 200 };
    struct fleet *f = fleet_with(40);
    struct fleet_table t;
    struct fleet_effect e;
    bring_nodes(f, RUNS);
    bring_variants(f, "other", VARIANTS, METRICS);
    page_facts(f, "OLD", "microcode=0x1");
    page_facts(f, "NEW", "microcode=0x2");
    CHECK_INT(fleet_arrange(f, NULL), 0, "in order");
    CHECK(fleet_table_make(&t, f, 0, NULL, NULL) == 0 && t.in.nodes == NODES + 1 &&
              t.in.metrics == PAGE_METRICS,
          "a table of %d nodes and %d metrics", t.in.nodes, t.in.metrics);
    CHECK_INT(t.in.probes, 1, "has what several nodes measure");
    int right = 0;
    for (int i = 0; i < t.in.nodes; i++) {
        const bool other = strcmp(f->nodes.list[t.node[i]], "other") == 0;
        right += (fleet_table_run(&t, f, i, 0, 0) == NULL) == other &&
                 (fleet_table_runs(&t, i, 0) == 0) == other;
    }
    CHECK_INT(right, t.in.nodes, "only the other node has no runs there");
    fleet_table_fini(&t);
    CHECK(fleet_effect_find(&e, f, "microcode", NULL, NULL, NULL) == 0 && e.n == PAGE_METRICS &&
              e.change.nodes == NODES / 2,
          "an effect on %d metrics", e.n);
    fleet_effect_fini(&e);
    fleet_cleanup(&f);
}

int main(void)
{
    struct fleet *f = fleet_with(25);
    unsigned long long seed = 311;
    fill(f, &seed);
    test_classes(f);
    test_ranking(f);
    test_few_runs();
    test_shares(f);
    test_shares_as_large();
    test_coverage(f, &seed);
    fleet_cleanup(&f);
    test_history();
    test_update();
    test_history_setups();
    test_effect();
    test_variants_of_one_node();
    test_variants_of_few_nodes();
    return tap_done();
}
