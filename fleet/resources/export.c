// SPDX-License-Identifier: Apache-2.0
// GET /v1/fleet/export.ndjson and .csv: each value of each run that succeeded, a page at a time,
// for DuckDB, ClickHouse and the like. In the process that reads.
#include "fleet/resources/resources.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_fleet.h"

enum {
    ROWS = 10000, // of a page, unless the request says another number
    ROWS_MAX = 50000,
    ROW_BYTES = 400,
    ROW_NS = 5000,
    NODES_READ_US = 200000, // of ten thousand nodes without a run in the stretch
};

struct row {
    const struct summary *run;
    const char *node, *metric, *unit;
    char measured[32]; // "": not known
    double value, lo, hi;
};

// ---- Formats ------------------------------------------------------------------------------------

static void ndjson_line(struct buf *out, const struct row *r)
{
    struct jsonw w = jsonw_to(out);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "node", r->node);
    jsonw_text(&w, "measured", *r->measured ? r->measured : NULL);
    jsonw_text(&w, "benchmark", r->run->benchmark);
    jsonw_text(&w, "variant", r->run->variant);
    jsonw_text(&w, "metric", r->metric);
    jsonw_text(&w, "unit", r->unit);
    jsonw_digits(&w, "value", r->value, 6);
    jsonw_digits(&w, "lo", r->lo, 6);
    jsonw_digits(&w, "hi", r->hi, 6);
    jsonw_text(&w, "class", r->run->class_hash);
    jsonw_text(&w, "config", r->run->config_hash);
    jsonw_i64(&w, "seq", r->run->seq);
    jsonw_end(&w);
    buf_char(out, '\n');
}

static void csv_text(struct buf *out, const char *text)
{
    csv_cell(out, text);
    buf_char(out, ',');
}

static void csv_number(struct buf *out, double v)
{
    if (isfinite(v))
        buf_fmt(out, "%.6g", v);
    buf_char(out, ',');
}

static void csv_names(struct buf *out)
{
    buf_str(out, "node,measured,benchmark,variant,metric,unit,value,lo,hi,class,config,seq\r\n");
}

static void csv_line(struct buf *out, const struct row *r)
{
    csv_text(out, r->node);
    csv_text(out, r->measured);
    csv_text(out, r->run->benchmark);
    csv_text(out, r->run->variant);
    csv_text(out, r->metric);
    csv_text(out, r->unit);
    csv_number(out, r->value);
    csv_number(out, r->lo);
    csv_number(out, r->hi);
    csv_text(out, r->run->class_hash);
    csv_text(out, r->run->config_hash);
    buf_fmt(out, "%lld\r\n", (long long)r->run->seq);
}

static const struct format {
    const char *path, *type;
    void (*head)(struct buf *out); // NULL: none
    void (*row)(struct buf *out, const struct row *r);
} formats[] = {
    {"/v1/fleet/export.ndjson", "application/x-ndjson", NULL, ndjson_line},
    {"/v1/fleet/export.csv", "text/csv; charset=utf-8", csv_names, csv_line},
};

// ---- Pages --------------------------------------------------------------------------------------

struct exporting {
    const struct format *format;
    struct buf *out;
};

static int export_page(void *ctx, const struct summary_page *page, struct err *err)
{
    struct exporting *x = ctx;
    for (int i = 0; i < page->n_runs; i++) {
        const struct summary *run = &page->runs[i];
        struct row r = {.run = run, .node = page->node};
        if (run->state != RUN_SUCCEEDED || run->layout < 0)
            continue;
        if (run->measured_ms)
            clock_rfc3339(run->measured_ms, r.measured);
        const struct summary_layout *layout = &page->layouts[run->layout];
        for (int k = 0; k < layout->n; k++) {
            if (!isfinite(run->values[k]))
                continue;
            r.metric = layout->list[k].name;
            r.unit = layout->list[k].unit;
            r.value = (double)run->values[k];
            r.lo = (double)run->lo[k];
            r.hi = (double)run->hi[k];
            x->format->row(x->out, &r);
        }
    }
    return buf_ok(x->out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the export");
}

// "3.1795446048000.0": the number of a node, a time, and that of deletions.
static bool export_read_cursor(const char *cursor, struct fleet_store_export *e)
{
    char text[64];
    const char *parts[3] = {text};
    int64_t node;
    snprintf(text, sizeof text, "%s", cursor);
    for (size_t i = 1; i < COUNT_OF(parts); i++) {
        char *point = strchr(parts[i - 1], '.');
        if (!point)
            return false;
        *point = '\0';
        parts[i] = point + 1;
    }
    if (!str_to_i64(parts[0], &node) || !str_to_i64(parts[1], &e->at_ms) ||
        !str_to_i64(parts[2], &e->deletions) || node < 1 || node > INT32_MAX || e->at_ms < 0 ||
        e->deletions < 0)
        return false;
    e->node = (int)node;
    return true;
}

static int read_export(const struct request *q, struct fleet_store_export *e, struct err *err)
{
    const char *cursor = request_query(q, "cursor");
    int64_t limit = ROWS;
    e->until_ms = clock_wall_ms() + FLEET_STORE_AHEAD_MS;
    if (stretch_read(q, &e->since_ms, &e->until_ms, err) < 0 ||
        request_query_int(q, "limit", 1, ROWS_MAX, &limit, err) < 0)
        return -1;
    e->limit = (int)limit;
    e->node = 1;
    e->deletions = FLEET_STORE_EXPORT_FIRST;
    return !cursor || export_read_cursor(cursor, e)
               ? 0
               : err_set(err, ERR_INVALID, "cursor", "is not one of an earlier response");
}

static void add_escaped(struct buf *out, const char *text)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-.:", *text))
            buf_char(out, *text);
        else
            buf_fmt(out, "%%%02X", (unsigned char)*text);
}

// The same request with the cursor of the page after this one.
static int write_next(const struct request *q, const struct fleet_store_export *e, struct reply *r,
                      struct err *err)
{
    static const char *const kept[] = {"since", "until", "limit"};
    CLEANUP_BUF struct buf next = BUF_INIT;
    buf_fmt(&next, "%s?cursor=%d.%lld.%lld", q->path, e->node, (long long)e->at_ms,
            (long long)e->deletions);
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        const char *value = request_query(q, kept[i]);
        if (value) {
            buf_fmt(&next, "&%s=", kept[i]);
            add_escaped(&next, value);
        }
    }
    if (!buf_ok(&next) || next.len >= sizeof r->next)
        return err_set(err, ERR_INVALID, "since", "since and until are too long");
    memcpy(r->next, buf_text(&next), next.len + 1);
    return 0;
}

int fleetd_export(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct fleet_store_export e = {0};
    size_t i = strcmp(q->path, formats[0].path) != 0;
    struct exporting x = {&formats[i], &body};
    if (read_export(q, &e, err) < 0)
        return -1;
    if (x.format->head)
        x.format->head(&body);
    int more = fleet_store_export(fleet_of(q)->store, &e, export_page, &x, err);
    if (more < 0 || (more && write_next(q, &e, r, err) < 0))
        return -1;
    return reply_text(r, x.format->type, &body, err);
}

void fleetd_export_work(const struct request *q, struct work *w, struct err *why)
{
    int64_t limit = ROWS;
    if (request_query_int(q, "limit", 1, ROWS_MAX, &limit, why) < 0)
        return; // the handler refuses it
    w->us = NODES_READ_US + 2 * limit * ROW_NS / 1000;
    w->bytes = 2 * (size_t)limit * ROW_BYTES;
}
