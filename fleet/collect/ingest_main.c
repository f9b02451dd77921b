// SPDX-License-Identifier: Apache-2.0
// The process that stores. Items are read as they come and gathered for a moment, so that many
// nodes share a transaction: with PostgreSQL one of 500 pages stores 80 times as fast as 500 of
// one. Reports keep the order of the items.
#include "fleet/collect/ingest_main.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "core/os/child.h"
#include "fleet/collect/campaign_ingest.h"
#include "fleet/collect/ingest_wire.h"
#include "fleet/collect/judged_wire.h"

enum {
    GATHER_MS = 100,
    GATHER_ITEMS = 500,
    GATHER_BYTES = 16 << 20,
    PAGE_MEMORY = 192 << 20,  // of cJSON for a page of 4 MiB
    WANTED_MOST = 32,         // documents, each time something was stored
    WANTED_RUNS = 64,         // whole runs, likewise
    WHOLE_MEMORY = 448 << 20, // of cJSON for an export of 32 MiB
    RETAIN_MS = 3600 * 1000,
    RETAIN_AGAIN_MS = 60 * 1000, // another process held a lock
};

struct gathered {
    struct ingest_report report; // REFUSED: its text is there already
    struct summary_page page;
    struct ingest_head head;
    bool paged;           // `page` counts
    enum err_code failed; // of the store: the process ends
    bool judged;          // runs that its findings cite may be wanted
    bool whole;           // `run` counts
    struct fleet_whole run;
};

struct ingest_process {
    struct fleet_store *store;
    struct buf in;
    struct gathered list[GATHER_ITEMS];
    struct fleet_page pages[GATHER_ITEMS];
    struct fleet_ack acks[GATHER_ITEMS];
    struct fleet_whole wholes[GATHER_ITEMS];
    int n;
    size_t bytes; // of what was gathered
    bool gone;    // which is nothing but nodes that are gone
    int64_t since_ms;
    int64_t keep_days, newest_ms; // of the runs that were received, UTC
    int64_t archive_keep_days;
    int64_t retain_at_ms; // monotonic; 0: with the first run
};

static int send_bytes(const void *bytes, size_t left)
{
    for (const char *at = bytes; left;) {
        ssize_t n = send(INGEST_FD, at, left, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        left -= (size_t)n;
    }
    return 0;
}

static int report_with(const struct ingest_report *r, const void *body)
{
    return send_bytes(r, sizeof *r) < 0 || send_bytes(body, r->bytes) < 0 ? -1 : 0;
}

static int report_item(const struct ingest_report *r)
{
    return report_with(r, NULL);
}

static int ingest_fail(const struct err *err, bool opened)
{
    struct ingest_report r = {.kind = INGEST_FAILED, .code = err->code, .opened = opened};
    snprintf(r.text, sizeof r.text, "%s", err->text);
    report_item(&r);
    return -1;
}

static int send_place(void *ctx, const struct fleet_feed *f, struct err *err)
{
    struct ingest_report r = {.kind = INGEST_PLACE, .next = f->next, .at_ms = f->last_ms};
    (void)ctx;
    r.outcome = f->state == FLEET_FEED_TWIN ? FLEET_TWIN : FLEET_STORED;
    snprintf(r.node, sizeof r.node, "%s", f->name);
    snprintf(r.history, sizeof r.history, "%s", f->history);
    snprintf(r.version, sizeof r.version, "%s", f->version);
    snprintf(r.other, sizeof r.other, "%s", f->twin);
    return report_item(&r) < 0 ? err_set(err, ERR_UNAVAILABLE, "", "the collector has ended") : 0;
}

static int send_collector(void *ctx, const struct fleet_collector *c, struct err *err)
{
    struct ingest_report r = {.kind = INGEST_PLACE,
                              .collector = true,
                              .next = c->next,
                              .at_ms = c->last_ms,
                              .lost = c->lost};
    (void)ctx;
    snprintf(r.node, sizeof r.node, "%s", c->name);
    snprintf(r.history, sizeof r.history, "%s", c->history);
    snprintf(r.version, sizeof r.version, "%s", c->version);
    return report_item(&r) < 0 ? err_set(err, ERR_UNAVAILABLE, "", "the collector has ended") : 0;
}

static int send_wanted(void *ctx, const char *hash, const char *node, struct err *err)
{
    struct ingest_report r = {.kind = INGEST_WANTED};
    (void)ctx;
    snprintf(r.node, sizeof r.node, "%s", node);
    snprintf(r.hash, sizeof r.hash, "%s", hash);
    return report_item(&r) < 0 ? err_set(err, ERR_UNAVAILABLE, "", "the collector has ended") : 0;
}

// ---- Reading an item ----------------------------------------------------------------------------

static void refuse(struct gathered *g, const struct err *err)
{
    g->report.kind = INGEST_REFUSED;
    g->report.code = err->code;
    snprintf(g->report.text, sizeof g->report.text, "%s", err->text);
    memcpy(g->report.member, err->member, sizeof g->report.member);
}

static int64_t newest_measured(const struct summary_page *page, int64_t received_ms)
{
    int64_t newest_ms = 0;
    for (int i = 0; i < page->n_runs; i++) {
        int64_t at_ms = fleet_store_date(&page->runs[i], received_ms);
        if (at_ms > newest_ms)
            newest_ms = at_ms;
    }
    return newest_ms;
}

static void gather_page(struct gathered *g, const char *body, size_t n)
{
    struct err err = {0};
    CLEANUP_JSON struct json *document = json_parse_within(body, n, PAGE_MEMORY, &err);
    if (!document || summary_page_read(document, &g->page, &err) < 0) {
        refuse(g, &err);
        return;
    }
    g->paged = true;
    g->report.more = g->page.more;
    g->report.newest_ms = newest_measured(&g->page, g->head.received_ms);
    memcpy(g->report.history, g->page.history_id, sizeof g->report.history);
    memcpy(g->report.version, g->page.version, sizeof g->report.version);
}

// A node can store no other facts than those that were requested.
static int check_requested(const struct facts *facts, const char *hash, struct err *err)
{
    return strcmp(facts->hash, hash) == 0
               ? 0
               : err_set(err, ERR_INVALID, "hash", "these are other facts than were requested");
}

// That it is a run, and which one. A node may send what it likes as its matrices.
static int check_whole(const struct ingest_head *h, const char *body, struct err *err)
{
    CLEANUP_JSON struct json *document = json_parse_within(body, h->bytes, WHOLE_MEMORY, err);
    const struct json *run = document ? json_get(document, "run") : NULL;
    if (!document)
        return -1;
    return strcmp(json_get_text(document, "format", ""), "numaprobe-run") == 0 && run &&
                   json_get_i64(run, "seq", 0) == h->after
               ? 0
               : err_set(err, ERR_INVALID, "", "the node sent another run, or none");
}

static bool status_among(int status, const int *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == status)
            return true;
    return false;
}

// A run that its node does not have is given up. One that it has and cannot send is tried for a
// while, and everything else for ever.
static void gather_whole(struct gathered *g, const char *body)
{
    static const int final[] = {400, 404, 410, 413, INGEST_TOO_LARGE, INGEST_NOT_PUSHED},
                     refused[] = {409, 422, 500, INGEST_IT_ENDS};
    const struct ingest_head *h = &g->head;
    struct err err = {0};
    g->whole = true;
    g->report.next = h->after;
    g->run = (struct fleet_whole){
        .node = h->node, .under = h->under, .seq = h->after, .why = g->report.text};
    if (h->status == INGEST_IT_ENDS)
        err_set(&err, ERR_UNAVAILABLE, "", "it ends the process that reads it");
    else if (h->status == INGEST_TOO_LARGE)
        err_set(&err, ERR_TOO_LARGE, "", "it is larger than %d bytes", FLEET_ARCHIVE_BYTES_MAX);
    else if (h->status == INGEST_NOT_PUSHED)
        err_set(&err, ERR_UNAVAILABLE, "", "its node pushes, and whole runs are not pushed");
    else if (h->status != 200)
        err_set(&err, ERR_UNAVAILABLE, "", "the node's response has status %d", h->status);
    else if (check_whole(h, body, &err) == 0 &&
             fleet_whole_fill(&g->run, body, h->bytes, &err) == 0)
        return;
    g->run.never = h->status == 200 || status_among(h->status, final, COUNT_OF(final));
    g->run.refused = status_among(h->status, refused, COUNT_OF(refused));
    err_name_member(&err);
    snprintf(g->report.text, sizeof g->report.text, "%s", err.text);
}

// What the store refuses ends the process, as with pages: the collector begins again from what is
// stored.
static void refuse_stored(struct gathered *g, const struct err *err)
{
    refuse(g, err);
    if (err->code == ERR_STORAGE || err->code == ERR_UNAVAILABLE || err->code == ERR_DAMAGED)
        g->failed = err->code;
}

static void put_document(struct ingest_process *p, struct gathered *g, const char *body, size_t n)
{
    struct err err = {0};
    CLEANUP_JSON struct json *document = json_parse_within(body, n, PAGE_MEMORY, &err);
    CLEANUP_MEM struct facts *facts = calloc(1, sizeof *facts);
    if (!facts)
        err_set(&err, ERR_NO_MEMORY, "", "no memory for facts");
    if (!facts || !document || facts_from_json(facts, document, &err) < 0 ||
        check_requested(facts, g->head.hash, &err) < 0)
        refuse(g, &err);
    else if (fleet_store_facts_put(p->store, facts, &err) < 0)
        refuse_stored(g, &err);
}

static void put_campaign_item(struct gathered *g, struct fleet_store *store, const char *body,
                              size_t n)
{
    struct err err = {0};
    if (campaign_ingest_put(store, body, n, report_with, &err) < 0)
        refuse_stored(g, &err);
}

static int report_tally(const struct fleet_tally *judged, struct err *err)
{
    const struct ingest_report r = {.kind = INGEST_COUNTED, .judged = *judged};
    return report_item(&r) < 0 ? err_set(err, ERR_UNAVAILABLE, "", "the collector has ended") : 0;
}

// Whole runs that sure findings cite are evidence, and a node keeps them for a limited time.
static int want_evidence(struct fleet_store *store, const struct kept_judgement *j, struct err *err)
{
    int n = 0;
    CLEANUP_MEM struct fleet_cited_runs *cited = calloc((size_t)j->n_seen + 1, sizeof *cited);
    if (!cited)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a judgement");
    for (int i = 0; i < j->n_seen; i++) {
        const struct kept_sight *o = &j->seen[i];
        if (o->grade == KEPT_SURE && o->n_runs)
            cited[n++] = (struct fleet_cited_runs){o->node, o->runs, o->n_runs, o->oldest};
    }
    return fleet_store_archive_want(store, cited, n, err);
}

static void put_judgement(struct ingest_process *p, struct gathered *g, const char *body, size_t n)
{
    struct judged_lists lists CLEANUP(judged_lists_fini);
    struct fleet_tally judged;
    struct err err = {0};
    if (judged_read(&lists, body, n, &err) < 0 ||
        fleet_store_judge(p->store, &lists.judgement, &judged, &err) < 0 ||
        want_evidence(p->store, &lists.judgement, &err) < 0 || report_tally(&judged, &err) < 0)
        refuse_stored(g, &err);
    else
        g->judged = true;
}

static void put_mark(struct ingest_process *p, struct gathered *g, const char *body, size_t n)
{
    struct ingest_mark mark;
    struct fleet_tally judged;
    struct err err = {0};
    if (n != sizeof mark)
        return;
    memcpy(&mark, body, sizeof mark);
    const struct fleet_mark m = {.id = mark.id,
                                 .event = mark.event,
                                 .note = mark.noted ? mark.note : NULL,
                                 .by = mark.by,
                                 .now_ms = mark.now_ms};
    if (fleet_store_mark(p->store, &m, &judged, &err) < 0 || report_tally(&judged, &err) < 0)
        refuse_stored(g, &err);
}

static void put_drained(struct ingest_process *p, struct gathered *g, const char *body, size_t n)
{
    struct ingest_drained drained;
    struct err err = {0};
    if (n != sizeof drained)
        return;
    memcpy(&drained, body, sizeof drained);
    if (fleet_store_drained(p->store, drained.id, drained.now_ms, &err) < 0)
        refuse_stored(g, &err);
}

static void put_owners(struct ingest_process *p, struct gathered *g, const char *body, size_t n)
{
    struct err err = {0};
    if (fleet_store_owners(p->store, body, n, &err) < 0)
        refuse_stored(g, &err);
}

static void gather_item(struct ingest_process *p, const struct ingest_head *head, const char *body)
{
    struct gathered *g = &p->list[p->n++];
    *g = (struct gathered){.head = *head};
    g->report = (struct ingest_report){.kind = INGEST_STORED,
                                       .of = head->kind,
                                       .collector = head->collector,
                                       .at_ms = head->received_ms};
    memcpy(g->report.node, head->node, sizeof g->report.node);
    memcpy(g->report.hash, head->hash, sizeof g->report.hash);
    if (p->n == 1)
        p->since_ms = clock_mono_ms();
    p->bytes += head->bytes;
    if (head->kind == INGEST_PAGE)
        gather_page(g, body, head->bytes);
    else if (head->kind == INGEST_FACTS)
        put_document(p, g, body, head->bytes);
    else if (head->kind == INGEST_WHOLE)
        gather_whole(g, body);
    else if (head->kind == INGEST_JUDGED)
        put_judgement(p, g, body, head->bytes);
    else if (head->kind == INGEST_MARK)
        put_mark(p, g, body, head->bytes);
    else if (head->kind == INGEST_OWNERS)
        put_owners(p, g, body, head->bytes);
    else if (head->kind == INGEST_DRAINED)
        put_drained(p, g, body, head->bytes);
    else if (head->kind == INGEST_CAMPAIGN) {
        g->report.next = head->after; // its number
        put_campaign_item(g, p->store, body, head->bytes);
    }
}

// ---- Storing ------------------------------------------------------------------------------------

static void take_ack(struct gathered *g, const struct fleet_ack *a)
{
    g->report.outcome = a->outcome;
    g->report.next = a->next;
    g->report.stored = a->stored;
    g->report.others = a->others;
    g->report.notes = a->notes;
    g->report.lost = a->lost;
    g->report.unkept = a->unkept;
    memcpy(g->report.other, a->other, sizeof g->report.other);
}

static int send_wanted_run(void *ctx, const struct fleet_wanted_run *w, struct err *err)
{
    struct ingest_report r = {.kind = INGEST_WANTED_RUN, .next = w->seq, .run = w->run};
    (void)ctx;
    snprintf(r.node, sizeof r.node, "%s", w->node);
    snprintf(r.other, sizeof r.other, "%s", w->under);
    return report_item(&r) < 0 ? err_set(err, ERR_UNAVAILABLE, "", "the collector has ended") : 0;
}

// What the nodes are to send besides their pages.
static int send_wishes(struct ingest_process *p, struct err *err)
{
    return fleet_store_wanted(p->store, WANTED_MOST, send_wanted, p, err) < 0 ||
                   fleet_store_archive_wanted(p->store, clock_wall_ms(), WANTED_RUNS,
                                              send_wanted_run, p, err) < 0
               ? -1
               : 0;
}

static int put_wholes(struct ingest_process *p, struct err *err)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        if (p->list[i].whole)
            p->wholes[n++] = p->list[i].run;
    if (n && fleet_store_archive_put(p->store, p->wholes, n, clock_wall_ms(), err) < 0)
        return -1;
    for (int i = 0, at = 0; i < p->n; i++)
        if (p->list[i].whole)
            p->list[i].report.given_up = p->wholes[at++].given_up;
    return n;
}

static void forget_items(struct ingest_process *p)
{
    for (int i = 0; i < p->n; i++) {
        if (p->list[i].paged)
            summary_page_fini(&p->list[i].page);
        buf_free(&p->list[i].run.frame);
    }
    p->n = 0;
    p->bytes = 0;
}

static int put_gone(struct ingest_process *p, struct err *err)
{
    const char *names[GATHER_ITEMS];
    for (int i = 0; i < p->n; i++)
        names[i] = p->list[i].head.node;
    return fleet_store_gone(p->store, names, p->n, err);
}

static int64_t page_after(const struct gathered *g)
{
    return g->head.after == INGEST_AS_SAID ? g->page.after : g->head.after;
}

static int flush(struct ingest_process *p)
{
    struct err err = {0};
    int pages = 0, judged = 0, rc = 0, wholes = put_wholes(p, &err);
    if (wholes < 0 || (p->gone && put_gone(p, &err) < 0))
        return ingest_fail(&err, true);
    for (int i = 0; i < p->n; i++)
        if (p->list[i].paged)
            p->pages[pages++] = (struct fleet_page){.name = p->list[i].head.node,
                                                    .after = page_after(&p->list[i]),
                                                    .received_ms = p->list[i].head.received_ms,
                                                    .skew_ms = p->list[i].head.skew_ms,
                                                    .collector = p->list[i].head.collector,
                                                    .page = &p->list[i].page};
    if (pages && fleet_store_put(p->store, p->pages, pages, p->acks, &err) < 0)
        return ingest_fail(&err, true);
    for (int i = 0; i < p->n; i++)
        judged += p->list[i].judged;
    // Before the reports: who has sent a page itself gets what the collector lacks in the response.
    if (pages + wholes + judged && send_wishes(p, &err) < 0)
        return ingest_fail(&err, true);
    for (int i = 0, at = 0; i < p->n; i++) {
        struct gathered *g = &p->list[i];
        if (g->paged)
            take_ack(g, &p->acks[at++]);
        if (g->report.stored && g->report.newest_ms > p->newest_ms)
            p->newest_ms = g->report.newest_ms;
        if (g->failed) {
            err_set(&err, g->failed, "", "%s", g->report.text);
            return ingest_fail(&err, true);
        }
        rc = rc < 0 ? rc : report_item(&g->report);
    }
    forget_items(p);
    return rc;
}

// The items that are whole. -1: the collector has ended, or the store failed.
static int take_items(struct ingest_process *p)
{
    struct ingest_head head;
    size_t at = 0;
    int rc = 0;
    while (rc == 0 && p->in.len - at >= sizeof head) {
        memcpy(&head, p->in.data + at, sizeof head);
        if (p->in.len - at - sizeof head < head.bytes)
            break;
        // A page that waits would open the history of a node that is gone again, and the node's
        // next name would be a twin.
        bool gone = head.kind == INGEST_GONE;
        if (p->n && gone != p->gone && (rc = flush(p)) < 0)
            break;
        p->gone = gone;
        gather_item(p, &head, p->in.data + at + sizeof head);
        at += sizeof head + head.bytes;
        if (p->n == GATHER_ITEMS || p->bytes >= GATHER_BYTES || head.alone)
            rc = flush(p);
    }
    buf_drop(&p->in, at);
    return rc;
}

static int report_retention(enum ingest_kind of, const struct fleet_retention *done,
                            const struct err *err)
{
    struct ingest_report r = {.kind = INGEST_RETAINED,
                              .of = of,
                              .code = err->code,
                              .next = done->deleted,
                              .more = done->held};
    snprintf(r.text, sizeof r.text, "%s", err->text);
    return report_item(&r);
}

typedef int retain_fn(struct fleet_store *s, struct fleet_retention *r, struct err *err);

// A lock that another process holds is reported, and tried again soon. keep_days 0: nothing is
// deleted.
static int retain_some(struct ingest_process *p, enum ingest_kind of, int64_t now_ms,
                       int64_t keep_days)
{
    static const int64_t day_ms = 86400 * 1000;
    static retain_fn *const fns[] = {[INGEST_PAGE] = fleet_store_retain,
                                     [INGEST_WHOLE] = fleet_store_archive_retain,
                                     [INGEST_JUDGED] = fleet_store_findings_retain};
    int64_t newest_ms = p->newest_ms < now_ms ? p->newest_ms : now_ms;
    struct fleet_retention r = {.before_ms = newest_ms - keep_days * day_ms, .now_ms = now_ms};
    struct err err = {0};
    if (!keep_days)
        return 0;
    if (report_item(&(struct ingest_report){.kind = INGEST_DELETING}) < 0)
        return -1;
    if (fns[of](p->store, &r, &err) == 0)
        err = (struct err){0};
    else if (err.code != ERR_CONFLICT)
        return ingest_fail(&err, true);
    else
        p->retain_at_ms = clock_mono_ms() + RETAIN_AGAIN_MS;
    return report_retention(of, &r, &err);
}

// Age counts from the newest run that was received: a clock of ours that jumps ahead deletes
// nothing.
static int retain(struct ingest_process *p)
{
    int64_t now = clock_wall_ms(), mono = clock_mono_ms();
    if (!p->newest_ms || (p->retain_at_ms && mono < p->retain_at_ms))
        return 0;
    p->retain_at_ms = mono + RETAIN_MS;
    return retain_some(p, INGEST_PAGE, now, p->keep_days) < 0 ||
                   retain_some(p, INGEST_WHOLE, now, p->archive_keep_days) < 0 ||
                   retain_some(p, INGEST_JUDGED, now, KEPT_CLOSED_DAYS) < 0
               ? -1
               : 0;
}

static int ingest_run(struct ingest_process *p)
{
    enum { PIECE = 1 << 18 };
    CLEANUP_MEM char *bytes = malloc(PIECE);
    for (bool end = !bytes; !end;) {
        struct pollfd readable = {.fd = INGEST_FD, .events = POLLIN};
        int64_t left = p->n ? p->since_ms + GATHER_MS - clock_mono_ms() : -1;
        int ready = poll(&readable, 1, left < 0 ? (p->n ? 0 : -1) : (int)left);
        ssize_t n = ready > 0 ? recv(INGEST_FD, bytes, PIECE, 0) : 0;
        if (n < 0 && errno != EINTR)
            return 1;
        end = ready > 0 && n == 0;
        if (n > 0)
            buf_add(&p->in, bytes, (size_t)n);
        if (!buf_ok(&p->in) || take_items(p) < 0)
            return 1;
        if (p->n && (end || clock_mono_ms() - p->since_ms >= GATHER_MS) &&
            (flush(p) < 0 || retain(p) < 0))
            return 1;
    }
    return 0;
}

int ingest_main(int argc, char **argv)
{
    struct err err = {0};
    int64_t archive = FLEET_ARCHIVE_NONE;
    char where[FLEET_STORE_WHERE_MAX];
    if (argc != 5 || !child_read_text(INGEST_STORE_FD, where, sizeof where) ||
        !child_limit_memory(INGEST_MEMORY))
        return 2;
    CLEANUP_MEM struct ingest_process *p = calloc(1, sizeof *p);
    if (!p)
        return 1;
    p->store = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    str_to_i64(argv[2], &p->keep_days);
    str_to_i64(argv[3], &archive);
    str_to_i64(argv[4], &p->archive_keep_days);
    struct fleet_tally judged;
    if (!p->store || fleet_store_feeds(p->store, false, send_place, p, &err) < 0 ||
        fleet_store_collectors(p->store, send_collector, p, &err) < 0 ||
        campaign_ingest_load(p->store, report_with, &err) < 0 ||
        fleet_store_counts(p->store, &judged, &err) < 0 || report_tally(&judged, &err) < 0) {
        ingest_fail(&err, false);
        fleet_store_close(p->store);
        return 1;
    }
    fleet_store_archives(p->store, (enum fleet_archive)archive);
    int rc = report_item(&(struct ingest_report){.kind = INGEST_READY}) < 0 ? 1 : ingest_run(p);
    fleet_store_close(p->store);
    forget_items(p);
    buf_free(&p->in);
    return rc;
}
