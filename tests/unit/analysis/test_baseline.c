// SPDX-License-Identifier: Apache-2.0
// Several runs as one: medians, fields, intervals; what cannot be put together.
#include <math.h>

#include "analysis/compare/baseline.h"
#include "analysis/compare/compare.h"
#include "base/cleanup.h"
#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

static void make(struct matrix *m, double factor)
{
    matrix_init(m, "concurrent", "latency", "ns", 2, 3, NULL);
    snprintf(m->row.name, sizeof m->row.name, "rank");
    snprintf(m->col.name, sizeof m->col.name, "working_set");
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 3; c++) {
            double *v = matrix_at(m, r, c)->v;
            double median = (100 + 10 * r + c) * factor;
            for (int f = 0; f < CELL_FIELDS; f++)
                v[f] = median;
            v[CELL_N] = 16;
            v[CELL_DISTURBED] = 2;
            v[CELL_LO] = median - 0.25;
            v[CELL_HI] = median + 0.25;
            v[CELL_SD] = 0.5;
            v[CELL_OVERLAP] = 1;
            v[CELL_CONVERGED] = 1;
        }
    for (int c = 0; c < 3; c++)
        m->col.values[c] = 1 << (20 + c);
    m->row.values[1] = 1;
}

static void test_middle(void)
{
    static const double factors[] = {1.02, 1.00, 1.01};
    struct matrix m[3], out;
    const struct matrix *list[] = {&m[0], &m[1], &m[2]};
    for (int i = 0; i < 3; i++)
        make(&m[i], factors[i]);
    matrix_at(&m[0], 1, 1)->v[CELL_CONVERGED] = 0;
    CHECK(baseline_middle(&out, list, 3, NULL) == 0, "three runs");
    const double *v = matrix_at(&out, 1, 1)->v;
    CHECK(fabs(v[CELL_MEDIAN] - 111 * 1.01) < 1e-9, "the median run's median");
    CHECK(v[CELL_N] == 48 && v[CELL_DISTURBED] == 6, "samples add up");
    CHECK(v[CELL_CONVERGED] == 0 && matrix_at(&out, 0, 0)->v[CELL_CONVERGED] == 1,
          "tight if all are");
    // s of the logs of 1, 1.01, 1.02 is 0.0099: 1.96 sqrt 2 0.0099 sqrt(1 + 1.57/3) = 3.39 %.
    double half = (v[CELL_HI] - v[CELL_LO]) / 2 / v[CELL_MEDIAN];
    CHECK(fabs(half - 0.0339) < 0.0002, "interval by the scatter: %.4f", half);
    CHECK_STR(out.name, "concurrent", "its name");
    CHECK(out.col.values[2] == 1 << 22 && out.row.values[1] == 1, "and axes");
    matrix_fini(&out);
    CHECK(baseline_middle(&out, list, 1, NULL) == 0, "one run");
    CHECK(memcmp(out.cells, m[0].cells, 6 * sizeof *out.cells) == 0, "is itself");
    matrix_fini(&out);
    list[1] = list[2] = &m[0];
    CHECK(baseline_middle(&out, list, 3, NULL) == 0, "equal runs");
    v = matrix_at(&out, 0, 0)->v;
    CHECK(fabs(v[CELL_HI] - v[CELL_LO] - 0.5) < 1e-9, "are not surer than each of them");
    matrix_fini(&out);
    for (int i = 0; i < 3; i++)
        matrix_fini(&m[i]);
}

static void test_refusal(void)
{
    struct matrix m[2], out = {0};
    const struct matrix *list[] = {&m[0], &m[1]};
    struct err err;
    make(&m[0], 1);
    make(&m[1], 1);
    m[1].col.values[2]++;
    CHECK(baseline_middle(&out, list, 2, &err) < 0 && err.code == ERR_CONFLICT, "other sizes");
    CHECK(strstr(err.text, "working_set") && !out.cells, "are named; nothing is made");
    CHECK(baseline_middle(&out, list, BASELINE_RUNS_MAX + 1, &err) < 0 && err.code == ERR_INVALID,
          "too many");
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

// Runs differ by 1 % as a whole (another placement, another day). A further run of the same kind
// must not alarm against the middle of five; one that is 6 % slower must.
static int alarms(double shift, unsigned long long *seed)
{
    struct matrix m[6], middle;
    const struct matrix *list[5];
    struct comparison c CLEANUP(comparison_fini) = {0};
    for (int i = 0; i < 6; i++) {
        double run = (i == 5 ? shift : 1) * (1 + 0.01 * sim_normal(seed));
        sim_matrix(&m[i], 4, 6, 0.01, run, seed);
        if (i < 5)
            list[i] = &m[i];
    }
    struct err err;
    int rc = baseline_middle(&middle, list, 5, &err);
    const struct compare_side a = {.matrix = &middle}, b = {.matrix = &m[5]};
    struct compare_options options = COMPARE_DEFAULTS;
    options.noise_percent = baseline_noise(list, 5);
    rc = rc < 0 ? rc : compare(&c, &a, &b, &options, &err);
    bool slower = rc == 0 && c.verdict == VERDICT_SLOWER;
    for (int i = 0; i < 6; i++)
        matrix_fini(&m[i]);
    matrix_fini(&middle);
    return rc < 0 ? -1000 : slower;
}

static void test_simulated(void)
{
    enum { TIMES = 3000 };
    unsigned long long seed = 20261121;
    int same = 0, slower = 0;
    printf("# seed %llu\n", seed);
    for (int i = 0; i < TIMES; i++) {
        same += alarms(1, &seed);
        slower += alarms(1.06, &seed);
    }
    struct matrix quiet;
    const struct matrix *two[] = {&quiet, &quiet};
    sim_matrix(&quiet, 2, 2, 0.01, 1, &seed);
    CHECK(isnan(baseline_noise(two, 2)), "two runs cannot tell how much runs differ");
    matrix_fini(&quiet);
    CHECK(same >= 0 && same <= TIMES / 100, "%d alarms in %d quiet checks", same, TIMES);
    CHECK(slower >= TIMES * 90 / 100, "%d of %d runs that are 6 %% slower found", slower, TIMES);
}

int main(void)
{
    test_simulated();
    test_middle();
    test_refusal();
    return tap_done();
}
