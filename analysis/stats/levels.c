// SPDX-License-Identifier: Apache-2.0
// A greedy search. Spikes are removed from the curve. The best step is added and all steps are
// moved to where they fit best, until another step explains no more than noise. For given steps the
// latencies follow by least squares.
#include "analysis/stats/levels.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum {
    STEPS_MAX = LEVELS_MAX - 1,
    COLUMNS = LEVELS_MAX,
    REFINE_STEPS = 3,  // a capacity moves by so many points at a time
    REFINE_ROUNDS = 3, // over all capacities
};

static const double NOISE = 0.03;  // of a point: better is not demanded of a curve
static const double APART = 2.5;   // capacities
static const double BEYOND = 1.2;  // the last level may take so many times the last point
static const double OUTLIER = 0.3; // of a logarithm: farther off is as bad as this

// Shares of the loads of an endless random cycle that a cache answers; `over`: working set over
// capacity.

// A set of some lines gets a random number of pages, and is missed wholly when they are too many.
static double hits_of_sets(double over, int lines)
{
    double term = exp(-lines * over), sum = 0;
    for (int k = 0; k < lines; k++) {
        sum += term;
        term *= lines * over / (k + 1);
    }
    return sum;
}

// A line is replaced by chance: it stays with exp(-misses on the way round over lines).
static double hits_of_random(double over, int rounds)
{
    double hits = 0;
    for (int i = 0; over > 1 && i < rounds; i++)
        hits = exp((hits - 1) * over);
    return over > 1 ? hits : 1;
}

// What fits stays, the rest is always missed.
static double hits_of_rest(double over, int power)
{
    return over > 1 ? pow(over, -power) : 1;
}

static const struct {
    double (*hits)(double over, int number);
    int number;
} forms[] = {{hits_of_sets, 4},     {hits_of_sets, 8}, {hits_of_sets, 16}, {hits_of_sets, 64},
             {hits_of_random, 100}, {hits_of_rest, 1}, {hits_of_rest, 12}};
enum { FORMS = COUNT_OF(forms) };

struct step {
    int at, form; // point that is the capacity
};

struct fit {
    int n; // steps, in order of capacity
    struct step steps[STEPS_MAX];
    double rise[COLUMNS]; // ns: of the first level, then of each step
    double error;         // mean square of logarithms
};

struct data {
    int n;
    double *x, *y; // owned
    double *share; // [FORMS][n][n]: of misses of a capacity at a point; owned
};

static const double *levels_share(const struct data *d, struct step s)
{
    return d->share + ((size_t)s.form * (size_t)d->n + (size_t)s.at) * (size_t)d->n;
}

// --- The points --------------------------------------------------------------------------------

static double median3(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

// What disturbs a measurement makes it longer, and a larger working set is never faster: a point
// above a later one is the later one. A single point that is too low is its neighbours'.
static void levels_smooth(struct data *d)
{
    double before = d->y[0];
    for (int i = 1; i + 1 < d->n; i++) {
        double now = d->y[i];
        d->y[i] = median3(before, now, d->y[i + 1]);
        before = now;
    }
    d->y[d->n - 1] = fmin(d->y[d->n - 1], median3(d->y[d->n - 1], d->y[d->n - 2], d->y[d->n - 3]));
    for (int i = d->n - 2; i >= 0; i--)
        d->y[i] = fmin(d->y[i], d->y[i + 1]);
}

static void data_fini(struct data *d)
{
    free(d->x);
    free(d->y);
    free(d->share);
}

static int data_init(struct data *d, const int64_t *bytes, const double *ns, int n, struct err *err)
{
    size_t room = (size_t)n + 1;
    d->x = calloc(room, sizeof *d->x);
    d->y = calloc(room, sizeof *d->y);
    d->share = calloc(FORMS * room * room, sizeof *d->share);
    if (!d->x || !d->y || !d->share)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the curve");
    for (int i = 0; i < n; i++)
        if (ns[i] > 0 && isfinite(ns[i])) {
            d->x[d->n] = (double)bytes[i];
            d->y[d->n++] = ns[i];
        }
    if (d->n < LEVELS_POINTS_MIN)
        return 0;
    levels_smooth(d);
    double *to = d->share;
    for (int form = 0; form < FORMS; form++)
        for (int at = 0; at < d->n; at++)
            for (int i = 0; i < d->n; i++)
                *to++ = 1 - forms[form].hits(d->x[i] / d->x[at], forms[form].number);
    return 0;
}

// --- The fit of given steps --------------------------------------------------------------------

// Gauss, of a symmetric positive matrix beside its right-hand side; false: it is singular.
static bool levels_solve(double a[COLUMNS][COLUMNS + 1], int n, double *out)
{
    for (int k = 0; k < n; k++) {
        if (!(a[k][k] > 1e-12))
            return false;
        for (int r = k + 1; r < n; r++) {
            double by = a[r][k] / a[k][k];
            for (int c = k; c <= n; c++)
                a[r][c] -= by * a[k][c];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        out[k] = a[k][n];
        for (int c = k + 1; c < n; c++)
            out[k] -= a[k][c] * out[c];
        out[k] /= a[k][k];
    }
    return true;
}

// Least squares of the relative errors.
static bool find_rises(const struct data *d, struct fit *f)
{
    double a[COLUMNS][COLUMNS + 1] = {{0}};
    int n = f->n + 1;
    for (int i = 0; i < d->n; i++) {
        double row[COLUMNS] = {1 / d->y[i]};
        for (int k = 0; k < f->n; k++)
            row[k + 1] = levels_share(d, f->steps[k])[i] / d->y[i];
        for (int r = 0; r < n; r++) {
            for (int c = 0; c < n; c++)
                a[r][c] += row[r] * row[c];
            a[r][n] += row[r];
        }
    }
    return levels_solve(a, n, f->rise);
}

// Levels that are too close to each other, in time or in size, are none.
static bool levels_sensible(const struct data *d, const struct fit *f)
{
    double level = f->rise[0];
    for (int k = 0; k < f->n; k++) {
        double next = level + f->rise[k + 1];
        if (!(level > 0) || next < LEVELS_FACTOR * level)
            return false;
        if (k && d->x[f->steps[k].at] < APART * d->x[f->steps[k - 1].at])
            return false;
        level = next;
    }
    return level > 0 && level < BEYOND * d->y[d->n - 1];
}

static double levels_error(const struct data *d, const struct fit *f)
{
    double sum = 0;
    for (int i = 0; i < d->n; i++) {
        double y = f->rise[0];
        for (int k = 0; k < f->n; k++)
            y += f->rise[k + 1] * levels_share(d, f->steps[k])[i];
        double off = fmin(fabs(log(fmax(y, 1e-9) / d->y[i])), OUTLIER);
        sum += off * off;
    }
    return sum / d->n;
}

// Sets error; INFINITY: there are no such levels.
static void levels_judge(const struct data *d, struct fit *f)
{
    f->error = find_rises(d, f) && levels_sensible(d, f) ? levels_error(d, f) : INFINITY;
}

// --- The search --------------------------------------------------------------------------------

static struct fit with_step(const struct fit *f, struct step s)
{
    struct fit got = *f;
    int k = got.n++;
    for (; k > 0 && got.steps[k - 1].at > s.at; k--)
        got.steps[k] = got.steps[k - 1];
    got.steps[k] = s;
    return got;
}

static struct fit without_step(const struct fit *f, int k)
{
    struct fit got = *f;
    got.n--;
    for (; k < got.n; k++)
        got.steps[k] = got.steps[k + 1];
    return got;
}

// The best step to add to `rest` with a capacity from point `from` to `to`.
static void try_steps(const struct data *d, const struct fit *rest, int from, int to,
                      struct fit *best)
{
    for (int at = from < 0 ? 0 : from; at <= to && at < d->n - 1; at++)
        for (int form = 0; form < FORMS; form++) {
            struct fit f = with_step(rest, (struct step){at, form});
            levels_judge(d, &f);
            if (f.error < best->error)
                *best = f;
        }
}

static void levels_refine(const struct data *d, struct fit *best)
{
    for (int round = 0; round < REFINE_ROUNDS; round++) {
        double before = best->error;
        for (int k = 0; k < best->n; k++) {
            int at = best->steps[k].at;
            struct fit rest = without_step(best, k);
            try_steps(d, &rest, at - REFINE_STEPS, at + REFINE_STEPS, best);
        }
        if (best->error >= before)
            break;
    }
}

// Bayes' criterion with a floor of noise: a step costs three parameters.
static double levels_score(const struct data *d, const struct fit *f)
{
    return d->n * log(f->error + NOISE * NOISE) + 3 * f->n * log(d->n);
}

// A step may have become needless by those that were added later.
static void levels_prune(const struct data *d, struct fit *best)
{
    for (int k = best->n - 1; k >= 0; k--) {
        struct fit rest = without_step(best, k);
        levels_judge(d, &rest);
        levels_refine(d, &rest);
        if (levels_score(d, &rest) <= levels_score(d, best))
            *best = rest;
    }
}

static struct fit levels_search(const struct data *d)
{
    struct fit best = {0};
    levels_judge(d, &best);
    while (best.n < STEPS_MAX) {
        struct fit next = best;
        next.error = INFINITY;
        try_steps(d, &best, 0, d->n - 1, &next);
        if (!isfinite(next.error))
            break;
        levels_refine(d, &next);
        if (levels_score(d, &next) >= levels_score(d, &best))
            break;
        best = next;
    }
    levels_prune(d, &best);
    return best;
}

// Forms differ in where they see the capacity: the mean of all that explain the curve about as
// well, by Bayes' weights.
static double capacity_of(const struct data *d, const struct fit *best, int k)
{
    struct fit rest = without_step(best, k);
    double sum = 0, weights = 0, variance = best->error + NOISE * NOISE;
    for (int i = -REFINE_STEPS; i <= REFINE_STEPS; i++)
        for (int form = 0; form < FORMS; form++) {
            int at = best->steps[k].at + i;
            if (at < 0 || at >= d->n - 1)
                continue;
            struct fit f = with_step(&rest, (struct step){at, form});
            levels_judge(d, &f);
            double weight = exp(-d->n * (f.error - best->error) / (2 * variance));
            sum += weight * log(d->x[at]);
            weights += weight;
        }
    return exp(sum / weights);
}

int levels_find(struct levels *out, const int64_t *bytes, const double *ns, int n, struct err *err)
{
    struct data d CLEANUP(data_fini) = {0};
    *out = (struct levels){0};
    if (data_init(&d, bytes, ns, n, err) < 0)
        return -1;
    if (d.n < LEVELS_POINTS_MIN)
        return 0;
    struct fit f = levels_search(&d);
    double level = 0;
    for (int k = 0; k <= f.n; k++) {
        level += f.rise[k];
        out->list[out->n++] =
            (struct level){.ns = level, .bytes = k < f.n ? llround(capacity_of(&d, &f, k)) : 0};
    }
    return 0;
}
