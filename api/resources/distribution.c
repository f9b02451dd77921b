// SPDX-License-Identifier: Apache-2.0
// How the samples of a cell are distributed, or those of all cells of a column or row together: the
// bins as JSON and CSV, and a picture.
#include "analysis/plot/distribution.h"

#include <string.h>

#include "analysis/plot/plot.h"
#include "analysis/stats/pooled.h"
#include "api/resources/measured.h"
#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"

enum { DIGITS = 4, SHARE_DIGITS = 5, AXIS_ALL = -1 };

struct chosen_cells {
    struct measured measured;
    const struct matrix *m;
    int row, col; // AXIS_ALL: of all
    int cells;    // that have a distribution
    struct histogram h;
    char title[DISTRIBUTION_TITLE_ROOM];
};

static void cells_fini(struct chosen_cells *c)
{
    measured_fini(&c->measured);
}

// By its number, its label, or its size in any unit.
static bool is_value(const struct axis *a, int i, const char *text)
{
    char label[AXIS_LABEL_ROOM];
    int64_t number;
    uint64_t bytes;
    axis_label(a, i, label, sizeof label);
    return strcmp(label, text) == 0 || (str_to_i64(text, &number) && number == a->values[i]) ||
           (strcmp(a->unit, "bytes") == 0 && str_to_bytes(text, 1, &bytes) &&
            (int64_t)bytes == a->values[i]);
}

static int find_value(const struct request *q, const char *parameter, const struct axis *a, int def,
                      int *at, struct err *err)
{
    const char *text = request_query(q, parameter);
    char label[AXIS_LABEL_ROOM];
    bool all = text && strcmp(text, "all") == 0;
    *at = all ? AXIS_ALL : def;
    if (!text || all)
        return 0;
    for (int i = 0; i < a->n; i++)
        if (is_value(a, i, text)) {
            *at = i;
            return 0;
        }
    if (strcmp(a->unit, "bytes") == 0)
        str_rough_size((double)a->values[a->n - 1], label, sizeof label);
    else
        axis_label(a, a->n - 1, label, sizeof label);
    return err_set(err, ERR_NOT_FOUND, parameter,
                   "\"%.40s\" is no %s of the matrix; it has %d, the last is %s. \"all\" takes all",
                   text, a->name, a->n, label);
}

static int distribution_choose(const struct request *q, struct chosen_cells *c, struct err *err)
{
    struct plot p = {0};
    if (measured_load(q, &c->measured, err) < 0 ||
        plot_choose(&p, c->measured.list, c->measured.n, request_query(q, "matrix"), err) < 0)
        return -1;
    c->m = p.matrix;
    if (find_value(q, "row", &c->m->row, AXIS_ALL, &c->row, err) < 0 ||
        find_value(q, "col", &c->m->col, c->m->col.n - 1, &c->col, err) < 0)
        return -1;
    c->cells = pooled_cells(&c->h, c->m, c->row, c->col);
    distribution_title(c->m, c->row, c->col, c->title, sizeof c->title);
    return c->cells ? 0
                    : err_set(err, ERR_NOT_FOUND, "distribution",
                              "no distribution is stored of: %s. A cell needs two undisturbed "
                              "samples, and a version of numaprobe that stores distributions",
                              c->title);
}

static void write_value(const struct axis *a, int at, struct jsonw *w, const char *key)
{
    char label[AXIS_LABEL_ROOM];
    jsonw_object(w, key);
    jsonw_text(w, "name", a->name);
    if (at >= 0)
        axis_label(a, at, label, sizeof label);
    jsonw_text(w, "value", at >= 0 ? label : NULL);
    jsonw_end(w);
}

static void write_bins(const struct histogram *h, struct jsonw *w)
{
    int64_t below = 0;
    jsonw_array(w, "bins");
    for (int i = 0; i < h->n_bins; i++) {
        below += h->counts[i];
        jsonw_object(w, NULL);
        jsonw_fixed(w, "lower", pooled_edge(h, i), DIGITS);
        jsonw_fixed(w, "upper", pooled_edge(h, i + 1), DIGITS);
        jsonw_i64(w, "count", h->counts[i]);
        jsonw_fixed(w, "cumulative", (double)below / (double)h->n, SHARE_DIGITS);
        jsonw_end(w);
    }
    jsonw_end(w);
}

int distribution_json(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(cells_fini) struct chosen_cells c = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (distribution_choose(q, &c, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "run", q->arg);
    jsonw_text(&w, "matrix", c.m->name);
    jsonw_text(&w, "quantity", c.m->quantity);
    jsonw_text(&w, "unit", c.m->unit);
    write_value(&c.m->row, c.row, &w, "row");
    write_value(&c.m->col, c.col, &w, "col");
    jsonw_text(&w, "title", c.title);
    jsonw_i64(&w, "cells", c.cells);
    jsonw_i64(&w, "n", c.h.n);
    jsonw_fixed(&w, "low", c.h.low, DIGITS);
    jsonw_fixed(&w, "high", c.h.high, DIGITS);
    jsonw_fixed(&w, "p50", pooled_quantile(&c.h, 0.5), DIGITS);
    jsonw_fixed(&w, "p90", pooled_quantile(&c.h, 0.9), DIGITS);
    jsonw_fixed(&w, "p99", pooled_quantile(&c.h, 0.99), DIGITS);
    write_bins(&c.h, &w);
    jsonw_end(&w);
    r->store = true;
    return reply_json(r, 200, &body, err);
}

int distribution_csv(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(cells_fini) struct chosen_cells c = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    int64_t below = 0;
    if (distribution_choose(q, &c, err) < 0)
        return -1;
    const char *unit = c.m->unit, *between = *unit ? "_" : "";
    buf_fmt(&body, "lower%s%s,upper%s%s,count,cumulative\n", between, unit, between, unit);
    for (int i = 0; i < c.h.n_bins; i++) {
        below += c.h.counts[i];
        buf_fmt(&body, "%.*f,%.*f,%lld,%.*f\n", DIGITS, pooled_edge(&c.h, i), DIGITS,
                pooled_edge(&c.h, i + 1), (long long)c.h.counts[i], SHARE_DIGITS,
                (double)below / (double)c.h.n);
    }
    r->store = true;
    return reply_text(r, "text/csv; charset=utf-8; header=present", &body, err);
}

int distribution_svg(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(cells_fini) struct chosen_cells c = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (distribution_choose(q, &c, err) < 0)
        return -1;
    const struct distribution d = {
        .histogram = &c.h, .title = c.title, .unit = c.m->unit, .cells = c.cells};
    if (distribution_write_svg(&d, &c.measured.run, &body, err) < 0)
        return -1;
    r->store = true;
    return reply_text(r, "image/svg+xml", &body, err);
}
