// SPDX-License-Identifier: Apache-2.0
// The error of a node's median is part of the scale of its class, as far as its runs scatter as
// those of the others do. What they scatter more is added, and what they may scatter more by what
// the class's noisy nodes do.
#include "analysis/peers/tail.h"

#include <math.h>

#include "analysis/stats/distributions.h"

#define NORMAL_FREEDOM 1000 // from here on Student's t is the normal distribution,
#define NORMAL_REACH 2.5    // up to so many standard deviations, within 2 %
#define ORDINARY_P 0.1      // from here on an error more makes no difference
#define CHANCE_PART 0.05    // of a p makes no difference
#define REACH_MOST 20.0     // log: no limit is farther away

enum { REACH_ROUNDS = 30 };

static double upper_tail(double z, double df)
{
    if (df >= NORMAL_FREEDOM && fabs(z) < NORMAL_REACH)
        return erfc(z * M_SQRT1_2) / 2;
    return dist_t_upper(z, df);
}

// Of a value that is one of those whose spread it is, so far above their centre.
static double tail_member(const struct spread *s, double above)
{
    return upper_tail(above / s->scale, spread_member_freedom(s->n));
}

struct tail_error tail_error_of(const struct newest_scatter *own, bool change)
{
    double each = newest_error(own->runs);
    if (change)
        each = hypot(each, newest_error(own->before));
    return (struct tail_error){own->share > 0 ? sqrt(own->excess) * each : 0, scatter_freedom(own),
                               own->chance, own->noisy * each};
}

// A tail with a further error in it, of so many degrees of freedom (Satterthwaite, 1946).
static double tail_with_error(const struct spread *s, double above, double error, double freedom)
{
    double wide = hypot(s->scale, error), part = error * error / wide / wide;
    double df = 1 / ((1 - part) * (1 - part) / spread_member_freedom(s->n) + part * part / freedom);
    return upper_tail(above / wide, df);
}

// As far as a node may be noisy though its runs do not show it.
static double tail_by_chance(const struct spread *s, double above, double p,
                             const struct tail_error *e)
{
    if (e->chance <= p * CHANCE_PART)
        return p;
    double noisy = tail_with_error(s, above, e->noisy, NORMAL_FREEDOM);
    return p + e->chance * fmax(0, noisy - p);
}

double tail_value(const struct spread *s, double above, const struct newest_scatter *own,
                  bool change)
{
    double p = tail_member(s, above), wide = p;
    if (!own || !(own->share + own->chance > 0) || p > ORDINARY_P)
        return p;
    struct tail_error e = tail_error_of(own, change);
    if (own->share > 0)
        wide = tail_with_error(s, above, e.own, e.freedom);
    return fmax(p + own->share * fmax(0, wide - p), tail_by_chance(s, above, p, &e));
}

double tail_reach(const struct spread *s, double tail, const struct newest_scatter *own,
                  bool change)
{
    double low = dist_t_quantile(1 - tail, spread_member_freedom(s->n)) * s->scale, high = low;
    if (tail_value(s, low, own, change) <= tail)
        return low;
    while (tail_value(s, high, own, change) > tail && high < REACH_MOST)
        high *= 2;
    for (int i = 0; i < REACH_ROUNDS; i++) {
        double at = (low + high) / 2;
        if (tail_value(s, at, own, change) > tail)
            low = at;
        else
            high = at;
    }
    return high;
}

double tail_mean(const struct spread *s, double above, const struct tail_error *e)
{
    double p = tail_member(s, above);
    if (p > ORDINARY_P)
        return p;
    double wide = e->own > 0 ? tail_with_error(s, above, e->own, e->freedom) : p;
    return fmax(fmax(p, wide), tail_by_chance(s, above, p, e));
}
