// SPDX-License-Identifier: Apache-2.0
// loaded: for each curve what the memory takes when idle, when busy and when full, and the load
// from which more bandwidth costs much latency.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/modules.h"
#include "analysis/report/section.h"
#include "analysis/stats/knee.h"
#include "base/cleanup.h"
#include "model/mix.h"
#include "model/target.h"

struct family { // of one mix
    const struct matrix *ns, *mbps;
    const struct load_mix *mix; // NULL: the run named none
};

// "Node 0 (rank 0), 3:1", "Node 0 to node 2"
static void curve_name(const struct family *f, const struct report_source *s, int row, char *out,
                       size_t room)
{
    int64_t value = f->ns->row.values[row], node = report_cpu_node(s, value);
    int from, to;
    char target[TARGET_LABEL_ROOM];
    axis_unpair(value, &from, &to);
    target_words(to, target, sizeof target);
    if (strcmp(f->ns->row.name, "path") == 0)
        snprintf(out, room, "Node %d to %s", from, target);
    else if (node >= 0)
        snprintf(out, room, "Node %" PRId64 " (rank %" PRId64 ")", node, value);
    else
        snprintf(out, room, "Rank %" PRId64, value);
    size_t used = strlen(out);
    if (f->mix)
        snprintf(out + used, room - used, ", %s", f->mix->name);
}

static void curve_members(struct jsonw *w, const struct family *f, const struct report_source *s,
                          int row)
{
    int64_t value = f->ns->row.values[row];
    int from, to;
    axis_unpair(value, &from, &to);
    bool path = strcmp(f->ns->row.name, "path") == 0;
    if (!path)
        jsonw_i64(w, "rank", value);
    jsonw_i64(w, "node", path ? from : report_cpu_node(s, value));
    if (path)
        report_target(w, to);
    if (f->mix)
        jsonw_text(w, "mix", f->mix->name);
}

static void say_curve(struct report_out *o, const struct family *f, const char *who,
                      const double *x, const double *y, int n)
{
    int k = knee_of(x, y, n);
    double busy = knee_busy(x, y, n);
    char at_busy[80] = "", knee[120] = "no distinct knee";
    if (isfinite(busy))
        snprintf(at_busy, sizeof at_busy, ", %.1f ns at %.0f %% of the highest bandwidth", busy,
                 100 * KNEE_BUSY_SHARE);
    if (k >= 0)
        snprintf(knee, sizeof knee, "the knee is at %" PRId64 " %% of load, %.1f GB/s and %.1f ns",
                 f->ns->col.values[k], x[k] / 1000, y[k]);
    if (isnan(y[0]) || isnan(y[n - 1]) || isnan(x[n - 1]))
        report_say(o, "%s: idle or full load was not measured.", who);
    else if (!knee_is_loaded(x[n - 1]))
        report_say(o, "%s: %.1f ns idle; no rank of the node made load.", who, y[0]);
    else if (n == 1)
        report_say(o, "%s: %.1f ns at %" PRId64 " %% of load; no other was measured.", who, y[0],
                   f->ns->col.values[0]);
    else
        report_say(o, "%s: %.1f ns idle%s, %.1f ns at full load (%.1f GB/s, × %.2f); %s.", who,
                   y[0], at_busy, y[n - 1], x[n - 1] / 1000, y[n - 1] / y[0], knee);
}

static int report_curve(struct report_out *o, const struct report_source *s, const struct family *f,
                        int row, struct err *err)
{
    int n = f->ns->col.n;
    CLEANUP_MEM double *x = calloc((size_t)n, sizeof *x);
    CLEANUP_MEM double *y = calloc((size_t)n, sizeof *y);
    char who[80];
    if (!x || !y)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the curve");
    for (int j = 0; j < n; j++) {
        x[j] = matrix_at(f->mbps, row, j)->v[CELL_MEDIAN];
        y[j] = matrix_at(f->ns, row, j)->v[CELL_MEDIAN];
    }
    int k = knee_of(x, y, n);
    struct jsonw *w = report_finding(o, "curve");
    curve_members(w, f, s, row);
    jsonw_fixed(w, "idle_ns", y[0], 2);
    jsonw_fixed(w, "busy_ns", knee_busy(x, y, n), 2);
    jsonw_fixed(w, "full_ns", knee_is_loaded(x[n - 1]) ? y[n - 1] : NAN, 2);
    jsonw_fixed(w, "full_mbps", x[n - 1], 0);
    jsonw_bool(w, "knee", k >= 0);
    if (k >= 0) {
        jsonw_i64(w, "knee_load", f->ns->col.values[k]);
        jsonw_fixed(w, "knee_ns", y[k], 2);
        jsonw_fixed(w, "knee_mbps", x[k], 0);
    }
    curve_name(f, s, row, who, sizeof who);
    say_curve(o, f, who, x, y, n);
    return 0;
}

// The latency at matrix `i`, and the bandwidth of the same mix.
static bool family_at(struct family *f, const struct report_source *s, int i)
{
    f->ns = &s->matrices[i];
    f->mix = mix_of_matrix(f->ns->name);
    f->mbps = report_matrix(s, f->mix ? f->mix->bandwidth : "bandwidth");
    return strcmp(f->ns->quantity, "latency") == 0 && f->mbps && f->ns->row.n == f->mbps->row.n &&
           f->ns->col.n == f->mbps->col.n;
}

static bool own_memory(const struct report_source *s, int64_t rank)
{
    for (int i = 0; s->ranks && i < s->n_ranks; i++)
        if (s->ranks[i].rank == rank)
            return s->ranks[i].mem_node == s->ranks[i].cpu_node;
    return false;
}

// The nodes with their own memory at full load.
static double full_together(const struct family *f, const struct report_source *s, int *nodes)
{
    bool path = strcmp(f->ns->row.name, "path") == 0;
    double sum = 0;
    *nodes = 0;
    for (int row = 0; row < f->ns->row.n; row++) {
        int from = 0, to = 0;
        if (path)
            axis_unpair(f->ns->row.values[row], &from, &to);
        if (from != to || (!path && !own_memory(s, f->ns->row.values[row])))
            continue;
        sum += matrix_at(f->mbps, row, f->mbps->col.n - 1)->v[CELL_MEDIAN];
        ++*nodes;
    }
    return *nodes ? sum : NAN;
}

// Of the mix that moves most.
static void report_most(struct report_out *o, const struct report_source *s)
{
    struct family f;
    double most = NAN;
    int nodes = 0, n;
    for (int i = 0; i < s->n; i++) {
        double sum = family_at(&f, s, i) ? full_together(&f, s, &n) : NAN;
        if (isnan(sum) || sum <= most)
            continue;
        most = sum;
        nodes = n;
    }
    report_modules(o, s, nodes, most);
}

int section_loaded(struct report_out *o, const struct report_source *run,
                   const struct report_source *with, struct err *err)
{
    struct family f;
    bool any = false;
    (void)with;
    for (int i = 0; i < run->n; i++)
        any |= family_at(&f, run, i);
    if (!any)
        return err_set(err, ERR_INVALID, "matrices",
                       "latency and bandwidth of the same levels of load are needed");
    report_head(o, "Latency under load");
    for (int i = 0; i < run->n; i++)
        for (int row = 0; family_at(&f, run, i) && row < f.ns->row.n; row++)
            if (report_curve(o, run, &f, row, err) < 0)
                return -1;
    report_most(o, run);
    report_tail(o);
    return 0;
}
