// SPDX-License-Identifier: Apache-2.0
// The collector's own feed, for another collector: all runs in the order of their arrival, as
// summaries, and the notes about them. In the process that reads.
#include "fleet/resources/resources.h"

#include <string.h>

#include "base/cleanup.h"
#include "fetch/fetch.h"
#include "fleet/services/own_pages.h"
#include "fleet/services/services.h"

enum {
    FEED_RUNS = 100, // of a page, unless the request says another number
    FEED_PAGE_BYTES =
        FETCH_BODY_MAX - (1 << 20), // then it ends: what is read is at most that large
};

struct feed_page {
    struct summary_writer w;
    struct summary_page head;
};

static void feed_page_fini(struct feed_page *p)
{
    summary_writer_fini(&p->w);
}

static int feed_page_add(void *ctx, const struct summary *run, const struct summary_layout *layout,
                         struct err *err)
{
    struct feed_page *p = ctx;
    (void)err;
    if (summary_writer_bytes(&p->w) > FEED_PAGE_BYTES)
        return 1;
    summary_writer_copy(&p->w, run, layout);
    return 0;
}

static int feed_page_note(void *ctx, const struct summary_note *note, struct err *err)
{
    struct feed_page *p = ctx;
    (void)err;
    summary_writer_note(&p->w, note);
    return 0;
}

static int read_feed_query(const struct request *q, struct fleet_arrivals *a, struct err *err)
{
    int64_t limit = FEED_RUNS;
    if (own_page_form(q, err) < 0 ||
        request_query_int(q, "after", 0, INT64_C(1) << 53, &a->after, err) < 0 ||
        request_query_int(q, "limit", 1, SUMMARY_RUNS_MAX, &limit, err) < 0)
        return -1;
    a->history = request_query(q, "history_id");
    a->limit = (int)limit;
    return 0;
}

int fleetd_feed(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct feed_page p CLEANUP(feed_page_fini) = {0};
    struct fleet_arrivals a = {0};
    summary_writer_init(&p.w);
    own_page_head(&p.head);
    if (read_feed_query(q, &a, err) < 0 ||
        fleet_store_arrivals(fleet_of(q)->store, &a, feed_page_add, feed_page_note, &p, err) < 0)
        return -1;
    memcpy(p.head.history_id, a.identity, sizeof p.head.history_id);
    p.head.after = a.after;
    p.head.next = a.next;
    p.head.last = a.last;
    p.head.more = a.next < a.last;
    p.head.deleted = a.deleted;
    summary_writer_end(&p.w, &p.head, &body);
    return reply_json(r, 200, &body, err);
}
