// SPDX-License-Identifier: Apache-2.0
// The points come from the store in order of time. Runs of different benchmarks and variants are
// different series: the one that was measured last is taken.
#include "fleet/resources/resources.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/interned.h"
#include "analysis/stats/change_points.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_changes.h"

enum {
    POINTS_MAX = 10000,        // the newest; 130 bytes each in JSON: 1.3 MB
    CHANGES_POINTS_MAX = 2000, // the newest are searched: 0.4 s at most
};

struct stored_point {
    int64_t measured_ms, seq;
    float value, lo, hi;
    int kind, class, config; // numbers of texts
};

struct stored_series {
    struct stored_point *list; // owned
    int n, room;
    int dropped; // before the oldest
    struct interned texts;
    char unit[16];
};

static void stored_series_fini(struct stored_series *s)
{
    free(s->list);
    interned_fini(&s->texts);
}
#define CLEANUP_SERIES CLEANUP(stored_series_fini)

static int keep_point(void *ctx, const struct fleet_store_point *p, struct err *err)
{
    struct stored_series *s = ctx;
    char kind[400];
    if (p->imported)
        return 0; // a copy of another node's run
    if (s->n == s->room) {
        int room = s->room ? 2 * s->room : 256;
        struct stored_point *more = realloc(s->list, (size_t)room * sizeof *more);
        if (!more)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for %d points", room);
        s->list = more;
        s->room = room;
    }
    snprintf(kind, sizeof kind, "%s\t%s\t%s\t%d", p->benchmark, p->variant, p->method,
             p->metrics_version);
    struct stored_point one = {p->measured_ms, p->seq, p->value, p->lo, p->hi, 0, 0, 0};
    one.kind = interned_add(&s->texts, kind, err);
    one.class = one.kind < 0 ? -1 : interned_add(&s->texts, p->class_hash, err);
    one.config = one.class < 0 ? -1 : interned_add(&s->texts, p->config_hash, err);
    if (one.config < 0)
        return -1;
    snprintf(s->unit, sizeof s->unit, "%s", p->unit);
    s->list[s->n++] = one;
    return 0;
}

// Only what can be compared with the newest point, and at most POINTS_MAX of it.
static void keep_newest_kind(struct stored_series *s)
{
    int n = 0, kind = s->list[s->n - 1].kind;
    for (int i = 0; i < s->n; i++)
        if (s->list[i].kind == kind)
            s->list[n++] = s->list[i];
    s->dropped = n > POINTS_MAX ? n - POINTS_MAX : 0;
    s->n = n - s->dropped;
    memmove(s->list, s->list + s->dropped, (size_t)s->n * sizeof *s->list);
}

static struct stored_machine machine_of(const struct stored_series *s, const struct stored_point *p)
{
    return (struct stored_machine){s->texts.list[p->class], s->texts.list[p->config]};
}

static int write_stored_changes(const struct request *q, const struct stored_series *s,
                                struct jsonw *w, struct err *err)
{
    int from = s->n > CHANGES_POINTS_MAX ? s->n - CHANGES_POINTS_MAX : 0, searched, rc = 0;
    CLEANUP_MEM struct change_point *found = NULL;
    CLEANUP_MEM double *v = calloc((size_t)(s->n - from) + 1, sizeof *v);
    if (!v)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a series");
    for (int i = from; i < s->n; i++)
        v[i - from] = (double)s->list[i].value;
    int n = series_changes(&found, &searched, v, s->n - from, &SERIES_DEFAULTS, err);
    if (n < 0)
        return -1;
    jsonw_i64(w, "searched", searched);
    jsonw_array(w, "change_points");
    for (int i = 0; i < n && rc == 0; i++) {
        const struct stored_point *after = &s->list[from + found[i].at];
        jsonw_object(w, NULL);
        jsonw_time(w, "at", after->measured_ms);
        jsonw_i64(w, "seq", after->seq);
        jsonw_fixed(w, "before", found[i].before, 3);
        jsonw_fixed(w, "after", found[i].after, 3);
        jsonw_fixed(w, "percent", found[i].percent, 2);
        jsonw_fixed(w, "p", found[i].p, 4);
        const struct stored_machine before = machine_of(s, after - 1), now = machine_of(s, after);
        rc = stored_changes_write(fleet_of(q)->store, &before, &now, w, err);
        jsonw_end(w);
    }
    jsonw_end(w);
    return rc;
}

static void write_stored_points(const struct stored_series *s, struct jsonw *w)
{
    jsonw_array(w, "points");
    for (int i = 0; i < s->n; i++) {
        jsonw_object(w, NULL);
        jsonw_i64(w, "seq", s->list[i].seq);
        jsonw_time(w, "measured", s->list[i].measured_ms);
        jsonw_fixed(w, "value", (double)s->list[i].value, 3);
        jsonw_fixed(w, "lo", (double)s->list[i].lo, 3);
        jsonw_fixed(w, "hi", (double)s->list[i].hi, 3);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_i64(w, "left_out", s->dropped);
}

static int read_stored_series(const struct request *q, struct fleet_line *line,
                              struct stored_series *s, struct err *err)
{
    line->metric = request_query(q, "metric");
    line->node = request_query(q, "node");
    if (!line->metric || !metric_rule_find(line->metric, NULL))
        return err_set(err, ERR_INVALID, "metric",
                       "must be a metric, such as latency.local.dram.median_ns");
    if (!line->node)
        return err_set(err, ERR_INVALID, "node", "must be the name of a node");
    if (request_query_time(q, "since", &line->since_ms, err) < 0 ||
        request_query_time(q, "until", &line->until_ms, err) < 0 ||
        fleet_store_series(fleet_of(q)->store, line, keep_point, s, err) < 0)
        return -1;
    return s->n ? 0
                : err_set(err, ERR_NOT_FOUND, "metric", "no run of node %.63s has this metric",
                          line->node);
}

int fleetd_history(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_SERIES struct stored_series s = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct fleet_line line = {0};
    struct jsonw w = jsonw_to(&body);
    if (read_stored_series(q, &line, &s, err) < 0)
        return -1;
    keep_newest_kind(&s);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "metric", line.metric);
    jsonw_text(&w, "node", line.node);
    jsonw_text(&w, "unit", s.unit);
    jsonw_text(&w, "better", metric_more_is_better(s.unit) ? "more" : "less");
    write_stored_points(&s, &w);
    if (write_stored_changes(q, &s, &w, err) < 0)
        return -1;
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}
