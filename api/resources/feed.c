// SPDX-License-Identifier: Apache-2.0
// The feed for a collector: every finished run, whole or as a summary, in the order of finishing,
// and notes about labels and baselines that runs got later. Whoever remembers the last seq that it
// has kept misses nothing and gets nothing twice.
#include <string.h>

#include "api/resources/events.h"
#include "api/resources/export.h"
#include "api/resources/resources.h"
#include "api/resources/summaries.h"
#include "api/services/work.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "core/store/summaries.h"
#include "core/store/unreadable.h"

enum {
    FEED_DEFAULT = 10,
    // 8 ranks by 15 sizes are 40 KB: 4 MB. The largest single run, 1,024 ranks by 48 sizes in both
    // modes, is 30 MB, and is sent alone.
    FEED_MAX = 100,
};

// after= beyond the end, or history_id= of another history, must not wait for numbers that will be
// given to other runs.
static int check_place(const struct request *q, int64_t after, const struct store_feed *feed,
                       struct err *err)
{
    const char *wanted = request_query(q, "history_id");
    if (wanted && strcmp(wanted, feed->history_id) != 0)
        return err_set(err, ERR_CONFLICT, "history_id",
                       "this is a new history, %s; read it from after=0", feed->history_id);
    if (after > feed->last)
        return err_set(err, ERR_CONFLICT, "after",
                       "the feed ends at %lld. The database is another one, or was restored from "
                       "an older copy; read it from after=0",
                       (long long)feed->last);
    return 0;
}

struct asked {
    int64_t after, limit, wait_s;
    bool summary;
    enum run_document_parts parts;
};

static int number_from(const struct request *q, const char *name, int64_t least, int64_t most,
                       int64_t *out, struct err *err)
{
    const char *text = request_query(q, name);
    if (text && (!str_to_i64(text, out) || *out < least || *out > most))
        return err_set(err, ERR_INVALID, name, "must be a whole number from %lld to %lld",
                       (long long)least, (long long)most);
    return 0;
}

static int read_asked(const struct request *q, struct asked *a, struct err *err)
{
    bool topology = false, log = false, distributions = false;
    *a = (struct asked){.limit = FEED_DEFAULT};
    if (number_from(q, "after", 0, INT64_C(1) << 53, &a->after, err) < 0 ||
        number_from(q, "limit", 1, FEED_MAX, &a->limit, err) < 0 ||
        request_query_bool(q, "topology", &topology, err) < 0 ||
        request_query_bool(q, "log", &log, err) < 0 ||
        request_query_bool(q, "distributions", &distributions, err) < 0 ||
        request_wait_s(q, &a->wait_s, err) < 0 || summaries_read_form(q, &a->summary, err) < 0)
        return -1;
    if (a->summary && (topology || log || distributions))
        return err_set(err, ERR_INVALID,
                       topology ? "topology"
                       : log    ? "log"
                                : "distributions",
                       "is not part of a summary (GET /v1/topologies has topologies by hash)");
    a->parts = (topology ? RUN_DOCUMENT_TOPOLOGY : 0) | (log ? RUN_DOCUMENT_LOG : 0) |
               (distributions ? RUN_DOCUMENT_DISTRIBUTIONS : 0);
    return 0;
}

static int feed_write_note(const struct request *q, const struct store_change *c, struct jsonw *w,
                           struct err *err)
{
    struct summary_note note;
    if (store_note_get(api_of(q)->store, c->id, c->seq, &note, err) < 0)
        return -1;
    summary_note_write(&note, w);
    return 0;
}

struct whole_page {
    struct buf body, notes, unreadable;
    struct jsonw w, notes_w, unreadable_w;
};

static void whole_page_fini(struct whole_page *p)
{
    buf_free(&p->body);
    buf_free(&p->notes);
    buf_free(&p->unreadable);
}

// A run that cannot be read must not stop those who follow the feed: the page names it.
static int feed_write_run(const struct request *q, const struct asked *a,
                          const struct store_change *c, struct whole_page *p, struct err *err)
{
    struct run run CLEANUP(run_fini) = {0};
    const struct jsonw before = p->w;
    const size_t len = p->body.len;
    struct err why = {0};
    if (store_run_get(api_of(q)->store, c->id, &run, &why) == 0 &&
        run_document_write(api_of(q)->store, &run, a->parts, &p->w, NULL, &why) == 0)
        return 0;
    if (!store_of_one_run(&why)) {
        *err = why;
        return -1;
    }
    p->w = before;
    buf_cut(&p->body, len);
    jsonw_object(&p->unreadable_w, NULL);
    jsonw_i64(&p->unreadable_w, "id", c->id);
    jsonw_i64(&p->unreadable_w, "seq", c->seq);
    jsonw_text(&p->unreadable_w, "text", why.text);
    jsonw_end(&p->unreadable_w);
    return 0;
}

// Writes runs, and notes beside them, until the reply is large enough; *next is the seq of the last
// one written.
static int feed_write_changes(const struct request *q, const struct asked *a,
                              const struct store_change *list, int n, struct whole_page *p,
                              int64_t *next, struct err *err)
{
    for (int i = 0; i < n && p->body.len < FEED_BYTES; i++) {
        if (list[i].note ? feed_write_note(q, &list[i], &p->notes_w, err) < 0
                         : feed_write_run(q, a, &list[i], p, err) < 0)
            return -1;
        *next = list[i].seq;
    }
    return 0;
}

static void feed_add_list(struct whole_page *p, const char *key, struct buf *list)
{
    buf_needs(&p->body, list);
    if (!list->len)
        return;
    jsonw_array(&p->w, key);
    buf_add(&p->body, buf_text(list), list->len);
    jsonw_end(&p->w);
}

static int feed_send_whole(struct request *q, struct reply *r, const struct asked *a,
                           const struct store_feed *feed, const struct store_change *list, int n,
                           struct err *err)
{
    struct whole_page p CLEANUP(whole_page_fini) = {BUF_INIT, BUF_INIT, BUF_INIT, {0}, {0}, {0}};
    int64_t next = a->after;
    p.w = jsonw_to(&p.body);
    p.notes_w = jsonw_to(&p.notes);
    p.unreadable_w = jsonw_to(&p.unreadable);
    jsonw_object(&p.w, NULL);
    jsonw_text(&p.w, "history_id", feed->history_id);
    jsonw_i64(&p.w, "after", a->after);
    jsonw_array(&p.w, "runs");
    if (feed_write_changes(q, a, list, n, &p, &next, err) < 0)
        return -1;
    jsonw_end(&p.w);
    feed_add_list(&p, "notes", &p.notes);
    feed_add_list(&p, "unreadable", &p.unreadable);
    next = n ? next : feed->last; // what was deleted at the end is passed over
    jsonw_i64(&p.w, "next", next);
    jsonw_i64(&p.w, "last", feed->last);
    jsonw_bool(&p.w, "more", next < feed->last);
    jsonw_end(&p.w);
    return reply_json(r, 200, &p.body, err);
}

int feed_get(struct request *q, struct reply *r, struct err *err)
{
    struct asked a;
    struct store_feed feed;
    struct store_change list[FEED_MAX];
    int n = 0;
    if (read_asked(q, &a, err) < 0 || store_feed(api_of(q)->store, &feed, err) < 0 ||
        check_place(q, a.after, &feed, err) < 0)
        return -1;
    // Nearly every request of a collector ends here, with nothing new.
    if (a.after < feed.last &&
        store_run_changes(api_of(q)->store, a.after, list, (int)a.limit, &n, err) < 0)
        return -1;
    if (!n && a.wait_s && !q->again)
        return reply_wait(r, &run_end, RUNNER_ANY_RUN, a.wait_s * 1000);
    reply_waited(r, q);
    return a.summary ? summaries_feed(q, r, a.after, &feed, list, n, err)
                     : feed_send_whole(q, r, &a, &feed, list, n, err);
}

// Runs are written until the response has FEED_BYTES; so many are counted, or until it is clear
// that a worker does it.
void feed_work(const struct request *q, struct work *w, struct err *why)
{
    struct asked a;
    struct store_change list[FEED_MAX];
    int n;
    if (read_asked(q, &a, why) < 0 || a.after >= store_last_seq(api_of(q)->store) ||
        store_run_changes(api_of(q)->store, a.after, list, (int)a.limit, &n, why) < 0)
        return;
    if (a.summary)
        summaries_feed_work(q, w, list, n, why);
    for (int i = 0; !a.summary && i < n && w->bytes < FEED_BYTES; i++)
        if (!list[i].note)
            work_add_run(q, w, list[i].id, WORK_CELL_NS, a.parts & RUN_DOCUMENT_LOG,
                         a.parts & RUN_DOCUMENT_TOPOLOGY, why);
}
