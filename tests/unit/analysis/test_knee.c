// SPDX-License-Identifier: Apache-2.0
#include "analysis/stats/knee.h"

#include <math.h>

#include "tests/unit/tap.h"

enum { N = 11, FINE = 400, POINTS = 13, CURVES = 20 };

// --- Placing points on curves whose knee is known ------------------------------------------------

// Queues and saturations, gentle and steep: x in MB/s, y in ns, at 0 … 100 % of load.
static void true_point(int curve, double load, double *x, double *y)
{
    double u = load / 100, knee = 0.3 + 0.06 * (curve / 2), steep = 0.6 + 0.3 * curve;
    if (curve % 2) { // moves no more from the knee on
        *x = 40000 * fmin(u, knee);
        *y = 100 * (1 + 0.1 * u + steep * fmax(0, u - knee) / (1 - knee));
    } else {
        double gap = 0.03 + 0.01 * curve;
        *x = 40000 * u;
        *y = 100 * (1 + steep * u * u * u * gap / (1 - u + gap));
    }
}

static double noise(uint64_t *state) // -1 … 1
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)*state / 9223372036854775808.0;
}

static double true_knee(int curve)
{
    double x[FINE + 1], y[FINE + 1];
    for (int i = 0; i <= FINE; i++)
        true_point(curve, 100.0 * i / FINE, &x[i], &y[i]);
    return 100.0 * knee_of(x, y, FINE + 1) / FINE;
}

static struct load_curve placed(int curve, double percent, uint64_t *state)
{
    struct load_curve c = {0};
    while (c.n < POINTS) {
        double x, y;
        int level = load_curve_next(&c);
        true_point(curve, level, &x, &y);
        load_curve_add(&c, level, x * (1 + percent / 100 * noise(state)),
                       y * (1 + percent / 100 * noise(state)));
    }
    return c;
}

static void places(void)
{
    uint64_t state = 1;
    for (int curve = 0; curve < CURVES; curve++) {
        struct load_curve c = placed(curve, 2, &state);
        int k = knee_of(c.x, c.y, c.n);
        double want = true_knee(curve), step = 100.0 / (POINTS - 1);
        CHECK(k > 0 && want >= fmin(c.level[k - 1], c.level[k] - step) &&
                  want <= fmax(c.level[k + 1], c.level[k] + step),
              "curve %d: the knee of %.1f %% is found within one step: %d %%", curve, want,
              k < 0 ? -1 : c.level[k]);
        CHECK(c.level[0] == 0 && c.level[c.n - 1] == 100, "from idle to full");
    }
}

static void few_places(void)
{
    struct load_curve c = {0}, two[2] = {0};
    CHECK(load_curve_next(&c) == 0, "first idle");
    load_curve_add(&c, 0, 0, 100);
    CHECK(load_curve_next(&c) == 100, "then full");
    load_curve_add(&c, 100, 1000, 101);
    CHECK(load_curve_next(&c) == 50, "then between");
    load_curve_add(&c, 50, 500, 100);
    load_curve_add(&c, 50, 510, 100);
    CHECK(c.n == 3 && c.x[1] > 505, "a level has one point");
    for (int i = 0; i < 2; i++) { // one bends late, one early
        load_curve_add(&two[i], 0, 0, 100);
        load_curve_add(&two[i], 50, 500, i ? 400 : 100);
        load_curve_add(&two[i], 100, 1000, i ? 410 : 900);
    }
    CHECK(load_curve_next(&two[0]) == 75 && load_curve_next(&two[1]) == 25, "where it bends");
    static const int both[] = {0, 50, 75, 100};
    CHECK(load_curves_next(two, 2, both, 4) == 25, "of several, the longest piece of any");
    static const int close[] = {0, 1, 2};
    CHECK(load_curves_next(two, 2, close, 3) == 100, "the last is full");
    struct load_curve tight = {0};
    for (int i = 0; i < 3; i++)
        load_curve_add(&tight, i == 2 ? 100 : 99 * i, i, 100);
    load_curve_add(&tight, 0, 0, NAN);
    CHECK(load_curve_next(&tight) == 49, "a point without latency is no reason to stop");
}

int main(void)
{
    double x[N], y[N];
    for (int i = 0; i < N; i++) {
        double load = i / 10.0;
        x[i] = 20000 * load;
        y[i] = 90 + 8 / (1.05 - load); // a queue
    }
    int knee = knee_of(x, y, N);
    CHECK(knee >= 7 && knee <= 9, "a queue's knee is at %d tenths of its load", knee);
    for (int i = 0; i < N; i++)
        y[i] = 90 + 10.0 * i;
    CHECK(knee_of(x, y, N) == -1, "a straight line has none");
    for (int i = 0; i < N; i++)
        y[i] = 90 + 0.2 * i;
    CHECK(knee_of(x, y, N) == -1, "nor has a flat one");
    for (int i = 0; i < N; i++)
        x[i] = 5;
    y[N - 1] = 500;
    CHECK(knee_of(x, y, N) == -1, "nor has latency without bandwidth");
    CHECK(knee_of(x, y, 3) == -1, "nor have three points");
    for (int i = 0; i < N; i++) {
        x[i] = i < 6 ? 1000 * i : 5000;
        y[i] = i < 6 ? 100 : 100 + 50 * (i - 5);
    }
    CHECK(knee_of(x, y, N) == 5, "saturation: the last point before latency rises for nothing");
    places();
    few_places();
    return tap_done();
}
