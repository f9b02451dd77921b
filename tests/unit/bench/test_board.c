// SPDX-License-Identifier: Apache-2.0
// Ranks as threads: who meets, who waits, and how a failure becomes everybody's.
#include "bench/ranks/board.h"

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
    together(r, b, fails);
    for (int i = 0; i < RANKS; i++)
        same &= r[i].left_at == 5 && r[i].err.code == ERR_NO_MEMORY;
    CHECK(same, "a failure of two ranks is one error, and all leave at the same meeting");
    CHECK(board_faulty(b) && board_all(b, TALLY_DONE, 99, RANKS), "nobody waits for a failed rank");
    free(b);
    return tap_done();
}
