// SPDX-License-Identifier: Apache-2.0
// When measuring ends: at the time limit, or with the budget. Both end it after a step, before the
// first one that would pass them. A budget leaves out repetitions only: it does not end a run whose
// cells have no repetition yet. Pure: time comes as an argument, in ns.
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct time_limit {
    uint64_t end_ns;     // the time limit; 0: none
    uint64_t budget_ns;  // the end of the budget; 0: none
    int64_t repetitions; // of each cell, spread over the run; 0: not spread, or not known
    uint64_t begun_ns;   // when measuring began
    uint64_t step_ns;    // when the last step ended
    double longest_ns;   // of the steps
    double expected_s;   // of all work, by what was timed before it began; 0: not known
    double next_share;   // of the work, that the next step is expected to be; 0: like the longest
    // What was left out so: repetitions that the cell with fewest has, of how many. 0 of 0:
    // nothing.
    int64_t kept, wanted;
};

// Both from the start of the program, in seconds; 0: none. Of each some time is left free for
// starting and ending `ranks` ranks, which are outside.
void time_limit_set(struct time_limit *t, uint64_t started_ns, double limit_s, double budget_s,
                    int ranks);
void time_limit_begin(struct time_limit *t, uint64_t now_ns); // measuring begins
// A step has ended, and `share` of all work is done, 0…1. True: no further step is to begin.
bool time_limit_step(struct time_limit *t, uint64_t now_ns, double share);
// Seconds until the run ends, where `share` of all work is done: less than the work takes where the
// time limit or the budget ends it. -1: not known.
double time_limit_left_s(const struct time_limit *t, uint64_t now_ns, double share);
// Seconds until the time limit; INFINITY: there is none.
double time_limit_room_s(const struct time_limit *t, uint64_t now_ns);
bool time_limit_is_budget(const struct time_limit *t); // the budget ends before the time limit
// For work whose cells have all their repetitions one after the other: is the part of time, of that
// which ends first, up by the end of a further step, where `share` of all work shall be done by
// then?
bool time_limit_behind(const struct time_limit *t, double share);
// A cell has `kept` of `wanted` repetitions, because of the budget or the time limit.
void time_limit_left_out(struct time_limit *t, int64_t kept, int64_t wanted);
