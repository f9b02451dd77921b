// SPDX-License-Identifier: Apache-2.0
// A rank that is called finds its turn on its slot. The word it sleeps on counts the turns, so a
// call is never lost; the words of two ranks are on different lines, so neither wakes the other.
#include "bench/ranks/turns.h"

#include <sched.h>

enum {
    TURN_OVER = -1,
    PAIR_SPINS = 20000, // about a time slice's hundredth: ranks may share a CPU
};
#define TURN_FAILED UINT32_MAX

static void turns_give(struct slot *slot)
{
    atomic_fetch_add(&slot->turns, 1);
    board_wake(&slot->turns, 1);
}

void turns_call(struct board *b, const int ends[2], int stage, int visit)
{
    atomic_fetch_add(&b->turns_open, 2);
    // Both are ready before either can look at the other's steps.
    for (int i = 0; i < 2; i++) {
        b->slot[ends[i]].turn = (struct turn){ends[1 - i], i == 0, stage, visit};
        atomic_store(&b->slot[ends[i]].steps, 0);
    }
    for (int i = 0; i < 2; i++)
        turns_give(&b->slot[ends[i]]);
}

void turns_wait(struct board *b)
{
    uint32_t open;
    while ((open = atomic_load(&b->turns_open)) != 0)
        board_sleep(&b->turns_open, open);
}

void turns_end(struct board *b, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        b->slot[r].turn = (struct turn){.peer = r, .stage = TURN_OVER};
        turns_give(&b->slot[r]);
    }
}

bool turns_await(struct board *b, int rank, struct turn *turn)
{
    struct slot *slot = &b->slot[rank];
    while (atomic_load(&slot->turns) == slot->turns_taken)
        board_sleep(&slot->turns, slot->turns_taken);
    slot->turns_taken++;
    *turn = slot->turn;
    return turn->stage != TURN_OVER;
}

void turns_done(struct board *b)
{
    if (atomic_fetch_sub(&b->turns_open, 1) == 1)
        board_wake(&b->turns_open, 1);
}

int turns_meet(struct board *b, int rank, int peer, int outcome)
{
    struct slot *ours = &b->slot[rank], *theirs = &b->slot[peer];
    if (outcome < 0) {
        atomic_store(&ours->steps, TURN_FAILED);
        return -1;
    }
    uint32_t step = atomic_fetch_add(&ours->steps, 1) + 1, at;
    for (unsigned spins = 0; (at = atomic_load(&theirs->steps)) < step; spins++)
        if (spins > PAIR_SPINS)
            sched_yield();
    return at == TURN_FAILED ? -1 : 0;
}
