// SPDX-License-Identifier: Apache-2.0
// Some of the ranks that do a pass at once, from a barrier that spins: a pass lasts from the first
// start to the last end.
#pragma once
#include "bench/sampling/sampler.h"
#include "bench/session/session.h"

// Its ranks are numbered by `index`, without gaps.
struct rank_team {
    bool mine; // this rank belongs to it
    int n, index, first;
    int rounds; // of the spinning barrier so far
};

typedef bool rank_team_member(const void *context, int rank);

// The ranks that `member` takes. All ranks call this, and come to a barrier before the first pass.
struct rank_team rank_team_of(struct session *s, rank_team_member *member, const void *context);
// Returns when all ranks of the team have come as often, or a rank has failed.
void rank_team_wait(const struct session *s, struct rank_team *t);
// The rank's part of a pass is between the marks; `ignored` are the GUARD_ flags that do not count.
void rank_team_set_pass(struct session *s, const struct guard_mark *from,
                        const struct guard_mark *to, unsigned ignored);
// All parts as one sample without a value. After all have set theirs and waited.
struct sample rank_team_pass(const struct session *s);
