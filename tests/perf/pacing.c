// SPDX-License-Identifier: Apache-2.0
// Does a loader move what was requested? One worker of each kind, at full speed and then at 10 to
// 90 % of that: bytes moved / bytes requested, and what was skipped after delays. Medians of
// windows of 4 ms that nothing disturbed.
//
//   taskset -c 1 pacing [--size=128M] [--windows=100]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/stats.h"
#include "base/clock.h"
#include "base/str.h"
#include "bench/sampling/disturbance.h"
#include "bench/session/background_load.h"

enum { WINDOW_NS = 4000000, WINDOWS_MAX = 10000 };

static const char *const names[LOAD_KINDS] = {"",     "chase", "read", "write",
                                              "copy", "3:1",   "2:1",  "1:1"};

struct window {
    double moved, asked, skipped, ns; // bytes
    bool clean;
};

static struct window window_of(struct worker *w, double mb_per_s)
{
    struct guard_mark from, to;
    guard_begin(&from);
    worker_pace(w, mb_per_s);
    uint64_t before = w->moved, now;
    do
        worker_piece(w);
    while ((now = clock_mono_ns()) - w->begun_ns < WINDOW_NS);
    guard_end(&to);
    double ns = (double)(now - w->begun_ns);
    return (struct window){(double)(w->moved - before), w->pace.rate * ns, w->pace.skipped, ns,
                           guard_judge(&from, &to).flags == 0};
}

// Medians of the windows that nothing disturbed; returns how many there were.
static int windows_of(struct worker *w, double mb_per_s, int n, double *mb, double *ratio,
                      double *skipped)
{
    static double rates[WINDOWS_MAX], ratios[WINDOWS_MAX], skips[WINDOWS_MAX];
    int kept = 0;
    for (int i = 0; i < n; i++) {
        struct window x = window_of(w, mb_per_s);
        if (!x.clean)
            continue;
        rates[kept] = 1000 * x.moved / x.ns;
        ratios[kept] = x.moved / x.asked;
        skips[kept++] = x.skipped / x.asked;
    }
    stats_sort(rates, kept);
    stats_sort(ratios, kept);
    stats_sort(skips, kept);
    *mb = stats_quantile(rates, kept, 0.5);
    *ratio = stats_quantile(ratios, kept, 0.5);
    *skipped = stats_quantile(skips, kept, 0.5);
    return kept;
}

static void measure(int kind, char *memory, uint64_t bytes, int n)
{
    struct worker w;
    double full, mb, ratio, skipped;
    worker_init(&w, (enum load_kind)kind, memory, bytes, 1);
    int kept = windows_of(&w, 0, n, &full, &ratio, &skipped);
    printf("%-6s full %8.0f MB/s, %d of %d windows undisturbed\n", names[kind], full, kept, n);
    for (int percent = 10; percent <= 90 && kept; percent += 10) {
        kept = windows_of(&w, full * percent / 100, n, &mb, &ratio, &skipped);
        printf("%-6s %3d %%  moved / requested %.4f, skipped %.4f, %d of %d windows\n", names[kind],
               percent, ratio, skipped, kept, n);
    }
}

int main(int argc, char **argv)
{
    uint64_t bytes = 128 << 20;
    int windows = 100;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--size=", 7) == 0)
            str_to_bytes(argv[i] + 7, 1, &bytes);
        else if (strncmp(argv[i], "--windows=", 10) == 0)
            windows = (int)strtol(argv[i] + 10, NULL, 10);
    char *memory = aligned_alloc(2 << 20, bytes);
    if (!memory || windows < 1 || windows > WINDOWS_MAX)
        return 1;
    for (int kind = LOAD_CHASE; kind < LOAD_KINDS; kind++)
        measure(kind, memory, bytes, windows);
    free(memory);
    return 0;
}
