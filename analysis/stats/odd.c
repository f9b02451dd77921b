// SPDX-License-Identifier: Apache-2.0
// A unit's reference in a visit is the median of the others of its kind, so that two units can be
// compared too. A unit of several items is as slow as their median, of an even number as the faster
// of the middle two: half of its items do not make a unit slow.
#include "analysis/stats/odd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/median.h"
#include "analysis/stats/stats.h"
#include "base/cleanup.h"

enum { PEERS_FOR_SPREAD = 3 }; // fewer do not show what units of a kind differ by

static const double SPREADS = 4.5;         // of the peers: one of 100,000 is beyond
static const double FEW_PEERS_TIMES = 2;   // the least deviation, where the spread is not known
static const double CANDIDATE_SHARE = 0.6; // of the limit
static const double DISTURBED = 0.25;      // of the visits, that chance may disturb
static const double ALARMS = 0.01;         // of the runs

int odd_table_init(struct odd_table *t, int items, int room, struct err *err)
{
    size_t cells = (size_t)items * (size_t)room;
    *t = (struct odd_table){.items = items, .room = room};
    t->logs = malloc((cells + 1) * sizeof *t->logs);
    if (!t->logs)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d x %d values", items, room);
    for (size_t i = 0; i < cells; i++)
        t->logs[i] = NAN;
    return 0;
}

void odd_table_fini(struct odd_table *t)
{
    free(t->logs);
    *t = (struct odd_table){0};
}

void odd_table_set(struct odd_table *t, int item, int visit, double value)
{
    t->logs[(size_t)item * t->room + visit] = value > 0 ? log(value) : NAN;
    t->visits = visit >= t->visits ? visit + 1 : t->visits;
}

int odd_table_copy(struct odd_table *to, const struct odd_table *from, struct err *err)
{
    if (odd_table_init(to, from->items, from->room, err) < 0)
        return -1;
    to->visits = from->visits;
    to->broad = from->broad;
    memcpy(to->logs, from->logs, (size_t)from->items * from->room * sizeof *to->logs);
    return 0;
}

void odd_units_fini(struct odd_units *u)
{
    free(u->list);
    free(u->ratios);
    *u = (struct odd_units){0};
}

// --- Units ---------------------------------------------------------------------------------------

void odd_lists_fini(struct odd_lists *l)
{
    free(l->begin);
    free(l->members);
}

int odd_lists_make(struct odd_lists *l, const int *of, int items, int n, struct err *err)
{
    l->n = n;
    l->begin = calloc((size_t)n + 2, sizeof *l->begin);
    l->members = calloc((size_t)items + 1, sizeof *l->members);
    if (!l->begin || !l->members)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d units", n);
    int *end = l->begin + 1; // while filling, the list's end
    for (int i = 0; i < items; i++)
        if (!of || of[i] >= 0)
            l->begin[(of ? of[i] : i) + 1]++;
    for (int k = 0, sum = 0; k < n; k++) {
        int size = l->begin[k + 1];
        end[k] = sum;
        sum += size;
    }
    for (int i = 0; i < items; i++)
        if (!of || of[i] >= 0)
            l->members[end[of ? of[i] : i]++] = i;
    return 0;
}

// The faster of the middle two. Sorts; NaN if there are none.
static double odd_lower_median(double *v, int n)
{
    stats_sort(v, n);
    return n ? v[(n - 1) / 2] : NAN;
}

// What the units are at each visit, into u->ratios.
static void odd_fill_units(struct odd_units *u, const struct odd_table *t,
                           const struct odd_lists *items, double *scratch)
{
    for (int k = 0; k < u->n; k++)
        for (int v = 0; v < t->visits; v++) {
            int n = 0;
            for (int i = items->begin[k]; i < items->begin[k + 1]; i++) {
                double x = t->logs[(size_t)items->members[i] * t->room + v];
                if (isfinite(x))
                    scratch[n++] = x;
            }
            u->ratios[(size_t)k * t->room + v] = odd_lower_median(scratch, n);
        }
}

// The median of n sorted values without one that equals x; NaN if there is no other.
static double odd_median_without(const double *sorted, int n, double x)
{
    int low = 0, high = n - 1;
    while (low < high) {
        int at = (low + high) / 2;
        if (sorted[at] < x)
            low = at + 1;
        else
            high = at;
    }
    int m = n - 1, upper = m / 2, lower = (m - 1) / 2;
    return m < 1 ? NAN : (sorted[lower + (lower >= low)] + sorted[upper + (upper >= low)]) / 2;
}

// From values to ratios to the peers, of one kind.
static void odd_refer_to_peers(struct odd_units *u, const struct odd_table *t, const int *unit,
                               int n_units, double *scratch)
{
    for (int v = 0; v < t->visits; v++) {
        int n = 0;
        for (int i = 0; i < n_units; i++) {
            double x = u->ratios[(size_t)unit[i] * t->room + v];
            if (isfinite(x))
                scratch[n++] = x;
        }
        stats_sort(scratch, n);
        for (int i = 0; i < n_units; i++) {
            double *x = &u->ratios[(size_t)unit[i] * t->room + v];
            *x -= isfinite(*x) ? odd_median_without(scratch, n, *x) : 0;
        }
    }
}

// --- The limit -----------------------------------------------------------------------------------

// Finite values of a unit's visits [from, to); returns how many.
static int odd_visits_of(const struct odd_units *u, const struct odd_table *t, int unit, int from,
                         int to, double *out)
{
    int n = 0;
    for (int v = from; v < to; v++) {
        double x = u->ratios[(size_t)unit * t->room + v];
        if (isfinite(x))
            out[n++] = x;
    }
    return n;
}

// Of a normal law, from the median absolute deviation of n values around their median. The factors
// of few values are those of Croux and Rousseeuw (1992).
static double odd_robust_sd(double *v, int n)
{
    static const double few[] = {0, 0, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};
    static const double to_sigma = 1.4826;
    double middle = middle_of(v, n);
    for (int i = 0; i < n; i++)
        v[i] = fabs(v[i] - middle);
    double factor = n < (int)COUNT_OF(few) ? few[n] : n / (n - 0.8);
    return to_sigma * factor * middle_of(v, n);
}

static void odd_interval(struct odd_unit *one, double *visits, int n)
{
    int rank = stats_median_rank(n);
    double middle = middle_of(visits, n); // sorts
    one->ratio = exp(middle);
    one->lo = n < 2 ? NAN : exp(visits[rank ? rank - 1 : 0]);
    one->hi = n < 2 ? NAN : exp(visits[rank ? n - rank : n - 1]);
}

static void odd_find_kind(struct odd_units *u, const struct odd_table *t, const int *unit, int n,
                          double least, double *scratch, double *of_units)
{
    int known = 0;
    for (int i = 0; i < n; i++) {
        int got = odd_visits_of(u, t, unit[i], 0, t->broad, scratch);
        if (got)
            of_units[known++] = middle_of(scratch, got);
    }
    double spread = known > PEERS_FOR_SPREAD ? odd_robust_sd(of_units, known) : NAN;
    double limit =
        isnan(spread) ? FEW_PEERS_TIMES * log(least) : fmax(log(least), SPREADS * spread);
    for (int i = 0; i < n; i++) {
        struct odd_unit *one = &u->list[unit[i]];
        int broad = odd_visits_of(u, t, unit[i], 0, t->broad, scratch);
        *one = (struct odd_unit){.peers = known - 1, .limit = exp(limit), .spread = expm1(spread)};
        one->candidate = broad && known > 1 && middle_of(scratch, broad) > CANDIDATE_SHARE * limit;
        if (!broad || known < 2)
            one->peers = 0;
        one->visits = odd_visits_of(u, t, unit[i], t->broad, t->visits, scratch);
        for (int v = 0; v < one->visits; v++)
            one->above += scratch[v] > limit;
        // What confirmed it; of others all visits are as good.
        int first = one->candidate && one->visits ? t->broad : 0;
        odd_interval(one, scratch, odd_visits_of(u, t, unit[i], first, t->visits, scratch));
    }
}

// --- The whole -----------------------------------------------------------------------------------

static int odd_make_room(struct odd_units *u, const struct odd_table *t, int units, struct err *err)
{
    *u = (struct odd_units){.n = units};
    u->list = calloc((size_t)units + 1, sizeof *u->list);
    u->ratios = calloc((size_t)units * (size_t)t->room + 1, sizeof *u->ratios);
    if (u->list && u->ratios)
        return 0;
    odd_units_fini(u);
    return err_set(err, ERR_NO_MEMORY, "", "no memory for %d units", units);
}

static int odd_most(const int *v, int n)
{
    int most = -1;
    for (int i = 0; i < n; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

int odd_judge(struct odd_units *u, const struct odd_table *t, const struct odd_level *level,
              double least, struct err *err)
{
    struct odd_lists items CLEANUP(odd_lists_fini) = {0}, kinds CLEANUP(odd_lists_fini) = {0};
    int longest = t->items > t->room ? t->items : t->room;
    CLEANUP_MEM double *scratch = calloc(2 * ((size_t)longest + 1), sizeof *scratch);
    if (!scratch)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d units", level->units);
    if (odd_lists_make(&items, level->unit, t->items, level->units, err) < 0 ||
        odd_lists_make(&kinds, level->kind, level->units, odd_most(level->kind, level->units) + 1,
                       err) < 0 ||
        odd_make_room(u, t, level->units, err) < 0)
        return -1;
    odd_fill_units(u, t, &items, scratch);
    for (int k = 0; k < kinds.n; k++) {
        const int *unit = kinds.members + kinds.begin[k];
        int n = kinds.begin[k + 1] - kinds.begin[k];
        odd_refer_to_peers(u, t, unit, n, scratch);
        odd_find_kind(u, t, unit, n, least, scratch, scratch + longest);
    }
    return 0;
}

static void odd_take_off(struct odd_table *t, const struct odd_units *u, int item, int unit)
{
    for (int v = 0; v < t->visits; v++) {
        double by = u->ratios[(size_t)unit * t->room + v];
        t->logs[(size_t)item * t->room + v] -= isfinite(by) ? by : 0;
    }
}

bool odd_explains(const struct odd_unit *u)
{
    return u->candidate && (!u->visits || log(u->ratio) > CANDIDATE_SHARE * log(u->limit));
}

void odd_explain(struct odd_table *t, const struct odd_level *level, const struct odd_units *u)
{
    for (int i = 0; i < t->items; i++) {
        int unit = level->unit ? level->unit[i] : i;
        if (unit >= 0 && odd_explains(&u->list[unit]))
            odd_take_off(t, u, i, unit);
    }
}

int odd_level_out(struct odd_table *t, const struct odd_level *level, const struct odd_units *u,
                  int items_least, struct err *err)
{
    struct odd_lists items CLEANUP(odd_lists_fini) = {0};
    if (odd_lists_make(&items, level->unit, t->items, level->units, err) < 0)
        return -1;
    for (int k = 0; k < items.n; k++)
        for (int i = items.begin[k]; i < items.begin[k + 1]; i++)
            if (items.begin[k + 1] - items.begin[k] >= items_least)
                odd_take_off(t, u, items.members[i], k);
    return 0;
}

int odd_candidates(const struct odd_units *u)
{
    int n = 0;
    for (int i = 0; i < u->n; i++)
        n += u->list[i].candidate;
    return n;
}

// That at least `above` of n visits are disturbed.
static double odd_chance(int n, int above)
{
    double term = pow(1 - DISTURBED, n), sum = 0; // of 0 disturbed ones
    for (int k = 0; k <= n; k++) {
        sum += k >= above ? term : 0;
        term *= (double)(n - k) / (k + 1) * DISTURBED / (1 - DISTURBED);
    }
    return fmin(sum, 1);
}

static int odd_by_p(const void *a, const void *b)
{
    const struct odd_unit *x = *(struct odd_unit *const *)a, *y = *(struct odd_unit *const *)b;
    return (x->p > y->p) - (x->p < y->p);
}

// Holm (1979): the smallest p times the number of candidates, the next times one less, …
int odd_confirm(struct odd_units *const *groups, int n, struct err *err)
{
    int all = 0, k = 0;
    for (int g = 0; g < n; g++)
        all += odd_candidates(groups[g]);
    CLEANUP_MEM struct odd_unit **list = calloc((size_t)all + 1, sizeof(struct odd_unit *));
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d candidates", all);
    for (int g = 0; g < n; g++)
        for (int i = 0; i < groups[g]->n; i++)
            if (groups[g]->list[i].candidate)
                list[k++] = &groups[g]->list[i];
    for (int i = 0; i < all; i++)
        list[i]->p = odd_chance(list[i]->visits, list[i]->above);
    qsort(list, (size_t)all, sizeof(struct odd_unit *), odd_by_p);
    double before = 0;
    for (int i = 0; i < all; i++) {
        list[i]->p = before = fmin(1, fmax(before, list[i]->p * (all - i)));
        list[i]->odd = list[i]->p <= ALARMS;
    }
    return 0;
}

// The visits that confirm as many candidates; all of them beyond the limit.
static int odd_visits_needed(int candidates)
{
    int n = 1;
    while (pow(DISTURBED, n) * candidates > ALARMS)
        n++;
    return n;
}

bool odd_is_open(const struct odd_unit *u, int candidates)
{
    return u->candidate && !u->odd && u->visits < odd_visits_needed(candidates) &&
           2 * u->above >= u->visits;
}
