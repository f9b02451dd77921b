// SPDX-License-Identifier: Apache-2.0
// Ranks meet at a barrier that spins, because one that sleeps would start late. The pass counts
// from the first start to the last end, and a rank that lost time marks it as disturbed.
#include "bench/session/rank_team.h"

#include <math.h>

struct rank_team rank_team_of(struct session *s, rank_team_member *member, const void *context)
{
    struct rank_team t = {.first = -1};
    for (int r = 0; r < session_ranks(s); r++) {
        if (!member(context, r))
            continue;
        if (t.first < 0)
            t.first = r;
        if (r == s->comm->rank) {
            t.mine = true;
            t.index = t.n;
        }
        t.n++;
    }
    s->slot->in_team = t.mine;
    if (session_is_rank0(s))
        board_spin_reset(s->board);
    return t;
}

void rank_team_wait(const struct session *s, struct rank_team *t)
{
    board_spin(s->board, (uint64_t)++t->rounds * (uint64_t)t->n);
}

void rank_team_set_pass(struct session *s, const struct guard_mark *from,
                        const struct guard_mark *to, unsigned ignored)
{
    s->slot->pass = (struct span){from->wall_ns, to->wall_ns};
    s->slot->pass_verdict = guard_tally(&s->slot->lost, from, to);
    s->slot->pass_verdict.flags &= ~ignored;
}

// Share of the pass that a rank lost. One that was switched away at the barrier starts late, before
// its own marks; a gap of reading clocks is none.
static double rank_team_lost(const struct slot *slot, const struct sample *pass)
{
    double late = (double)(slot->pass.from - pass->from);
    double off = slot->pass_verdict.off_share * (double)(slot->pass.to - slot->pass.from);
    return ((late > SPAN_GAP_NS ? late : 0) + off) / (double)(pass->to - pass->from);
}

struct sample rank_team_pass(const struct session *s)
{
    struct sample got = {.from = UINT64_MAX};
    for (int r = 0; r < session_ranks(s); r++) {
        const struct slot *slot = &s->board->slot[r];
        if (!slot->in_team)
            continue;
        got.from = slot->pass.from < got.from ? slot->pass.from : got.from;
        got.to = slot->pass.to > got.to ? slot->pass.to : got.to;
    }
    for (int r = 0; r < session_ranks(s); r++) {
        const struct slot *slot = &s->board->slot[r];
        if (!slot->in_team)
            continue;
        got.verdict.flags |= slot->pass_verdict.flags & ~(unsigned)GUARD_OFF_CPU;
        got.verdict.switches += slot->pass_verdict.switches;
        got.verdict.off_share = fmax(got.verdict.off_share, rank_team_lost(slot, &got));
    }
    if (got.verdict.off_share > GUARD_LOST_SHARE)
        got.verdict.flags |= GUARD_OFF_CPU;
    return got;
}
