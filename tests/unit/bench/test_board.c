// SPDX-License-Identifier: Apache-2.0
// Ranks as threads: who meets, who waits, and how a failure becomes everybody's.
#include "bench/ranks/board.h"

#include "bench/ranks/turns.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/unit/tap.h"

enum { RANKS = 4, MEETINGS = 2000 };

struct rank {
    pthread_t thread;
    struct board *board;
    int rank, wrong, left_at;
    struct err err;
};

static _Atomic int counter;

// At every meeting all have counted once more, whoever is fast.
static void *meets(void *context)
{
    struct rank *r = context;
    for (int i = 1; i <= MEETINGS; i++) {
        atomic_fetch_add(&counter, 1);
        board_meet(r->board, RANKS, &r->err);
        r->wrong += atomic_load(&counter) != i * RANKS;
        board_meet(r->board, RANKS, &r->err);
    }
    return NULL;
}

static void *fails(void *context)
{
    struct rank *r = context;
    for (r->left_at = 1; r->left_at <= 10; r->left_at++) {
        if (r->left_at == 5 && r->rank >= 2) {
            struct err mine = {.code = ERR_NO_MEMORY, .text = "rank 2 or 3"};
            board_fault(r->board, r->rank, &mine);
        }
        if (board_meet(r->board, RANKS, &r->err) < 0)
            return NULL;
    }
    return NULL;
}

static void *counts(void *context)
{
    struct rank *r = context;
    for (uint64_t n = 1; n <= 200; n++) {
        board_count(r->board, TALLY_WARM);
        while (!board_all(r->board, TALLY_WARM, n, RANKS))
            ;
        r->wrong += atomic_load(&r->board->tally[TALLY_WARM]) < n * RANKS;
    }
    return NULL;
}

// One asks for the stop between two meetings: all see it after the same one.
static void *stops(void *context)
{
    struct rank *r = context;
    for (r->left_at = 1; r->left_at <= MEETINGS && !board_stopped(r->board); r->left_at++) {
        if (r->rank == 1 && r->left_at == 7)
            board_stop(r->board);
        board_meet(r->board, RANKS, &r->err);
    }
    return NULL;
}

enum { CALLS = 300 };

// Rank 0 is not called: the others have turns in pairs that change, two pairs at once. At each step
// of a turn both have come.
static void *has_turns(void *context)
{
    struct rank *r = context;
    struct turn t;
    while (turns_await(r->board, r->rank, &t)) {
        for (uint32_t step = 1; step <= 3; step++) {
            r->wrong += turns_meet(r->board, r->rank, t.peer, 0) < 0;
            r->wrong += atomic_load(&r->board->slot[t.peer].steps) < step;
        }
        r->wrong += r->board->slot[t.peer].turn.peer != r->rank || t.visit != r->left_at ||
                    r->board->slot[t.peer].turn.first == t.first;
        r->left_at++;
        turns_done(r->board);
    }
    return NULL;
}

static void *gives_turns(void *context)
{
    struct rank *r = context;
    for (int i = 0; i < CALLS; i++) {
        const int with = 1 + i % 3, a = with == 1 ? 2 : 1, b = with == 3 ? 2 : 3;
        turns_call(r->board, (const int[]){0, with}, i, i);
        turns_call(r->board, (const int[]){b, a}, i, i);
        struct turn mine;
        r->wrong += !turns_await(r->board, 0, &mine) || mine.peer != with || !mine.first;
        for (int step = 0; step < 3; step++)
            turns_meet(r->board, 0, with, 0);
        turns_done(r->board);
        turns_wait(r->board);
    }
    turns_end(r->board, RANKS);
    struct turn end;
    r->wrong += turns_await(r->board, 0, &end);
    return NULL;
}

static void *leads_or_serves(void *context)
{
    struct rank *r = context;
    r->left_at = 0;
    return r->rank ? has_turns(r) : gives_turns(r);
}

// One side fails before the step: the other is told and does not wait for it.
static void *one_of_two_fails(void *context)
{
    struct rank *r = context;
    if (r->rank > 1)
        return NULL;
    if (r->rank == 0)
        turns_call(r->board, (const int[]){0, 1}, 0, 0);
    struct turn t;
    turns_await(r->board, r->rank, &t);
    r->wrong += turns_meet(r->board, r->rank, t.peer, r->rank ? -1 : 0) == 0;
    turns_done(r->board);
    return NULL;
}

static void together(struct rank *ranks, struct board *b, void *(*run)(void *))
{
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (struct rank){.board = b, .rank = i};
        pthread_create(&ranks[i].thread, NULL, run, &ranks[i]);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
}

int main(void)
{
    struct rank r[RANKS];
    struct board *b = calloc(1, board_bytes(RANKS));
    int wrong = 0, same = 1;
    if (!b)
        return 1;
    together(r, b, meets);
    for (int i = 0; i < RANKS; i++)
        wrong += r[i].wrong;
    CHECK(wrong == 0, "nobody passes a meeting before all are there (%d meetings)", 2 * MEETINGS);
    wrong = 0;
    together(r, b, counts);
    for (int i = 0; i < RANKS; i++)
        wrong += r[i].wrong;
    CHECK(wrong == 0, "counting without waiting: all have counted when it says so");
    together(r, b, leads_or_serves);
    wrong = 0;
    for (int i = 0; i < RANKS; i++)
        wrong += r[i].wrong;
    CHECK(wrong == 0 && atomic_load(&b->turns_open) == 0,
          "two pairs at once have %d turns: each rank with the peer that rank 0 said", CALLS);
    together(r, b, one_of_two_fails);
    CHECK(r[0].wrong + r[1].wrong == 0, "a pair of which one failed: both leave the turn");
    together(r, b, stops);
    for (int i = 0; i < RANKS; i++)
        same &= r[i].left_at == 8;
    CHECK(same, "a request to stop is seen by all after the same meeting");
    together(r, b, fails);
    for (int i = 0; i < RANKS; i++)
        same &= r[i].left_at == 5 && r[i].err.code == ERR_NO_MEMORY;
    CHECK(same, "a failure of two ranks is one error, and all leave at the same meeting");
    CHECK(board_faulty(b) && board_all(b, TALLY_DONE, 99, RANKS), "nobody waits for a failed rank");
    free(b);
    return tap_done();
}
