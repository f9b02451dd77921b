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
#include "model/blockers.h"

// Every kind: its number, its stable name, and its severity unless a condition says otherwise. A
// line here is a new kind; the list of docs/API.md has it too.
//
// Found before the run, or while it ran: the table of model/blockers.h and docs/ADMISSION.md.
#define CONDITION_OF_BLOCKER(X, id, name, severity, ...) X(id, name, severity)
#define CONDITION_BLOCKERS(X)                                                                      \
    BLOCKERS_CONFIGURED(CONDITION_OF_BLOCKER, X)                                                   \
    BLOCKERS_ALWAYS(CONDITION_OF_BLOCKER, X)
// How the machine is configured: the names of core/node/checkup.c.
#define CONDITION_FINDINGS(X)                                                                      \
    X(MPIRUN_MISSING, "mpirun_missing", INFO)                                                      \
    X(NUMACTL_MISSING, "numactl_missing", INFO)                                                    \
    X(THP_NEVER, "thp_never", NOTICE)                                                              \
    X(GOVERNOR, "governor", NOTICE)                                                                \
    X(FREQUENCY_CAP, "frequency_cap", NOTICE)                                                      \
    X(NUMA_BALANCING, "numa_balancing", NOTICE)                                                    \
    X(VIRTUAL_MACHINE, "virtual_machine", NOTICE)                                                  \
    X(HYPERTHREADS, "hyperthreads", INFO)                                                          \
    X(CORRECTED_ERRORS, "corrected_errors", WARNING)
// How the run was started, and how it ended. FORCED: a blocker was overruled. MACHINE: it may have
// changed.
#define CONDITION_COURSE(X)                                                                        \
    X(FORCED, "forced", WARNING)                                                                   \
    X(LAUNCHER, "launcher", INFO)                                                                  \
    X(CGROUP, "cgroup", INFO)                                                                      \
    X(IN_JOB, "in_job", INFO)                                                                      \
    X(ACCOUNT, "account", INFO)                                                                    \
    X(MACHINE, "machine", NOTICE)                                                                  \
    X(BUDGET, "budget", NOTICE)                                                                    \
    X(DISTURBED, "disturbed", WARNING)
// What the benchmark saw. HUGE_PAGES: not all were given. OMITTED: others were left out. ODD:
// slower than its peers.
#define CONDITION_SEEN(X)                                                                          \
    X(PLACEMENT, "placement", ERROR)                                                               \
    X(BINDING, "binding", WARNING)                                                                 \
    X(MIGRATED, "migrated", WARNING)                                                               \
    X(MEMORY_POLICY, "memory_policy", NOTICE)                                                      \
    X(PAGES, "pages", INFO)                                                                        \
    X(HUGE_PAGES, "huge_pages", WARNING)                                                           \
    X(FEW_SAMPLES, "few_samples", WARNING)                                                         \
    X(COUNTERS, "counters", INFO)                                                                  \
    X(COUNTERS_DISAGREE, "counters_disagree", WARNING)                                             \
    X(CLOCK, "clock", NOTICE)                                                                      \
    X(TWO_MODES, "two_modes", NOTICE)                                                              \
    X(ONE_REPETITION, "one_repetition", NOTICE)                                                    \
    X(CACHE, "cache", WARNING)                                                                     \
    X(TOPOLOGY, "topology", NOTICE)                                                                \
    X(INTERLEAVED, "interleaved", INFO)                                                            \
    X(INSTRUCTIONS, "instructions", INFO)                                                          \
    X(BACKGROUND_LOAD, "background_load", INFO)                                                    \
    X(KNEE, "knee", INFO)                                                                          \
    X(PAIR, "pair", INFO)                                                                          \
    X(CONCURRENT_PAIRS, "concurrent_pairs", INFO)                                                  \
    X(TIME_LIMIT, "time_limit", WARNING)                                                           \
    X(OMITTED, "omitted", NOTICE)                                                                  \
    X(ODD, "odd", WARNING)
// What an import did not say. IMPORT_UNDATED: such a run's key has no date.
#define CONDITION_IMPORTED(X)                                                                      \
    X(IMPORT, "import", NOTICE)                                                                    \
    X(IMPORT_UNDATED, "import_undated", NOTICE)
// OTHER is a kind of a version that knew more or other kinds.
#define CONDITION_LIST(X)                                                                          \
    X(OTHER, "other", NOTICE)                                                                      \
    CONDITION_BLOCKERS(X)                                                                          \
    CONDITION_FINDINGS(X)                                                                          \
    CONDITION_COURSE(X)                                                                            \
    CONDITION_SEEN(X)                                                                              \
    CONDITION_IMPORTED(X)

enum condition_kind {
#define CONDITION_ID(id, name, severity) CONDITION_##id,
    CONDITION_LIST(CONDITION_ID)
#undef CONDITION_ID
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
