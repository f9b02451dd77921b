// SPDX-License-Identifier: Apache-2.0
// scan: what is slower than its peers, the largest deviation first, and what was compared. What is
// odd is written in the matrices of deviations (model/scan.h); nothing is decided here.
#include "model/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/section.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/figures.h"

enum { LISTED_MOST = 32 };

static const struct scan_words {
    const char *matrix, *one, *many; // "core", "cores"
} scan_words[] = {
    {SCAN_OF_NODE, "node", "nodes"},
    {SCAN_OF_L3, "last-level cache", "last-level caches"},
    {SCAN_OF_CORE, "core", "cores"},
    {SCAN_OF_PAIR, "pair of cores", "pairs of cores"},
};

static const struct aspect_words {
    const char *text, *matrix, *unit;
    int col; // of the matrix
} aspect_words[AXIS_ASPECTS] = {
    [ASPECT_L2] = {"latency in L2", SCAN_LATENCY, "ns", 0},
    [ASPECT_MEMORY] = {"latency of memory", SCAN_LATENCY, "ns", 1},
    [ASPECT_BANDWIDTH] = {"bandwidth", SCAN_BANDWIDTH, "MB/s", 0},
    [ASPECT_TRANSFER] = {"cache-line transfers", SCAN_TRANSFER, "ns", 0},
};

struct scan_finding {
    const struct scan_words *words;
    const struct matrix *m;
    int row;
    enum aspect aspect;
    const struct cell *cell;
};

struct scan_findings {
    int n, units;              // units: that were compared
    int unconfirmed;           // of those that are not odd
    struct scan_finding *list; // owned; of all units that were compared, the slowest first
};

static void scan_findings_fini(struct scan_findings *f)
{
    free(f->list);
}

static int scan_by_deviation(const void *a, const void *b)
{
    const struct cell *x = ((const struct scan_finding *)a)->cell,
                      *y = ((const struct scan_finding *)b)->cell;
    bool odd_x = scan_is_odd(x), odd_y = scan_is_odd(y);
    if (odd_x != odd_y)
        return odd_x ? -1 : 1;
    return (x->v[CELL_MEDIAN] < y->v[CELL_MEDIAN]) - (x->v[CELL_MEDIAN] > y->v[CELL_MEDIAN]);
}

static int scan_findings_make(struct scan_findings *f, const struct report_source *run,
                              struct err *err)
{
    size_t cells = 1;
    for (int i = 0; i < run->n; i++)
        cells += (size_t)run->matrices[i].row.n * (size_t)run->matrices[i].col.n;
    f->list = calloc(cells, sizeof *f->list);
    if (!f->list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the findings");
    for (size_t i = 0; i < COUNT_OF(scan_words); i++) {
        const struct matrix *m = report_matrix(run, scan_words[i].matrix);
        for (int r = 0; m && r < m->row.n; r++)
            for (int c = 0; c < m->col.n; c++) {
                const struct cell *cell = matrix_at(m, r, c);
                if (!(cell->v[CELL_N] > 0) || m->col.values[c] >= AXIS_ASPECTS)
                    continue;
                f->list[f->units++] = (struct scan_finding){&scan_words[i], m, r,
                                                            (enum aspect)m->col.values[c], cell};
                f->unconfirmed += scan_is_unconfirmed(cell);
            }
    }
    qsort(f->list, (size_t)f->units, sizeof *f->list, scan_by_deviation);
    while (f->n < f->units && scan_is_odd(f->list[f->n].cell))
        f->n++;
    return 0;
}

// "rank 17 (CPU 17, node 2)".
static void scan_rank_text(const struct report_source *run, int64_t rank, char *out, size_t room)
{
    snprintf(out, room, "rank %" PRId64, rank);
    for (int i = 0; run->ranks && i < run->n_ranks; i++)
        if (run->ranks[i].rank == rank)
            snprintf(out, room, "rank %" PRId64 " (CPU %" PRId64 ", node %" PRId64 ")", rank,
                     run->ranks[i].cpu, run->ranks[i].cpu_node);
}

static void scan_name(const struct report_source *run, const struct scan_finding *f, char *out,
                      size_t room)
{
    char text[64], other[64];
    int64_t value = f->m->row.values[f->row];
    int first, second;
    axis_unpair(value, &first, &second);
    bool pair = strcmp(f->m->row.name, "pair") == 0;
    scan_rank_text(run, pair ? first : value, text, sizeof text);
    scan_rank_text(run, second, other, sizeof other);
    if (strcmp(f->m->row.name, "initiator") == 0)
        snprintf(out, room, "%s %" PRId64, f->words->one, value);
    else if (pair)
        snprintf(out, room, "%s of %s and %s", "pair", text, other);
    else
        snprintf(out, room, "%s of %s", f->words->one, text);
}

// What the unit itself has, of cores and pairs; NaN: it has no value of its own.
static double scan_value(const struct report_source *run, const struct scan_finding *f)
{
    const struct aspect_words *words = &aspect_words[f->aspect];
    const struct matrix *m = report_matrix(run, words->matrix);
    bool own = m && strcmp(m->row.name, f->m->row.name) == 0 && words->col < m->col.n;
    int row = own ? axis_index(&m->row, f->m->row.values[f->row]) : -1;
    return row < 0 ? NAN : matrix_at(m, row, words->col)->v[CELL_MEDIAN];
}

static void report_odd(struct report_out *o, const struct report_source *run,
                       const struct scan_finding *f)
{
    char name[160], values[120] = "", spread[FIGURES_ROOM];
    const struct aspect_words *words = &aspect_words[f->aspect];
    const double *v = f->cell->v, value = scan_value(run, f), ratio = v[CELL_MEDIAN] / 100;
    double peers = f->aspect == ASPECT_BANDWIDTH ? value * ratio : value / ratio;
    scan_name(run, f, name, sizeof name);
    struct jsonw *w = report_finding(o, "odd");
    jsonw_text(w, "unit", f->words->matrix);
    jsonw_i64(w, "number", f->m->row.values[f->row]);
    jsonw_text(w, "aspect", words->text);
    jsonw_fixed(w, "deviation_percent", v[CELL_MEDIAN] - 100, 2);
    jsonw_fixed(w, "least_percent", v[CELL_LO] - 100, 2);
    jsonw_fixed(w, "most_percent", v[CELL_HI] - 100, 2);
    jsonw_fixed(w, "peers_spread_percent", v[CELL_SD], 2);
    jsonw_fixed(w, "value", value, 3);
    jsonw_fixed(w, "peers_value", peers, 3);
    jsonw_i64(w, "repetitions", (int64_t)v[CELL_N]);
    if (isfinite(value) && isfinite(v[CELL_SD]))
        snprintf(values, sizeof values, " (%s %s; its peers %s ± %s)", FIGURES(value), words->unit,
                 FIGURES(peers), figures_text(peers * v[CELL_SD] / 100, 2, spread));
    else if (isfinite(value))
        snprintf(values, sizeof values, " (%s %s; its peers %s)", FIGURES(value), words->unit,
                 FIGURES(peers));
    report_say(o, "The %s: %+.1f %% in %s%s, %+.1f to %+.1f %%, measured %d times.", name,
               v[CELL_MEDIAN] - 100, words->text, values, v[CELL_LO] - 100, v[CELL_HI] - 100,
               (int)v[CELL_N]);
}

// How many units of a kind were compared, in the aspect that has most.
static int scan_compared(const struct scan_findings *f, const struct scan_words *words)
{
    int of[AXIS_ASPECTS] = {0}, most = 0;
    for (int i = 0; i < f->units; i++)
        if (f->list[i].words == words)
            of[f->list[i].aspect]++;
    for (int a = 0; a < AXIS_ASPECTS; a++)
        most = of[a] > most ? of[a] : most;
    return most;
}

static void report_compared(struct report_out *o, const struct report_source *run,
                            const struct scan_findings *f)
{
    char all[240] = "", name[160];
    struct jsonw *w = report_finding(o, "compared");
    for (size_t i = 0; i < COUNT_OF(scan_words); i++) {
        int n = scan_compared(f, &scan_words[i]);
        size_t used = strlen(all);
        jsonw_i64(w, scan_words[i].matrix, n);
        if (n)
            snprintf(all + used, sizeof all - used, "%s%d %s", used ? ", " : "", n,
                     n == 1 ? scan_words[i].one : scan_words[i].many);
    }
    const struct scan_finding *next = f->n < f->units ? &f->list[f->n] : NULL;
    if (next)
        scan_name(run, next, name, sizeof name);
    if (!f->units)
        report_say(o, "0 units have peers that they can be compared with.");
    else if (!next)
        report_say(o, "Compared with their peers: %s.", all);
    else
        report_say(o,
                   "Compared with their peers: %s. Of what is not odd, the %s deviates most: %+.1f "
                   "%% in %s.",
                   all, name, next->cell->v[CELL_MEDIAN] - 100, aspect_words[next->aspect].text);
}

static void report_unconfirmed(struct report_out *o, const struct scan_findings *f)
{
    if (!f->unconfirmed)
        return;
    jsonw_i64(report_finding(o, "unconfirmed"), "deviations", f->unconfirmed);
    report_say(o,
               "%d of %d comparisons deviated, and too few repetitions confirmed %s: raise the "
               "budget, or visits.",
               f->unconfirmed, f->units, f->unconfirmed == 1 ? "it" : "them");
}

int section_scan(struct report_out *o, const struct report_source *run,
                 const struct report_source *with, struct err *err)
{
    struct scan_findings f CLEANUP(scan_findings_fini) = {0};
    (void)with;
    if (scan_findings_make(&f, run, err) < 0)
        return -1;
    report_head(o, "What is slower than its peers");
    for (int i = 0; i < f.n && i < LISTED_MOST; i++)
        report_odd(o, run, &f.list[i]);
    if (f.n > LISTED_MOST) {
        jsonw_i64(report_finding(o, "more"), "odd", f.n);
        report_say(o, "%d are odd; the %d that deviate most are listed.", f.n, LISTED_MOST);
    }
    report_unconfirmed(o, &f);
    if (f.units && !f.n && !f.unconfirmed) {
        jsonw_i64(report_finding(o, "nothing_odd"), "odd", 0);
        report_say(o, "0 of %d comparisons with peers found anything odd.", f.units);
    }
    report_compared(o, run, &f);
    report_tail(o);
    return 0;
}
