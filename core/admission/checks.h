// SPDX-License-Identifier: Apache-2.0
// May this plan run on this node now? What blocks it, each with what was measured and the
// limit, and what is only noted. docs/ADMISSION.md describes the kinds.
#pragma once
#include "core/admission/policy.h"
#include "core/node/batch_place.h"
#include "core/node/load.h"
#include "core/node/machine.h"
#include "model/plan.h"

struct blocker {
    enum admission_kind kind;
    char text[200];  // for every reader, and for what is stored
    char named[160]; // the same with names, process and user numbers of others; "": as `text`
    double measured, limit;
    bool forced; // it would refuse, and was overruled
};

enum { ADMISSION_BLOCKERS_MAX = 24, ADMISSION_NOTES_MAX = 2 };

struct admission {
    int n; // 0: admitted
    struct blocker list[ADMISSION_BLOCKERS_MAX];
    int n_warnings;
    struct blocker warnings[ADMISSION_BLOCKERS_MAX];
    int n_notes; // what could not be looked at: none seen does not mean none there
    char notes[ADMISSION_NOTES_MAX][200];
    int retry_after_s; // when to ask again; 0: waiting does not help
};

// Share of a node's available memory that a run may take: leaves a reserve for all other processes.
#define ADMISSION_MEMORY_SHARE 0.8

enum {
    // Between two readings of which the difference counts: a tick is 10 ms, so that 25 % of half a
    // second are 12 of them; and what was a minute ago has passed.
    ADMISSION_WINDOW_LEAST_MS = 500,
    ADMISSION_WINDOW_MOST_MS = 60000,
};

// Everything that the decision is made of: no file is read and no clock is asked once it is here,
// but for memory and frequencies, which are looked up below `root` for the plan's own nodes.
struct admission_input {
    const struct policy *policy;
    const struct plan *plan;
    const struct topology *topology;
    const char *root;
    // NULL: a run of ours is running. What the node does is its work, and of memory all counts that
    // the node has.
    const struct readings *now;
    const struct readings *earlier;   // NULL: none that counts
    double own_load, own_pressure;    // what our last run left in the averages of 60 s and 10 s, at
                                      // most
    const struct batch_place *within; // the job that requests the run; NULL: none
    bool other_instance, force;
    bool no_lock;    // there is none, so no other instance can be seen
    int64_t idle_ms; // since our last run; -1: there was none
    int day, minute; // local time; 0 is Monday
};
void admission_judge(struct admission *a, const struct admission_input *in);
// Of a running run, with the reading from its begin as the earlier one: what may have
// spoiled its numbers.
void admission_judge_run(struct admission *a, const struct admission_input *in);

// What a run takes of memory, on all nodes together, at most.
int64_t admission_plan_bytes(const struct plan *p);

int admission_error(const struct admission *a,
                    struct err *err); // 0 if n == 0; else ERR_BUSY/ERR_NO_MEMORY_NODE
// Waiting may help: nothing that blocks is there to stay.
bool admission_may_pass(const struct admission *a);
// For the log, and for clients that may see names.
static inline const char *admission_named(const struct blocker *b)
{
    return *b->named ? b->named : b->text;
}
// An array: [{"kind","text","measured","limit","unit","forced"}]
void admission_write_json(const struct blocker *list, int n, bool named, struct jsonw *w,
                          const char *key);
