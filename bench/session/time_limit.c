// SPDX-License-Identifier: Apache-2.0
// The next step takes as long as the longest one, or as its share of the work says.
#include "bench/session/time_limit.h"

#include <math.h>

#include "model/estimate.h"

// Left free of a budget: what ranks took to start, at most a share of it. It may be passed by a
// step, while a run is killed at its time limit (estimate_free_s()).
static const double FREE_MOST = 0.25;
static const double START_S = 0.2, START_RANK_S = 0.01;

static uint64_t limit_end(uint64_t started_ns, double limit_s, double keep_s)
{
    return limit_s > 0 ? started_ns + (uint64_t)(1e9 * (limit_s - keep_s)) : 0;
}

void time_limit_set(struct time_limit *t, uint64_t started_ns, double limit_s, double budget_s,
                    int ranks)
{
    t->end_ns = limit_end(started_ns, limit_s, estimate_free_s(limit_s, ranks));
    t->budget_ns =
        limit_end(started_ns, budget_s, fmin(START_S + START_RANK_S * ranks, FREE_MOST * budget_s));
    time_limit_begin(t, started_ns);
}

void time_limit_begin(struct time_limit *t, uint64_t now_ns)
{
    t->begun_ns = t->step_ns = now_ns;
}

static double next_ns(const struct time_limit *t, double share)
{
    double by_share = share > 0 ? (double)(t->step_ns - t->begun_ns) * t->next_share / share : 0;
    return fmax(t->longest_ns, by_share);
}

static bool would_pass(const struct time_limit *t, uint64_t end_ns, double share)
{
    return end_ns && (double)t->step_ns + next_ns(t, share) > (double)end_ns;
}

bool time_limit_step(struct time_limit *t, uint64_t now_ns, double share)
{
    static const double rounding = 1e-9;
    double done = share * (double)t->repetitions + rounding;
    t->longest_ns = fmax(t->longest_ns, (double)(now_ns - t->step_ns));
    t->step_ns = now_ns;
    if (share >= 1)
        return false;
    if (done >= 1 && would_pass(t, t->budget_ns, share)) {
        time_limit_left_out(t, (int64_t)done, t->repetitions);
        return true;
    }
    return would_pass(t, t->end_ns, share);
}

static double seconds_until(uint64_t end_ns, uint64_t now_ns)
{
    return end_ns > now_ns ? (double)(end_ns - now_ns) / 1e9 : 0;
}

double time_limit_room_s(const struct time_limit *t, uint64_t now_ns)
{
    return t->end_ns ? seconds_until(t->end_ns, now_ns) : INFINITY;
}

double time_limit_left_s(const struct time_limit *t, uint64_t now_ns, double share)
{
    double took = (double)(now_ns - t->begun_ns) / 1e9;
    double all = share > 0 ? took / share : t->expected_s;
    if (all <= 0)
        return -1;
    double left = fmin(fmax(0, all - took), time_limit_room_s(t, now_ns));
    if (!t->budget_ns || !t->repetitions)
        return left;
    double first = all / (double)t->repetitions - took; // until no cell is without a repetition
    return fmin(left, fmax(first, seconds_until(t->budget_ns, now_ns)));
}

bool time_limit_is_budget(const struct time_limit *t)
{
    return t->budget_ns && (!t->end_ns || t->budget_ns < t->end_ns);
}

bool time_limit_behind(const struct time_limit *t, double share)
{
    const uint64_t end_ns = time_limit_is_budget(t) ? t->budget_ns : t->end_ns;
    double all = (double)end_ns - (double)t->begun_ns;
    return end_ns && (double)(t->step_ns - t->begun_ns) + t->longest_ns > share * fmax(0, all);
}

void time_limit_left_out(struct time_limit *t, int64_t kept, int64_t wanted)
{
    if (t->wanted && (double)kept * (double)t->wanted >= (double)t->kept * (double)wanted)
        return;
    t->kept = kept;
    t->wanted = wanted;
}
