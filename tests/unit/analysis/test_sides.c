// SPDX-License-Identifier: Apache-2.0
// A few nodes side by side: what differs in their facts, and how often equal nodes seem to differ.
#include "analysis/peers/fleet_sides.h"

#include "base/cleanup.h"
#include "tests/unit/analysis/fleet_pages.h"
#include "tests/unit/tap.h"

static struct err err;

// `runs` of a node, one a day.
static void measure(struct fleet *f, const char *node, const char *class, const char *config,
                    int runs, double factor, double noise, unsigned long long *seed)
{
    for (int i = 0; i < runs; i++) {
        struct page_run r = {.node = node,
                             .class = class,
                             .config = config,
                             .id = i + 1,
                             .noise = noise,
                             .factor = {factor, factor, factor},
                             .measured_ms = PAGES_NOW - (runs - i) * PAGES_DAY};
        if (page_add(f, &r, seed) < 0)
            abort();
    }
}

static void test_facts(void)
{
    unsigned long long seed = 1;
    CLEANUP_FLEET struct fleet *f = no_nodes();
    struct fleet_sides s;
    measure(f, "n1", "AAA", "S1", 5, 1, 0.001, &seed);
    measure(f, "n2", "BBB", "S2", 5, 1, 0.001, &seed);
    measure(f, "n3", "AAA", "S3", 5, 1, 0.001, &seed);
    page_facts(f, "AAA", "cpu=x dimms=8");
    page_facts(f, "BBB", "cpu=x dimms=4");
    page_facts(f, "S1", "kernel=6.1 bios=1 tuned=a");
    page_facts(f, "S2", "kernel=6.2 bios=1");
    CHECK_INT(fleet_sides_make(&s, f, &err), 0, "three nodes: %s", err.text);
    CHECK_INT(s.n_facts, 3, "what is the same is not listed");
    CHECK(s.facts[0].is_class && strcmp(s.facts[0].name, "dimms") == 0 &&
              strcmp(s.facts[0].value[1], "4") == 0 && strcmp(s.facts[0].value[2], "8") == 0,
          "hardware is first");
    CHECK(!s.facts[1].value[2] && !s.facts[2].value[2], "facts that are not here are not known");
    for (int i = 1; i < 3; i++)
        if (strcmp(s.facts[i].name, "tuned") == 0)
            CHECK(strcmp(s.facts[i].value[0], "a") == 0 && !s.facts[i].value[1],
                  "a fact that one node has");
    CHECK(fleet_sides_facts_known(&s, 1) && !fleet_sides_facts_known(&s, 2), "of whom facts are");
    CHECK(s.n == PAGE_METRICS && s.list[0].of[2].runs == 5 && !s.alone && !s.otherwise,
          "metrics of two classes are beside each other");
    fleet_sides_fini(&s);
}

static void test_numbers_of_nodes(void)
{
    static const char *const names[] = {"n1", "n2", "n3", "n4", "n5"};
    unsigned long long seed = 1;
    CLEANUP_FLEET struct fleet *f = no_nodes();
    struct fleet_sides s;
    CHECK(fleet_sides_make(&s, f, &err) < 0 && err.code == ERR_NOT_FOUND, "none: %s", err.text);
    for (int i = 0; i <= SIDES_MAX; i++) {
        measure(f, names[i], "AAA", "S1", i ? 2 : 5, 1, 0.001, &seed);
        int rc = fleet_sides_make(&s, f, &err);
        if (i == 0)
            CHECK(rc < 0 && err.code == ERR_NOT_FOUND && strstr(err.text, "n1"), "one: %s",
                  err.text);
        else if (i == SIDES_MAX)
            CHECK(rc < 0 && err.code == ERR_INVALID, "too many: %s", err.text);
        else
            CHECK_INT(rc, 0, "%d nodes", i + 1);
        if (i == 1)
            CHECK(strcmp(run_pair_verdict(&s.list[0].pair), "not known") == 0 && !s.slower &&
                      !s.faster && isnan(s.list[0].pair.lo),
                  "two runs are not judged");
        if (rc == 0)
            fleet_sides_fini(&s);
    }
}

// While a fleet is updated: of one metric two versions are two quantities.
static void test_versions(void)
{
    unsigned long long seed = 1;
    CLEANUP_FLEET struct fleet *f = no_nodes();
    struct fleet_sides s;
    for (int i = 0; i < 10; i++) {
        struct page_run r = {.node = i < 5 ? "n1" : "n2",
                             .class = "AAA",
                             .config = "S1",
                             .id = i + 1,
                             .noise = 0.001,
                             .updated = i < 5,
                             .measured_ms = PAGES_NOW - (10 - i) * PAGES_DAY};
        if (page_add(f, &r, &seed) < 0)
            abort();
    }
    CHECK_INT(fleet_sides_make(&s, f, &err), 0, "two versions: %s", err.text);
    CHECK(s.n == 0 && s.alone == 2 * PAGE_METRICS && s.otherwise == s.alone,
          "nothing is compared, and why: %d of %d", s.otherwise, s.alone);
    fleet_sides_fini(&s);
}

struct tally {
    int differ, inside, found; // pairs; intervals of all metrics that have the truth; metrics
};

// Pairs of nodes, the second slower by `factor`; runs of the first differ by `calm`.
static struct tally pairs(int n, double factor, double calm, double noise)
{
    unsigned long long seed = 20;
    struct tally t = {0};
    for (int i = 0; i < n; i++) {
        CLEANUP_FLEET struct fleet *f = no_nodes();
        struct fleet_sides s;
        measure(f, "n1", "AAA", "S1", 5, 1, calm, &seed);
        measure(f, "n2", "AAA", "S1", 5, factor, noise, &seed);
        if (fleet_sides_make(&s, f, &err) < 0)
            abort();
        for (int m = 0; m < s.n; m++) {
            double truth = 100 * (s.list[m].more ? 1 / factor - 1 : factor - 1);
            t.inside += s.list[m].pair.lo <= truth && truth <= s.list[m].pair.hi;
        }
        t.differ += s.slower + s.faster > 0;
        t.found += s.slower;
        fleet_sides_fini(&s);
    }
    return t;
}

static void test_error_rates(void)
{
    enum { PAIRS = 1000 };
    static const double noises[] = {0.005, 0.02, 0.05};
    for (int i = 0; i < 3; i++) {
        struct tally t = pairs(PAIRS, 1, noises[i], noises[i]);
        printf("# runs differ by %g %%: of %d equal pairs %d differ; %.1f %% of intervals hold\n",
               100 * noises[i], PAIRS, t.differ, 100.0 * t.inside / (PAIRS * PAGE_METRICS));
        CHECK(t.differ <= 0.05 * PAIRS, "equal nodes seldom differ: %d", t.differ);
        CHECK(t.inside >= 0.945 * PAIRS * PAGE_METRICS, "intervals hold the truth");
    }
    struct tally one = pairs(PAIRS, 1, 0.005, 0.05);
    printf(
        "# runs differ by 0.5 and 5 %%: of %d equal pairs %d differ; %.1f %% of intervals hold\n",
        PAIRS, one.differ, 100.0 * one.inside / (PAIRS * PAGE_METRICS));
    CHECK(one.differ <= 0.1 * PAIRS && one.inside >= 0.92 * PAIRS * PAGE_METRICS,
          "a node that scatters more does not differ for that: %d", one.differ);
    struct tally t = pairs(PAIRS, 1.05, 0.01, 0.01);
    printf("# slower by 5 %%, runs by 1 %%: %d of %d found\n", t.found, PAIRS * PAGE_METRICS);
    CHECK(t.found >= 0.95 * PAIRS * PAGE_METRICS, "5 %% are found: %d", t.found);
}

int main(void)
{
    test_facts();
    test_numbers_of_nodes();
    test_versions();
    test_error_rates();
    return tap_done();
}
