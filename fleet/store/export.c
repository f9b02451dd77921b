// SPDX-License-Identifier: Apache-2.0
// How many runs a stretch of time has is not known before it is read. So the whole of a node is
// tried first, and a stretch with more values than were requested is halved. After one with few
// values the next one is twice as long, so that years without a run are passed in a few steps.
#include "base/clock.h"
#include "fleet/store/parts.h"

struct stretch {
    int limit, values; // the most; given out by this call
    bool fits;         // the last page did
    int (*fn)(void *ctx, const struct summary_page *page, struct err *err);
    void *ctx;
};

static int stretch_page(void *ctx, const struct summary_page *page, struct err *err)
{
    struct stretch *t = ctx;
    int values = 0;
    for (int i = 0; i < page->n_runs; i++)
        if (page->runs[i].layout >= 0)
            values += page->layouts[page->runs[i].layout].n;
    t->fits = values <= t->limit || page->n_runs == 1;
    if (!t->fits)
        return 0;
    t->values += values;
    return t->fn(t->ctx, page, err);
}

// One stretch of one node. *length is halved until it fits; a millisecond always does. Then it is
// what the next stretch begins with, and e->at_ms is its beginning.
static int export_stretch(struct fleet_store *s, struct fleet_store_export *e, int64_t *length,
                          struct stretch *t, struct err *err)
{
    struct fleet_window w = {.node = s->book.nodes.list[e->node - 1], .since_ms = e->at_ms};
    const int before = t->values;
    do {
        w.until_ms = *length < e->until_ms - e->at_ms ? e->at_ms + *length : e->until_ms;
        *length = w.until_ms - e->at_ms;
        t->fits = true; // no page: there is no run
        if (*length == 1)
            t->limit = INT32_MAX;
        if (fleet_store_window(s, &w, stretch_page, t, err) < 0)
            return -1;
        if (!t->fits)
            *length /= 2;
    } while (!t->fits);
    e->at_ms += *length;
    if (t->values - before <= e->limit / 2)
        *length *= 2;
    return 0;
}

// Each stretch is a transaction of its own.
static int export_check_kept(struct fleet_store *s, struct fleet_store_export *e, struct err *err)
{
    int64_t deletions = 0, before_ms = 0;
    char time[32];
    if (fleet_begin(s, err) < 0 || // the book knows all nodes then
        fleet_end(s,
                  fleet_meta(s, "deletions", &deletions, err) < 0
                      ? -1
                      : fleet_meta(s, "deleted_before", &before_ms, err),
                  err) < 0)
        return -1;
    if (e->deletions == FLEET_STORE_EXPORT_FIRST)
        e->deletions = deletions;
    if (e->deletions == deletions || e->since_ms >= before_ms)
        return 0;
    clock_rfc3339(before_ms, time);
    return err_set(err, ERR_CONFLICT, "since",
                   "runs before %s were deleted during this export: begin it again", time);
}

int fleet_store_export(struct fleet_store *s, struct fleet_store_export *e,
                       int (*fn)(void *ctx, const struct summary_page *page, struct err *err),
                       void *ctx, struct err *err)
{
    struct stretch t = {.fn = fn, .ctx = ctx};
    int64_t length = e->until_ms - e->since_ms;
    if (export_check_kept(s, e, err) < 0)
        return -1;
    if (e->at_ms < e->since_ms)
        e->at_ms = e->since_ms;
    for (; e->node <= s->book.nodes.n; e->node++, e->at_ms = e->since_ms)
        while (e->at_ms < e->until_ms) {
            if (t.values >= e->limit)
                return export_check_kept(s, e, err) < 0 ? -1 : 1;
            t.limit = e->limit;
            if (export_stretch(s, e, &length, &t, err) < 0)
                return -1;
        }
    return export_check_kept(s, e, err);
}
