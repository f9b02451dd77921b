// SPDX-License-Identifier: Apache-2.0
// Ranks are processes, so the futexes are shared ones. The last rank to arrive at a barrier
// wakes the others; a rank that fails leaves its error on the board, and all see it at the next
// barrier.
#include "bench/ranks/board.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

size_t board_bytes(int ranks)
{
    return sizeof(struct board) + (size_t)ranks * sizeof(struct slot);
}

// Shared between processes, hence not FUTEX_PRIVATE.
void board_sleep(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

void board_wake(_Atomic uint32_t *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}

int board_meet(struct board *b, int ranks, struct err *err)
{
    uint32_t generation = atomic_load(&b->generation);
    if (atomic_fetch_add(&b->arrived, 1) + 1 == (uint32_t)ranks) {
        atomic_store(&b->arrived, 0);
        // Seen by all at this barrier or by none: a fault posted later belongs to the next one.
        b->fault_agreed = atomic_load(&b->fault_posted);
        b->stop_agreed = atomic_load(&b->stop_posted);
        atomic_fetch_add(&b->generation, 1);
        board_wake(&b->generation, INT_MAX);
    } else {
        while (atomic_load(&b->generation) == generation)
            board_sleep(&b->generation, generation);
    }
    if (!b->fault_agreed)
        return 0;
    *err = b->fault;
    return -1;
}

void board_fault(struct board *b, int rank, const struct err *err)
{
    if (atomic_exchange(&b->fault_taken, 1))
        return;
    b->fault = *err;
    b->fault_rank = rank;
    atomic_store(&b->fault_posted, 1);
}

bool board_faulty(const struct board *b)
{
    return atomic_load(&b->fault_taken);
}

void board_stop(struct board *b)
{
    atomic_store(&b->stop_posted, 1);
}

bool board_stopped(const struct board *b)
{
    return b->stop_agreed;
}

bool board_stop_posted(const struct board *b)
{
    return atomic_load(&b->stop_posted);
}

void board_count(struct board *b, enum tally which)
{
    atomic_fetch_add(&b->tally[which], 1);
}

bool board_all(const struct board *b, enum tally which, uint64_t n, int ranks)
{
    return atomic_load(&b->tally[which]) >= n * (uint64_t)ranks || board_faulty(b);
}

enum {
    SPINS = 100000
}; // ranks that share a CPU must not wait for each other for whole time slices

void board_spin(struct board *b, uint64_t arrivals)
{
    atomic_fetch_add(&b->spinners, 1);
    for (unsigned spins = 0; atomic_load(&b->spinners) < arrivals && !board_faulty(b); spins++)
        if (spins > SPINS)
            sched_yield();
}

void board_spin_reset(struct board *b)
{
    atomic_store(&b->spinners, 0);
}
