// SPDX-License-Identifier: Apache-2.0
// Was this rank really on its CPU while it measured? A mark before and one after each sample. A
// sample is disturbed if more than GUARD_LOST_SHARE of its time was lost: a kernel thread of 3 us
// in a pass of 200 ms changes nothing, 20 ms do. What the kernel cannot see of a virtual machine
// (time stolen by the host) is read from /proc/stat at the borders of a cell.
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
    GUARD_OFF_CPU = 1, // more than GUARD_LOST_SHARE of the time not on a CPU
    GUARD_FAULTS = 2,  // page faults that cost more than GUARD_LOST_SHARE of the time
    GUARD_MOVED = 4,   // ended on another CPU
};
#define GUARD_LOST_SHARE 0.005
// Memory that is measured is populated, so a fault is of a base page: 0.5 to 2 us by the benchmark
// pagefault. One that waits for a device is off the CPU.
#define GUARD_FAULT_NS 2000

struct guard_verdict {
    unsigned flags;   // 0: clean
    double off_share; // of the wall time, 0…1
    int64_t switches; // away from the CPU against its will; for information
};

// The wall clock is read last at the beginning and first at the end: nothing of ours is inside.
void guard_begin(struct guard_mark *m);
void guard_end(struct guard_mark *m);
struct guard_verdict guard_judge(const struct guard_mark *begin, const struct guard_mark *end);

// Of all samples of a rank, those that are left out too; starts all zero.
struct guard_total {
    double wall_ns, off_ns; // off the CPU
};
// guard_judge, and adds the sample to *total.
struct guard_verdict guard_tally(struct guard_total *total, const struct guard_mark *begin,
                                 const struct guard_mark *end);
double guard_off_share(const struct guard_total *total); // NaN: there were no samples

// Time stolen by the host from `cpu` since boot, in ms; -1 if the kernel does not say.
int64_t guard_stolen_ms(int cpu);
