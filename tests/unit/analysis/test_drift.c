// SPDX-License-Identifier: Apache-2.0
// The drift of a class, in simulated worlds whose truth is known. What all nodes have in common on
// a day varies; how often that alone is called a drift is counted over a thousand days.
#include "analysis/peers/drift.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "tests/unit/analysis/fleet_pages.h"
#include "tests/unit/tap.h"

enum { QUIET_DAYS = 1000, WINDOW = DRIFT_DAYS + DRIFT_BEFORE };

// Of each day: what all nodes have in common is `common` times a normal number, and depends on the
// day before by `dependence`. From day `from` on values are worse by `step`; `slope` a day.
struct days_world {
    int nodes, each; // each node is measured every so many days
    double spread, run, common, dependence, step, slope;
    int from;
    unsigned long long seed;
    double state; // of what is common
};

static void world_day(struct fleet *f, struct days_world *w, int day)
{
    char name[16];
    double fresh = w->common * sqrt(1 - w->dependence * w->dependence) * sim_normal(&w->seed);
    w->state = w->dependence * w->state + fresh;
    double change = (day >= w->from ? w->step : 0) + w->slope * day + w->state;
    for (int i = 0; i < w->nodes; i++) {
        unsigned long long own = 77 + i;
        if (w->each > 1 && (i + day) % w->each)
            continue;
        snprintf(name, sizeof name, "n%03d", i);
        struct page_run r = {.node = name,
                             .class = "AAA",
                             .config = "OLD",
                             .id = day + 1,
                             .noise = w->run,
                             .measured_ms = PAGES_NOW + day * PAGES_DAY};
        double level = w->spread * sim_normal(&own);
        for (int m = 0; m < PAGE_METRICS; m++)
            r.factor[m] = exp(level + change);
        page_add(f, &r, &w->seed);
    }
}

static struct fleet *days_fleet(void)
{
    struct fleet_options o = FLEET_DEFAULTS;
    o.runs_max = WINDOW;
    return fleet_new(&o, NULL);
}

static struct drift drift_of(const struct fleet *f)
{
    struct drift d = {0};
    CHECK(drift_find(&d, f, 0, NULL) == 0, "a verdict");
    return d;
}

static struct drift drift_after(struct days_world w, int days)
{
    CLEANUP_FLEET struct fleet *f = days_fleet();
    for (int day = 0; day < days; day++)
        world_day(f, &w, day);
    struct drift d = {0};
    if (drift_find(&d, f, 0, NULL) < 0)
        abort();
    return d;
}

static int false_days(struct days_world w)
{
    CLEANUP_FLEET struct fleet *f = days_fleet();
    int called = 0, sure = 0;
    unsigned long long seed = w.seed;
    for (int day = 0; day < WINDOW + QUIET_DAYS; day++) {
        struct drift d = {0};
        world_day(f, &w, day);
        if (day < WINDOW)
            continue;
        if (drift_find(&d, f, 0, NULL) < 0)
            abort();
        called += d.grade != PEERS_FINE;
        sure += d.grade == PEERS_SURE;
    }
    printf("# seed %llu: common %.1f %%, dependence %.1f: %d of %d quiet days called a drift, %d "
           "sure\n",
           seed, 100 * w.common, w.dependence, called, QUIET_DAYS, sure);
    return called;
}

static const struct days_world usual = {
    .nodes = 30, .spread = 0.01, .run = 0.005, .common = 0.003, .seed = 4711};

static void test_quiet(void)
{
    struct days_world w = usual;
    CHECK(false_days(w) <= 1, "days that hardly differ");
    w.common = 0.01;
    w.seed = 4712;
    CHECK(false_days(w) <= QUIET_DAYS / 200, "days that differ by 1 %%");
    w.dependence = 0.5;
    w.seed = 4713;
    CHECK(false_days(w) <= QUIET_DAYS / 100, "and depend on the day before");
    w = usual;
    w.each = 3;
    w.spread = 0.05;
    w.seed = 4714;
    CHECK(false_days(w) <= 1, "other nodes each day, which differ by 5 %%");
}

static void test_step(void)
{
    struct days_world w = usual;
    w.step = 0.02;
    w.from = 30;
    struct drift d = drift_after(w, 35);
    CHECK(d.grade == PEERS_SURE && d.worse == 3 && d.tested == 3, "2 %% are found after five days");
    double truth = 100 * expm1(d.worst.more ? -0.02 : 0.02);
    CHECK(fabs(d.worst.percent - truth) < 0.6 && d.worst.hi - d.worst.lo < 1.5,
          "by how much: %.2f [%.2f, %.2f]", d.worst.percent, d.worst.lo, d.worst.hi);
    CHECK_INT(d.worst.since_ms / PAGES_DAY, PAGES_NOW / PAGES_DAY + 30, "since when");
    CHECK(d.worst.days == 5 && d.worst.before == 20 && d.worst.nodes == 30, "by what");
    d = drift_after(w, 60);
    CHECK(d.grade == PEERS_FINE && isfinite(d.p), "later it is the class's past");
    w.step = -0.02;
    d = drift_after(w, 35);
    CHECK(d.grade == PEERS_FINE && d.worse == 0, "what gets better is no finding");
    w.step = 0.006;
    CHECK(drift_after(w, 35).grade == PEERS_FINE, "nor is less than 1.2 %%");
    w.step = 0.02;
    w.each = 2;
    w.spread = 0.05;
    CHECK(drift_after(w, 35).grade == PEERS_SURE, "by other nodes each day");
}

static void test_slope(void)
{
    struct days_world w = usual;
    w.slope = 0.0015;
    struct drift d = drift_after(w, 40);
    CHECK(d.grade != PEERS_FINE && d.worst.since_ms == 0, "what comes slowly has no date: p %.2g",
          d.p);
    double truth = 100 * expm1((d.worst.more ? -12.5 : 12.5) * w.slope);
    CHECK(d.worst.lo < truth && truth < d.worst.hi, "12.5 days apart: %.2f", d.worst.percent);
}

static void test_interval(void)
{
    enum { TIMES = 200 };
    int covered = 0, found = 0;
    for (int i = 0; i < TIMES; i++) {
        struct days_world w = usual;
        w.seed = 9000 + i;
        w.step = 0.03;
        w.from = 30;
        struct drift d = drift_after(w, 35);
        double truth = 100 * expm1(d.worst.more ? -0.03 : 0.03);
        found += d.grade != PEERS_FINE;
        covered += d.worst.lo <= truth && truth <= d.worst.hi;
    }
    printf("# seeds 9000 on: %d of %d steps of 3 %% found, %d intervals hold the truth\n", found,
           TIMES, covered);
    CHECK(found >= TIMES * 99 / 100, "3 %% are found");
    CHECK(covered >= TIMES * 92 / 100, "with an interval that holds them");
}

static void test_one_node(void)
{
    CLEANUP_FLEET struct fleet *f = days_fleet();
    struct days_world w = usual;
    for (int day = 0; day < 30; day++) {
        world_day(f, &w, day);
        struct page_run r = {.node = "slow",
                             .class = "AAA",
                             .id = day + 1,
                             .measured_ms = PAGES_NOW + day * PAGES_DAY,
                             .factor = {day > 25 ? 1.5 : 1}};
        page_add(f, &r, &w.seed);
    }
    CHECK(drift_of(f).grade == PEERS_FINE, "a slow node is no drift of its class");
}

static void test_too_little(void)
{
    struct days_world w = usual;
    CHECK(isnan(drift_after(w, 14).p), "fourteen days are too few");
    w.nodes = 7;
    CHECK(isnan(drift_after(w, 40).p), "so are seven nodes");
    CHECK(drift_after(w, 40).grade == PEERS_FINE, "there is no verdict");
}

static void test_document(void)
{
    CLEANUP_FLEET struct fleet *f = days_fleet();
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct days_world w = usual;
    struct jsonw out = jsonw_to(&text);
    w.step = 0.025;
    w.from = 30;
    for (int day = 0; day < 35; day++)
        world_day(f, &w, day);
    struct drift d = drift_of(f);
    drift_write_json(&d, f, &out, NULL);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, NULL);
    CHECK_STR(json_get_text(j, "what", ""), "drift", "as a finding");
    CHECK_STR(json_get_text(j, "grade", ""), "sure", "its grade");
    CHECK_STR(json_get_text(j, "class", ""), "AAA", "its class");
    CHECK(json_get_number(json_get(j, "worst"), "days_before", 0) == 20 &&
              json_get_number(json_get(j, "worst"), "hi", 0) != 0 && *json_get_text(j, "since", ""),
          "its evidence: %s", buf_text(&text));
    const char *said = json_get_text(j, "text", "");
    CHECK(strstr(said, "of the class: ") && strstr(said, "in 3 of 3 metrics"), "in words: %s",
          said);
    struct drift none = {.p = NAN};
    buf_reset(&text);
    out = jsonw_to(&text);
    drift_write_json(&none, f, &out, NULL);
    CHECK(strstr(buf_text(&text), "\"worst\":null") && strstr(buf_text(&text), "\"text\":\"\""),
          "nothing is nothing");
}

int main(void)
{
    test_quiet();
    test_step();
    test_slope();
    test_interval();
    test_one_node();
    test_too_little();
    test_document();
    return tap_done();
}
