// SPDX-License-Identifier: Apache-2.0
// What a reader of a run should know: what may have spoiled its numbers, and what was assumed.
//
//     {"kind":"placement","severity":"error","rank":3,"text":"ran on CPU 1 instead of 0"}
//
// Programs test the kind. The text is for people: it is complete without the kind, but does not
// repeat the rank. docs/API.md lists the kinds; the unit test compares that list to the table.
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/jsonw.h"

// The name of an admission kind or of a finding is also the name of its condition.
enum condition_kind {
    CONDITION_OTHER, // of a version that knew more or other kinds
    // Found before the run, or while it ran.
    CONDITION_BUSY_CPUS,
    CONDITION_LOAD,
    CONDITION_CPU_PRESSURE,
    CONDITION_MEMORY_PRESSURE,
    CONDITION_BATCH_JOB,
    CONDITION_KUBERNETES_PODS,
    CONDITION_OTHER_INSTANCE,
    CONDITION_CPU_QUOTA,
    CONDITION_FREQUENCY_CAPPED,
    CONDITION_THROTTLED,
    CONDITION_STEAL,
    CONDITION_SWAP,
    CONDITION_OUTSIDE_HOURS,
    CONDITION_TOO_SOON,
    CONDITION_DISTURBING,
    CONDITION_TOPOLOGY_NOT_LIVE,
    CONDITION_MEMORY,
    CONDITION_CGROUP_MEMORY,
    CONDITION_CPUSET,
    CONDITION_MEMS,
    // How the machine is configured.
    CONDITION_MPIRUN_MISSING,
    CONDITION_NUMACTL_MISSING,
    CONDITION_THP_NEVER,
    CONDITION_GOVERNOR,
    CONDITION_FREQUENCY_CAP,
    CONDITION_NUMA_BALANCING,
    CONDITION_VIRTUAL_MACHINE,
    CONDITION_HYPERTHREADS,
    // How the run was started, and how it ended.
    CONDITION_FORCED, // a blocker was overruled
    CONDITION_LAUNCHER,
    CONDITION_CGROUP,
    CONDITION_ACCOUNT,
    CONDITION_MACHINE, // it may have changed
    CONDITION_DISTURBED,
    // What the benchmark saw.
    CONDITION_PLACEMENT,
    CONDITION_MIGRATED,
    CONDITION_MEMORY_POLICY,
    CONDITION_HUGE_PAGES, // requested, and not all were given
    CONDITION_FEW_SAMPLES,
    CONDITION_CACHE,
    CONDITION_TOPOLOGY,
    CONDITION_INSTRUCTIONS,
    CONDITION_BACKGROUND_LOAD,
    CONDITION_KNEE,
    CONDITION_PAIR,
    CONDITION_OMITTED, // others were left out
    // What an import did not say.
    CONDITION_IMPORT,
    CONDITION_IMPORT_UNDATED, // such a run's key has no date
    CONDITION_KINDS
};

enum condition_severity {
    SEVERITY_INFO,    // the numbers are as good with it
    SEVERITY_NOTICE,  // it may affect them
    SEVERITY_WARNING, // it does affect them
    SEVERITY_ERROR,   // they are not of what was requested
    SEVERITIES
};

struct condition_info {
    const char *name;                 // stable
    enum condition_severity severity; // unless a condition says otherwise
};
extern const struct condition_info condition_kinds[CONDITION_KINDS];
extern const char *const severity_names[SEVERITIES];
enum condition_kind condition_find(const char *name); // CONDITION_OTHER: no such kind

struct condition {
    enum condition_kind kind;
    enum condition_severity severity;
    int64_t rank; // -1: of the whole run
    char text[256];
};

// With the severity of its kind.
__attribute__((format(printf, 4, 5))) void condition_set(struct condition *c,
                                                         enum condition_kind kind, int64_t rank,
                                                         const char *fmt, ...);
__attribute__((format(printf, 4, 0))) void condition_vset(struct condition *c,
                                                          enum condition_kind kind, int64_t rank,
                                                          const char *fmt, va_list ap);
void condition_write_members(const struct condition *c, struct jsonw *w);
void condition_write_json(const struct condition *c, struct jsonw *w, const char *key);
enum { CONDITIONS_KEPT = 64 };

// Of one run, in the order of events. Where there are more, the severe ones are kept.
struct conditions {
    int n;
    int64_t left_out;
    struct condition list[CONDITIONS_KEPT];
};

// One that does not fit takes the place of the last one of the lowest severity, if that is lower.
void conditions_put(struct conditions *c, const struct condition *one);
// rank -1: of the whole run.
__attribute__((format(printf, 4, 5))) void conditions_add(struct conditions *c,
                                                          enum condition_kind kind, int64_t rank,
                                                          const char *fmt, ...);
// All of `more`, and how many those had left out.
void conditions_append(struct conditions *c, const struct conditions *more);
// An array; the last one states how many were left out.
void conditions_write_json(const struct conditions *c, struct jsonw *w, const char *key);
// condition_line of each, a line each.
void conditions_lines(const struct conditions *c, struct buf *out);
// "warning: rank 3: ran on CPU 1 instead of 0"; a severity below warning is not shown.
void condition_line(const struct condition *c, struct buf *out);
// A kind that is not known is CONDITION_OTHER. ERR_INVALID names the member.
int condition_from_json(struct condition *c, const struct json *object, struct err *err);
