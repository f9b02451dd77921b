// SPDX-License-Identifier: Apache-2.0
// Every loop looks at a flag in a line that all only read, so that all stop within an operation.
// The clock is read once in a hundredth of the time, by what the last time needed.
#include "bench/kernels/contended.h"

#include <string.h>

#include "base/clock.h"

#if defined __aarch64__
#include <sys/auxv.h>
#endif

struct atomic_code {
    const char *name;
    uint64_t (*fetch_add)(_Atomic uint64_t *word, uint64_t steps);
    uint64_t (*cas)(_Atomic uint64_t *word, uint64_t steps);
    uint64_t (*exchange)(_Atomic uint64_t *word, uint64_t steps);
};

enum { STEPS = 8, LOOKS = 100, LONG_WAIT = 4096 };

// Each makes some operations one after the other, and returns what the word has grown by.
#define FETCH_ADD(name, step)                                                                      \
    static uint64_t name(_Atomic uint64_t *word, uint64_t steps)                                   \
    {                                                                                              \
        uint64_t seen = 0;                                                                         \
        for (uint64_t i = 0; i < steps; i++)                                                       \
            seen |= step(word, 1);                                                                 \
        __asm__ volatile("" ::"r"(seen)); /* or the compiler would add without fetching */         \
        return steps;                                                                              \
    }

#define CAS(name, load, step)                                                                      \
    static uint64_t name(_Atomic uint64_t *word, uint64_t steps)                                   \
    {                                                                                              \
        uint64_t seen = load(word);                                                                \
        for (uint64_t i = 0; i < steps; i++) {                                                     \
            uint64_t expected;                                                                     \
            do {                                                                                   \
                expected = seen;                                                                   \
                seen = step(word, expected, expected + 1);                                         \
            } while (seen != expected);                                                            \
            seen++;                                                                                \
        }                                                                                          \
        return steps;                                                                              \
    }

#define EXCHANGE(name, step)                                                                       \
    static uint64_t name(_Atomic uint64_t *word, uint64_t steps)                                   \
    {                                                                                              \
        uint64_t balance = 0;                                                                      \
        for (uint64_t i = 1; i <= steps; i++)                                                      \
            balance += i - step(word, i);                                                          \
        return balance;                                                                            \
    }

static uint64_t word_load(_Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

#if defined __aarch64__
// In assembly, because the compiler would choose for all.
static uint64_t lse_add(_Atomic uint64_t *word, uint64_t more)
{
    uint64_t old;
    __asm__ volatile(".arch_extension lse\n\tldaddal %2, %0, %1"
                     : "=r"(old), "+Q"(*word)
                     : "r"(more)
                     : "memory");
    return old;
}

static uint64_t lse_cas(_Atomic uint64_t *word, uint64_t expected, uint64_t wanted)
{
    __asm__ volatile(".arch_extension lse\n\tcasal %0, %2, %1"
                     : "+r"(expected), "+Q"(*word)
                     : "r"(wanted)
                     : "memory");
    return expected;
}

static uint64_t lse_swap(_Atomic uint64_t *word, uint64_t wanted)
{
    uint64_t old;
    __asm__ volatile(".arch_extension lse\n\tswpal %2, %0, %1"
                     : "=r"(old), "+Q"(*word)
                     : "r"(wanted)
                     : "memory");
    return old;
}

static uint64_t llsc_add(_Atomic uint64_t *word, uint64_t more)
{
    uint64_t old, sum;
    uint32_t failed;
    __asm__ volatile("1:\tldaxr %0, %3\n\tadd %1, %0, %4\n\tstlxr %w2, %1, %3\n\tcbnz %w2, 1b"
                     : "=&r"(old), "=&r"(sum), "=&r"(failed), "+Q"(*word)
                     : "r"(more)
                     : "memory");
    return old;
}

static uint64_t llsc_cas(_Atomic uint64_t *word, uint64_t expected, uint64_t wanted)
{
    uint64_t old;
    uint32_t failed;
    __asm__ volatile("1:\tldaxr %0, %2\n\tcmp %0, %3\n\tb.ne 2f\n\tstlxr %w1, %4, %2\n\t"
                     "cbnz %w1, 1b\n2:"
                     : "=&r"(old), "=&r"(failed), "+Q"(*word)
                     : "r"(expected), "r"(wanted)
                     : "memory", "cc");
    return old;
}

static uint64_t llsc_swap(_Atomic uint64_t *word, uint64_t wanted)
{
    uint64_t old;
    uint32_t failed;
    __asm__ volatile("1:\tldaxr %0, %2\n\tstlxr %w1, %3, %2\n\tcbnz %w1, 1b"
                     : "=&r"(old), "=&r"(failed), "+Q"(*word)
                     : "r"(wanted)
                     : "memory");
    return old;
}

FETCH_ADD(lse_fetch_adds, lse_add)
CAS(lse_cases, word_load, lse_cas)
EXCHANGE(lse_exchanges, lse_swap)
FETCH_ADD(llsc_fetch_adds, llsc_add)
CAS(llsc_cases, word_load, llsc_cas)
EXCHANGE(llsc_exchanges, llsc_swap)

const struct atomic_code *atomic_code(enum atomic_form form)
{
    static const unsigned long has_lse = 1 << 8; // HWCAP_ATOMICS
    static const struct atomic_code lse = {"lse", lse_fetch_adds, lse_cases, lse_exchanges},
                                    llsc = {"llsc", llsc_fetch_adds, llsc_cases, llsc_exchanges};
    bool there = getauxval(AT_HWCAP) & has_lse;
    if (form == FORM_LSE && !there)
        return NULL;
    return form == FORM_LLSC || !there ? &llsc : &lse;
}
#else
static uint64_t word_cas(_Atomic uint64_t *word, uint64_t expected, uint64_t wanted)
{
    atomic_compare_exchange_strong(word, &expected, wanted);
    return expected;
}

FETCH_ADD(fetch_adds, atomic_fetch_add)
CAS(cases, word_load, word_cas)
EXCHANGE(exchanges, atomic_exchange)

const struct atomic_code *atomic_code(enum atomic_form form)
{
    static const struct atomic_code code = {"the compiler's", fetch_adds, cases, exchanges};
    return form == FORM_AUTO ? &code : NULL;
}
#endif

const char *atomic_code_name(const struct atomic_code *code)
{
    return code->name;
}

// --- Locks ---------------------------------------------------------------------------------------

static void relax(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

// A core that waits for long (0.1 ms) looks at the clock as well: the holder may have lost its CPU.
static void wait_on(struct contended_part *p, unsigned *times)
{
    relax();
    if (++*times % LONG_WAIT == 0 && clock_mono_ns() - p->start_ns >= p->least_ns)
        atomic_store_explicit(&p->shared->stop, true, memory_order_relaxed);
}

static void tas_take(struct contended_part *p)
{
    unsigned times = 0;
    while (atomic_exchange_explicit(&p->shared->word, 1, memory_order_acquire))
        wait_on(p, &times);
}

static void tas_give(struct contended *c, uint32_t number)
{
    (void)number;
    atomic_store_explicit(&c->word, 0, memory_order_release);
}

static void ticket_take(struct contended_part *p)
{
    unsigned times = 0;
    uint64_t ticket = atomic_fetch_add_explicit(&p->shared->word, 1, memory_order_relaxed);
    while (atomic_load_explicit(&p->shared->served, memory_order_acquire) != ticket)
        wait_on(p, &times);
}

// Only the holder writes it.
static void ticket_give(struct contended *c, uint32_t number)
{
    uint64_t ticket = atomic_load_explicit(&c->served, memory_order_relaxed);
    (void)number;
    atomic_store_explicit(&c->served, ticket + 1, memory_order_release);
}

static void mcs_take(struct contended_part *p)
{
    struct contended *c = p->shared;
    uint32_t number = p->number;
    unsigned times = 0;
    struct contended_waiter *me = &c->waiter[number];
    atomic_store_explicit(&me->next, 0, memory_order_relaxed);
    atomic_store_explicit(&me->waits, 1, memory_order_relaxed);
    uint64_t before = atomic_exchange_explicit(&c->word, number + 1, memory_order_acq_rel);
    if (!before)
        return;
    atomic_store_explicit(&c->waiter[before - 1].next, number + 1, memory_order_release);
    while (atomic_load_explicit(&me->waits, memory_order_acquire))
        wait_on(p, &times);
}

static void mcs_give(struct contended *c, uint32_t number)
{
    struct contended_waiter *me = &c->waiter[number];
    uint32_t next = atomic_load_explicit(&me->next, memory_order_acquire);
    uint64_t end = number + 1;
    if (!next && atomic_compare_exchange_strong_explicit(&c->word, &end, 0, memory_order_release,
                                                         memory_order_relaxed))
        return;
    while (!next) { // it is in the queue, and its number follows
        relax();
        next = atomic_load_explicit(&me->next, memory_order_acquire);
    }
    atomic_store_explicit(&c->waiter[next - 1].waits, 0, memory_order_release);
}

// What the lock protects: neither is atomic.
static uint64_t held(struct contended *c, uint32_t number)
{
    uint64_t handed = c->holder != number + 1;
    c->holder = number + 1;
    c->count = c->count + 1;
    return handed;
}

#define LOCK(name, take, give)                                                                     \
    static void name(struct contended_part *p, uint64_t batch, struct contended_done *done)        \
    {                                                                                              \
        struct contended *c = p->shared;                                                           \
        for (uint64_t i = 0; i < batch && !atomic_load_explicit(&c->stop, memory_order_relaxed);   \
             i++) {                                                                                \
            take(p);                                                                               \
            done->handovers += held(c, p->number);                                                 \
            give(c, p->number);                                                                    \
            done->operations++;                                                                    \
        }                                                                                          \
    }

LOCK(hold_tas, tas_take, tas_give)
LOCK(hold_ticket, ticket_take, ticket_give)
LOCK(hold_mcs, mcs_take, mcs_give)

// --- A part --------------------------------------------------------------------------------------

static void operate(struct contended_part *p, uint64_t batch, struct contended_done *done)
{
    struct contended *c = p->shared;
    uint64_t (*const some)(_Atomic uint64_t *, uint64_t) =
        p->operation == OPERATION_FETCH_ADD ? p->code->fetch_add
        : p->operation == OPERATION_CAS     ? p->code->cas
                                            : p->code->exchange;
    for (uint64_t i = 0; i < batch && !atomic_load_explicit(&c->stop, memory_order_relaxed);
         i += STEPS) {
        done->balance += some(&c->word, STEPS);
        done->operations += STEPS;
    }
}

void contended_reset(struct contended *c)
{
    memset((void *)c, 0, sizeof *c);
}

void contended_run(struct contended_part *p, struct contended_done *done)
{
    static void (*const some[AXIS_OPERATIONS])(struct contended_part *, uint64_t,
                                               struct contended_done *) = {
        [OPERATION_FETCH_ADD] = operate,  [OPERATION_CAS] = operate,
        [OPERATION_EXCHANGE] = operate,   [OPERATION_TAS] = hold_tas,
        [OPERATION_TICKET] = hold_ticket, [OPERATION_MCS] = hold_mcs,
    };
    uint64_t batch = p->batch > STEPS ? p->batch : STEPS;
    p->start_ns = clock_mono_ns();
    *done = (struct contended_done){0};
    while (!atomic_load_explicit(&p->shared->stop, memory_order_relaxed)) {
        some[p->operation](p, batch, done);
        if (clock_mono_ns() - p->start_ns >= p->least_ns)
            atomic_store_explicit(&p->shared->stop, true, memory_order_relaxed);
    }
    p->batch = done->operations / LOOKS;
}

bool contended_is_right(const struct contended *c, enum operation operation,
                        const struct contended_done *all)
{
    return operation_is_lock(operation) ? c->count == all->operations : c->word == all->balance;
}
