// SPDX-License-Identifier: Apache-2.0
// Ping and pong are two functions for two cores. Each turn has a number, so that a core that is
// late cannot mistake an old value for an answer.
#include "bench/kernels/line_transfer.h"

#include "base/clock.h"

const char *const c2c_method_names[C2C_METHODS] = {"cas", "load"};

// The first swap waits for nobody, the second for the other side's first: then both are there.
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

double c2c_ping(const struct c2c_pair *p)
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

void c2c_pong(const struct c2c_pair *p)
{
    unsigned turn = 0;
    for (int i = 0; i < UNTIMED + p->trips; i++)
        pong_once(p, ++turn);
    if (p->method == C2C_LOAD) {
        line_transfer_wait_for(&p->line[0].value, 0);
        atomic_store_explicit(&p->line[1].value, 0, memory_order_release);
    }
}
