// SPDX-License-Identifier: Apache-2.0
// loaded: the load from which more bandwidth costs much latency.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/report/section.h"
#include "analysis/stats/knee.h"
#include "base/cleanup.h"

static int report_knee(struct report_out *o, const struct report_source *s, const struct matrix *ns,
                       const struct matrix *mbps, int row, struct err *err)
{
    int n = ns->col.n;
    CLEANUP_MEM double *x = calloc((size_t)n, sizeof *x);
    CLEANUP_MEM double *y = calloc((size_t)n, sizeof *y);
    if (!x || !y)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the curve");
    for (int j = 0; j < n; j++) {
        x[j] = matrix_at(mbps, row, j)->v[CELL_MEDIAN];
        y[j] = matrix_at(ns, row, j)->v[CELL_MEDIAN];
    }
    int k = knee_of(x, y, n);
    int64_t rank = ns->row.values[row], node = report_cpu_node(s, rank);
    struct jsonw *w = report_finding(o, "curve");
    jsonw_i64(w, "rank", rank);
    jsonw_i64(w, "node", node);
    jsonw_fixed(w, "idle_ns", y[0], 2);
    jsonw_fixed(w, "full_ns", y[n - 1], 2);
    jsonw_fixed(w, "full_mbps", x[n - 1], 0);
    jsonw_bool(w, "knee", k >= 0);
    if (k >= 0) {
        jsonw_i64(w, "knee_load", ns->col.values[k]);
        jsonw_fixed(w, "knee_ns", y[k], 2);
        jsonw_fixed(w, "knee_mbps", x[k], 0);
    }
    char who[64];
    if (node >= 0)
        snprintf(who, sizeof who, "Node %" PRId64 " (rank %" PRId64 ")", node, rank);
    else
        snprintf(who, sizeof who, "Rank %" PRId64, rank);
    if (isnan(y[0]) || isnan(y[n - 1]) || isnan(x[n - 1]))
        report_say(o, "%s: idle or full load was not measured.", who);
    else if (n == 1)
        report_say(o, "%s: %.1f ns at %" PRId64 " %% of load; no other was measured.", who, y[0],
                   ns->col.values[0]);
    else if (k >= 0)
        report_say(o,
                   "%s: %.1f ns idle, %.1f ns at full load (%.1f GB/s, × %.2f); the knee is at "
                   "%" PRId64 " %% of load, %.1f GB/s and %.1f ns.",
                   who, y[0], y[n - 1], x[n - 1] / 1000, y[n - 1] / y[0], ns->col.values[k],
                   x[k] / 1000, y[k]);
    else
        report_say(o,
                   "%s: %.1f ns idle, %.1f ns at full load (%.1f GB/s, × %.2f): no distinct knee.",
                   who, y[0], y[n - 1], x[n - 1] / 1000, y[n - 1] / y[0]);
    return 0;
}

int section_loaded(struct report_out *o, const struct report_source *run,
                   const struct report_source *with, struct err *err)
{
    const struct matrix *ns = report_matrix(run, "latency"),
                        *mbps = report_matrix(run, "bandwidth");
    (void)with;
    if (!ns || !mbps || ns->row.n != mbps->row.n || ns->col.n != mbps->col.n)
        return err_set(err, ERR_INVALID, "matrices",
                       "latency and bandwidth of the same levels of load are needed");
    report_head(o, "Latency under load");
    for (int i = 0; i < ns->row.n; i++)
        if (report_knee(o, run, ns, mbps, i, err) < 0)
            return -1;
    report_tail(o);
    return 0;
}
