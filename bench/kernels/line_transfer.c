// SPDX-License-Identifier: Apache-2.0
// Ping and pong are two functions for two cores. Each turn has a number, so that a core that is
// late cannot mistake an old value for an answer.
#include "bench/kernels/line_transfer.h"

#include <math.h>

#include "base/clock.h"
#include "bench/kernels/permutation.h"

const char *const c2c_method_names[C2C_METHODS] = {"cas", "load", "hitm", "hit"};

// The first swap does not wait, the second for the other side's first: then both are there.
enum { UNTIMED = 2 };

static void cas_until(atomic_uint *flag, unsigned from, unsigned to)
{
    unsigned expected = from;
    while (!atomic_compare_exchange_weak_explicit(flag, &expected, to, memory_order_acq_rel,
                                                  memory_order_relaxed))
        expected = from;
}

static void line_transfer_wait_for(atomic_uint *flag, unsigned value)
{
    while (atomic_load_explicit(flag, memory_order_acquire) != value)
        ;
}

static void ping_once(const struct c2c_pair *p, unsigned turn)
{
    if (p->method == C2C_CAS) {
        cas_until(&p->line[0].value, 0, 1);
        return;
    }
    atomic_store_explicit(&p->line[0].value, turn, memory_order_release);
    line_transfer_wait_for(&p->line[1].value, turn);
}

static void pong_once(const struct c2c_pair *p, unsigned turn)
{
    if (p->method == C2C_CAS) {
        cas_until(&p->line[0].value, 1, 0);
        return;
    }
    line_transfer_wait_for(&p->line[0].value, turn);
    atomic_store_explicit(&p->line[1].value, turn, memory_order_release);
}

static double round_trips_ping(const struct c2c_pair *p)
{
    unsigned turn = 0;
    for (int i = 0; i < UNTIMED; i++)
        ping_once(p, ++turn);
    uint64_t start = clock_mono_ns();
    for (int i = 0; i < p->trips; i++)
        ping_once(p, ++turn);
    double round_trip_ns = (double)(clock_mono_ns() - start) / p->trips;
    if (p->method == C2C_LOAD) {
        atomic_store_explicit(&p->line[0].value, 0, memory_order_release);
        line_transfer_wait_for(&p->line[1].value, 0);
    } else {
        line_transfer_wait_for(&p->line[0].value, 0);
    }
    return round_trip_ns;
}

static void round_trips_pong(const struct c2c_pair *p)
{
    unsigned turn = 0;
    for (int i = 0; i < UNTIMED + p->trips; i++)
        pong_once(p, ++turn);
    if (p->method == C2C_LOAD) {
        line_transfer_wait_for(&p->line[0].value, 0);
        atomic_store_explicit(&p->line[1].value, 0, memory_order_release);
    }
}

// --- Reading lines of the other side -------------------------------------------------------------

// What a line of an area holds: the next line's number, and a word that its owner writes.
struct linked {
    atomic_uint next, written;
};

static struct linked *linked_at(struct c2c_line *area, unsigned i)
{
    return (struct linked *)(void *)&area[i];
}

_Static_assert(sizeof(struct linked) <= 16, "both words are in one line, however short");

void c2c_link(struct c2c_line *area, uint64_t seed)
{
    struct perm order;
    perm_init(&order, C2C_AREA_LINES, seed);
    for (unsigned i = 0; i < C2C_AREA_LINES; i++)
        atomic_store(&linked_at(area, i)->next, (unsigned)perm_next(&order, i));
}

#if defined __x86_64__
static void write_back(void *line)
{
    __builtin_ia32_clflush(line);
}
#elif defined __aarch64__
static void write_back(void *line)
{
    __asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
}
#else
#define NO_WRITE_BACK
static void write_back(void *line)
{
    (void)line;
}
#endif

bool c2c_has_method(enum c2c_method method)
{
#ifdef NO_WRITE_BACK
    return method != C2C_HIT;
#else
    return method < C2C_METHODS;
#endif
}

// The owner's part of a round: its cache has all lines, modified, or the same as memory.
static void prepare(const struct c2c_pair *p, unsigned round)
{
    for (unsigned i = 0; i < C2C_AREA_LINES; i++)
        atomic_store_explicit(&linked_at(p->area, i)->written, round, memory_order_relaxed);
    if (p->method == C2C_HITM)
        return;
    for (unsigned i = 0; i < C2C_AREA_LINES; i++)
        write_back(&p->area[i]);
    atomic_thread_fence(memory_order_seq_cst);
    for (unsigned i = 0; i < C2C_AREA_LINES; i++)
        atomic_load_explicit(&linked_at(p->area, i)->written, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

static int rounds_of(const struct c2c_pair *p)
{
    return (p->trips + C2C_AREA_LINES - 1) / C2C_AREA_LINES;
}

// Lines that were not written in this round: the reader's own copies of an earlier one.
static int stale_lines(const struct c2c_pair *p, unsigned round)
{
    int stale = 0;
    for (unsigned i = 0; i < C2C_AREA_LINES; i++)
        stale +=
            atomic_load_explicit(&linked_at(p->area, i)->written, memory_order_relaxed) != round;
    return stale;
}

// The clock is read after the last line has come. arm64 reads its counter after an instruction
// barrier, which does not wait for a load unless a branch depends on what was loaded.
static void await_load(unsigned loaded)
{
#if defined __aarch64__
    __asm__ volatile("cbz %w0, 0f\n0:" ::"r"(loaded) : "memory");
#else
    (void)loaded;
#endif
}

static double read_lines(const struct c2c_pair *p)
{
    uint64_t took = 0;
    unsigned at = 0;
    int rounds = rounds_of(p), stale = 0;
    for (int round = 1; round <= rounds + 1; round++) {
        line_transfer_wait_for(&p->line[0].value, (unsigned)round);
        uint64_t start = clock_mono_ns();
        for (int i = 0; i < C2C_AREA_LINES; i++)
            at = atomic_load_explicit(&linked_at(p->area, at)->next, memory_order_relaxed);
        await_load(at);
        if (round > 1)
            took += clock_mono_ns() - start;
        stale += stale_lines(p, (unsigned)round);
        atomic_store_explicit(&p->line[1].value, (unsigned)round, memory_order_release);
    }
    line_transfer_wait_for(&p->line[0].value, 0);
    atomic_store_explicit(&p->line[1].value, 0, memory_order_release);
    return stale ? NAN : (double)took / ((double)rounds * C2C_AREA_LINES);
}

static void offer_lines(const struct c2c_pair *p)
{
    int rounds = rounds_of(p);
    for (int round = 1; round <= rounds + 1; round++) {
        prepare(p, (unsigned)round);
        atomic_store_explicit(&p->line[0].value, (unsigned)round, memory_order_release);
        line_transfer_wait_for(&p->line[1].value, (unsigned)round);
    }
    atomic_store_explicit(&p->line[0].value, 0, memory_order_release);
    line_transfer_wait_for(&p->line[1].value, 0);
}

double c2c_ping(const struct c2c_pair *p)
{
    return p->method < C2C_HITM ? round_trips_ping(p) : read_lines(p);
}

void c2c_pong(const struct c2c_pair *p)
{
    (p->method < C2C_HITM ? round_trips_pong : offer_lines)(p);
}
