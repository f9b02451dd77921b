// SPDX-License-Identifier: Apache-2.0
// The load: it moves what it says, at the rate that is asked for, and stops.
#include "bench/session/background_load.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/unit/tap.h"

enum { BYTES = 4 << 20 };

static void worker(enum load_kind kind, void *memory)
{
    struct worker w;
    worker_init(&w, kind, memory, BYTES, 1);
    worker_pace(&w, 0);
    for (int i = 0; i < 300; i++) // several times round
        worker_block(&w);
    // A block is 512 hops of a line, or 64 KiB of each array that the kernel touches.
    static const uint64_t blocks[LOAD_KINDS] = {
        [LOAD_CHASE] = 512 * 64, [LOAD_READ] = 65536, [LOAD_WRITE] = 65536, [LOAD_COPY] = 131072};
    CHECK(w.moved == 300 * blocks[kind], "kind %d moves %llu bytes", kind,
          (unsigned long long)w.moved);
}

// MB/s of 10 blocks: 7 ms at that rate.
static double paced(void *memory)
{
    struct worker w;
    worker_init(&w, LOAD_READ, memory, BYTES, 1);
    worker_pace(&w, 100);
    uint64_t begun = clock_mono_ns();
    for (int i = 0; i < 10; i++)
        worker_block(&w);
    return 1000 * (double)w.moved / (double)(clock_mono_ns() - begun);
}

static void pace(void *memory)
{
    double best = 0;
    // A busy machine takes the CPU away from most, but not from all of them.
    for (int i = 0; i < 100 && best < 60; i++) {
        double mb_per_s = paced(memory);
        best = mb_per_s > best ? mb_per_s : best;
    }
    CHECK(best <= 100.5, "never above the rate of 100 MB/s: %.1f", best);
    CHECK(best > 60, "nor far below: %.1f", best);
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
    }
    CHECK(!load_start(LOAD_READ, "", BYTES, 0, &err), "no CPUs: %s", err.text);
    CHECK(!load_start(LOAD_READ, "4000", BYTES, 0, &err), "no such CPU: %s", err.text);
    CHECK(load_demand("0,1,2", BYTES) == 3 * BYTES, "what it needs");
}

int main(void)
{
    void *memory = aligned_alloc(4096, BYTES);
    if (!memory)
        return 1;
    for (int kind = LOAD_CHASE; kind < LOAD_KINDS; kind++)
        worker((enum load_kind)kind, memory);
    pace(memory);
    threads();
    free(memory);
    return tap_done();
}
