// SPDX-License-Identifier: Apache-2.0
// With one width for both, the boundary between two kinds is a single value. So kinds are stretches
// of the sorted values, and the search is a recursion over stretches. The fit works on 512 groups
// of neighbouring values, each with its mean and its scatter, so its time does not grow with nodes.
#include "analysis/peers/kinds.h"

#include <math.h>

#define TRIMMED 0.02    // at each end: single slow nodes are no kind
#define TAIL_WIDTHS 2.5 // a kind of its own is not so much wider than both together
#define BIC_MARGIN 10.0 // in 2 log likelihood: strong evidence
enum { GROUPS = 512, ROUNDS = 60, FIT_MIN = 2 * KIND_NODES_MIN };

struct group {
    double n, mean, scatter; // sum of squares around the mean
};

struct fit {
    double a, b, var; // means and the one variance
    double share;     // of the lower
};

static int make_groups(struct group *g, const double *v, int n)
{
    int groups = n < GROUPS ? n : GROUPS;
    for (int i = 0; i < groups; i++) {
        int from = (int)((long long)i * n / groups), to = (int)((long long)(i + 1) * n / groups);
        double sum = 0, scatter = 0;
        for (int k = from; k < to; k++)
            sum += v[k];
        for (int k = from; k < to; k++)
            scatter += (v[k] - sum / (to - from)) * (v[k] - sum / (to - from));
        g[i] = (struct group){to - from, sum / (to - from), scatter};
    }
    return groups;
}

static double scatter_of(const double *v, int n, double mean)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return sum;
}

// The cut with the largest variance between its sides, each of at least `least` values.
static struct fit best_split(const double *v, int n, int least)
{
    double total = 0, sum = 0, best = -1;
    struct fit f = {0};
    int at = least;
    for (int i = 0; i < n; i++)
        total += v[i];
    for (int k = 1; k <= n - least; k++) {
        sum += v[k - 1];
        double a = sum / k, b = (total - sum) / (n - k), between = (a - b) * (a - b) * k * (n - k);
        if (k >= least && between > best) {
            best = between;
            at = k;
            f.a = a;
            f.b = b;
        }
    }
    f.share = (double)at / n;
    f.var = (scatter_of(v, at, f.a) + scatter_of(v + at, n - at, f.b)) / n + 1e-12;
    return f;
}

static double log_density(double x, double mean, double share, double var)
{
    return log(share) - (x - mean) * (x - mean) / 2 / var;
}

// One round of expectation and maximisation.
static void improve(struct fit *f, const struct group *g, int groups, double n)
{
    double in_a = 0, sum_a = 0, sum_b = 0, scatter = 0, odds = log(f->share / (1 - f->share));
    double weight[GROUPS];
    for (int i = 0; i < groups; i++) {
        double x = g[i].mean, far_a = x - f->a, far_b = x - f->b;
        double log_b = (far_a * far_a - far_b * far_b) / 2 / f->var - odds;
        weight[i] = 1 / (1 + exp(fmin(fmax(log_b, -500), 500)));
        in_a += g[i].n * weight[i];
        sum_a += g[i].n * weight[i] * x;
        sum_b += g[i].n * (1 - weight[i]) * x;
    }
    f->share = fmin(fmax(in_a / n, 1e-3), 1 - 1e-3);
    f->a = in_a > 0 ? sum_a / in_a : f->a;
    f->b = n - in_a > 0 ? sum_b / (n - in_a) : f->b;
    for (int i = 0; i < groups; i++) {
        double far_a = g[i].mean - f->a, far_b = g[i].mean - f->b;
        scatter +=
            g[i].n * (weight[i] * far_a * far_a + (1 - weight[i]) * far_b * far_b) + g[i].scatter;
    }
    f->var = scatter / n + 1e-12;
}

// Twice the log of how much likelier two are than one.
static double evidence(const struct fit *f, const struct group *g, int groups, const double *v,
                       int n)
{
    double two = -n / 2.0 * log(f->var), mean = 0;
    for (int i = 0; i < groups; i++) {
        double a = log_density(g[i].mean, f->a, f->share, f->var);
        double b = log_density(g[i].mean, f->b, 1 - f->share, f->var);
        double most = fmax(a, b);
        two += g[i].n * (most + log(exp(a - most) + exp(b - most))) - g[i].scatter / 2 / f->var;
        mean += g[i].n * g[i].mean / n;
    }
    return 2 * (two + n / 2.0 * log(scatter_of(v, n, mean) / n + 1e-300) + n / 2.0);
}

// Where the upper of two kinds begins in v; 0: it is one kind.
static int split_at(const double *v, int n, double least, double grain)
{
    struct group g[GROUPS];
    int cut = (int)(TRIMMED * n), count = n - 2 * cut;
    int few = (int)fmax(KIND_NODES_MIN, KIND_SHARE_MIN * n);
    const double *core = v + cut;
    if (n < FIT_MIN || count < 2 * few || core[count - 1] - core[0] < least)
        return 0;
    struct fit f = best_split(core, count, few);
    int groups = make_groups(g, core, count);
    for (int i = 0; i < ROUNDS; i++)
        improve(&f, g, groups, count);
    double width = fmax(sqrt(f.var), grain), apart = f.b - f.a;
    if (!(apart >= KIND_WIDTHS_MIN * width) || apart < least ||
        evidence(&f, g, groups, core, count) < BIC_MARGIN + 2 * log(n))
        return 0;
    double boundary = (f.a + f.b) / 2 + f.var / apart * log(f.share / (1 - f.share));
    int at = 0;
    while (at < n && v[at] < boundary)
        at++;
    if (at < few || n - at < few ||
        spread_of(v, at, 0).scale > TAIL_WIDTHS * fmax(width, KIND_SCALE_MIN) ||
        spread_of(v + at, n - at, 0).scale > TAIL_WIDTHS * fmax(width, KIND_SCALE_MIN))
        return 0;
    return at;
}

static void add_kind(struct kinds *out, const double *sorted, int begin, int end, int n,
                     double grain)
{
    double below = end < n ? (sorted[end - 1] + sorted[end]) / 2 : INFINITY;
    out->list[out->n++] = (struct kind){
        begin, end, below, spread_of(sorted + begin, end - begin, fmax(grain, KIND_SCALE_MIN))};
}

// `room`: kinds that this stretch may become.
static void split_stretch(struct kinds *out, const double *sorted, int begin, int end, int n,
                          double least, double grain, int room)
{
    int at = room > 1 ? split_at(sorted + begin, end - begin, least, grain) : 0;
    if (at == 0) {
        add_kind(out, sorted, begin, end, n, grain);
        return;
    }
    int before = out->n;
    split_stretch(out, sorted, begin, begin + at, n, least, grain, room - 1);
    split_stretch(out, sorted, begin + at, end, n, least, grain, room - (out->n - before));
}

void kinds_find(struct kinds *out, const double *sorted, int n, double least, double grain)
{
    out->n = 0;
    split_stretch(out, sorted, 0, n, n, least, grain, KINDS_MAX);
}

void kinds_one(struct kinds *out, const double *sorted, int n, double grain)
{
    out->n = 0;
    add_kind(out, sorted, 0, n, n, grain);
}

int kinds_of(const struct kinds *k, double value)
{
    int i = 0;
    while (i < k->n - 1 && value >= k->list[i].below)
        i++;
    return i;
}

int kinds_largest(const struct kinds *k)
{
    int best = 0;
    for (int i = 1; i < k->n; i++)
        if (k->list[i].end - k->list[i].begin > k->list[best].end - k->list[best].begin)
            best = i;
    return best;
}
