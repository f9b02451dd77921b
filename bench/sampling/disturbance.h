// SPDX-License-Identifier: Apache-2.0
// Was this rank really on its CPU while it measured? A mark before and one after each sample; a
// sample with a difference is disturbed. What the kernel cannot see of a virtual machine (time
// stolen by the host) is read from /proc/stat at the borders of a cell.
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct guard_mark {
    uint64_t wall_ns; // CLOCK_MONOTONIC_RAW
    uint64_t cpu_ns;  // CPU time of this thread
    int64_t preempted, faults;
    int cpu; // where it ran
};

enum {
    GUARD_OFF_CPU = 1,   // more than GUARD_OFF_SHARE of the time not on a CPU
    GUARD_PREEMPTED = 2, // switched away against its will
    GUARD_FAULTS = 4,    // page faults
    GUARD_MOVED = 8,     // ended on another CPU
};
#define GUARD_OFF_SHARE 0.005

struct guard_verdict {
    unsigned flags;   // 0: clean
    double off_share; // of the wall time, 0…1
};

// The wall clock is read last at the beginning and first at the end: nothing of ours is inside.
void guard_begin(struct guard_mark *m);
void guard_end(struct guard_mark *m);
struct guard_verdict guard_judge(const struct guard_mark *begin, const struct guard_mark *end);

// Time stolen by the host from `cpu` since boot, in ms; -1 if the kernel does not say.
int64_t guard_stolen_ms(int cpu);
