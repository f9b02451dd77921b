// SPDX-License-Identifier: Apache-2.0
// The points come from the store in order of time. Runs of different benchmarks and variants are
// different series: the one that was measured last is taken.
#include "fleet/resources/resources.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/setup_change.h"
#include "analysis/metrics/metrics.h"
#include "analysis/peers/class_days.h"
#include "analysis/peers/fleet_view.h"
#include "analysis/plot/history.h"
#include "analysis/stats/change_points.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_changes.h"
#include "fleet/services/stored_fleet.h"

enum {
    POINTS_MAX = 10000,        // the newest; 130 bytes each in JSON: 1.3 MB
    CHANGES_POINTS_MAX = 2000, // the newest are searched: 0.4 s at most
    BAND_RUNS_MAX = 1500,      // of a node and kind
};
#define BAND_DAY_MS INT64_C(86400000)

struct stored_point {
    int64_t measured_ms, seq, run;
    float value, lo, hi;
    int kind, class, config; // numbers of texts
};

struct stored_series {
    struct stored_point *list; // owned
    int n, room;
    int dropped; // before the oldest
    int others;  // that do not compare with the newest
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
    struct stored_point one = {p->measured_ms, p->seq, p->id, p->value, p->lo, p->hi, 0, 0, 0};
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
    s->others = s->n - n;
    s->n = n - s->dropped;
    memmove(s->list, s->list + s->dropped, (size_t)s->n * sizeof *s->list);
}

static struct setup_hashes machine_of(const struct stored_series *s, const struct stored_point *p)
{
    return (struct setup_hashes){s->texts.list[p->class], s->texts.list[p->config]};
}

static bool stored_setup_differs(const void *ctx, int i)
{
    const struct stored_series *s = ctx;
    const struct setup_hashes a = machine_of(s, &s->list[i - 1]), b = machine_of(s, &s->list[i]);
    return setup_hashes_differ(&a, &b);
}

static int write_stored_cause(const struct request *q, struct stored_series *s, int at,
                              struct jsonw *w, struct err *err)
{
    const struct setup_change cause = setup_change_find(at, s->n, stored_setup_differs, s);
    const struct stored_point *first = &s->list[at + cause.runs];
    const struct setup_hashes before = machine_of(s, first - 1), now = machine_of(s, first);
    setup_change_write_json(&cause, w);
    return stored_changes_write(fleet_of(q)->store, &before, &now, w, err);
}

static int write_stored_changes(const struct request *q, struct stored_series *s,
                                const char *metric, struct jsonw *w, struct err *err)
{
    struct series_options options = SERIES_DEFAULTS;
    int from = s->n > CHANGES_POINTS_MAX ? s->n - CHANGES_POINTS_MAX : 0, searched, rc = 0;
    CLEANUP_MEM struct change_point *found = NULL;
    CLEANUP_MEM double *v = calloc((size_t)(s->n - from) + 1, sizeof *v);
    if (!v)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a series");
    for (int i = from; i < s->n; i++)
        v[i - from] = (double)s->list[i].value;
    options.one = metric_one(metric);
    int n = series_changes(&found, &searched, v, s->n - from, &options, err);
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
        rc = write_stored_cause(q, s, from + found[i].at, w, err);
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
        jsonw_i64(w, "run", s->list[i].run);
        jsonw_time(w, "measured", s->list[i].measured_ms);
        jsonw_fixed(w, "value", (double)s->list[i].value, 3);
        jsonw_fixed(w, "lo", (double)s->list[i].lo, 3);
        jsonw_fixed(w, "hi", (double)s->list[i].hi, 3);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_i64(w, "left_out", s->dropped);
    jsonw_i64(w, "other_runs", s->others);
}

static int no_series(const struct request *q, const struct fleet_line *line, struct err *err)
{
    CLEANUP_NODESET struct nodeset one = {0};
    if (nodeset_add(&one, line->node, err) < 0) {
        snprintf(err->member, sizeof err->member, "node");
        return -1;
    }
    return where_is_stored(q, &one, "node", err) < 0
               ? -1
               : err_set(err, ERR_NOT_FOUND, "metric",
                         "no run of node %.63s has the metric \"%.64s\", or none in time",
                         line->node, line->metric);
}

static int read_stored_series(const struct request *q, struct fleet_line *line,
                              struct stored_series *s, struct err *err)
{
    if (fleet_store_series(fleet_of(q)->store, line, keep_point, s, err) < 0)
        return -1;
    return s->n ? 0 : no_series(q, line, err);
}

// ---- The class ----------------------------------------------------------------------------------

// What the nodes of a class had on each day of a stretch of time.
struct stored_days {
    struct fleet *fleet;
    struct class_days days;
};

static void stored_days_fini(struct stored_days *d)
{
    class_days_fini(&d->days);
    fleet_cleanup(&d->fleet);
}
#define CLEANUP_STORED_DAYS CLEANUP(stored_days_fini)

// `class`: a hash, or its beginning.
static int stored_days_read(const struct request *q, const struct fleet_line *line,
                            const char *class, struct stored_days *out, struct err *err)
{
    struct fleet_options o = FLEET_DEFAULTS;
    struct fleet_window w = {
        .since_ms = line->since_ms, .until_ms = line->until_ms, .values_only = true};
    o.now_ms = clock_wall_ms();
    o.runs_max = BAND_RUNS_MAX;
    w.since_ms = stretch_begins(q, w.since_ms, w.until_ms);
    if (*class)
        w.class_hash = class; // the others need not be read
    out->fleet = stored_fleet_read(q, &o, &w, err);
    int of = out->fleet ? fleet_class_find(out->fleet, class, err) : -1;
    return of < 0 ? -1 : class_days_make(&out->days, out->fleet, of, line->metric, err);
}

static int write_day_changes(const struct class_days *c, struct jsonw *w, struct err *err)
{
    struct series_options options = SERIES_DEFAULTS;
    int from = c->n > CHANGES_POINTS_MAX ? c->n - CHANGES_POINTS_MAX : 0, searched;
    CLEANUP_MEM struct change_point *found = NULL;
    CLEANUP_MEM double *v = calloc((size_t)(c->n - from) + 1, sizeof *v);
    if (!v)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a series");
    for (int i = from; i < c->n; i++)
        v[i - from] = c->list[i].median;
    options.one = metric_one(c->metric);
    int n = series_changes(&found, &searched, v, c->n - from, &options, err);
    if (n < 0)
        return -1;
    jsonw_i64(w, "searched", searched);
    jsonw_array(w, "change_points");
    for (int i = 0; i < n; i++) {
        jsonw_object(w, NULL);
        jsonw_time(w, "at", c->list[from + found[i].at].day * BAND_DAY_MS);
        jsonw_fixed(w, "before", found[i].before, 3);
        jsonw_fixed(w, "after", found[i].after, 3);
        jsonw_fixed(w, "percent", found[i].percent, 2);
        jsonw_fixed(w, "p", found[i].p, 4);
        jsonw_end(w);
    }
    jsonw_end(w);
    return 0;
}

static void write_days(const struct class_days *c, const char *key, struct jsonw *w)
{
    jsonw_array(w, key);
    for (int i = 0; i < c->n; i++)
        class_day_write_json(&c->list[i], w);
    jsonw_end(w);
}

static int class_history(const struct request *q, const struct fleet_line *line, const char *class,
                         struct buf *body, struct err *err)
{
    CLEANUP_STORED_DAYS struct stored_days d = {0};
    struct jsonw w = jsonw_to(body);
    if (stored_days_read(q, line, class, &d, err) < 0)
        return -1;
    jsonw_object(&w, NULL);
    jsonw_text(&w, "metric", d.days.metric);
    jsonw_text(&w, "class", d.fleet->classes.list[d.days.class]);
    jsonw_text(&w, "unit", d.days.unit);
    jsonw_text(&w, "better", d.days.more ? "more" : "less");
    write_days(&d.days, "days", &w);
    if (write_day_changes(&d.days, &w, err) < 0)
        return -1;
    jsonw_end(&w);
    return 0;
}

// ---- The node -----------------------------------------------------------------------------------

// The days of its class, from its first point on the response has.
static int write_band(const struct request *q, const struct fleet_line *line,
                      const struct stored_series *s, struct jsonw *w, struct err *err)
{
    CLEANUP_STORED_DAYS struct stored_days d = {0};
    const char *class = s->texts.list[s->list[s->n - 1].class];
    if (stored_days_read(q, line, class, &d, err) < 0)
        return -1;
    jsonw_text(w, "class", class);
    write_days(&d.days, "band", w);
    return 0;
}

static int node_history(const struct request *q, struct fleet_line *line, struct buf *body,
                        struct err *err)
{
    CLEANUP_SERIES struct stored_series s = {0};
    struct jsonw w = jsonw_to(body);
    bool band = false;
    if (request_query_bool(q, "band", &band, err) < 0 || read_stored_series(q, line, &s, err) < 0)
        return -1;
    keep_newest_kind(&s);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "metric", line->metric);
    jsonw_text(&w, "node", line->node);
    jsonw_text(&w, "unit", s.unit);
    jsonw_text(&w, "better", metric_more_is_better(s.unit) ? "more" : "less");
    write_stored_points(&s, &w);
    if (write_stored_changes(q, &s, line->metric, &w, err) < 0 ||
        (band && write_band(q, line, &s, &w, err) < 0))
        return -1;
    jsonw_end(&w);
    return 0;
}

static int make_history(const struct request *q, struct buf *body, struct err *err)
{
    const char *class = request_query(q, "class");
    struct fleet_line line = {.metric = request_query(q, "metric"),
                              .node = request_query(q, "node")};
    if (!line.metric || !*line.metric)
        return err_set(err, ERR_INVALID, "metric",
                       "must be a metric, such as latency.local.dram.median_ns");
    if (!line.node == !class)
        return err_set(err, ERR_INVALID, "node", "give either the name of a node, or a class");
    if (stretch_read(q, &line.since_ms, &line.until_ms, err) < 0)
        return -1;
    return class ? class_history(q, &line, class, body, err) : node_history(q, &line, body, err);
}

int fleetd_history(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    return make_history(q, &body, err) < 0 ? -1 : reply_json(r, 200, &body, err);
}

// The same as a picture.
int fleetd_history_svg(struct request *q, struct reply *r, struct err *err)
{
    struct history_picture picture CLEANUP(history_fini) = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_BUF struct buf svg = BUF_INIT;
    CLEANUP_JSON struct json *answer = NULL;
    if (make_history(q, &body, err) < 0)
        return -1;
    answer = json_parse(buf_text(&body), body.len, err);
    if (!answer || history_from_json(&picture, answer, err) < 0 ||
        history_write_svg(&picture, &svg, err) < 0)
        return -1;
    return reply_text(r, "image/svg+xml", &svg, err);
}
