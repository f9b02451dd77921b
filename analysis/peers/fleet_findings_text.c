// SPDX-License-Identifier: Apache-2.0
// Numbers are rounded here and nowhere else.
#include "analysis/peers/fleet_findings_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/figures.h"
#include "model/nodeset.h"

// --- JSON --------------------------------------------------------------------------------------

enum { FINDING_DIGITS = 6 }; // significant ones, as in a summary

static void write_worst(const struct fleet_finding *one, const struct fleet *f, struct jsonw *w)
{
    const struct fleet_probe *p = &f->probe[one->probe];
    jsonw_object(w, "worst");
    jsonw_text(w, "metric", one->metric);
    jsonw_text(w, "unit", one->unit);
    jsonw_text(w, "benchmark", p->benchmark);
    jsonw_text(w, "variant", p->variant);
    jsonw_fixed(w, "percent", one->percent, 2);
    jsonw_fixed(w, "lo", one->lo, 2);
    jsonw_fixed(w, "hi", one->hi, 2);
    jsonw_digits(w, "value", one->value, FINDING_DIGITS);
    jsonw_digits(w, "class_median", one->peers, FINDING_DIGITS);
    jsonw_fixed(w, "class_mad_percent", one->spread, 2);
    jsonw_digits(w, "limit", one->limit, FINDING_DIGITS);
    jsonw_i64(w, "nodes", one->n_peers);
    jsonw_end(w);
}

static void write_differs(const struct differences *d, struct jsonw *w)
{
    jsonw_array(w, "differs_from_peers");
    for (int i = 0; i < d->n; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "fact", d->list[i].name);
        jsonw_text(w, "node", d->list[i].value);
        jsonw_text(w, "peers", d->list[i].others);
        jsonw_fixed(w, "node_share", d->list[i].share, 3);
        jsonw_fixed(w, "peers_share", d->list[i].others_share, 3);
        jsonw_end(w);
    }
    jsonw_end(w);
}

void fleet_finding_write_json(const struct fleet_finding *one, const struct fleet *f,
                              struct jsonw *w, const char *key)
{
    bool group = one->what == FINDING_GROUP;
    jsonw_object(w, key);
    jsonw_text(w, "what", fleet_finding_names[one->what]);
    jsonw_text(w, "grade", group ? NULL : peers_grade_names[one->grade]);
    jsonw_text(w, "node", group ? NULL : f->nodes.list[one->nodes[0]]);
    jsonw_array(w, "nodes");
    for (int i = 0; i < one->n_nodes; i++)
        jsonw_text(w, NULL, f->nodes.list[one->nodes[i]]);
    jsonw_end(w);
    jsonw_text(w, "class", f->classes.list[one->class]);
    jsonw_i64(w, "metrics_worse", one->worse);
    jsonw_i64(w, "of", one->of);
    jsonw_array(w, "metrics");
    for (int i = 0; i < one->n_metrics; i++)
        jsonw_text(w, NULL, one->metrics[i]);
    jsonw_end(w);
    write_worst(one, f, w);
    jsonw_digits(w, "p", one->p, FINDING_DIGITS);
    jsonw_digits(w, "q", one->q, FINDING_DIGITS);
    jsonw_fixed(w, "mirror", one->mirror, 2);
    jsonw_time(w, "since", one->since_ms);
    jsonw_array(w, "runs");
    for (int i = 0; i < one->n_runs; i++)
        jsonw_i64(w, NULL, one->runs[i]);
    jsonw_end(w);
    write_differs(&one->differs, w);
    jsonw_end(w);
}

void fleet_findings_write_json(const struct fleet_findings *list, const struct fleet *f,
                               struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_time(w, "evaluated", f->o.now_ms);
    jsonw_i64(w, "window_days", f->o.window_days);
    jsonw_i64(w, "classes", list->classes);
    jsonw_i64(w, "metrics", list->metrics);
    jsonw_i64(w, "nodes", list->nodes);
    jsonw_i64(w, "tested_nodes", list->tested);
    jsonw_i64(w, "fast_nodes", list->fast);
    jsonw_i64(w, "sure", list->grades[PEERS_SURE]);
    jsonw_i64(w, "suspect", list->grades[PEERS_SUSPECT]);
    jsonw_i64(w, "groups", list->groups);
    jsonw_object(w, "left_out");
    for (int i = 0; i < LEFT_OUT_KINDS; i++)
        jsonw_i64(w, fleet_reasons[i].name, list->left_out[i]);
    jsonw_end(w);
    jsonw_array(w, "findings");
    for (int i = 0; i < list->n; i++)
        fleet_finding_write_json(&list->list[i], f, w, NULL);
    jsonw_end(w);
    jsonw_end(w);
}

// --- Text --------------------------------------------------------------------------------------

// Four digits where there is a point: 148.9, 1.234, 12345.
static void number_text(double v, char *out, size_t room)
{
    int digits = v >= 1000 ? 0 : v >= 100 ? 1 : v >= 10 ? 2 : 3;
    if (isfinite(v))
        snprintf(out, room, "%.*f", digits, v);
    else
        snprintf(out, room, "-");
}

// "18 Nov"; another year with it: "18 Nov 2025".
static void date_text(int64_t ms, int64_t now_ms, char *out, size_t room)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    char then[32], now[32];
    if (ms <= 0) {
        snprintf(out, room, "-");
        return;
    }
    clock_rfc3339(ms, then);
    clock_rfc3339(now_ms > 0 ? now_ms : ms, now);
    const char *month = months[((then[5] - '0') * 10 + then[6] - '0' - 1) % 12];
    int day = (then[8] - '0') * 10 + then[9] - '0';
    if (strncmp(then, now, 10) == 0)
        snprintf(out, room, "today");
    else if (strncmp(then, now, 4) == 0)
        snprintf(out, room, "%d %s", day, month);
    else
        snprintf(out, room, "%d %s %.4s", day, month, then);
}

void fleet_finding_cells(const struct fleet_finding *one, const struct fleet *f,
                         struct fleet_finding_cells *out)
{
    char number[24];
    number_text(one->value, number, sizeof number);
    snprintf(out->value, sizeof out->value, "%s%s%s", number, *one->unit ? " " : "", one->unit);
    number_text(one->peers, out->peers, sizeof out->peers);
    if (isfinite(one->lo) && isfinite(one->hi))
        snprintf(out->diff, sizeof out->diff, "%+.1f %% ±%.1f", percent_written(one->percent),
                 (percent_written(one->hi) - percent_written(one->lo)) / 2);
    else
        snprintf(out->diff, sizeof out->diff, "%+.1f %%", percent_written(one->percent));
    snprintf(out->also, sizeof out->also, "%d/%d", one->worse, one->of);
    date_text(one->since_ms, f->o.now_ms, out->since, sizeof out->since);
}

void fleet_finding_differs(const struct fleet_finding *one, struct buf *out)
{
    if (one->differs.n == 0) {
        buf_char(out, '-');
        return;
    }
    const struct difference *d = &one->differs.list[0];
    buf_fmt(out, "%s %s (%.0f %% have %s)", d->name, d->value, 100 * d->others_share, d->others);
    if (one->differs.n > 1)
        buf_fmt(out, ", %d more", one->differs.n - 1);
}

void fleet_finding_nodes(const struct fleet_finding *one, const struct fleet *f, struct buf *out)
{
    CLEANUP_NODESET struct nodeset names = {0};
    for (int i = 0; i < one->n_nodes; i++)
        if (nodeset_add(&names, f->nodes.list[one->nodes[i]], NULL) < 0)
            break;
    nodeset_sort(&names);
    nodeset_fold(&names, out);
}

// What separates a group: of how many of them, and of how many others.
static void group_differs(const struct difference *d, struct buf *out)
{
    if (d->share > 0.999 && d->others_same <= 0)
        buf_str(out, ", all of them and no other: ");
    else
        buf_fmt(out, ", %.0f %% of them and %.0f %% of the others: ", 100 * d->share,
                100 * d->others_same);
    buf_fmt(out, "%s %s (others %s)", d->name, d->value, d->others);
}

void fleet_finding_sentence(const struct fleet_finding *one, const struct fleet *f, struct buf *out)
{
    struct fleet_finding_cells cells;
    fleet_finding_cells(one, f, &cells);
    if (one->n_nodes > 1)
        buf_fmt(out, "%d nodes ", one->n_nodes);
    fleet_finding_nodes(one, f, out);
    if (one->what == FINDING_GROUP) {
        buf_fmt(out, ": %s %+.1f %%", one->metric, percent_written(one->percent));
        if (one->differs.n)
            group_differs(&one->differs.list[0], out);
        return;
    }
    buf_fmt(out, ": %s %s, %s %s %s", one->metric, cells.value, cells.diff,
            one->what == FINDING_SLOWER ? "against its own past" : "against its peers' median",
            cells.peers);
    if (one->since_ms)
        buf_fmt(out, ", since %s", cells.since);
    buf_fmt(out, ", in %d of %d metrics", one->worse, one->of);
    if (one->differs.n) {
        buf_str(out, "; ");
        fleet_finding_differs(one, out);
    }
}

void fleet_findings_mirror_text(const struct fleet_findings *list, struct buf *out)
{
    if (list->fast == 0)
        buf_str(out, "no node is as far on the fast side");
    else if (list->fast == 1)
        buf_str(out, "1 node is as far on the fast side");
    else
        buf_fmt(out, "%d nodes are as far on the fast side", list->fast);
}

void fleet_findings_left_out_text(const struct fleet_findings *list, struct buf *out)
{
    for (int i = 0; i < LEFT_OUT_KINDS; i++)
        if (list->left_out[i])
            buf_fmt(out, "%s%ld %s", out->len ? "; " : "", list->left_out[i],
                    list->left_out[i] == 1 ? fleet_reasons[i].text : fleet_reasons[i].many);
}
