// SPDX-License-Identifier: Apache-2.0
// A round of a campaign as a plan: which node is probed next, and when. It knows no clock, no
// network and no store: the time is given, and what became of a probe is reported.
//
// Invariants, at every moment: at most `at_once` probes, at most `each_n` of a group; a probe
// begins inside the window only; what finished probes have cost, and what those in progress and the
// new one are expected to, is at most the budget; each node is probed at most once per round.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hours.h"

enum {
    PROBE_GUESS_S = 60,   // what a probe is expected to take before any was measured
    PROBE_STOP_LEAST = 5, // finished probes of a round, before their failures can stop a campaign
};

enum probe_state { PROBE_PENDING, PROBE_RUNNING, PROBE_DONE, PROBE_FAILED, PROBE_SKIPPED };
enum { PROBE_STATES = PROBE_SKIPPED + 1 };
extern const char *const probe_state_names[PROBE_STATES + 1]; // stable, in JSON; ends with NULL
enum probe_order { PROBE_STALEST, PROBE_BY_NAME };

struct probe_rules {
    int at_once;
    int each_n;          // of a group; 0: no limit
    struct hours window; // n 0: any time
    double budget_s;     // node-seconds of a round; 0: no limit
    int64_t retry_ms;    // a node that is not free is tried so long, from its first refusal on
    int failed_percent;  // of the finished probes of a round: more end the campaign; 100: none do
    int order;           // enum probe_order
};

struct probe_node {
    // Of the caller, before a round.
    int class, group;  // numbers from 0: of nodes that take the same time, of `each_n`
    int64_t newest_ms; // its newest run; 0: none
    double past_s;     // duration of that; 0: not known
    // Also of the plan: before a round, what is known of the same round.
    enum probe_state state;
    int64_t refused_ms; // its first refusal; 0: none
    // Of the plan.
    int64_t again_ms;  // pending: not before
    double expected_s; // running
};

struct probe_class {
    double past_s; // median of its nodes; 0: not known
    double own_s;  // of finished probes of this campaign, summed
    int own;
};

struct probe_plan {
    struct probe_rules rules;
    int n, n_classes, n_groups;
    struct probe_node *nodes;    // owned, in order of their names
    int *order;                  // owned: numbers of nodes
    int first;                   // no node before this place of the order is pending
    int looked;                  // no node before this place of it can be probed …
    int64_t looked_ms, again_ms; // … at this time; when the first of them may be free, 0: none
    struct probe_class *classes; // owned
    struct probe_class all;
    int *group_running; // owned
    int count[PROBE_STATES];
    double spent_s, running_s; // of this round; of its running probes, expected
};

// UTC, and the local time of the week (Monday is 0).
struct probe_clock {
    int64_t ms;
    int day, minute;
};

// Takes n nodes, whose members of the caller are set; the others are those of a plan that is begun.
// ERR_NO_MEMORY.
int probe_plan_make(struct probe_plan *p, const struct probe_rules *rules,
                    const struct probe_node *nodes, int n, struct err *err);
void probe_plan_fini(struct probe_plan *p);

enum probe_action {
    PROBE_START,      // `node`
    PROBE_AWAIT_END,  // limits are reached: when a probe has ended
    PROBE_AWAIT_TIME, // until_ms: the window opens, or a node may be free
    PROBE_ROUND_OVER,
    PROBE_STOP, // failures pile up, and no probe is running any more
};
enum probe_why {
    PROBE_BECAUSE_PLANNED,
    PROBE_BECAUSE_CLOSED,   // outside the window
    PROBE_BECAUSE_BUSY,     // nodes that are left are not free
    PROBE_BECAUSE_BUDGET,   // it has no room for another probe
    PROBE_BECAUSE_COMPLETE, // no node is left
    PROBE_BECAUSE_FAILURES,
};
struct probe_next {
    enum probe_action action;
    enum probe_why why;
    int node;
    int64_t until_ms;
};
struct probe_next probe_plan_next(struct probe_plan *p, const struct probe_clock *now);

// What became of a node: it is being probed; it is not free, come again after so long (it is
// skipped, and true returned, when it was tried long enough); its probe has ended, after `seconds`
// (0: not known, the expected ones count).
void probe_plan_start(struct probe_plan *p, int node);
bool probe_plan_refused(struct probe_plan *p, int node, int64_t now_ms, int64_t after_ms);
void probe_plan_end(struct probe_plan *p, int node, enum probe_state state, double seconds);
// The clock was set by so much: what nodes were refused was as long ago as before.
void probe_plan_clock_set(struct probe_plan *p, int64_t step_ms);

double probe_plan_longest(const struct probe_plan *p); // seconds that any probe is expected to take

// What the round would do from now on if each node were free.
struct probe_estimate {
    int nodes, left_out; // left out: by the budget
    int guessed;         // of the nodes, whose duration is a guess
    double cost_s;
    int64_t begins_ms, ends_ms;
};
void probe_plan_estimate(const struct probe_plan *p, const struct probe_clock *now,
                         struct probe_estimate *out);
