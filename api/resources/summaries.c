// SPDX-License-Identifier: Apache-2.0
// A run whose metrics are not made yet (a large one, or an import, in its first seconds) would be
// passed over for good by a collector that follows the feed: there the page ends before it. A list
// shows it with layout -1.
#include "api/resources/summaries.h"

#include <stdio.h>
#include <string.h>

#include "api/services/services.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "core/store/summaries.h"

enum {
    PER_BENCHMARK_MAX = 50, // of 17 benchmarks: 850 runs, fewer than SUMMARY_RUNS_MAX
    LIST_IDS_MAX = 200,
    SUMMARY_RUN_US = 20, // its row, looked for and written
    SUMMARY_METRIC_NS = 1500,
};
_Static_assert(PER_BENCHMARK_MAX *BENCHMARKS <= SUMMARY_RUNS_MAX, "a page of each benchmark");

int summaries_read_form(const struct request *q, bool *summary, struct err *err)
{
    const char *form = request_query(q, "form");
    *summary = form && strcmp(form, "summary") == 0;
    return !form || *summary || strcmp(form, "whole") == 0
               ? 0
               : err_set(err, ERR_INVALID, "form", "must be whole or summary");
}

struct summaries {
    struct summary_writer w;
    struct summary_values values;
    struct summary_page head;
};

static void summaries_fini(struct summaries *s)
{
    summary_writer_fini(&s->w);
    summary_values_fini(&s->values);
}

static void summaries_init(struct summaries *s, const struct request *q,
                           const struct store_feed *feed)
{
    summary_writer_init(&s->w);
    s->values = (struct summary_values){0};
    s->head = (struct summary_page){0};
    snprintf(s->head.history_id, sizeof s->head.history_id, "%s", feed->history_id);
    snprintf(s->head.node, sizeof s->head.node, "%s", api_of(q)->machine->hostname);
    snprintf(s->head.version, sizeof s->head.version, "%s", NUMAPROBE_VERSION);
}

static bool summaries_full(const struct summaries *s)
{
    return summary_writer_bytes(&s->w) >= FEED_BYTES;
}

// Adds one run. 1: its metrics are not made yet, so `whole` ones end here; 0; -1.
static int add_one(const struct request *q, struct summaries *s, int64_t id, bool whole,
                   int64_t *seq, struct err *err)
{
    struct summary run;
    if (store_summary_get(api_of(q)->store, id, &run, &s->values, err) < 0)
        return -1;
    if (whole && s->values.pending)
        return 1;
    summary_writer_add(&s->w, &run, s->values.list, run.metrics_version ? s->values.n : -1);
    *seq = run.seq;
    return 0;
}

static int summaries_send(struct summaries *s, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    summary_writer_end(&s->w, &s->head, &body);
    return reply_json(r, 200, &body, err);
}

static int add_note(const struct request *q, struct summaries *s, const struct store_change *c,
                    struct err *err)
{
    struct summary_note note;
    if (store_note_get(api_of(q)->store, c->id, c->seq, &note, err) < 0)
        return -1;
    summary_writer_note(&s->w, &note);
    s->head.next = c->seq;
    return 0;
}

int summaries_feed(struct request *q, struct reply *r, int64_t after, const struct store_feed *feed,
                   const struct store_change *list, int n, struct err *err)
{
    struct summaries s CLEANUP(summaries_fini);
    int ended = 0;
    summaries_init(&s, q, feed);
    s.head.after = after;
    s.head.last = feed->last;
    s.head.next = n ? after : feed->last; // what was deleted at the end is passed over
    for (int i = 0; i < n && !ended && !summaries_full(&s); i++) {
        ended = list[i].note ? add_note(q, &s, &list[i], err)
                             : add_one(q, &s, list[i].id, true, &s.head.next, err);
        if (ended < 0)
            return -1;
    }
    s.head.more = !ended && s.head.next < feed->last;
    return summaries_send(&s, r, err);
}

static int read_per_benchmark(const struct request *q, int64_t *n, struct err *err)
{
    const char *text = request_query(q, "per_benchmark");
    *n = 0;
    if (!text)
        return 0;
    if (!str_to_i64(text, n) || *n < 1 || *n > PER_BENCHMARK_MAX)
        return err_set(err, ERR_INVALID, "per_benchmark", "must be a whole number from 1 to %d",
                       PER_BENCHMARK_MAX);
    if (request_query(q, "limit"))
        return err_set(err, ERR_INVALID, "per_benchmark", "cannot be used with limit");
    return 0;
}

typedef int page_fn(void *ctx, const int64_t *ids, int n, bool more, struct err *err);

// The newest runs of each benchmark in turn. A cursor is the run before the first one.
static int each_benchmark(const struct request *q, const struct run_filter *f, page_fn *fn,
                          void *ctx, struct err *err)
{
    int64_t ids[LIST_IDS_MAX];
    bool more, begun = !f->before_id;
    int n;
    for (int b = 0; b < BENCHMARKS; b++) {
        struct run_filter one = *f;
        int at = 0;
        if (f->benchmark && strcmp(f->benchmark, benchmarks[b].name) != 0)
            continue;
        one.benchmark = benchmarks[b].name;
        one.before_id = 0;
        if (store_run_list_ids(api_of(q)->store, &one, ids, &n, &more, err) < 0)
            return -1;
        for (; at < n && !begun; at++)
            begun = ids[at] == f->before_id;
        if (fn(ctx, ids + at, n - at, false, err) < 0)
            return -1;
    }
    return begun ? 0
                 : err_set(err, ERR_CONFLICT, "cursor",
                           "its run is none of the newest of its benchmark any more: begin again");
}

// Calls fn with the runs of the filter, or with those of each benchmark in turn.
static int each_page(const struct request *q, const struct run_filter *f, page_fn *fn, void *ctx,
                     struct err *err)
{
    int64_t ids[LIST_IDS_MAX], each;
    struct run_filter of_each = *f;
    bool more;
    int n;
    if (read_per_benchmark(q, &each, err) < 0)
        return -1;
    of_each.limit = (int)each;
    if (each)
        return each_benchmark(q, &of_each, fn, ctx, err);
    return store_run_list_ids(api_of(q)->store, f, ids, &n, &more, err) < 0
               ? -1
               : fn(ctx, ids, n, more, err);
}

struct list_page {
    const struct request *q;
    struct summaries s;
};

static int summaries_add_page(void *ctx, const int64_t *ids, int n, bool more, struct err *err)
{
    struct list_page *p = ctx;
    int64_t seq;
    int i = 0;
    for (; i < n && !summaries_full(&p->s); i++) {
        if (add_one(p->q, &p->s, ids[i], false, &seq, err) < 0)
            return -1;
        p->s.head.next = ids[i];
    }
    p->s.head.more |= more || i < n;
    return 0;
}

int summaries_list(struct request *q, struct reply *r, const struct run_filter *f, struct err *err)
{
    struct list_page p = {.q = q};
    struct store_feed feed;
    if (store_feed(api_of(q)->store, &feed, err) < 0)
        return -1;
    summaries_init(&p.s, q, &feed);
    int rc = each_page(q, f, summaries_add_page, &p, err);
    if (rc == 0)
        rc = summaries_send(&p.s, r, err);
    r->store = true;
    summaries_fini(&p.s);
    return rc;
}

struct page_work {
    const struct request *q;
    struct work *w;
};

static int summaries_add_work(void *ctx, const int64_t *ids, int n, bool more, struct err *why)
{
    enum { RUN_BYTES = 900, METRIC_BYTES = 80 };
    struct page_work *p = ctx;
    (void)more;
    // Beyond the limit it is clear that a worker does it.
    for (int i = 0; i < n && p->w->us <= WORK_INLINE_US; i++) {
        int64_t metrics = 0;
        if (store_summary_count(api_of(p->q)->store, ids[i], &metrics, why) < 0)
            return -1;
        p->w->us += SUMMARY_RUN_US + metrics * SUMMARY_METRIC_NS / 1000;
        p->w->bytes += (size_t)(RUN_BYTES + metrics * METRIC_BYTES);
    }
    return 0;
}

void summaries_feed_work(const struct request *q, struct work *w, const struct store_change *list,
                         int n, struct err *why)
{
    struct page_work p = {q, w};
    for (int i = 0; i < n; i++)
        if (!list[i].note && summaries_add_work(&p, &list[i].id, 1, false, why) < 0)
            return;
}

void summaries_list_work(const struct request *q, struct work *w, const struct run_filter *f,
                         struct err *why)
{
    struct page_work p = {q, w};
    each_page(q, f, summaries_add_work, &p, why);
}
