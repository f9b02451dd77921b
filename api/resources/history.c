// SPDX-License-Identifier: Apache-2.0
// A metric over runs, with its change points, also as a picture; or what metrics there are.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/setup_change.h"
#include "analysis/metrics/metrics.h"
#include "analysis/plot/history.h"
#include "analysis/stats/change_points.h"
#include "analysis/stats/detectable.h"
#include "api/resources/resources.h"
#include "api/services/work.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "core/results/machine_then.h"
#include "core/store/history.h"
#include "core/store/size.h"

enum {
    POINTS_DEFAULT = 2200,     // 90 days of hourly runs are 2,160
    POINTS_MAX = 10000,        // 130 bytes each in JSON: 1.3 MB
    CHANGES_POINTS_MAX = 2000, // the newest are searched: 35 ms with nine changes, 0.4 s at most
    SERIES_MAX = 500,          // in one list, 200 bytes each
    COUNTED_MAX = 100000,      // points counted for one list of series: 5 ms
};

// --- Series ------------------------------------------------------------------------------------

struct listing {
    struct jsonw w;
    struct store *store;
    int left; // points that may still be counted
    int n;
    struct err failed; // when one could not be counted, code is not 0
};

static void history_list_one(void *ctx, const struct series_info *i)
{
    struct listing *l = ctx;
    int n = 0;
    bool known = store_series_count(l->store, i->id, l->left + 1, &n, &l->failed) == 0;
    bool counted = known && n <= l->left;
    l->left = counted ? l->left - n : 0;
    l->n++;
    jsonw_object(&l->w, NULL);
    jsonw_text(&l->w, "metric", i->metric);
    jsonw_text(&l->w, "node", i->node);
    jsonw_text(&l->w, "variant", i->variant);
    jsonw_text(&l->w, "unit", i->unit);
    jsonw_text(&l->w, "better", metric_more_is_better(i->unit) ? "more" : "less");
    if (counted)
        jsonw_i64(&l->w, "count", n);
    else
        jsonw_null(&l->w, "count");
    jsonw_time(&l->w, "first", i->first_ms);
    jsonw_time(&l->w, "last", i->last_ms);
    jsonw_i64(&l->w, "last_run", i->last_run);
    jsonw_fixed(&l->w, "last_value", i->last_value, 3);
    jsonw_end(&l->w);
}

static int write_series(const struct request *q, const struct series_filter *f, struct listing *l,
                        struct err *err)
{
    bool more;
    jsonw_array(&l->w, "series");
    if (store_series_list(api_of(q)->store, f, history_list_one, l, &more, err) < 0)
        return -1;
    if (l->failed.code) {
        *err = l->failed;
        return -1;
    }
    jsonw_end(&l->w);
    jsonw_bool(&l->w, "more_series", more);
    return 0;
}

// Runs that a history lacks because their metrics are not computed yet: what is missing may be all
// of it, so nothing is concluded from the rest. `node` NULL: of all nodes.
static int count_pending(const struct request *q, const char *node, int64_t *n, struct err *err)
{
    return store_runs_pending(api_of(q)->store, METRICS_VERSION, node, RUNS_PENDING_MAX, n, err);
}

// --- The requested series ----------------------------------------------------------------------

struct chosen {
    int64_t id, last_ms;
    struct buf variant;
    char unit[8];
};

static void chosen_fini(struct chosen *c)
{
    buf_free(&c->variant);
}

static void choose_newer(void *ctx, const struct series_info *i)
{
    struct chosen *c = ctx;
    if (c->id && i->last_ms <= c->last_ms)
        return;
    c->id = i->id;
    c->last_ms = i->last_ms;
    buf_reset(&c->variant);
    buf_str(&c->variant, i->variant);
    snprintf(c->unit, sizeof c->unit, "%s", i->unit);
}

// The variant that was measured last until now. Runs that are dated in the future count where there
// are no others. No id: there is none.
static int choose_series(struct store *s, const struct series_filter *f, struct chosen *c,
                         struct err *err)
{
    struct series_filter now = *f;
    bool more;
    now.until_ms = clock_wall_ms();
    if (store_series_list(s, &now, choose_newer, c, &more, err) < 0)
        return -1;
    return c->id ? 0 : store_series_list(s, f, choose_newer, c, &more, err);
}

static int find_series(const struct request *q, const struct series_filter *f, int64_t pending,
                       struct chosen *c, struct err *err)
{
    if (!metric_rule_find(f->metric, NULL))
        return err_set(err, ERR_INVALID, "metric",
                       "\"%.60s\" is not a metric (GET /v1/history lists the metrics)", f->metric);
    if (choose_series(api_of(q)->store, f, c, err) < 0)
        return -1;
    if (!c->id && pending)
        return err_set(
            err, ERR_CONFLICT, "pending",
            "no run on node %.63s has this metric yet, but the metrics of %lld run%s are "
            "not computed yet; try again",
            f->node, (long long)pending, str_plural(pending));
    if (!c->id)
        return err_set(err, ERR_NOT_FOUND, f->variant ? "variant" : "metric",
                       "no run on node %.63s has this metric%s (GET /v1/history lists them)",
                       f->node, f->variant ? " in this variant" : "");
    return buf_ok(&c->variant) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a name");
}

// --- Change points -----------------------------------------------------------------------------

// The last answers of series_changes, which is pure: the same values, the same changes. A dashboard
// requests the same few series again and again.
enum { MEMO_ROOM = 16 };
static struct memo {
    uint64_t hash;
    double one;
    int n_values, n, searched;
    struct change_point *list; // owned
} memo[MEMO_ROOM];
static int memo_next;

// Borrowed until the next call.
static const struct memo *changes_of(const double *v, int n, double one, struct err *err)
{
    struct series_options options = SERIES_DEFAULTS;
    uint64_t hash = hash_bytes(v, (size_t)n * sizeof *v);
    for (int i = 0; i < MEMO_ROOM; i++)
        if (memo[i].n_values == n && memo[i].hash == hash && memo[i].one == one && n)
            return &memo[i];
    struct memo *m = &memo[memo_next];
    struct change_point *list = NULL;
    int searched = 0;
    options.one = one;
    int found = n ? series_changes(&list, &searched, v, n, &options, err) : 0;
    if (found < 0)
        return NULL;
    memo_next = (memo_next + 1) % MEMO_ROOM;
    free(m->list);
    *m = (struct memo){hash, one, n, found, searched, list};
    return m;
}

struct measured_points {
    struct store *store;
    const struct history_point *list;
    int n;
};

// The set-ups of the runs in which a change of set-up is looked for, and of the one before them.
struct near_setups {
    int from; // the first one's place in the history
    struct run_setup list[2 * SETUP_CHANGE_REACH + 2];
};

static int near_setups_read(struct near_setups *near, const struct measured_points *p, int at,
                            struct err *err)
{
    near->from = at > SETUP_CHANGE_REACH ? at - SETUP_CHANGE_REACH - 1 : 0;
    for (int i = near->from; i < p->n && i <= at + SETUP_CHANGE_REACH; i++)
        if (store_run_setup(p->store, p->list[i].run_id, &near->list[i - near->from], err) < 0)
            return -1;
    return 0;
}

static struct setup_hashes near_setup(const struct near_setups *near, int i)
{
    const struct run_setup *s = &near->list[i - near->from];
    return (struct setup_hashes){s->class_hash, s->config_hash};
}

static bool near_setup_differs(const void *near, int i)
{
    const struct setup_hashes a = near_setup(near, i - 1), b = near_setup(near, i);
    return setup_hashes_differ(&a, &b);
}

static int write_change_cause(const struct measured_points *p, int at, struct jsonw *w,
                              struct err *err)
{
    struct near_setups near;
    if (near_setups_read(&near, p, at, err) < 0)
        return -1;
    const struct setup_change cause = setup_change_find(at, p->n, near_setup_differs, &near);
    const struct setup_hashes before = near_setup(&near, at + cause.runs - 1),
                              now = near_setup(&near, at + cause.runs);
    setup_change_write_json(&cause, w);
    return machine_then_write_setups(p->store, &before, &now, w, "fact_changes", err);
}

static int write_change(struct measured_points *p, const struct change_point *c, struct jsonw *w,
                        struct err *err)
{
    const struct history_point *after = &p->list[c->at], *before = after - 1;
    jsonw_object(w, NULL);
    jsonw_time(w, "at", after->measured_ms);
    jsonw_i64(w, "run", after->run_id);
    jsonw_i64(w, "run_before", before->run_id);
    jsonw_fixed(w, "before", c->before, 3);
    jsonw_fixed(w, "after", c->after, 3);
    jsonw_fixed(w, "percent", c->percent, 2);
    jsonw_fixed(w, "p", c->p, 4);
    if (write_change_cause(p, c->at, w, err) < 0)
        return -1;
    jsonw_end(w);
    return 0;
}

static void write_detectable(const struct detectable *d, struct jsonw *w)
{
    jsonw_object(w, "detectable");
    jsonw_i64(w, "runs", d->runs);
    jsonw_fixed(w, "cv_percent", d->cv_percent, 2);
    jsonw_fixed(w, "one_run_percent", d->one_run_percent, 2);
    jsonw_fixed(w, "three_run_percent", d->three_run_percent, 2);
    jsonw_end(w);
}

static int write_changes(const struct request *q, const struct history_point *points, int n,
                         double one, struct jsonw *w, struct err *err)
{
    int from = n > CHANGES_POINTS_MAX ? n - CHANGES_POINTS_MAX : 0;
    CLEANUP_MEM double *v = calloc((size_t)(n - from) + 1, sizeof *v);
    if (!v)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a series");
    for (int i = from; i < n; i++)
        v[i - from] = points[i].value;
    const struct memo *found = changes_of(v, n - from, one, err);
    if (!found)
        return -1;
    int level = found->n ? found->list[found->n - 1].at : 0;
    struct detectable d = series_detectable(v, level, n - from, one);
    write_detectable(&d, w);
    jsonw_i64(w, "searched", found->searched);
    jsonw_array(w, "change_points");
    struct measured_points searched = {api_of(q)->store, points + from, n - from};
    for (int i = 0; i < found->n; i++)
        if (write_change(&searched, &found->list[i], w, err) < 0)
            return -1;
    jsonw_end(w);
    return 0;
}

// While runs are missing it is not known whether there is a change.
static int write_no_changes(struct jsonw *w)
{
    jsonw_null(w, "detectable");
    jsonw_i64(w, "searched", 0);
    jsonw_null(w, "change_points");
    return 0;
}

// --- The answer --------------------------------------------------------------------------------

static void write_points(const struct history_point *points, int n, struct jsonw *w)
{
    jsonw_array(w, "points");
    for (int i = 0; i < n; i++) {
        jsonw_object(w, NULL);
        jsonw_i64(w, "run", points[i].run_id);
        jsonw_time(w, "measured", points[i].measured_ms);
        jsonw_fixed(w, "value", points[i].value, 3);
        jsonw_fixed(w, "lo", points[i].lo, 3);
        jsonw_fixed(w, "hi", points[i].hi, 3);
        jsonw_end(w);
    }
    jsonw_end(w);
}

struct window {
    int64_t since_ms, until_ms, limit;
};

static int read_window(const struct request *q, struct window *win, struct err *err)
{
    *win = (struct window){.limit = POINTS_DEFAULT};
    if (request_query_stretch(q, &win->since_ms, &win->until_ms, err) < 0)
        return -1;
    return request_query_int(q, "limit", 1, POINTS_MAX, &win->limit, err);
}

static void write_head(const struct series_filter *f, const struct chosen *c, struct jsonw *w)
{
    const struct metric_rule *rule = metric_rule_find(f->metric, NULL);
    buf_needs(w->out, &c->variant);
    jsonw_text(w, "metric", f->metric);
    jsonw_text(w, "help", rule->help);
    jsonw_text(w, "node", f->node);
    jsonw_text(w, "variant", buf_text(&c->variant));
    jsonw_text(w, "unit", c->unit);
    jsonw_text(w, "better", metric_more_is_better(c->unit) ? "more" : "less");
}

// `series`: with a list of all series of the metric.
static int write_history(const struct request *q, const struct series_filter *f,
                         const struct window *win, bool series, struct buf *body, struct err *err)
{
    struct chosen c CLEANUP(chosen_fini) = {0};
    CLEANUP_MEM struct history_point *points = NULL;
    struct listing l = {.w = jsonw_to(body), .store = api_of(q)->store, .left = COUNTED_MAX};
    struct series_filter variants = *f;
    int64_t pending;
    bool more;
    int n;
    variants.variant = NULL;
    if (count_pending(q, f->node, &pending, err) < 0 || find_series(q, f, pending, &c, err) < 0 ||
        store_history(api_of(q)->store, c.id, win->since_ms, win->until_ms, (int)win->limit,
                      &points, &n, &more, err) < 0)
        return -1;
    jsonw_object(&l.w, NULL);
    write_head(f, &c, &l.w);
    write_points(points, n, &l.w);
    jsonw_bool(&l.w, "more", more);
    jsonw_i64(&l.w, "pending", pending);
    if ((pending ? write_no_changes(&l.w)
                 : write_changes(q, points, n, metric_one(f->metric), &l.w, err)) < 0 ||
        (series && write_series(q, &variants, &l, err) < 0))
        return -1;
    jsonw_end(&l.w);
    return buf_ok(body) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a history");
}

static int send_history(const struct request *q, const struct series_filter *f,
                        const struct window *win, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (write_history(q, f, win, true, &body, err) < 0)
        return -1;
    r->store = true;
    return reply_json(r, 200, &body, err);
}

static int send_list(const struct request *q, const struct series_filter *f, struct reply *r,
                     struct err *err)
{
    static const char *const of_points[] = {"since", "until", "limit"};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct listing l = {.w = jsonw_to(&body), .store = api_of(q)->store, .left = COUNTED_MAX};
    for (unsigned i = 0; i < COUNT_OF(of_points); i++)
        if (request_query(q, of_points[i]))
            return err_set(err, ERR_INVALID, of_points[i],
                           "goes with metric=; without it the series are listed");
    int64_t pending;
    if (count_pending(q, f->node, &pending, err) < 0)
        return -1;
    jsonw_object(&l.w, NULL);
    jsonw_i64(&l.w, "pending", pending);
    if (write_series(q, f, &l, err) < 0)
        return -1;
    jsonw_end(&l.w);
    r->store = true;
    return reply_json(r, 200, &body, err);
}

static struct series_filter filter_of(const struct request *q, int limit)
{
    return (struct series_filter){.metric = request_query(q, "metric"),
                                  .node = request_query(q, "node"),
                                  .variant = request_query(q, "variant"),
                                  .limit = limit};
}

int history_get(struct request *q, struct reply *r, struct err *err)
{
    struct series_filter f = filter_of(q, SERIES_MAX);
    struct window win;
    if (request_query_filter(q, "node", &f.node, err) < 0)
        return -1;
    if (!f.metric)
        return send_list(q, &f, r, err);
    if (!f.node)
        f.node = api_of(q)->machine->hostname;
    return read_window(q, &win, err) < 0 ? -1 : send_history(q, &f, &win, r, err);
}

// The same as a picture.
int history_svg(struct request *q, struct reply *r, struct err *err)
{
    struct series_filter f = filter_of(q, SERIES_MAX);
    struct history_picture picture CLEANUP(history_fini) = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_BUF struct buf svg = BUF_INIT;
    CLEANUP_JSON struct json *answer = NULL;
    struct window win;
    if (request_query_filter(q, "node", &f.node, err) < 0)
        return -1;
    if (!f.metric)
        return err_set(err, ERR_INVALID, "metric",
                       "is missing (GET /v1/history lists the metrics)");
    if (!f.node)
        f.node = api_of(q)->machine->hostname;
    if (read_window(q, &win, err) < 0 || write_history(q, &f, &win, false, &body, err) < 0)
        return -1;
    answer = json_parse(buf_text(&body), body.len, err);
    if (!answer || history_from_json(&picture, answer, err) < 0 ||
        history_write_svg(&picture, &svg, err) < 0)
        return -1;
    r->store = true;
    return reply_text(r, "image/svg+xml", &svg, err);
}

// --- What it costs -----------------------------------------------------------------------------

enum {
    SERIES_FEW = 50,    // all that there are: listed in 2 ms
    COUNTED_FEW = 5000, // points of all series: counted in 0.2 ms, and up to COUNTED_MAX in 5 ms
    POINTS_FEW = 200,   // searched for changes in 2 ms
    POINT_US = 50,      // of those that are searched
};

// Every answer lists series and counts their points.
static void add_list(const struct request *q, struct work *w, struct err *why)
{
    int64_t series = 0, points = 0;
    if (store_total(api_of(q)->store, STORE_SERIES, SERIES_FEW + 1, &series, why) < 0 ||
        store_total(api_of(q)->store, STORE_POINTS, COUNTED_FEW + 1, &points, why) < 0)
        return;
    w->bytes += (size_t)SERIES_MAX * 300;
    if (series > SERIES_FEW || points > COUNTED_FEW)
        w->us += 2 * WORK_INLINE_US;
}

void history_work(const struct request *q, struct work *w, struct err *why)
{
    struct series_filter f = filter_of(q, SERIES_FEW);
    struct chosen newest CLEANUP(chosen_fini) = {0};
    struct window win;
    int n = 0;
    add_list(q, w, why);
    if (!f.metric || w->us)
        return; // that it is large is enough
    if (!f.node)
        f.node = api_of(q)->machine->hostname;
    if (read_window(q, &win, why) < 0 || choose_series(api_of(q)->store, &f, &newest, why) < 0 ||
        !newest.id || store_series_count(api_of(q)->store, newest.id, (int)win.limit, &n, why) < 0)
        return;
    w->us += n > POINTS_FEW ? (int64_t)n * POINT_US : 0;
    w->bytes += (size_t)n * 200;
}
