// SPDX-License-Identifier: Apache-2.0
// One group of perf events a thread, read by one call. Multiplexed counts are scaled by the time
// that the group had the counters.
#include "bench/sampling/counters.h"

#include <linux/perf_event.h>
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD_MISS_OF(cache)                                                                        \
    ((cache) | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static const struct {
    uint32_t type;
    uint64_t config;
} events[COUNTERS] = {
    [COUNTER_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    [COUNTER_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    [COUNTER_MISSES] = {PERF_TYPE_HW_CACHE, LOAD_MISS_OF(PERF_COUNT_HW_CACHE_LL)},
    [COUNTER_WALKS] = {PERF_TYPE_HW_CACHE, LOAD_MISS_OF(PERF_COUNT_HW_CACHE_DTLB)},
};

static int kernel_open(struct perf_event_attr *event, int group)
{
    return (int)syscall(SYS_perf_event_open, event, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

const struct counter_calls counter_kernel = {kernel_open, read};

// An event that the CPU does not have is left out. Without the first there is no group.
int counters_open(struct counters *c, const struct counter_calls *calls)
{
    *c = (struct counters){.calls = calls};
    for (int e = 0; e < COUNTERS; e++) {
        struct perf_event_attr event = {.size = sizeof event,
                                        .type = events[e].type,
                                        .config = events[e].config,
                                        .exclude_kernel = 1,
                                        .exclude_hv = 1,
                                        .read_format = PERF_FORMAT_GROUP |
                                                       PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                       PERF_FORMAT_TOTAL_TIME_RUNNING};
        int fd = calls->open(&event, c->n ? c->fd[0] : -1);
        if (fd < 0 && !c->n)
            return 0;
        if (fd < 0)
            continue;
        c->which[c->n] = (enum counter)e;
        c->fd[c->n++] = fd;
    }
    return c->n;
}

void counters_close(struct counters *c)
{
    while (c->n > 0)
        close(c->fd[--c->n]);
}

// A group that did not always have the CPU's counters is scaled.
struct counts counters_read(const struct counters *c)
{
    struct counts got = {{NAN, NAN, NAN, NAN}};
    struct {
        uint64_t n, enabled, running, value[COUNTERS];
    } group = {0};
    if (!c->n ||
        c->calls->read(c->fd[0], &group, sizeof group) <
            (ssize_t)((3 + (size_t)c->n) * sizeof(uint64_t)) ||
        !group.running)
        return got;
    for (int i = 0; i < c->n; i++)
        got.v[c->which[i]] =
            (double)group.value[i] * ((double)group.enabled / (double)group.running);
    return got;
}

struct counts counts_between(const struct counts *from, const struct counts *to)
{
    struct counts d;
    for (int e = 0; e < COUNTERS; e++)
        d.v[e] = to->v[e] - from->v[e];
    return d;
}

void counted_add(struct counted *to, const struct counts *counts, double hops)
{
    for (int e = 0; e < COUNTERS; e++)
        to->sum.v[e] += counts->v[e];
    to->hops += hops;
}

// A hop is one load. Some virtual machines have counters that stand still.
void counted_cell(const struct counted *c, struct cell *cell)
{
    bool believable = c->hops > 0 && c->sum.v[COUNTER_INSTRUCTIONS] >= c->hops;
    cell->v[CELL_MISSES] = believable ? c->sum.v[COUNTER_MISSES] / c->hops : NAN;
    cell->v[CELL_WALKS] = believable ? c->sum.v[COUNTER_WALKS] / c->hops : NAN;
    cell->v[CELL_CYCLES] = believable ? c->sum.v[COUNTER_CYCLES] / c->hops : NAN;
}

static const double BEYOND = 4, WITHIN = 0.5;                   // of the last-level cache
static const double AGREES_BEYOND = 0.95, AGREES_WITHIN = 0.05; // misses a hop

// Beyond the cache, it holds at most its own size of the working set.
enum proof proof_of(double misses, uint64_t bytes, uint64_t llc_bytes)
{
    double ratio = llc_bytes ? (double)bytes / (double)llc_bytes : 0;
    if (!isfinite(misses) || ratio <= 0 || (ratio > WITHIN && ratio < BEYOND))
        return PROOF_NONE;
    if (ratio <= WITHIN)
        return misses <= AGREES_WITHIN ? PROOF_CONFIRMED : PROOF_MISSED;
    return misses >= AGREES_BEYOND * (1 - 1 / ratio) ? PROOF_CONFIRMED : PROOF_CACHED;
}
