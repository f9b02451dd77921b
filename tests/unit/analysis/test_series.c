// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/setup_change.h"
#include "analysis/stats/change_points.h"
#include "analysis/stats/detectable.h"
#include "analysis/stats/median.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

static const struct series_options defaults = SERIES_DEFAULTS;
static double v[2000];
static int searched;

static void noise(int n, double spread, unsigned long long *seed)
{
    for (int i = 0; i < n; i++)
        v[i] = 100 * (1 + spread * sim_normal(seed));
}

static void test_quiet(void)
{
    unsigned long long seed = 101;
    int alarms = 0, spikes = 0;
    for (int k = 0; k < 500; k++) {
        struct change_point *p = NULL;
        noise(100, 0.05, &seed);
        alarms += series_changes(&p, &searched, v, 100, &defaults, NULL) > 0;
        free(p);
        noise(100, 0.01, &seed);
        v[dist_below(&seed, 100)] = 1e6;
        p = NULL;
        spikes += series_changes(&p, &searched, v, 100, &defaults, NULL) > 0;
        free(p);
    }
    printf("# seed 101: of 500 quiet series %d alarm, of 500 with a spike %d\n", alarms, spikes);
    CHECK(alarms <= 5 && spikes == 0, "quiet series and single spikes do not alarm");
}

static void test_change(void)
{
    unsigned long long seed = 102;
    int found = 0, exact = 0;
    for (int k = 0; k < 200; k++) {
        struct change_point *p = NULL;
        noise(100, 0.01, &seed);
        for (int i = 40; i < 100; i++)
            v[i] *= i < 70 ? 1.06 : 1.12;
        int n = series_changes(&p, &searched, v, 100, &defaults, NULL);
        found += n == 2;
        exact += n == 2 && abs(p[0].at - 40) <= 1 && abs(p[1].at - 70) <= 1;
        free(p);
    }
    printf("# seed 102: two changes found in %d of 200, in place in %d\n", found, exact);
    CHECK(found >= 190 && exact >= 185, "changes are found where they are");
}

static void test_same_again(void)
{
    unsigned long long seed = 103;
    struct change_point *p = NULL, *q = NULL;
    noise(2000, 0.01, &seed);
    for (int i = 900; i < 2000; i++)
        v[i] *= 1.05;
    clock_t start = clock();
    int n = series_changes(&p, &searched, v, 2000, &defaults, NULL);
    printf("# 2000 points: %.1f ms\n", 1000.0 * (clock() - start) / CLOCKS_PER_SEC);
    int m = series_changes(&q, &searched, v, 2000, &defaults, NULL);
    CHECK(n == 1 && m == 1 && p[0].at == q[0].at && p[0].p <= q[0].p, "same series, same answer");
    CHECK(p != NULL && abs(p[0].at - 900) <= 2 && fabs(p[0].percent - 5) < 1, "at the right place");
    free(p);
    free(q);
}

static void test_bad(void)
{
    struct change_point *p = NULL;
    struct err err = {0};
    const double bad[] = {1, NAN, 3};
    CHECK(series_changes(&p, &searched, bad, 3, &defaults, &err) < 0 && p == NULL,
          "NaN is refused");
    CHECK_STR(err.text, "point 1 must be a number above 0", "and named");
    CHECK(series_changes(&p, &searched, bad, 1, &defaults, &err) == 0, "one point has no change");
}

static void change_every(int points, double factor)
{
    double level = 100;
    for (int i = 0; i < 2000; i++) {
        level *= i && i % points == 0 ? factor : 1;
        v[i] = level;
    }
}

static void test_many(void)
{
    struct change_point *p = NULL;
    change_every(100, 1.06);
    CHECK(series_changes(&p, &searched, v, 2000, &defaults, NULL) == 19 && searched == 2000,
          "all values are searched and all changes told");
    free(p);
    change_every(7, 1.04);
    int n = series_changes(&p, &searched, v, 2000, &defaults, NULL);
    CHECK(n == SERIES_CHANGES_MAX && searched < 2000 && p[0].at > 2000 - searched &&
              p[n - 1].at == 1995,
          "285 changes: the newest %d, among %d values", n, searched);
    free(p);
    // Each is a change, and too small to matter: every cut is tested again with more before it.
    change_every(7, 1.0001);
    n = series_changes(&p, &searched, v, 2000, &defaults, NULL);
    CHECK(n == 0 && searched > 0 && searched < 2000, "too much work: the newest %d", searched);
    free(p);
    p = NULL;
    CHECK(series_changes(&p, &searched, v, 0, &defaults, NULL) == 0 && searched == 0, "no values");
}

static double middle_of_three(double level, unsigned long long *seed)
{
    double x[3];
    for (int i = 0; i < 3; i++)
        x[i] = level * (1 + 0.01 * sim_normal(seed));
    return middle_of(x, 3);
}

// A share of time that was lost: all takes longer by what is lost, and not by its multiple.
static void test_loss(void)
{
    static const struct {
        double before, after;
        int changes;
        double percent;
    } cases[] = {{0.001, 0.004, 0, 0}, {0.01, 0.2, 1, 18.8}, {0.2, 0.01, 1, -15.8}};
    struct series_options of_loss = defaults;
    of_loss.one = 1;
    unsigned long long seed = 103;
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        struct change_point *p = NULL;
        for (int i = 0; i < 60; i++)
            v[i] = (i < 30 ? cases[k].before : cases[k].after) * (1 + 0.01 * sim_normal(&seed));
        int n = series_changes(&p, &searched, v, 60, &of_loss, NULL);
        CHECK(n == cases[k].changes, "from %g to %g: %d changes", cases[k].before, cases[k].after,
              n);
        if (n == 1)
            CHECK(fabs(p->percent - cases[k].percent) < 0.3 &&
                      fabs(p->before / cases[k].before - 1) < 0.02 &&
                      fabs(p->after / cases[k].after - 1) < 0.02,
                  "%+.1f %%: %g -> %g", p->percent, p->before, p->after);
        free(p);
    }
    for (int i = 0; i < 60; i++)
        v[i] = 0.01 * (1 + 0.1 * sim_normal(&seed));
    double cv = series_detectable(v, 0, 60, 1).cv_percent;
    CHECK(cv > 0.07 && cv < 0.13, "losses of 0.009 to 0.011 differ by 0.1 %%: %.3f %%", cv);
}

// Runs that differ by 1 %: what is called detectable is seen in 80 of 100 cases, by a test that is
// wrong in 5 of 100.
static void test_detectable(void)
{
    enum { TRIES = 4000 };
    unsigned long long seed = 171;
    double cv = 0;
    int one = 0, three = 0;
    for (int k = 0; k < 500; k++) {
        noise(12, 0.01, &seed);
        v[dist_below(&seed, 12)] *= k % 2 ? 1 : 3; // a spike in every second
        cv += series_detectable(v, 0, 12, 0).cv_percent / 500;
    }
    CHECK(cv > 0.95 && cv < 1.2, "12 runs that differ by 1 %%: CV %.2f %%", cv);
    noise(2000, 0.01, &seed);
    struct detectable d = series_detectable(v, 1000, 2000, 0);
    for (int k = 0; k < TRIES; k++) {
        double a = 1 + 0.01 * sim_normal(&seed), b = 1 + 0.01 * sim_normal(&seed);
        one += fabs(b * (1 + d.one_run_percent / 100) - a) > 1.96 * sqrt(2) * 0.01;
        a = middle_of_three(1, &seed);
        b = middle_of_three(1 + d.three_run_percent / 100, &seed);
        three += fabs(b - a) > 1.96 * sqrt(2.0 / 3) * 1.16 * 0.01;
    }
    printf("# seed 171: seen %.1f %% between runs, %.1f %% between three and three\n",
           100.0 * one / TRIES, 100.0 * three / TRIES);
    CHECK(d.runs == 1000 && one > 0.74 * TRIES && one < 0.86 * TRIES && three > 0.74 * TRIES &&
              three < 0.86 * TRIES,
          "what is detectable is seen in 80 of 100: %.2f %%, %.2f %% of three", d.one_run_percent,
          d.three_run_percent);
    CHECK(isnan(series_detectable(v, 0, DETECTABLE_RUNS_MIN - 1, 0).cv_percent),
          "four runs say nothing");
}

static bool differs_there(const void *ctx, int i)
{
    const char *setups = ctx;
    CHECK(i > 0 && i < (int)strlen(setups), "%s: no run is before the first, run %d", setups, i);
    return setups[i] == 'X';
}

// The nearest change of set-up, and of two as near the earlier one; not outside of the series.
static void test_setup_change(void)
{
    static struct {
        char setups[12]; // X: another one than the run before
        int at;
        bool found;
        int runs;
        const char *text;
    } cases[] = {
        {"....X....", 4, true, 0, ""},
        {"...XX....", 4, true, 0, ""},
        {"...X.....", 4, true, -1, "the set-up changed 1 run earlier"},
        {"...X.X...", 4, true, -1, "the set-up changed 1 run earlier"},
        {"..X..X...", 4, true, 1, "the set-up changed 1 run later"},
        {"..X...X..", 4, true, -2, "the set-up changed 2 runs earlier"},
        {"......X..", 4, true, 2, "the set-up changed 2 runs later"},
        {".X.....X.", 4, false, 0, ""},
        {"X........", 1, false, 0, ""},
        {".......X", 8, true, -1, "the set-up changed 1 run earlier"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[SETUP_CHANGE_TEXT];
        const struct setup_change c = setup_change_find(cases[i].at, (int)strlen(cases[i].setups),
                                                        differs_there, cases[i].setups);
        CHECK(c.found == cases[i].found && c.runs == cases[i].runs, "%d runs later", c.runs);
        CHECK_STR(setup_change_text(&c, text), cases[i].text, "in words");
    }
}

// A node and a collector have the same rule.
static void test_setup_hashes(void)
{
    static const struct {
        struct setup_hashes a, b;
        bool differ;
    } cases[] = {
        {{"c", "k"}, {"c", "k"}, false}, {{"c", "k"}, {"c", "m"}, true},
        {{"c", "k"}, {"d", "k"}, true},  {{"c", ""}, {"d", "k"}, true},
        {{"c", ""}, {"c", "k"}, false},  {{"", "k"}, {"c", "m"}, true},
        {{"", ""}, {"c", "k"}, false},   {{"c", "k"}, {"", ""}, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        CHECK(setup_hashes_differ(&cases[i].a, &cases[i].b) == cases[i].differ, "%s %s and %s %s",
              cases[i].a.class_hash, cases[i].a.config_hash, cases[i].b.class_hash,
              cases[i].b.config_hash);
}

// Facts by their hash. Those of "gone" are not here, those of "bad" cannot be read.
static int setup_read(void *ctx, const char *hash, struct facts *out, struct json **document,
                      struct err *err)
{
    char text[100];
    ++*(int *)ctx;
    if (strcmp(hash, "bad") == 0)
        return err_set(err, ERR_STORAGE, "", "no disk");
    if (strcmp(hash, "gone") == 0)
        return 0;
    snprintf(text, sizeof text, "{\"hash\":\"\",\"facts\":{\"microcode\":\"%s\"}}", hash);
    *document = json_parse(text, strlen(text), err);
    return *document ? facts_from_json(out, *document, err) : -1;
}

// A node and a collector have the same rule here too. What is not known is not empty.
static void test_setup_facts(void)
{
#define CHANGED(kind, a, b)                                                                        \
    "{\"f\":[{\"kind\":\"" kind "\",\"name\":\"microcode\",\"before\":\"" a "\",\"after\":\"" b    \
    "\",\"weight\":75}]}"
    static const struct {
        struct setup_hashes a, b;
        const char *json; // NULL: an error
        int readings;
    } cases[] = {
        {{"c", "k"}, {"c", "k"}, "{\"f\":[]}", 0},
        {{"c", "k"}, {"c", "m"}, CHANGED("config", "k", "m"), 2},
        {{"c", "k"}, {"d", "k"}, CHANGED("hardware", "c", "d"), 2},
        {{"c", ""}, {"c", "k"}, "{\"f\":null}", 0},
        {{"c", "k"}, {"", "k"}, "{\"f\":null}", 0},
        {{"", ""}, {"", ""}, "{\"f\":null}", 0},
        {{"c", "k"}, {"c", "gone"}, "{\"f\":null}", 2},
        {{"c", "bad"}, {"c", "k"}, NULL, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP_BUF struct buf text = BUF_INIT;
        struct jsonw w = jsonw_to(&text);
        struct err err = {0};
        int readings = 0;
        jsonw_object(&w, NULL);
        int rc = setup_changes_write_json(&cases[i].a, &cases[i].b, setup_read, &readings, &w, "f",
                                          &err);
        jsonw_end(&w);
        CHECK_INT(readings, cases[i].readings, "only what differs is read");
        CHECK_INT(rc, cases[i].json ? 0 : -1, "an error is passed on");
        if (cases[i].json)
            CHECK_STR(buf_text(&text), cases[i].json, "what differs");
    }
}

int main(void)
{
    test_setup_hashes();
    test_setup_facts();
    test_setup_change();
    test_loss();
    test_detectable();
    test_quiet();
    test_change();
    test_same_again();
    test_many();
    test_bad();
    return tap_done();
}
