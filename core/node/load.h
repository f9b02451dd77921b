// SPDX-License-Identifier: Apache-2.0
// What a node is doing, from files of /proc and /sys that are cheap to read: no sleep, no process
// started, nobody asked. `root` stands before /proc, /sys, /var and /run: "" on this machine, a
// folder in tests. What the kernel does not tell is READING_UNKNOWN and stands in nobody's way.
//
// How busy CPUs are is a difference of two readings; the caller keeps the earlier one. Without one
// the processes that run right now are looked at: one that has used much of its life's time on a
// CPU, and is running, is computing.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum {
    READING_UNKNOWN = -1,
    READINGS_BUSY_MAX = 16,
    READINGS_JOBS_MAX = 64,
    READINGS_GROUPS_MAX = 128, // control groups beside ours: a node has about 60 services
};

struct cpu_time { // ticks since boot
    uint64_t busy, all, steal;
};

struct id_set { // OS numbers; n is READING_UNKNOWN if the kernel does not say
    int *ids;   // owned
    int n;
};
bool id_set_has(const struct id_set *s, int id); // of an unknown set: everything
// The CPUs and nodes that the kernel lets this process use. The caller frees the ids.
void readings_allowed(struct id_set *cpus, struct id_set *mems, const char *root);

struct busy_task {
    pid_t pid;
    uid_t uid;
    int cpu;      // it runs on
    double share; // of one CPU, over the life of the process, in %
    char name[16];
};

struct batch_job {
    const char *manager; // "Slurm", "PBS" …
    bool pod;            // of Kubernetes
    char name[64];
};

struct group_pressure {
    uint64_t key;     // of its path
    char name[48];    // for people
    int64_t total_us; // that some task of it waited for a CPU, since boot
    double usual;     // % of the last 10 s
};

struct readings {
    int64_t at_ms;                // CLOCK_MONOTONIC
    double load;                  // of one minute
    int runnable;                 // tasks besides us, all the time we looked
    double cpu_some, memory_some; // PSI: % of the last 10 s
    int n_cpus;                   // highest OS number + 1; 0: not known
    struct cpu_time *cpu;         // by OS number; owned
    int64_t swapped_pages;        // in and out, since boot
    int64_t throttle_events;      // of the CPUs looked at, since boot
    int cooling;                  // processor cooling devices that are at work
    bool sees_others;             // processes of other accounts can be seen
    struct id_set cpus, mems;     // allowed to us
    double quota_cpus;            // that control groups give us
    int n_busy;                   // computing now
    struct busy_task busy[READINGS_BUSY_MAX];
    int n_jobs; // besides those that we are in
    struct batch_job jobs[READINGS_JOBS_MAX];
};

// `cpus`: those whose throttling counts; on large machines a sample of them is looked at.
int readings_take(struct readings *r, const char *root, int64_t at_ms, const int *cpus, int n_cpus,
                  struct err *err);
void readings_fini(struct readings *r);

// Highest frequency that a CPU is allowed, in % of what the hardware can.
double readings_frequency_share(const char *root, int cpu);

// While a run is going on: what others feel of it.
struct group_readings {
    int64_t at_ms;
    int runnable;        // tasks, those of our run included
    int64_t memory_us;   // PSI: total of memory
    double memory_usual; // % of the last 10 s
    int n;               // control groups beside our own path
    struct group_pressure group[READINGS_GROUPS_MAX];
};
void readings_take_groups(struct group_readings *r, const char *root, int64_t at_ms);
