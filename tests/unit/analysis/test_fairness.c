// SPDX-License-Identifier: Apache-2.0
// Fairness of parts whose numbers are known by hand.
#include "analysis/stats/fairness.h"

#include <math.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

int main(void)
{
    static const struct {
        double x[4];
        int n;
        double jain, least;
        const char *what;
    } cases[] = {
        {{7, 7, 7, 7}, 4, 1, 1, "all alike"},
        {{0, 12, 0, 0}, 4, 0.25, 0, "one has all"},
        {{5, 5, 0, 0}, 4, 0.5, 0, "two of four have all"},
        {{1, 3}, 2, 0.8, 1.0 / 3, "a quarter and three quarters"},
        {{1, 2, 3}, 3, 36.0 / 42, 1.0 / 3, "1, 2, 3"},
        {{9}, 1, 1, 1, "alone"},
        {{0, 0}, 2, 1, 1, "nothing to share"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        CHECK(near(fairness_jain(cases[i].x, cases[i].n), cases[i].jain) &&
                  near(fairness_least(cases[i].x, cases[i].n), cases[i].least),
              "%s: %.6f, %.6f", cases[i].what, fairness_jain(cases[i].x, cases[i].n),
              fairness_least(cases[i].x, cases[i].n));
    // 64 parts, one of which gets ten times as much as simulated: (63 + 10)^2 / (64 * (63 + 100)).
    double many[64];
    for (int i = 0; i < 64; i++)
        many[i] = i ? 1 : 10;
    CHECK(near(fairness_jain(many, 64), 73.0 * 73 / (64 * 163)) &&
              near(fairness_least(many, 64), 0.1),
          "one greedy part of 64");
    return tap_done();
}
