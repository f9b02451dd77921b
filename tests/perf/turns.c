// SPDX-License-Identifier: Apache-2.0
// What it costs to call a pair of ranks while the others sleep: by barriers of all ranks, as c2c
// did it (four for a pair), and by turns (bench/ranks/turns.h). Ranks are processes that share the
// CPUs there are, so times are upper bounds; the numbers of wake-ups are exact.
//   turns [RANKS [PAIRS]]
#include "bench/ranks/turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/spec.h"

enum { BARRIERS = 4, RANKS = 192, PAIRS = 200 };

static void meet_all(struct board *b, int ranks, int pairs)
{
    struct err err;
    for (int i = 0; i < BARRIERS * pairs; i++)
        board_meet(b, ranks, &err);
}

static void serve(struct board *b, int rank)
{
    struct turn t;
    while (turns_await(b, rank, &t)) {
        turns_meet(b, rank, t.peer, 0);
        turns_done(b);
    }
}

static void call_pairs_in_turn(struct board *b, int ranks, int pairs)
{
    for (int i = 0; i < pairs; i++) {
        const int first = 1 + 2 * i % (ranks - 2), ends[2] = {first, first + 1};
        turns_call(b, ends, 0, 0);
        turns_wait(b);
    }
    turns_end(b, ranks);
}

// Wall-clock time of a pair in us, seen by rank 0.
static double measure(struct board *b, int rank, int ranks, int pairs, int by_turns)
{
    struct err err;
    board_meet(b, ranks, &err);
    uint64_t begin = clock_mono_ns();
    if (!by_turns)
        meet_all(b, ranks, pairs);
    else if (rank == 0)
        call_pairs_in_turn(b, ranks, pairs);
    if (by_turns)
        serve(b, rank);
    double took = (double)(clock_mono_ns() - begin) / 1e3 / pairs;
    board_meet(b, ranks, &err);
    return took;
}

static void run(struct board *b, int rank, int ranks, int pairs)
{
    double barriers = measure(b, rank, ranks, pairs, 0);
    double turns = measure(b, rank, ranks, pairs, 1);
    if (rank == 0)
        printf("%d ranks, a pair: %d barriers %.1f us, %d wake-ups; a turn %.1f us, 3 wake-ups\n",
               ranks, BARRIERS, barriers, BARRIERS * (ranks - 1), turns);
}

int main(int argc, char **argv)
{
    int ranks = argc > 1 ? (int)strtol(argv[1], NULL, 10) : RANKS,
        pairs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : PAIRS;
    if (ranks < 4 || ranks > SPEC_RANKS_MAX || pairs < 1) {
        fputs("usage: turns [RANKS [PAIRS]]\n", stderr);
        return 2;
    }
    struct board *b =
        mmap(NULL, board_bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return 1;
    for (int rank = 1; rank < ranks; rank++)
        if (fork() == 0) {
            run(b, rank, ranks, pairs);
            _exit(0);
        }
    run(b, 0, ranks, pairs);
    while (wait(NULL) > 0)
        ;
    return 0;
}
