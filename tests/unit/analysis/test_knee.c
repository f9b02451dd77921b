// SPDX-License-Identifier: Apache-2.0
#include "analysis/stats/knee.h"

#include "tests/unit/tap.h"

enum { N = 11 };

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
    return tap_done();
}
