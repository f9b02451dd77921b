// SPDX-License-Identifier: Apache-2.0
// atomics: what an operation or a lock costs alone and with all ranks on one cache line, and how
// evenly the ranks get their turns.
#include <math.h>
#include <string.h>

#include "analysis/report/section.h"
#include "analysis/stats/median.h"
#include "base/figures.h"

// Below this index a quarter of the ranks or more might as well not be there.
static const double FAIR = 0.75;

struct on_line {
    char name[24];
    int64_t ranks;                             // of the largest team
    double alone_ns, all_ns;                   // of a rank's operation; NAN: not measured
    double rate, fairness, share, handover_ns; // of that team
};

static double last_of(const struct matrix *m, int64_t operation)
{
    int col = m ? axis_index(&m->col, operation) : -1;
    return col < 0 ? NAN : matrix_at(m, m->row.n - 1, col)->v[CELL_MEDIAN];
}

static struct on_line on_line_of(const struct report_source *s, const struct matrix *time, int col)
{
    int one = axis_index(&time->row, 1);
    int64_t operation = time->col.values[col];
    struct on_line l = {
        .ranks = time->row.values[time->row.n - 1],
        .alone_ns = one < 0 ? NAN : matrix_at(time, one, col)->v[CELL_MEDIAN],
        .all_ns = last_of(time, operation),
        .rate = last_of(report_matrix(s, "rate"), operation),
        .fairness = last_of(report_matrix(s, "fairness"), operation),
        .share = last_of(report_matrix(s, "share"), operation),
        .handover_ns = last_of(report_matrix(s, "handover"), operation),
    };
    axis_label(&time->col, col, l.name, sizeof l.name);
    return l;
}

static void report_operation(struct report_out *o, const struct on_line *l, bool lock)
{
    char alone[80] = "", handed[64] = "";
    struct jsonw *w = report_finding(o, lock ? "lock" : "operation");
    jsonw_text(w, "operation", l->name);
    jsonw_i64(w, "ranks", l->ranks);
    jsonw_fixed(w, "alone_ns", l->alone_ns, 3);
    jsonw_fixed(w, "all_ns", l->all_ns, 3);
    jsonw_fixed(w, "million_per_s", l->rate, 3);
    jsonw_fixed(w, "handover_ns", l->handover_ns, 3);
    jsonw_fixed(w, "fairness", l->fairness, 3);
    jsonw_fixed(w, "least_share_percent", l->share, 3);
    if (!isnan(l->alone_ns))
        snprintf(alone, sizeof alone, "%s ns by one rank%s", FIGURES(l->alone_ns),
                 l->ranks > 1 ? ". " : "");
    if (!isnan(l->handover_ns))
        snprintf(handed, sizeof handed, ", handed over every %s ns", FIGURES(l->handover_ns));
    if (l->ranks == 1)
        report_say(o, "%s: %s.", l->name, alone);
    else
        report_say(o,
                   "%s: %s%d ranks on one line: %s ns each, %s million per second together%s. "
                   "Jain's index is %.2f, the least rank gets %.3g %% of what the greatest gets.",
                   l->name, alone, (int)l->ranks, FIGURES(l->all_ns), FIGURES(l->rate), handed,
                   l->fairness, l->share);
}

static void report_unfair(struct report_out *o, const struct on_line *l)
{
    struct jsonw *w = report_finding(o, "unfair");
    jsonw_text(w, "operation", l->name);
    jsonw_i64(w, "ranks", l->ranks);
    jsonw_fixed(w, "fairness", l->fairness, 3);
    report_say(o, "%s is unfair: %d ranks share it as if %.1f of them had all turns.", l->name,
               (int)l->ranks, l->fairness * (double)l->ranks);
}

// Of two locks or more: the one that is taken most often, and the one that is handed over fastest.
static void report_locks(struct report_out *o, const struct on_line *busiest,
                         const struct on_line *fastest)
{
    struct jsonw *w = report_finding(o, "locks");
    jsonw_text(w, "most_often", busiest->name);
    jsonw_text(w, "fastest_handover", fastest->name);
    jsonw_i64(w, "ranks", busiest->ranks);
    report_say(o,
               "With %d ranks, %s is taken most often (%s million times per second), and %s is "
               "handed over fastest (%s ns).",
               (int)busiest->ranks, busiest->name, FIGURES(busiest->rate), fastest->name,
               FIGURES(fastest->handover_ns));
}

int section_atomics(struct report_out *o, const struct report_source *run,
                    const struct report_source *with, struct err *err)
{
    const struct matrix *time = report_matrix(run, "time");
    struct on_line busiest = {.rate = 0}, fastest = {.handover_ns = INFINITY};
    int locks = 0;
    (void)with;
    (void)err;
    report_head(o, "Atomic operations and locks on one cache line");
    for (int col = 0; time && col < time->col.n; col++) {
        struct on_line l = on_line_of(run, time, col);
        bool lock = operation_is_lock((enum operation)time->col.values[col]);
        report_operation(o, &l, lock);
        if (l.fairness < FAIR)
            report_unfair(o, &l);
        locks += lock && l.ranks > 1;
        if (lock && l.rate > busiest.rate)
            busiest = l;
        if (lock && l.handover_ns < fastest.handover_ns)
            fastest = l;
    }
    if (locks > 1 && busiest.rate > 0 && isfinite(fastest.handover_ns))
        report_locks(o, &busiest, &fastest);
    report_tail(o);
    return 0;
}
