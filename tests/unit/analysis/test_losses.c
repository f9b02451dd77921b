// SPDX-License-Identifier: Apache-2.0
// Shares of samples or time that were lost, beside other metrics: a loss of 1.3 % where others lose
// 1 % or less is no finding, a lost fifth is one, whichever function judges.
#include "analysis/metrics/metrics.h"
#include "analysis/peers/class_reference.h"
#include "analysis/peers/drift.h"
#include "analysis/peers/fleet_effect.h"
#include "analysis/peers/fleet_findings.h"
#include "analysis/peers/fleet_sides.h"
#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "tests/unit/analysis/fleet_pages.h"
#include "tests/unit/tap.h"

enum { NODES = 24, DAYS = 25, NEWEST = 5 };
#define LOSS "latency.off_cpu.worst_ratio"

static double scatter; // of the last node's runs, each way

// Most lose 1 % or less, which is stored as 1 %; some a little more. The whole class loses `more`
// in the newest days, and the last node `last`, or as much as the others (0).
static struct fleet *losing_fleet(int nodes, double more, double last)
{
    static const double usual[] = {0.01, 0.01, 0.013, 0.01, 0.017, 0.01};
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = PAGES_NOW;
    struct fleet *f = fleet_new(&o, NULL);
    unsigned long long seed = 331;
    char name[16];
    for (int k = 0; k < nodes * DAYS; k++) {
        int i = k / DAYS, day = k % DAYS;
        double loss = usual[i % 6] + (day >= DAYS - NEWEST ? more : 0);
        if (last > 0 && i == nodes - 1)
            loss = last * (1 + scatter * (day % 5 - 2) / 2);
        snprintf(name, sizeof name, "n%02d", i);
        page_add(f,
                 &(struct page_run){.node = name,
                                    .class = "AAA",
                                    .config = "S",
                                    .id = day + 1,
                                    .noise = 0.004,
                                    .factor = {loss / 90},
                                    .measured_ms = PAGES_NOW - (DAYS - day) * PAGES_DAY},
                 &seed);
    }
    return f;
}

static void test_findings(void)
{
    CLEANUP_FLEET struct fleet *quiet = losing_fleet(NODES, 0, 0),
                               *bad = losing_fleet(NODES, 0, 0.2);
    struct fleet_findings list;
    CHECK(fleet_findings_find(&list, quiet, NULL) == 0 && list.n == 0,
          "1.7 %% beside 1 %% is no finding: %d", list.n);
    CHECK(list.judged[4].worse < 3, "nor is it the worst of a node: %.1f", list.judged[4].worse);
    fleet_findings_fini(&list);
    CHECK(fleet_findings_find(&list, bad, NULL) == 0 && list.n == 1, "a lost fifth is one");
    const struct fleet_finding *one = &list.list[0];
    CHECK_STR(one->metric, LOSS, "of this metric");
    CHECK(one->grade == PEERS_SURE && fabs(one->value - 0.2) < 0.002 &&
              fabs(one->peers - 0.01) < 0.001 && one->limit > 0.03 && one->limit < 0.06,
          "values are shares: %.4f, peers %.4f, limit %.4f", one->value, one->peers, one->limit);
    CHECK(fabs(one->percent - 100 * (1.2 / 1.01 - 1)) < 0.5 && one->lo < one->percent &&
              one->percent < one->hi,
          "what all takes longer: %.1f %%", one->percent);
    fleet_findings_fini(&list);
}

static void test_ranking(void)
{
    CLEANUP_FLEET struct fleet *f = losing_fleet(NODES, 0, 0.2);
    struct fleet_view v;
    struct fleet_ranking r;
    CHECK(fleet_view_open(&v, f, 0, NULL) == 0 && fleet_ranking_make(&r, &v, 0, NULL) == 0,
          "a ranking");
    CHECK(fabs(r.list[0].value - 0.2) < 0.002 && fabs(r.median - 0.01) < 0.001 &&
              r.list[0].lo < r.list[0].value && r.list[0].value < r.list[0].hi &&
              fabs(r.list[0].percent - 100 * (1.2 / 1.01 - 1)) < 0.5,
          "has shares: %.4f [%.4f, %.4f], %.1f %%", r.list[0].value, r.list[0].lo, r.list[0].hi,
          r.list[0].percent);
    fleet_ranking_fini(&r);
    fleet_view_close(&v);
}

static void test_reference(void)
{
    CLEANUP_FLEET struct fleet *f = losing_fleet(NODES, 0, 0);
    float v[PAGE_METRICS] = {0.014F, 140, 200};
    struct summary_layout layout = {PAGE_METRICS, page_names};
    struct summary s = {.benchmark = "latency",
                        .method = "prp4-v1",
                        .metrics_version = 4,
                        .class_hash = "AAA",
                        .values = v};
    const struct class_reference_run run = {&s, &layout};
    struct class_reference r;
    struct class_reference_verdict of;
    CHECK(class_reference_make(&r, f, NULL) == 0 && fabs(r.list[0].median - 0.01) < 0.001,
          "a reference: %.4f", r.n ? r.list[0].median : 0);
    CHECK(class_reference_judge(&of, &r, &run, 3, 10, NULL) == 0 && of.state == REFERENCE_OK,
          "1.4 %% is as usual");
    v[0] = 0.2F;
    CHECK(class_reference_judge(&of, &r, &run, 3, 10, NULL) == 0 &&
              of.state == REFERENCE_CRITICAL && fabs(of.percent - 18.8) < 0.5,
          "a fifth is critical: %.1f %%", of.percent);
    class_reference_fini(&r);
}

static void test_drift(void)
{
    CLEANUP_FLEET struct fleet *little = losing_fleet(NODES, 0.004, 0),
                               *much = losing_fleet(NODES, 0.05, 0);
    struct drift d;
    CHECK(drift_find(&d, little, 0, NULL) == 0 && !d.worse, "0.4 %% more is no drift of a class");
    CHECK(drift_find(&d, much, 0, NULL) == 0 && d.grade == PEERS_SURE &&
              strcmp(d.worst.metric, LOSS) == 0 && fabs(d.worst.percent - 5) < 0.3 &&
              fabs(d.worst.was - 0.01) < 0.001 && fabs(d.worst.value - 0.06) < 0.002,
          "5 %% more is one: %.1f %%, from %.4f to %.4f", d.worst.percent, d.worst.was,
          d.worst.value);
}

static void test_sides(void)
{
    for (int bad = 0; bad < 2; bad++) {
        CLEANUP_FLEET struct fleet *f = losing_fleet(2, 0, bad ? 0.2 : 0.014);
        struct fleet_sides s;
        CHECK(fleet_sides_make(&s, f, NULL) == 0 && s.slower == bad, "%s: %d slower",
              bad ? "a fifth" : "1.4 %", s.slower);
        fleet_sides_fini(&s);
    }
    // One that scatters makes the interval of the other reach below nothing.
    scatter = 0.2;
    CLEANUP_FLEET struct fleet *f = losing_fleet(2, 0, 0.2);
    struct fleet_sides s;
    CHECK(fleet_sides_make(&s, f, NULL) == 0 && s.slower == 1, "16 to 24 %%: %d slower", s.slower);
    const struct run_pair_metric *pair = &s.list[0].pair;
    CHECK(pair->lo < pair->percent && pair->percent < pair->hi && s.list[0].of[0].lo == 0,
          "which is known: %.1f [%.1f, %.1f], from %g", pair->percent, pair->lo, pair->hi,
          s.list[0].of[0].lo);
    fleet_sides_fini(&s);
}

// 30 of 60 nodes lose 1 % with one microcode and `after` with the next.
static struct fleet *fleet_of_rollout(double after)
{
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = PAGES_NOW;
    struct fleet *f = fleet_new(&o, NULL);
    unsigned long long seed = 332;
    char name[16];
    for (int k = 0; k < 60 * DAYS; k++) {
        int i = k / DAYS, day = k % DAYS;
        bool changed = i < 30 && day >= DAYS / 2;
        snprintf(name, sizeof name, "n%02d", i);
        page_add(f,
                 &(struct page_run){.node = name,
                                    .class = "AAA",
                                    .config = changed ? "NEW" : "OLD",
                                    .id = day + 1,
                                    .noise = 0.004,
                                    .factor = {(changed ? after : 0.01) / 90},
                                    .measured_ms = PAGES_NOW - (DAYS - day) * PAGES_DAY},
                 &seed);
    }
    page_facts(f, "OLD", "microcode=0x1");
    page_facts(f, "NEW", "microcode=0x2");
    return f;
}

static void test_loss_effect(void)
{
    CLEANUP_FLEET struct fleet *more = fleet_of_rollout(0.2), *less = fleet_of_rollout(0.001);
    struct fleet_effect e;
    CHECK(fleet_effect_find(&e, more, "microcode", NULL, NULL, NULL) == 0 &&
              strcmp(e.list[0].metric, LOSS) == 0 && e.list[0].effect.verdict == EFFECT_WORSE,
          "a rollout that costs a fifth");
    const struct effect *one = &e.list[0].effect;
    CHECK(fabs(one->percent - 100 * (1.2 / 1.01 - 1)) < 0.2 && one->lo < one->percent &&
              one->percent < one->hi && one->hi - one->lo < 1,
          "is what all takes longer: %.2f [%.2f, %.2f]", one->percent, one->lo, one->hi);
    fleet_effect_fini(&e);
    CHECK(fleet_effect_find(&e, less, "microcode", NULL, NULL, NULL) == 0 &&
              strcmp(e.list[0].metric, LOSS) == 0 && e.list[0].effect.verdict == EFFECT_BETTER &&
              fabs(e.list[0].effect.percent + 100 * (1 - 1.001 / 1.01)) < 0.1,
          "from 1 %% to 0.1 %% is 0.9 %% less: %.2f", e.n ? e.list[0].effect.percent : 0);
    fleet_effect_fini(&e);
}

int main(void)
{
    snprintf(page_names[0].name, sizeof page_names[0].name, "%s", LOSS);
    page_names[0].unit[0] = '\0';
    CHECK(metric_is_loss(LOSS) && metric_is_loss("c2c.disturbed_ratio") &&
              !metric_is_loss("firsttouch.shared.ratio") && !metric_is_loss("metrics.omitted"),
          "which metrics are losses");
    test_findings();
    test_ranking();
    test_reference();
    test_drift();
    test_sides();
    test_loss_effect();
    return tap_done();
}
