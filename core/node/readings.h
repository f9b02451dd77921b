// SPDX-License-Identifier: Apache-2.0
// What one look at a node finds. core/node/load.h takes the readings; the processes and the batch
// jobs among them are found by core/node/busy_tasks.h and core/node/batch_jobs.h. What the kernel
// does not report is READING_UNKNOWN and blocks no run.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/node/memory_errors.h"

enum {
    READING_UNKNOWN = -1,
    READINGS_BUSY_MAX = 16,
    READINGS_JOBS_MAX = 64,
    READINGS_GROUPS_MAX = 128, // cgroups beside ours: a node has about 60 services
};

struct cpu_time { // ticks since boot
    uint64_t busy, all, steal;
};

struct id_set { // OS numbers; n is READING_UNKNOWN if the kernel does not say
    int *ids;   // owned
    int n;
};

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
    struct memory_errors errors;  // of all memory, also of nodes without a rank
    bool sees_others;             // processes of other accounts can be seen
    struct id_set cpus, mems;     // allowed to us
    double quota_cpus;            // that cgroups give us
    int n_busy;                   // computing now
    struct busy_task busy[READINGS_BUSY_MAX];
    int n_jobs; // besides those that we are in
    struct batch_job jobs[READINGS_JOBS_MAX];
};

// While a run is running: what other processes notice of it.
struct group_readings {
    int64_t at_ms;
    int runnable;        // tasks, those of our run included
    int64_t memory_us;   // PSI: total of memory
    double memory_usual; // % of the last 10 s
    int n;               // cgroups beside our own path
    struct group_pressure group[READINGS_GROUPS_MAX];
};
