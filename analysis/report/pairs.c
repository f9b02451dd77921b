// SPDX-License-Identifier: Apache-2.0
// Pairs of cores (pingpong, c2c): what each class of pairs costs, and pairs unlike their class.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/section.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/figures.h"
#include "base/str.h"
#include "model/shape.h"

// A pair is odd if it is off its class by a quarter and by six robust standard deviations, where at
// least four pairs say what the class is.
static const double ODD = 0.25;
// Lines of a pair differ if the slowest is so many times the fastest, and their intervals do not
// meet.
static const double LINES_APART = 1.1;
enum { CLASS_PAIRS_MIN = 4, OUTLIERS_MAX = 16, CLASS_UNKNOWN = PAIR_CLASSES };

// Where a rank was, looked up once.
struct place {
    const struct topo_cpu *cpu; // NULL: not known
    int64_t node;               // of the CPU; -1: not known
};

static struct place pairs_place_of(const struct report_source *s, int64_t rank)
{
    for (int i = 0; s->ranks && i < s->n_ranks; i++)
        if (s->ranks[i].rank == rank)
            return (struct place){s->topology ? topology_cpu(s->topology, (int)s->ranks[i].cpu)
                                              : NULL,
                                  s->ranks[i].cpu_node};
    return (struct place){NULL, -1};
}

// By the topology of the run's time; without one, by nodes alone.
static int class_of(const struct place *a, const struct place *b)
{
    if (a->cpu && b->cpu)
        return topology_pair_class(a->cpu, b->cpu);
    return a->node >= 0 && a->node == b->node ? PAIR_NODE : CLASS_UNKNOWN;
}

static const char *class_name(int class)
{
    return class == CLASS_UNKNOWN ? "class not known" : pair_class_names[class];
}

// One pair of a matrix, whether it is a cell of a table or a row.
struct pair_value {
    int64_t first, second; // ranks
    int class;
    double value;
};

struct members {
    const struct matrix *m;
    struct pair_value *all; // pairs that have a value; owned
    int n_all;
    int class;
    int n;
    double *values;               // of this class, room for all; owned
    const struct pair_value **of; // so are these
};

static void pairs_members_fini(struct members *x)
{
    free(x->all);
    free(x->values);
    free(x->of);
}

static void members_add(struct members *x, const struct place *here, const struct place *there,
                        const struct pair_value *pair)
{
    if (!(pair->value > 0))
        return;
    x->all[x->n_all] = *pair;
    x->all[x->n_all++].class = class_of(here, there);
}

// A table of rank against rank.
static int members_of_table(struct members *x, const struct report_source *s, struct err *err)
{
    const struct matrix *m = x->m;
    CLEANUP_MEM struct place *cols = calloc((size_t)m->col.n, sizeof *cols);
    if (!cols)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the pairs");
    for (int j = 0; j < m->col.n; j++)
        cols[j] = pairs_place_of(s, m->col.values[j]);
    for (int i = 0; i < m->row.n; i++) {
        const struct place here = pairs_place_of(s, m->row.values[i]);
        for (int j = i + 1; j < m->col.n; j++)
            members_add(x, &here, &cols[j],
                        &(struct pair_value){m->row.values[i], m->col.values[j], CLASS_UNKNOWN,
                                             matrix_at(m, i, j)->v[CELL_MEDIAN]});
    }
    return 0;
}

// A row each.
static void members_of_rows(struct members *x, const struct report_source *s)
{
    for (int i = 0; i < x->m->row.n; i++) {
        int first, second;
        axis_unpair(x->m->row.values[i], &first, &second);
        const struct place here = pairs_place_of(s, first), there = pairs_place_of(s, second);
        members_add(x, &here, &there,
                    &(struct pair_value){first, second, CLASS_UNKNOWN,
                                         matrix_at(x->m, i, 0)->v[CELL_MEDIAN]});
    }
}

static int members_init(struct members *x, const struct report_source *s, const struct matrix *m,
                        struct err *err)
{
    size_t most = (size_t)shape_cells(m) + 1;
    *x = (struct members){.m = m};
    x->all = calloc(most, sizeof *x->all);
    x->values = calloc(most, sizeof *x->values);
    x->of = calloc(most, sizeof *x->of);
    if (!x->all || !x->values || !x->of)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the pairs");
    if (strcmp(m->row.name, "pair") != 0)
        return members_of_table(x, s, err);
    members_of_rows(x, s);
    return 0;
}

static double value_at(const struct members *x, int k)
{
    return x->of[k]->value;
}

static void pairs_gather(struct members *x, int class)
{
    x->class = class;
    x->n = 0;
    for (int i = 0; i < x->n_all; i++)
        if (x->all[i].class == class)
            x->of[x->n++] = &x->all[i];
}

static double typical_of(struct members *x)
{
    for (int k = 0; k < x->n; k++)
        x->values[k] = value_at(x, k);
    return middle_of(x->values, x->n); // sorts: the ends are the extremes
}

static double robust_sigma(struct members *x, double typical)
{
    for (int k = 0; k < x->n; k++)
        x->values[k] = fabs(log(value_at(x, k) / typical));
    return 1.4826 * middle_of(x->values, x->n);
}

static void report_class(struct report_out *o, struct members *x, double typical)
{
    const char *unit = x->m->unit;
    struct jsonw *w = report_finding(o, "class");
    jsonw_text(w, "matrix", x->m->name);
    jsonw_text(w, "class", class_name(x->class));
    jsonw_i64(w, "pairs", x->n);
    jsonw_text(w, "unit", unit);
    jsonw_fixed(w, "median", typical, 3);
    jsonw_fixed(w, "min", x->values[0], 3);
    jsonw_fixed(w, "max", x->values[x->n - 1], 3);
    if (x->n == 1)
        report_say(o, "%s, %s: %s %s (one pair).", x->m->name, class_name(x->class),
                   FIGURES(typical), unit);
    else
        report_say(o, "%s, %s: typically %s %s, %s to %s over %d pairs.", x->m->name,
                   class_name(x->class), FIGURES(typical), unit, FIGURES(x->values[0]),
                   FIGURES(x->values[x->n - 1]), x->n);
}

static void report_outliers(struct report_out *o, struct members *x, double typical)
{
    double bound = fmax(log1p(ODD), 6 * robust_sigma(x, typical));
    int told = 0, odd = 0;
    for (int k = 0; x->n >= CLASS_PAIRS_MIN && k < x->n; k++) {
        double v = value_at(x, k);
        if (fabs(log(v / typical)) <= bound)
            continue;
        odd++;
        if (told == OUTLIERS_MAX)
            continue;
        told++;
        int64_t first = x->of[k]->first, second = x->of[k]->second;
        struct jsonw *w = report_finding(o, "outlier");
        jsonw_text(w, "matrix", x->m->name);
        jsonw_i64(w, "rank", first);
        jsonw_i64(w, "other_rank", second);
        jsonw_fixed(w, "value", v, 3);
        jsonw_fixed(w, "typical", typical, 3);
        jsonw_fixed(w, "percent", 100 * (v / typical - 1), 1);
        report_say(o,
                   "%s: ranks %" PRId64 " and %" PRId64 " have %s %s, where %s is typical of "
                   "their class, %s (%+.0f %%).",
                   x->m->name, first, second, FIGURES(v), x->m->unit, FIGURES(typical),
                   class_name(x->class), 100 * (v / typical - 1));
    }
    if (odd <= told)
        return;
    jsonw_i64(report_finding(o, "more_outliers"), "pairs", odd - told);
    report_say(o, "%s: %d more pairs are as far off their class, %s.", x->m->name, odd - told,
               class_name(x->class));
}

static int report_classes(struct report_out *o, const struct report_source *s,
                          const struct matrix *m, struct err *err)
{
    struct members x CLEANUP(pairs_members_fini) = {0};
    if (members_init(&x, s, m, err) < 0)
        return -1;
    report_coverage(o, m);
    for (int class = 0; class <= CLASS_UNKNOWN; class ++) {
        pairs_gather(&x, class);
        if (!x.n)
            continue;
        double typical = typical_of(&x);
        report_class(o, &x, typical);
        report_outliers(o, &x, typical);
    }
    return 0;
}

// A line a pair: the smallest message's time and the largest's rate.
static void report_pair(struct report_out *o, const struct report_source *s, const struct matrix *m,
                        int row)
{
    int first, second, last = m->col.n - 1;
    char small[24], large[24], rate[40];
    axis_unpair(m->row.values[row], &first, &second);
    const struct place here = pairs_place_of(s, first), there = pairs_place_of(s, second);
    const char *class = class_name(class_of(&here, &there));
    double quick = matrix_at(m, row, 0)->v[CELL_MEDIAN];
    double slow = matrix_at(m, row, last)->v[CELL_MEDIAN];
    double mbps = (double)m->col.values[last] / slow; // bytes a µs are MB/s
    str_from_bytes((uint64_t)m->col.values[0], small, sizeof small);
    str_from_bytes((uint64_t)m->col.values[last], large, sizeof large);
    bool little = mbps < 100;
    snprintf(rate, sizeof rate, "%.1f %s", little ? mbps : mbps / 1000, little ? "MB/s" : "GB/s");
    struct jsonw *w = report_finding(o, "pair");
    jsonw_i64(w, "rank", first);
    jsonw_i64(w, "other_rank", second);
    jsonw_text(w, "class", class);
    jsonw_i64(w, "smallest_bytes", m->col.values[0]);
    jsonw_fixed(w, "smallest_us", quick, 3);
    jsonw_i64(w, "largest_bytes", m->col.values[last]);
    jsonw_fixed(w, "largest_us", slow, 3);
    jsonw_fixed(w, "largest_mbps", mbps, 1);
    if (isnan(quick) || isnan(slow))
        report_say(o, "Ranks %d and %d (%s): the message of %s bytes or that of %s has no value.",
                   first, second, class, small, large);
    else if (last == 0)
        report_say(o, "Ranks %d and %d (%s): a message of %s bytes takes %.2f µs.", first, second,
                   class, small, quick);
    else
        report_say(o,
                   "Ranks %d and %d (%s): a message of %s bytes takes %.2f µs, one of %s%s %s µs, "
                   "which is %s.",
                   first, second, class, small, quick, large,
                   m->col.values[last] < 1024 ? " bytes" : "", FIGURES(slow), rate);
}

int section_pingpong(struct report_out *o, const struct report_source *run,
                     const struct report_source *with, struct err *err)
{
    const struct matrix *m = report_matrix(run, "pingpong");
    (void)with;
    report_head(o, "Messages between two ranks");
    for (int i = 0; m && i < m->row.n; i++)
        report_pair(o, run, m, i);
    for (int i = 0; !m && i < run->n; i++)
        if (report_classes(o, run, &run->matrices[i], err) < 0)
            return -1;
    report_tail(o);
    return 0;
}

struct line_ends {
    int row;
    double fastest, slowest, ratio;
    bool apart;
};

static struct line_ends lines_of(const struct matrix *m, int row)
{
    const double *fast = matrix_at(m, row, 0)->v, *slow = matrix_at(m, row, m->col.n - 1)->v;
    struct line_ends e = {row, fast[CELL_MEDIAN], slow[CELL_MEDIAN], 0, false};
    e.ratio = e.slowest / e.fastest;
    e.apart = e.ratio >= LINES_APART && slow[CELL_LO] > fast[CELL_HI];
    return e;
}

// The pair whose lines differ most, of those that differ if there are any.
static void report_cache_lines(struct report_out *o, const struct matrix *m)
{
    struct line_ends worst = {.row = -1};
    int apart = 0, pairs = 0, first, second, word = (int)strcspn(m->name, "_");
    for (int row = 0; row < m->row.n; row++) {
        struct line_ends e = lines_of(m, row);
        apart += e.apart;
        pairs += e.ratio > 0;
        if (e.apart > worst.apart || (e.apart == worst.apart && e.ratio > worst.ratio))
            worst = e;
    }
    if (worst.row < 0)
        return;
    axis_unpair(m->row.values[worst.row], &first, &second);
    struct jsonw *w = report_finding(o, "lines");
    jsonw_text(w, "matrix", m->name);
    jsonw_i64(w, "pairs", pairs);
    jsonw_i64(w, "pairs_apart", apart);
    jsonw_i64(w, "rank", first);
    jsonw_i64(w, "other_rank", second);
    jsonw_i64(w, "lines", m->col.n);
    jsonw_fixed(w, "fastest", worst.fastest, 3);
    jsonw_fixed(w, "slowest", worst.slowest, 3);
    jsonw_fixed(w, "ratio", worst.ratio, 3);
    if (apart)
        report_say(o,
                   "%.*s: it matters where a cache line is, for %d of %d pairs. Ranks %d and %d "
                   "take %s %s on the fastest of %d lines, %s on the slowest (%.2f times).",
                   word, m->name, apart, pairs, first, second, FIGURES(worst.fastest), m->unit,
                   m->col.n, FIGURES(worst.slowest), worst.ratio);
    else
        report_say(o,
                   "%.*s: the cache lines of a pair differ by less than 10 %%, or by less than the "
                   "noise; most (%.1f %% over %d lines) those of ranks %d and %d.",
                   word, m->name, 100 * (worst.ratio - 1), m->col.n, first, second);
}

int section_c2c(struct report_out *o, const struct report_source *run,
                const struct report_source *with, struct err *err)
{
    (void)with;
    report_head(
        o,
        "Transfer of a cache line between two cores (cas, load: round trip; hitm, hit: one way)");
    for (int i = 0; i < run->n; i++)
        if (strcmp(run->matrices[i].col.name, "line") == 0)
            report_cache_lines(o, &run->matrices[i]);
        else if (report_classes(o, run, &run->matrices[i], err) < 0)
            return -1;
    report_tail(o);
    return 0;
}
