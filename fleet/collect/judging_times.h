// SPDX-License-Identifier: Apache-2.0
// When the fleet is judged: after a sweep, at least hourly, and after a change between standby and
// writing. Pure; all times are monotonic.
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
    JUDGING_HOUR_S = 3600,  // judged at least as often
    JUDGING_STANDBY_S = 60, // on standby not more often: what is stored meanwhile is not known
    JUDGING_LIMIT_S = 60,   // a process that takes longer is ended
    JUDGING_LOOK_S = 10,    // looked at as often at least, and first so long after the start
};

struct judging_times {
    int64_t started_ms, ended_ms; // of the last judgement; 0: none
    int64_t round_ms;             // what was stored and has changed is judged from then on
    bool stood_by;                // the last judgement was made on standby
};

// It is time for another one, whatever was stored since the last.
bool judging_is_old(const struct judging_times *t, bool stands_by, int64_t now_ms);
bool judging_takes_too_long(const struct judging_times *t, int64_t now_ms);
// Is it time to look whether nodes have changed? `may`: a judgement could be made. `every_ms` may
// be a day: a judgement that is old does not wait for it. Moves the round.
bool judging_looks(struct judging_times *t, bool may, bool stands_by, int64_t every_ms,
                   int64_t now_ms);
int64_t judging_look_in(const struct judging_times *t, int64_t every_ms, int64_t now_ms); // ms
