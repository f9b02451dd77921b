// SPDX-License-Identifier: Apache-2.0
// A search divides the series at the best cut, tests it, and continues in both parts; a second
// round tests every cut again between its neighbours. A limit on shuffles bounds its time.
#include "analysis/stats/change_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/distributions.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"

// 999 shuffles resolve p = 0.001. A test stops as soon as it can no longer become significant.
// What a search may cost: 25 tests of all values (9 changes among 2,000 take 6), half of it for the
// newer half if that does not do, and so on: 100 million moves for 2,000 values in all, 0.4 s.
enum { SHUFFLES = 999, SEED = 20260102, TESTS_MAX = 25 };

struct search {
    const double *v;
    int n;
    const struct series_options *options;
    double *work; // n
    double *rank; // n
    int *order;   // n
    char *cut;    // n + 1: a segment begins here
    int64_t left; // values that may still be moved; below 0 the search has failed
};

struct best {
    int at;
    double score;
};

static int change_points_by_value(const void *a, const void *b, void *values)
{
    const double *v = values;
    double x = v[*(const int *)a], y = v[*(const int *)b];
    return (x > y) - (x < y);
}

// Mid-ranks of v[lo…hi), centred on 0, into rank[0…).
static void rank_segment(struct search *s, int lo, int hi)
{
    int n = hi - lo;
    memcpy(s->work, s->v + lo, n * sizeof *s->work);
    for (int i = 0; i < n; i++)
        s->order[i] = i;
    qsort_r(s->order, n, sizeof *s->order, change_points_by_value, s->work);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && s->work[s->order[j]] <= s->work[s->order[i]];)
            j++;
        for (int k = i; k < j; k++)
            s->rank[s->order[k]] = (i + j - n) / 2.0;
    }
}

// Best cut with at least `least` points on each side. The sum of the first k centred ranks has a
// variance in proportion to k (n - k).
static struct best best_cut(const double *rank, int n, int least)
{
    struct best b = {.at = -1, .score = -1};
    double sum = 0;
    for (int k = 1; k <= n - least; k++) {
        sum += rank[k - 1];
        double score = sum * sum / ((double)k * (n - k));
        if (k >= least && score > b.score)
            b = (struct best){.at = k, .score = score};
    }
    return b;
}

// Best score of the ranks in a new order; work[k] = 1 / (k (n - k)). Shuffling and summing share
// one pass: this is where all the time goes.
static double shuffled_score(struct search *s, int n, unsigned long long *seed)
{
    double sum = 0, best = 0;
    int least = s->options->segment_min;
    for (int k = 1; k <= n - least; k++) {
        int j = k - 1 + dist_below(seed, n - k + 1);
        double x = s->rank[j];
        s->rank[j] = s->rank[k - 1];
        s->rank[k - 1] = x;
        sum += x;
        double score = sum * sum * s->work[k];
        if (k >= least && score > best)
            best = score;
    }
    return best;
}

static double permuted_p(struct search *s, int n, double score)
{
    unsigned long long seed = SEED;
    int above = 0;
    for (int k = 1; k < n; k++)
        s->work[k] = 1 / ((double)k * (n - k));
    for (int i = 0; i < SHUFFLES; i++) {
        s->left -= n;
        if (s->left < 0)
            return 1;
        above += shuffled_score(s, n, &seed) >= score * (1 - 1e-12);
        if (above + 1 > s->options->level * (SHUFFLES + 1))
            return 1;
    }
    return (above + 1.0) / (SHUFFLES + 1);
}

static double median_of(struct search *s, int lo, int hi)
{
    memcpy(s->work, s->v + lo, (hi - lo) * sizeof *s->work);
    return middle_of(s->work, hi - lo);
}

// The best cut of [lo, hi), absolute, or -1.
static int test_segment(struct search *s, int lo, int hi, struct change_point *out)
{
    int n = hi - lo;
    if (n < 2 * s->options->segment_min || s->left < 0)
        return -1;
    rank_segment(s, lo, hi);
    struct best b = best_cut(s->rank, n, s->options->segment_min);
    double p = permuted_p(s, n, b.score);
    if (p > s->options->level)
        return -1;
    *out = (struct change_point){.at = lo + b.at, .p = p};
    out->before = median_of(s, lo, out->at);
    out->after = median_of(s, out->at, hi);
    out->percent = 100 * (out->after - out->before) / (out->before + s->options->one);
    return out->at;
}

// Depth is bounded: each cut leaves two shorter segments, the shorter one is done by recursion.
static void divide(struct search *s, int lo, int hi)
{
    struct change_point found;
    for (;;) {
        int at = test_segment(s, lo, hi, &found);
        if (at < 0)
            return;
        s->cut[at] = 1;
        if (at - lo < hi - at) {
            divide(s, lo, at);
            lo = at;
        } else {
            divide(s, at, hi);
            hi = at;
        }
    }
}

static int next_cut(const struct search *s, int from)
{
    while (from < s->n && !s->cut[from])
        from++;
    return from;
}

// Every cut again, between its neighbours: it may move to its best place, or go.
static int confirm(struct search *s, struct change_point *out)
{
    int n = 0, lo = 0;
    for (int at = next_cut(s, 1); at < s->n; at = next_cut(s, at + 1)) {
        struct change_point found;
        int hi = next_cut(s, at + 1);
        s->cut[at] = 0;
        int better = test_segment(s, lo, hi, &found);
        if (better >= 0 && fabs(found.percent) >= s->options->threshold_percent) {
            s->cut[better] = 1;
            out[n++] = found;
            lo = better;
            at = better > at ? better : at;
        }
    }
    return n;
}

static int change_points_check(const double *v, int n, struct err *err)
{
    if (n < 0 || n > SERIES_POINTS_MAX)
        return err_set(err, ERR_INVALID, "series", "must have at most %d points, got %d",
                       SERIES_POINTS_MAX, n);
    for (int i = 0; i < n; i++)
        if (!(v[i] > 0) || isinf(v[i]))
            return err_set(err, ERR_INVALID, "series", "point %d must be a number above 0", i);
    return 0;
}

// Changes of the newest `n` values into `out`; -1 where there are too many to be found.
static int search(struct search *s, const double *v, int n, struct change_point *out)
{
    s->v = v;
    s->n = n;
    s->left = (int64_t)TESTS_MAX * SHUFFLES * n;
    memset(s->cut, 0, (size_t)n + 1);
    divide(s, 0, n);
    int found = confirm(s, out);
    return s->left < 0 ? -1 : found;
}

// Positions in all values; of too many changes the newest stay.
static int keep_newest(struct change_point *list, int n, int *from)
{
    int more = n > SERIES_CHANGES_MAX ? n - SERIES_CHANGES_MAX : 0;
    for (int i = 0; i < n; i++)
        list[i].at += *from;
    if (more) {
        *from = list[more - 1].at;
        memmove(list, list + more, SERIES_CHANGES_MAX * sizeof *list);
    }
    return n - more;
}

int series_changes(struct change_point **points, int *searched, const double *v, int n,
                   const struct series_options *options, struct err *err)
{
    if (change_points_check(v, n, err) < 0)
        return -1;
    CLEANUP_MEM double *work = calloc(n + 1, sizeof *work);
    CLEANUP_MEM double *rank = calloc(n + 1, sizeof *rank);
    CLEANUP_MEM int *order = calloc(n + 1, sizeof *order);
    CLEANUP_MEM char *cut = calloc(n + 1, 1);
    CLEANUP_MEM struct change_point *found = calloc(n / options->segment_min + 1, sizeof *found);
    if (work == NULL || rank == NULL || order == NULL || cut == NULL || found == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a series of %d points", n);
    struct search s = {.options = options, .work = work, .rank = rank, .order = order, .cut = cut};
    int from = 0, count;
    while ((count = search(&s, v + from, n - from, found)) < 0)
        from += (n - from + 1) / 2;
    count = keep_newest(found, count, &from);
    *searched = n - from;
    *points = count > 0 ? steal_ptr(&found) : NULL;
    return count;
}
