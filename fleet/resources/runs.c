// SPDX-License-Identifier: Apache-2.0
// The newest runs of each node, for a client that judges them itself, and documents of facts. In
// the process that reads. A page has whole nodes, so that nothing is judged by half of its runs.
#include "fleet/resources/resources.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fleet/services/own_pages.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_fleet.h"
#include "model/spec.h"

enum {
    NEWEST_DEFAULT = 5,
    NEWEST_MAX = 50, // as a node gives in one response
    PAGE_BYTES = 4 << 20,
};

struct runs_page {
    struct summary_writer w;
    struct summary_page head;
    int64_t newest, limit;
    const struct summary **order; // of a node's runs; owned
    int room;
    bool full, any;
};

static void runs_page_fini(struct runs_page *p)
{
    summary_writer_fini(&p->w);
    free(p->order);
}

static int64_t time_of_run(const struct summary *s)
{
    return s->measured_ms > 0 ? s->measured_ms : s->finished_ms;
}

// By benchmark, in the order in which a node lists them, and the newest first.
static int by_benchmark(const void *a, const void *b)
{
    const struct summary *x = *(const struct summary *const *)a,
                         *y = *(const struct summary *const *)b;
    const struct benchmark *one = benchmark_find(x->benchmark),
                           *other = benchmark_find(y->benchmark);
    if (one != other)
        return !one ? 1 : !other ? -1 : one < other ? -1 : 1;
    int name = strcmp(x->benchmark, y->benchmark);
    if (name)
        return name;
    if (time_of_run(x) != time_of_run(y))
        return time_of_run(x) > time_of_run(y) ? -1 : 1;
    return (x->seq < y->seq) - (x->seq > y->seq);
}

// The runs of a node that are wanted, in order; their number. The store gives the newest of each
// kind of run, of which a benchmark may have several.
static int choose_runs(struct runs_page *p, const struct summary_page *page, struct err *err)
{
    int n = 0, of_benchmark = 0;
    if (p->room < page->n_runs) {
        void *more = realloc(p->order, (size_t)page->n_runs * sizeof *p->order);
        if (!more)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for a node's runs");
        p->order = more;
        p->room = page->n_runs;
    }
    for (int i = 0; i < page->n_runs; i++)
        p->order[i] = &page->runs[i];
    qsort(p->order, (size_t)page->n_runs, sizeof *p->order, by_benchmark);
    for (int i = 0; i < page->n_runs && n < SUMMARY_RUNS_MAX; i++) {
        bool first = !n || strcmp(p->order[i]->benchmark, p->order[n - 1]->benchmark) != 0;
        of_benchmark = first ? 1 : of_benchmark + 1;
        if (of_benchmark <= p->newest)
            p->order[n++] = p->order[i];
    }
    return n;
}

static int runs_page_add(void *ctx, const struct summary_page *page, struct err *err)
{
    struct runs_page *p = ctx;
    int n = choose_runs(p, page, err);
    if (n < 0)
        return -1;
    p->any = true;
    p->full =
        p->w.n_runs && (p->w.n_runs + n > p->limit || summary_writer_bytes(&p->w) > PAGE_BYTES);
    if (p->full)
        return 1;
    for (int i = 0; i < n; i++) {
        const struct summary *s = p->order[i];
        summary_writer_copy(&p->w, s, s->layout < 0 ? NULL : &page->layouts[s->layout]);
    }
    p->head.next = page->next;
    p->head.last = page->last;
    return 0;
}

static int read_runs_query(const struct request *q, struct fleet_window *w, struct nodeset *where,
                           struct runs_page *p, struct err *err)
{
    int64_t cursor = 0;
    bool given;
    *w = (struct fleet_window){
        .class_hash = request_query(q, "class"), .own = true, .partial = true};
    p->newest = NEWEST_DEFAULT;
    p->limit = SUMMARY_RUNS_MAX;
    if (own_page_form(q, err) < 0 ||
        request_query_int(q, "newest", 1, NEWEST_MAX, &p->newest, err) < 0 ||
        request_query_int(q, "limit", 1, SUMMARY_RUNS_MAX, &p->limit, err) < 0 ||
        request_query_int(q, "cursor", 0, INT32_MAX, &cursor, err) < 0 ||
        stretch_read(q, &w->since_ms, &w->until_ms, err) < 0 ||
        where_read(q, where, &given, err) < 0)
        return -1;
    w->nodes = given ? where : NULL;
    w->newest = (int)p->newest;
    w->after = (int)cursor;
    p->head.next = cursor;
    return 0;
}

int fleetd_runs(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_NODESET struct nodeset where = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct runs_page p CLEANUP(runs_page_fini) = {0};
    struct fleet_window w;
    summary_writer_init(&p.w);
    own_page_head(&p.head);
    if (read_runs_query(q, &w, &where, &p, err) < 0 ||
        fleet_store_window(fleet_of(q)->store, &w, runs_page_add, &p, err) < 0 ||
        (w.nodes && !p.any && !w.after && where_is_stored(q, w.nodes, "where", err) < 0))
        return -1;
    p.head.more = p.full;
    summary_writer_end(&p.w, &p.head, &body);
    return reply_json(r, 200, &body, err);
}

// Topologies are kept by their hash too; they are no JSON.
int fleetd_facts(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (fleet_store_document(fleet_of(q)->store, q->name, &body, err) < 0 &&
        err->code != ERR_NOT_FOUND)
        return -1;
    if (!body.len || *buf_text(&body) != '{')
        return err_set(err, ERR_NOT_FOUND, "", "no document of facts has this hash yet");
    r->store = r->immutable = true;
    return reply_json(r, 200, &body, err);
}
