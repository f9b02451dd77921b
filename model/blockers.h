// SPDX-License-Identifier: Apache-2.0
// Why a run may not start now: every reason once. Settings, help, the numbers of
// core/admission/policy.h and the conditions of runs (model/condition.h) follow from these lists.
// docs/ADMISSION.md describes the reasons, and a test compares it with them.
#pragma once

// When to look again, in seconds; 0: waiting does not help.
enum {
    RETRY_SOON_S = 10,   // what another process computes may end any moment
    RETRY_MINUTE_S = 60, // averages over a minute
    RETRY_JOB_S = 300,   // a batch job
};

// ROW(X, id, name, severity, unit, retry, default, help): those of the configuration. X is passed
// on. `name` is stable: blockers carry it, and admit_<name> is the setting. `severity` is that of
// the condition that a run keeps when the reason is overruled or only noted. `unit` is that of the
// measured value and the limit; "" for none.
#define BLOCKERS_CONFIGURED(ROW, X)                                                                \
    ROW(X, BUSY_CPUS, "busy_cpus", WARNING, "%", RETRY_SOON_S, "refuse:25",                        \
        "Action and limit, such as refuse:25. Other processes compute on a CPU of the run or on "  \
        "its hyperthread, in % of one CPU.")                                                       \
    ROW(X, LOAD, "load", WARNING, "tasks/CPU", RETRY_MINUTE_S, "refuse:0.5",                       \
        "1-minute load average per CPU, excluding numaprobe's own runs.")                          \
    ROW(X, CPU_PRESSURE, "cpu_pressure", WARNING, "%", RETRY_SOON_S, "refuse:20",                  \
        "Share of the last 10 s in which a task waited for a CPU, in %.")                          \
    ROW(X, MEMORY_PRESSURE, "memory_pressure", WARNING, "%", RETRY_SOON_S, "refuse:5",             \
        "Share of the last 10 s in which a task waited for memory, in %.")                         \
    ROW(X, BATCH_JOB, "batch_job", WARNING, "jobs", RETRY_JOB_S, "refuse:0",                       \
        "Number of jobs of Slurm, PBS, Torque or LSF on this node, without the daemon's own.")     \
    ROW(X, KUBERNETES_PODS, "kubernetes_pods", WARNING, "pods", RETRY_JOB_S, "refuse:0",           \
        "Number of Kubernetes pods on this node, without the daemon's own. Set the limit to the "  \
        "number of system pods.")                                                                  \
    ROW(X, OTHER_INSTANCE, "other_instance", WARNING, "", RETRY_MINUTE_S, "refuse",                \
        "Another numaprobed is measuring on this host (see --host-lock).")                         \
    ROW(X, CPU_QUOTA, "cpu_quota", WARNING, "%", 0, "refuse:100",                                  \
        "CPU quota of the cgroup, in % of what the ranks need; at least the limit.")               \
    ROW(X, FREQUENCY_CAPPED, "frequency_capped", WARNING, "%", 0, "warn:90",                       \
        "Frequency cap, in % of the hardware's maximum; at least the limit.")                      \
    ROW(X, THROTTLED, "throttled", WARNING, "", RETRY_MINUTE_S, "refuse:0",                        \
        "Number of thermal throttling events.")                                                    \
    ROW(X, STEAL, "steal", WARNING, "%", RETRY_MINUTE_S, "refuse:5",                               \
        "CPU time taken by the hypervisor (steal), in %.")                                         \
    ROW(X, SWAP, "swap", WARNING, "pages/s", RETRY_MINUTE_S, "refuse:10",                          \
        "Pages swapped in and out per second.")                                                    \
    ROW(X, MEMORY_ERRORS, "memory_errors", WARNING, "", RETRY_MINUTE_S, "warn:0",                  \
        "Number of errors in memory that ECC corrected since the earlier look.")                   \
    ROW(X, OUTSIDE_HOURS, "outside_hours", INFO, "min", RETRY_MINUTE_S, "refuse",                  \
        "The time is outside --hours.")                                                            \
    ROW(X, TOO_SOON, "too_soon", INFO, "s", RETRY_SOON_S, "refuse:0",                              \
        "Minimum time between two runs, in seconds.")                                              \
    ROW(X, DISTURBING, "disturbing", NOTICE, "%", 0, "refuse:25",                                  \
        "Additional waiting of other processes for CPU or memory during the run, in % of the "     \
        "time. refuse ends the run, warn records the condition.")
// Those that always refuse: ROW(X, id, name, severity, unit, retry).
#define BLOCKERS_ALWAYS(ROW, X)                                                                    \
    ROW(X, TOPOLOGY_NOT_LIVE, "topology_not_live", ERROR, "", 0)                                   \
    ROW(X, MEMORY, "memory", WARNING, "bytes", RETRY_SOON_S)                                       \
    ROW(X, CGROUP_MEMORY, "cgroup_memory", WARNING, "bytes", RETRY_SOON_S)                         \
    ROW(X, RESERVED_PAGES, "reserved_pages", WARNING, "bytes", RETRY_SOON_S)                       \
    ROW(X, CPUSET, "cpuset", WARNING, "CPUs", 0)                                                   \
    ROW(X, MEMS, "mems", WARNING, "nodes", 0)
