// SPDX-License-Identifier: Apache-2.0
// The load: it moves what it counts, at the requested rate, and stops.
#include "bench/session/background_load.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/memory/placement.h"
#include "tests/unit/tap.h"

enum { BYTES = 4 << 20 };

static void worker(enum load_kind kind, void *memory)
{
    struct worker w;
    worker_init(&w, kind, memory, BYTES, 1);
    worker_pace(&w, 0);
    uint64_t most = 0, before = 0;
    for (int i = 0; i < 3000; i++) { // several times round
        worker_piece(&w);
        most = w.moved - before > most ? w.moved - before : most;
        before = w.moved;
    }
    CHECK(most <= WORKER_PIECE_BYTES && w.moved > 2900ull * WORKER_PIECE_BYTES,
          "kind %d moves %llu bytes, %llu at a time", kind, (unsigned long long)w.moved,
          (unsigned long long)most);
}

// What the memory holds after whole rounds says how many lines were modified.
static void mixes(double *memory)
{
    static const struct {
        enum load_kind kind;
        double reads; // lines read for each that is written
    } want[] = {{LOAD_3R1W, 3}, {LOAD_2R1W, 2}, {LOAD_1R1W, 1}};
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        struct worker w;
        size_t lines = 0, written = 0;
        worker_init(&w, want[i].kind, memory, BYTES, 1);
        worker_pace(&w, 0);
        do {
            worker_piece(&w);
        } while (w.next);
        for (size_t line = 0; line < BYTES / 64; line++, lines++)
            for (int k = 0; k < 8; k++)
                written += memory[8 * line + (size_t)k] > 0.5;
        CHECK(w.moved == 64 * lines + 8 * written,
              "%llu bytes are %zu lines read and %zu words written", (unsigned long long)w.moved,
              lines, written);
        double ratio = (double)lines / ((double)written / 8);
        CHECK(fabs(ratio / want[i].reads - 1) < 0.01, "%.4f lines read for each written", ratio);
    }
}

// The worker's own clock and counts: what was moved, and skipped after delays, is what the rate
// requests, however busy the machine is.
static void keeps_the_pace(enum load_kind kind, void *memory)
{
    struct worker w;
    double worst = 0;
    worker_init(&w, kind, memory, BYTES, 1);
    w.moved = 0;
    worker_pace(&w, 500);
    for (int i = 0; i < 3000; i++) {
        worker_piece(&w);
        worst = fmax(worst, fabs((double)w.moved + w.pace.skipped - w.pace.rate * w.pace.due_ns));
    }
    CHECK(worst <= 1, "kind %d: moved and skipped is what was requested, within %.1f bytes", kind,
          worst);
    CHECK((double)(clock_mono_ns() - w.begun_ns) >= w.pace.due_ns, "never ahead of the rate");
}

// A clock that the test turns: a piece takes its time, and sometimes much more.
static void schedule(void)
{
    struct pace p;
    double now = 0, moved = 0, longest = 0, burst = 0, off = 0;
    pace_begin(&p, 1000, 16 * 4096); // one byte a nanosecond
    for (int i = 1; i <= 100000; i++) {
        now += i % 1000 ? 300 + i % 7 * 100 : 1e6; // a delay of 1 ms in a thousand pieces
        moved += 4096;
        pace_moved(&p, 4096, now);
        off = fmax(off, fabs(moved + p.skipped - p.rate * p.due_ns));
        burst = now < p.due_ns ? 0 : burst + 4096;
        longest = fmax(longest, burst);
        now = fmax(now, p.due_ns);
    }
    CHECK(off < 1, "moved and skipped is what was requested: %.3f bytes", off);
    CHECK(moved / (p.rate * now) > 0.75 && p.skipped > 0, "%.0f bytes were skipped", p.skipped);
    CHECK(longest <= 24 * 4096, "at most %.0f bytes without a pause", longest);
    pace_begin(&p, 0, 4096);
    pace_moved(&p, 1e9, 1);
    CHECK(p.due_ns <= 0 && p.skipped <= 0, "without a rate nothing is due");
}

static void threads(void)
{
    char cpus[16];
    struct err err = {0};
    snprintf(cpus, sizeof cpus, "%d", sched_getcpu());
    struct load *l = load_start(LOAD_COPY, cpus, BYTES, 0, &err);
    CHECK(l != NULL, "a load starts %s", err.text);
    if (l) {
        struct load_report r = load_stop(&l);
        CHECK(r.cpus == 1 && r.mb_per_s >= 0 && l == NULL, "and stops: %.0f MB/s", r.mb_per_s);
        char node[16];
        int of_cpu = place_node_of_cpu(atoi(cpus)); // -1 in an emulator: any will do
        snprintf(node, sizeof node, "%d", of_cpu);
        CHECK(isnan(r.share) == !*r.nodes &&
                  (!*r.nodes || (r.share > 0.999 && r.share_after > 0.999 &&
                                 (of_cpu < 0 || strcmp(r.nodes, node) == 0))),
              "its memory was on node \"%s\" of \"%s\": %f, %f", r.nodes, node, r.share,
              r.share_after);
    }
    CHECK(!load_start(LOAD_READ, "", BYTES, 0, &err), "no CPUs: %s", err.text);
    CHECK(!load_start(LOAD_READ, "4000", BYTES, 0, &err), "no such CPU: %s", err.text);
    CHECK(load_demand("0,1,2", BYTES) == 3 * BYTES,
          "what it needs: below a private cache, all of it");
}

int main(void)
{
    void *memory = aligned_alloc(4096, BYTES);
    if (!memory)
        return 1;
    for (int kind = LOAD_CHASE; kind < LOAD_KINDS; kind++) {
        worker((enum load_kind)kind, memory);
        keeps_the_pace((enum load_kind)kind, memory);
    }
    schedule();
    mixes(memory);
    threads();
    free(memory);
    return tap_done();
}
