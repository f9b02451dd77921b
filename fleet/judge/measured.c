// SPDX-License-Identifier: Apache-2.0
// A finding is proved by the newest run of its nodes, so that the same runs confirm nothing.
#include "fleet/judge/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/drift.h"
#include "analysis/peers/fleet_findings_text.h"
#include "analysis/peers/fleet_history.h"
#include "analysis/peers/fleet_view.h"
#include "analysis/peers/newest.h"
#include "analysis/peers/peers.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"

#define DAY_MS ((int64_t)86400 * 1000)

// When the oldest run was measured that a node is judged by.
static int64_t oldest_run(const struct fleet *f, int node, int probe)
{
    for (int i = 0; i < f->node[node].n; i++) {
        const struct fleet_series *s = &f->one[f->node[node].series[i]];
        int last = (s->n < NEWEST_RUNS ? s->n : NEWEST_RUNS) - 1;
        if (s->probe == probe && last >= 0)
            return s->runs[last].measured_ms;
    }
    return 0;
}

static int measured_finding(const struct fleet *f, const struct fleet_finding *one,
                            const struct measured_to *to, struct err *err)
{
    static const enum kept_what kinds[FINDING_KINDS] = {[FINDING_OUTLIER] = KEPT_OUTLIER,
                                                        [FINDING_SLOWER] = KEPT_SLOWER,
                                                        [FINDING_GROUP] = KEPT_GROUP};
    CLEANUP_BUF struct buf text = BUF_INIT, evidence = BUF_INIT;
    struct jsonw json = jsonw_to(&evidence);
    bool group = one->what == FINDING_GROUP;
    struct kept_sight s = {.what = kinds[one->what],
                           .grade = (int)one->grade,
                           .node = group ? "" : f->nodes.list[one->nodes[0]],
                           .class = f->classes.list[one->class],
                           .metric = one->metric,
                           .percent = one->percent,
                           .lo = one->lo,
                           .hi = one->hi,
                           .since_ms = one->since_ms,
                           .oldest = INT64_MAX,
                           .n_runs = one->n_runs};
    memcpy(s.runs, one->runs, sizeof s.runs);
    for (int i = 0; i < one->n_nodes; i++) {
        int64_t newest = f->node[one->nodes[i]].newest_ms;
        int64_t oldest = oldest_run(f, one->nodes[i], one->probe);
        s.proof = newest > s.proof ? newest : s.proof;
        s.oldest = oldest < s.oldest ? oldest : s.oldest;
    }
    fleet_finding_sentence(one, f, &text);
    fleet_finding_write_json(one, f, &json, NULL);
    if (!buf_ok(&text) || !buf_ok(&evidence))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a finding");
    s.text = buf_text(&text);
    s.evidence = buf_text(&evidence);
    to->sight(to->ctx, &s);
    return 0;
}

static int measured_drift(const struct fleet *f, int class, int64_t newest_ms,
                          const struct measured_to *to, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT, evidence = BUF_INIT;
    struct jsonw json = jsonw_to(&evidence);
    struct drift d;
    if (drift_find(&d, f, class, err) < 0)
        return -1;
    if (isnan(d.p))
        to->unseen(to->ctx, &(struct kept_unseen){f->classes.list[class], "", ABOUT_DRIFT});
    if (d.grade == PEERS_FINE)
        return 0;
    drift_sentence(&d, &text);
    drift_write_json(&d, f, &json, NULL);
    if (!buf_ok(&text) || !buf_ok(&evidence))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a finding");
    const struct kept_sight s = {.what = KEPT_DRIFT,
                                 .grade = (int)d.grade,
                                 .node = "",
                                 .class = f->classes.list[class],
                                 .metric = d.worst.metric,
                                 .text = buf_text(&text),
                                 .evidence = buf_text(&evidence),
                                 .percent = d.worst.percent,
                                 .lo = d.worst.lo,
                                 .hi = d.worst.hi,
                                 .since_ms = d.worst.since_ms,
                                 // Runs of the same day say the same.
                                 .proof = newest_ms / DAY_MS * DAY_MS,
                                 .oldest = d.worst.from_ms};
    to->sight(to->ctx, &s);
    return 0;
}

static int measured_drifts(const struct fleet *f, const struct measured_to *to, struct err *err)
{
    CLEANUP_MEM int64_t *newest = calloc((size_t)f->classes.n + 1, sizeof *newest);
    int rc = newest ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory to judge");
    for (int i = 0; i < f->nodes.n && rc == 0; i++) {
        int class = f->node[i].class;
        if (class >= 0 && f->node[i].newest_ms > newest[class])
            newest[class] = f->node[i].newest_ms;
    }
    for (int i = 0; i < f->classes.n && rc == 0; i++)
        rc = measured_drift(f, i, newest[i], to, err);
    return rc;
}

// Enough runs of another class are enough to know that it is not in its former one.
static const char *known_class(const struct fleet *f, int node)
{
    return fleet_node_enough(f, node) ? f->classes.list[f->node[node].class] : "";
}

int measured_judge(const struct fleet *f, const struct fleet_findings *list,
                   const struct measured_to *to, struct err *err)
{
    CLEANUP_MEM int *judged = calloc((size_t)f->classes.n + 1, sizeof *judged);
    if (!judged)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to judge");
    for (int i = 0; i < list->n; i++)
        if (measured_finding(f, &list->list[i], to, err) < 0)
            return -1;
    if (measured_drifts(f, to, err) < 0)
        return -1;
    for (int i = 0; i < f->nodes.n; i++) {
        if (f->node[i].class >= 0 && fleet_node_enough(f, i))
            judged[f->node[i].class]++;
        const struct fleet_judged *by = &list->judged[i];
        // Beside its peers it shows too that it is as fast as it was.
        unsigned about =
            (by->by_peers ? 0 : ABOUT_VERDICT) | (by->by_peers || by->by_past ? 0 : ABOUT_PAST);
        if (about)
            to->unseen(to->ctx, &(struct kept_unseen){f->nodes.list[i], known_class(f, i), about});
    }
    for (int i = 0; i < f->classes.n; i++)
        if (judged[i] < PEERS_MIN)
            to->unseen(to->ctx, &(struct kept_unseen){f->classes.list[i], "", ABOUT_CLASS});
    return 0;
}

// Of NEWEST_RUNS runs from this one on, + is worse.
static double runs_level(const struct fleet_history *h, int from)
{
    double x[NEWEST_RUNS];
    for (int i = 0; i < NEWEST_RUNS; i++)
        x[i] = newest_log(h->list[from + i].value, h->more, metric_is_loss(h->metric));
    return middle_select(x, NEWEST_RUNS);
}

// The newest runs are better than the worst of those before, by half of what the finding states.
static int got_better(const struct fleet *f, const struct measured_kept *k, struct err *err)
{
    struct fleet_history h;
    double worst = -INFINITY, least = fabs(log1p(k->percent / 100)) / 2;
    if (fleet_history_make(&h, f, k->node, k->metric, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    for (int from = 0; from + 2 * NEWEST_RUNS <= h.n; from++)
        worst = fmax(worst, runs_level(&h, from));
    double gained = h.n < NEWEST_RUNS ? 0 : worst - runs_level(&h, h.n - NEWEST_RUNS);
    fleet_history_fini(&h);
    return gained >= (isnan(least) ? PEERS_DEFAULTS.least : least);
}

int measured_keep(const struct fleet *f, const struct fleet_findings *list,
                  const struct measured_kept *k, const struct measured_to *to, struct err *err)
{
    int node = interned_find(&f->nodes, k->node), known = 1;
    if (node < 0 || (k->what != KEPT_OUTLIER && k->what != KEPT_SLOWER))
        return 0;
    if (!fleet_findings_compared(list, f, node, k->metric))
        known = 0;
    else if (k->what == KEPT_SLOWER && !list->judged[node].by_peers)
        known = got_better(f, k, err);
    if (known == 0)
        to->unseen(to->ctx, &(struct kept_unseen){f->nodes.list[node], known_class(f, node),
                                                  kept_whats[k->what].about});
    return known < 0 ? -1 : 0;
}
