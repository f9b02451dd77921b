// SPDX-License-Identifier: Apache-2.0
// What a collector says of time: which set-ups changed, and two runs metric by metric.
#include "analysis/peers/class_days.h"
#include "analysis/peers/class_view.h"
#include "analysis/peers/rollouts.h"
#include "analysis/peers/run_pair.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "tests/unit/analysis/fleet_pages.h"
#include "tests/unit/tap.h"

// ---- Rollouts

static void step(struct setups *s, int node, const char *config, int day)
{
    char name[16];
    struct err err = {0};
    snprintf(name, sizeof name, "n%02d", node);
    CHECK(setups_add(s, name, config, PAGES_NOW + day * PAGES_DAY, &err) == 0, "%s", err.text);
}

// 30 nodes. n00 to n17 get a microcode in three waves, n03 gets the old one back. n20 loses a fact,
// n21 changes again and again, n22 has a set-up between of which nothing is known.
static void fill_setups(struct setups *s)
{
    for (int i = 0; i < 30; i++) {
        step(s, i, "OLD", 0);
        if (i < 18)
            step(s, i, "NEW", 10 + 4 * (i % 3));
        if (i == 3)
            step(s, i, "OLD", 30);
        if (i == 20)
            step(s, i, "LESS", 12);
        for (int k = 0; k < 4 && i == 21; k++)
            step(s, i, k % 2 ? "OLD" : "FAST", 20 + k);
        if (i == 22) {
            step(s, i, "UNKNOWN", 15);
            step(s, i, "FAST", 16);
        }
    }
    setups_add_facts(s, page_facts_of("OLD", "microcode=0x1 kernel=6.1 thp=always"), NULL);
    setups_add_facts(s, page_facts_of("NEW", "microcode=0x2 kernel=6.1 thp=always"), NULL);
    setups_add_facts(s, page_facts_of("LESS", "microcode=0x1 kernel=6.1"), NULL);
    setups_add_facts(s, page_facts_of("FAST", "microcode=0x1 kernel=6.1 thp=never"), NULL);
    setups_add_facts(s, page_facts_of("OTHER", "microcode=0x9"), NULL);
}

static void test_rollouts(void)
{
    CLEANUP_SETUPS struct setups s = {0};
    CLEANUP_ROLLOUTS struct rollouts r = {0};
    fill_setups(&s);
    int at = 0;
    CHECK_STR(setups_facts_wanted(&s, &at), "UNKNOWN", "one document is missing");
    CHECK(!setups_facts_wanted(&s, &at), "and no other");
    CHECK(rollouts_find(&r, &s, 0, 0, NULL) == 0, "rollouts");
    CHECK_INT(r.n, 5, "the microcode, its way back, thp to never and back, thp gone");
    const struct rollout *m = &r.list[0];
    CHECK(strcmp(m->fact, "microcode") == 0 && strcmp(m->from, "0x1") == 0 &&
              strcmp(m->to, "0x2") == 0,
          "most nodes first");
    CHECK_INT(m->n, 18, "on 18 nodes");
    CHECK_INT(m->remaining, 13, "12 have the old one still, and one again");
    CHECK_INT(m->reverted, 1, "one went back");
    CHECK(m->list[17].at_ms - m->list[0].at_ms == 8 * PAGES_DAY, "over eight days");
    const struct rollout *thp = &r.list[1];
    CHECK(strcmp(thp->to, "never") == 0 && thp->n == 2 && thp->reverted == 1,
          "a node that changes again and again counts once; an unknown set-up between is passed "
          "over");
    bool gone = false;
    for (int i = 0; i < r.n; i++)
        gone |= !r.list[i].to && strcmp(r.list[i].fact, "thp") == 0 && r.list[i].n == 1;
    CHECK(gone, "a fact that is not there any more is a change");
}

static void test_rollouts_stretch(void)
{
    CLEANUP_SETUPS struct setups s = {0};
    CLEANUP_ROLLOUTS struct rollouts r = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    fill_setups(&s);
    CHECK(rollouts_find(&r, &s, PAGES_NOW + 14 * PAGES_DAY, PAGES_NOW + 19 * PAGES_DAY, NULL) == 0,
          "of a stretch");
    CHECK(r.n == 2 && r.list[0].n == 12, "two waves, and one node");
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    rollouts_write_json(&r, &s, NULL, 1, &w);
    jsonw_end(&w);
    CHECK_STR(buf_text(&text),
              "{\"rollouts\":[{\"fact\":\"microcode\",\"from\":\"0x1\",\"to\":\"0x2\",\"nodes\":12,"
              "\"remaining\":13,\"reverted\":0,\"first\":\"2026-03-02T01:00:00.000Z\","
              "\"last\":\"2026-03-06T01:00:00.000Z\",\"days\":2,\"waves\":["
              "{\"day\":\"2026-03-02\",\"nodes\":6,\"names\":\"n[01,04,07,10,13,16]\"},"
              "{\"day\":\"2026-03-06\",\"nodes\":6,\"names\":\"n[02,05,08,11,14,17]\"}]}],"
              "\"left_out\":1}",
              "as JSON");
    buf_reset(&text);
    w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    rollouts_write_json(&r, &s, "kernel", 9, &w);
    jsonw_end(&w);
    CHECK_STR(buf_text(&text), "{\"rollouts\":[],\"left_out\":0}", "of a fact that did not change");
}

static void test_rollouts_many(void)
{
    enum { MANY = 2000 };
    CLEANUP_SETUPS struct setups s = {0};
    CLEANUP_ROLLOUTS struct rollouts r = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    char name[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%08x-rack", i * 2654435761U);
        setups_add(&s, name, "OLD", PAGES_NOW, NULL);
        setups_add(&s, name, "NEW", PAGES_NOW + (1 + i / 3) * PAGES_DAY, NULL);
    }
    setups_add_facts(&s, page_facts_of("OLD", "bios=1"), NULL);
    setups_add_facts(&s, page_facts_of("NEW", "bios=2"), NULL);
    CHECK(rollouts_find(&r, &s, 0, 0, NULL) == 0 && r.n == 1 && r.list[0].n == MANY,
          "many nodes over years");
    jsonw_object(&w, NULL);
    rollouts_write_json(&r, &s, NULL, 9, &w);
    jsonw_end(&w);
    int days = 0;
    for (const char *c = buf_text(&text); (c = strstr(c, "\"day\":")); c++)
        days++;
    CHECK_INT(days, ROLLOUT_WAVES_MAX, "the newest days are listed");
    CHECK(strstr(buf_text(&text), "\"days\":667,"), "all are counted");
    CLEANUP_ROLLOUTS struct rollouts none = {.n = 1};
    CHECK_INT(rollouts_find(&none, &(struct setups){0}, 0, 0, NULL), 0, "of nothing");
    CHECK_INT(none.n, 0, "there is nothing");
}

// Each node has its own value of the last of many facts, and each gets another one: as many
// rollouts as nodes. To compare each with all set-ups would not end within the test's time limit.
static void test_rollouts_of_one_node_each(void)
{
    enum { NODES = 10000, FACTS = FACTS_MAX };
    static char fact[FACTS][8];
    CLEANUP_SETUPS struct setups s = {0};
    CLEANUP_ROLLOUTS struct rollouts r = {0};
    CLEANUP_MEM struct facts *facts = calloc(1, sizeof *facts);
    for (int i = 0; i < 2 * NODES && facts; i++) {
        char node[16];
        facts->n = 0;
        snprintf(node, sizeof node, "n%d", i / 2);
        snprintf(facts->hash, sizeof facts->hash, "%064d", i);
        setups_add(&s, node, facts->hash, PAGES_NOW + i % 2 * PAGES_DAY, NULL);
        // The first node gets one fact less, the second one more.
        for (int k = i == 1 || i == 2; k < FACTS; k++) {
            snprintf(fact[k], sizeof fact[k], "f%d", k);
            facts_add(facts, fact[k], k < FACTS - 1 ? "same" : "%d", i);
        }
        setups_add_facts(&s, facts, NULL);
    }
    CHECK(rollouts_find(&r, &s, 0, 0, NULL) == 0 && r.n == NODES + 2, "%d rollouts", r.n);
    int right = 0;
    for (int i = 0; i < r.n; i++) {
        const struct rollout *one = &r.list[i];
        int remaining = strcmp(one->fact, "f0") != 0 ? 0 : one->from ? NODES - 1 : 1;
        right += one->n == 1 && one->remaining == remaining && !one->reverted;
    }
    CHECK_INT(right, r.n, "who has the value still, and who has it again");
}

// ---- Two runs

struct side {
    struct run_side side;
    struct summary run;
    struct summary_layout layout;
    struct summary_metric names[4];
    float v[4], lo[4], hi[4];
};

static void side_add(struct side *s, const char *name, const char *unit, double v, double percent)
{
    int at = s->layout.n++;
    snprintf(s->names[at].name, sizeof s->names[at].name, "%s", name);
    snprintf(s->names[at].unit, sizeof s->names[at].unit, "%s", unit);
    s->v[at] = (float)v;
    s->lo[at] = percent < 0 ? NAN : (float)(v * (1 - percent / 100));
    s->hi[at] = percent < 0 ? NAN : (float)(v * (1 + percent / 100));
}

static void side_begin(struct side *s)
{
    *s = (struct side){0};
    s->layout.list = s->names;
    s->run = (struct summary){.values = s->v, .lo = s->lo, .hi = s->hi};
    s->side = (struct run_side){&s->run, &s->layout};
}

static void test_pair(void)
{
    struct side a, b;
    struct run_pair p;
    struct err err = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    side_begin(&a);
    side_begin(&b);
    side_add(&a, "latency.local.dram.median_ns", "ns", 100, 0.5);
    side_add(&a, "latency.n0.n1.median_ns", "ns", 200, 3);
    side_add(&a, "bandwidth.triad.peak.gbps", "GB/s", 300, 0.5);
    side_add(&a, "latency.l1.median_ns", "ns", 1, -1);
    side_add(&b, "bandwidth.triad.peak.gbps", "GB/s", 330, 0.5);
    side_add(&b, "latency.n0.n1.median_ns", "ns", 203, 3);
    side_add(&b, "latency.local.dram.median_ns", "ns", 104, 0.5);
    side_add(&b, "latency.l2.median_ns", "ns", 4, 1);
    CHECK(run_pair_compare(&p, &a.side, &b.side, &err) == 0 && p.n == 3, "three metrics of both");
    CHECK(p.only_base == 1 && p.only_target == 1, "and one of each alone");
    CHECK(p.list[0].verdict == PAIR_SLOWER && fabs(p.list[0].percent - 4) < 0.01 &&
              p.list[0].lo > 3.2 && p.list[0].hi < 4.8,
          "slower by 4 %% [%.2f, %.2f]", p.list[0].lo, p.list[0].hi);
    CHECK(p.list[1].verdict == PAIR_SAME && p.list[1].lo < 0 && p.list[1].hi > 1.5,
          "1.5 %% within wide intervals are nothing");
    CHECK(p.list[2].verdict == PAIR_FASTER && p.list[2].more, "more bandwidth is faster");
    CHECK(p.slower == 1 && p.faster == 1, "counted");
    run_pair_fini(&p);
    CHECK(run_pair_compare(&p, &a.side, &a.side, &err) == 0 && p.slower + p.faster == 0 &&
              p.list[3].verdict == PAIR_UNKNOWN && p.list[3].percent == 0,
          "a run with itself; without an interval nothing is known");
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    run_pair_write_json(&p, &w);
    jsonw_end(&w);
    CHECK(strstr(buf_text(&text), "{\"metric\":\"latency.l1.median_ns\",\"unit\":\"ns\",\"better\":"
                                  "\"less\",\"base\":1,\"target\":1,\"percent\":0,\"lo\":null,"
                                  "\"hi\":null,\"q\":null,\"verdict\":\"not known\"}"),
          "as JSON: %s", buf_text(&text));
    run_pair_fini(&p);
    a.layout.n = 1;
    b.layout.n = 2;
    CHECK(run_pair_compare(&p, &a.side, &b.side, &err) < 0 && err.code == ERR_CONFLICT &&
              strcmp(err.member, "target") == 0,
          "nothing in common");
    side_begin(&b);
    b.side.layout = NULL;
    CHECK(run_pair_compare(&p, &a.side, &b.side, &err) < 0 &&
              run_pair_compare(&p, &b.side, &a.side, &err) < 0,
          "nor with a run that failed");
}

// ---- A class in full

// 40 nodes, 12 of which are a kind of their own that is 8 % slower in latency; one more is 12 %
// slow in bandwidth. Three nodes of another class.
static struct fleet *class_fleet(unsigned long long *seed)
{
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = PAGES_NOW;
    struct fleet *f = fleet_new(&o, NULL);
    char name[16];
    for (int i = 0; i < 43; i++)
        for (int k = 0; k < (i == 39 ? 2 : 6); k++) {
            snprintf(name, sizeof name, "n%02d", 42 - i);
            struct page_run r = {.node = name,
                                 .class = i < 40 ? "AAA" : "BBB",
                                 .id = k + 1,
                                 .config = i % 4 ? "OLD" : "NEW",
                                 .noise = 0.004,
                                 .measured_ms = PAGES_NOW - (6 - k) * PAGES_DAY};
            r.factor[0] = i < 12 ? 1.08 : 1;
            r.factor[2] = i == 20 ? 1.12 : 1;
            page_add(f, &r, seed);
        }
    page_facts(f, "OLD", "microcode=0x1 kernel=6.1");
    page_facts(f, "NEW", "microcode=0x2 kernel=6.1");
    page_facts(f, "AAA", "cpu_model=EPYC shape=2x96");
    return f;
}

static void test_class(void)
{
    unsigned long long seed = 319;
    CLEANUP_FLEET struct fleet *f = class_fleet(&seed);
    struct class_view v CLEANUP(class_view_fini) = {0};
    CHECK(class_view_make(&v, f, interned_find(&f->classes, "AAA"), NULL) == 0, "a class");
    CHECK(v.table.in.nodes == 40 && v.table.in.metrics == 3 && v.n_setups == 2, "as it is");
    CHECK_STR(f->nodes.list[v.table.node[v.order[0]]], "n03", "nodes in order of their names");
    const struct class_view_metric *m = &v.metric[0];
    CHECK(m->n == 2 && m->kinds[0].nodes + m->kinds[1].nodes == 39 && m->largest == 0 &&
              m->kinds[1].nodes == 12,
          "two hidden kinds");
    CHECK(fabs(m->kinds[1].median / m->kinds[0].median - 1.08) < 0.01, "8 %% apart");
    CHECK(m->kinds[0].limit > 1.025 * m->kinds[0].median &&
              m->kinds[1].limit > 1.025 * m->kinds[1].median,
          "each with its limit");
    CHECK(v.metric[2].n == 1 && v.metric[2].kinds[0].limit < v.metric[2].kinds[0].median,
          "less bandwidth is worse");
}

static void test_class_json(void)
{
    unsigned long long seed = 320;
    CLEANUP_FLEET struct fleet *f = class_fleet(&seed);
    struct class_view v CLEANUP(class_view_fini) = {0};
    struct class_view few CLEANUP(class_view_fini) = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    CHECK(class_view_make(&v, f, interned_find(&f->classes, "AAA"), NULL) == 0, "a class");
    jsonw_object(&w, NULL);
    class_view_write_json(&v, "bandwidth.triad.peak.gbps", &w);
    jsonw_end(&w);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, NULL);
    CHECK_STR(json_get_text(j, "folded", ""), "n[03-42]", "names, folded");
    CHECK_STR(json_get_text(json_get(j, "facts"), "cpu_model", ""), "EPYC", "facts");
    const struct json *setup = json_first(json_get(j, "setups"));
    CHECK_INT(json_get_i64(setup, "nodes", 0), 30, "the set-up of most nodes");
    CHECK_STR(json_get_text(json_get(setup, "differing_facts"), "microcode", ""), "0x1",
              "by what differs");
    CHECK(!json_get(json_get(setup, "differing_facts"), "kernel"), "and nothing else");
    const struct json *m = json_first(json_get(j, "metrics"));
    CHECK(json_count(json_get(j, "metrics")) == 1 && json_count(json_get(m, "values")) == 40 &&
              json_count(json_get(j, "names")) == 40,
          "a value of each node of one metric");
    int at = 0, slow = 0, none = 0;
    double limit = json_get_number(m, "limit", 0);
    for (const struct json *x = json_first(json_get(m, "values")); x; x = json_next(x), at++) {
        double value = 0;
        none += !json_number(x, &value);
        if (value > 0 && value < limit)
            slow = at;
    }
    CHECK_INT(slow, 22 - 3, "the slow one is n22");
    CHECK_INT(none, 1, "one has too few runs");
    CHECK(class_view_make(&few, f, interned_find(&f->classes, "BBB"), NULL) == 0, "three nodes");
    buf_reset(&text);
    w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    class_view_write_json(&few, NULL, &w);
    jsonw_end(&w);
    CLEANUP_JSON struct json *other = json_parse(buf_text(&text), text.len, NULL);
    m = json_first(json_get(other, "metrics"));
    CHECK(fabs(json_get_number(m, "median", 0) - 90) < 1 && !json_is_null(json_get(m, "median")) &&
              strstr(buf_text(&text), "\"limit\":null") &&
              strstr(buf_text(&text), "\"facts\":null"),
          "have a median and no limit");
}

// 20 nodes over 30 days, of which the last 10 are 5 % slower; n00 twice a day. On day 3 five nodes
// are measured.
static void test_days(void)
{
    struct fleet_options o = FLEET_DEFAULTS;
    unsigned long long seed = 331;
    o.runs_max = 100;
    CLEANUP_FLEET struct fleet *f = fleet_new(&o, NULL);
    struct class_days c CLEANUP(class_days_fini) = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    struct err err = {0};
    char name[16];
    for (int day = 0; day < 30; day++)
        for (int i = 0; i < (day == 3 ? 5 : 21); i++) {
            snprintf(name, sizeof name, "n%02d", i % 20);
            struct page_run r = {.node = name,
                                 .class = "AAA",
                                 .id = 100 * day + i,
                                 .measured_ms = PAGES_NOW + day * PAGES_DAY + i * 60000,
                                 .factor = {(1 + 0.002 * (i % 20)) * (day < 20 ? 1 : 1.05)}};
            page_add(f, &r, &seed);
        }
    CHECK(class_days_make(&c, f, 0, "latency.local.dram.median_ns", &err) == 0 && c.n == 30 &&
              !c.more,
          "30 days");
    CHECK(c.list[0].n == 20 && fabs(c.list[0].median - 90 * 1.019) < 0.02,
          "a node counts once: %.3f", c.list[0].median);
    CHECK(fabs(c.list[0].q1 - 90 * 1.0095) < 0.02 && fabs(c.list[0].q3 - 90 * 1.0285) < 0.02,
          "quartiles: %.3f %.3f", c.list[0].q1, c.list[0].q3);
    CHECK(c.list[0].low < 90 * 1.001 && c.list[0].high > 90 * 1.037,
          "nearly all nodes are between");
    CHECK(c.list[3].n == 5 && isnan(c.list[3].low), "few nodes have no band");
    CHECK(fabs(c.list[25].median / c.list[10].median - 1.05) < 0.001, "the change is there");
    class_day_write_json(&c.list[3], &w);
    CHECK(strstr(buf_text(&text), "{\"day\":\"2026-02-19\",\"nodes\":5,\"median\":") &&
              strstr(buf_text(&text), "\"low\":null"),
          "as JSON: %s", buf_text(&text));
    CHECK(class_days_make(&c, f, 0, "latency.local.dram.median", &err) < 0 &&
              strstr(err.text, "latency.local.dram.median_ns"),
          "the nearest name is stated");
}

int main(void)
{
    test_days();
    test_class();
    test_class_json();
    test_rollouts();
    test_rollouts_stretch();
    test_rollouts_many();
    test_rollouts_of_one_node_each();
    test_pair();
    return tap_done();
}
