// SPDX-License-Identifier: Apache-2.0
// One timer for all nodes: when it fires, the list is searched from where it was left for nodes
// that are due. Ten thousand are searched in 0.1 ms, and at most a hundred times a second.
#include "fleet/collect/poller.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "fleet/collect/parts.h"

// Of a page of another collector: 0.9 MB.
enum { COLLECTOR_RUNS = SUMMARY_RUNS_MAX };

// ---- Requests -----------------------------------------------------------------------------------

static int clock_skew(int64_t ms)
{
    return (int)(ms > INT32_MAX ? INT32_MAX : ms < -INT32_MAX ? -INT32_MAX : ms);
}

static bool is_collector(const struct polled *n)
{
    return poller_find_collector(n->poller, n->name) == n;
}

static int send_on(struct polled *n, struct fetch_response *r)
{
    struct err err;
    struct ingest_item item = {.kind = INGEST_PAGE,
                               .node = n->name,
                               .collector = is_collector(n),
                               .after = n->after,
                               .received_ms = clock_wall_ms(),
                               .skew_ms = r->dated ? clock_skew(r->skew_ms) : 0};
    n->skew_ms = item.skew_ms;
    n->sent = true;
    return ingest_send(n->poller->ingest, &item, &r->body, &err);
}

static void page_refused(struct polled *n, const struct ingest_report *r)
{
    struct err why;
    err_set(&why, r->code, r->member, "%s", r->text);
    err_name_member(&why);
    node_failed(n, why.text);
}

static void on_page(void *ctx, struct fetch_response *r)
{
    struct polled *n = ctx;
    char why[POLLER_WHY];
    n->poller->totals.in_flight--;
    n->poller->totals.errors[r->error] += r->error != FETCH_OK;
    poller_wake(n->poller); // there is room for another one
    if (n->state == NODE_GONE)
        node_later(n, 0); // its history may continue under another name by now
    else if (r->error != FETCH_OK)
        node_failed(n, fetch_error_info(r->error)->text);
    else if (r->status == 409 && *n->history) {
        // Another history than before: from its beginning.
        n->history[0] = '\0';
        n->after = 0;
        node_later(n, node_at_once(n, 0) ? 0 : n->poller->c->every_s * 1000);
    } else if (fetch_response_busy(r))
        node_busy(n, r);
    else if (r->status != 200) {
        // An older daemon does not know the feed, or not all of its parameters.
        n->too_old = r->status == 404 || r->status == 400;
        snprintf(why, sizeof why, "its response has status %d%s", r->status,
                 n->too_old ? ": its numaprobed may be too old for the collector" : "");
        n->poller->totals.errors[FETCH_OK]++;
        node_failed(n, why);
    } else if (send_on(n, r) < 0)
        node_failed(n, "the collector has no memory for its page");
}

static void poll_node(struct polled *n)
{
    struct err err;
    char url[500];
    snprintf(url, sizeof url, "%s/v1/feed?form=summary&limit=%d&after=%" PRId64 "%s%s",
             n->base[n->at_base], is_collector(n) ? COLLECTOR_RUNS : PAGE_RUNS, n->after,
             *n->history ? "&history_id=" : "", n->history);
    n->busy = true;
    n->again = false;
    if (poller_fetch(n->poller, url, NULL, on_page, n, &err) < 0)
        node_failed(n, err.text);
}

// More is requested only while there is room for what comes.
static bool poller_has_room(const struct poller *p)
{
    return ingest_ready(p->ingest) && p->totals.in_flight < p->c->at_once &&
           ingest_backlog(p->ingest) < INGEST_BACKLOG_MAX;
}

// Requests from it, if it is due; else *next is at most when it is.
static void search_node(struct polled *n, int64_t now, int64_t *next)
{
    if (n->poison_wish && !node_poison(n)) {
        n->poison_wish = false;
        n->poison_ms = 0;
    }
    if (n->busy || n->state == NODE_GONE || node_asleep(n) || *n->behind)
        return;
    if (n->due_ms <= now && n->pushes)
        push_missed(n);
    else if (n->due_ms <= now)
        poll_node(n);
    else if (n->due_ms < *next)
        *next = n->due_ms;
}

static void on_search(void *ctx, uint32_t events)
{
    struct poller *p = ctx;
    int64_t now = clock_mono_ms(), next = INT64_MAX;
    (void)events;
    p->search_ms = 0;
    for (int i = 0; i < p->n && poller_has_room(p); i++) {
        p->at = (p->at + 1) % p->n;
        search_node(p->nodes[p->at], now, &next);
    }
    for (int i = 0; i < FLEETD_SOURCES_MAX && poller_has_room(p); i++)
        if (p->collectors[i])
            search_node(p->collectors[i], now, &next);
    fetch_turn(p->fetch);
    if (p->leave_ms && p->leave_ms <= now)
        nodes_leave(p);
    if (p->leave_ms > now && p->leave_ms < next)
        next = p->leave_ms;
    if (p->unlogged_ms && p->unlogged_ms <= now)
        nodes_log_others(p);
    if (p->unlogged_ms && p->unlogged_ms < next)
        next = p->unlogged_ms;
    if (next < INT64_MAX)
        poller_search_in(p, next - now > POLLER_SEARCH_MS ? next - now : POLLER_SEARCH_MS);
}

static void on_fetch(void *ctx, uint32_t events)
{
    struct poller *p = ctx;
    (void)events;
    fetch_turn(p->fetch);
}

// ---- The process that stores --------------------------------------------------------------------

static void store_becomes(struct poller *p, enum store_state state, const char *why)
{
    struct poller_totals *t = &p->totals;
    bool waits = state == STORE_OPENING && strcmp(why, t->store) != 0; // for something else now
    snprintf(t->store, sizeof t->store, "%s", why);
    if (state == t->store_state && !waits)
        return;
    log_event(state == STORE_READY ? LOG_LVL_INFO : LOG_LVL_WARN, "store",
              "was=%s is=%s text=\"%s\"", store_state_names[t->store_state],
              store_state_names[state], log_quote(why).text);
    if (state != t->store_state)
        t->store_since_ms = clock_wall_ms();
    t->store_state = state;
}

// What is deleted by age: the events that state it, and what else may be wrong than the clock.
static const struct aged {
    enum ingest_kind of;
    const char *deleted, *held, *older, *since, *setting;
} aged_kinds[POLLER_AGED] = {
    {INGEST_PAGE, "retention", "retention.held", "are older than keep_days=", "", "keep_days or "},
    {INGEST_WHOLE, "archive.retention", "archive.held",
     "of whole runs are older than archive_keep_days=", "", "archive_keep_days or "},
    {INGEST_JUDGED, "findings.retention", "findings.held", "of findings were closed over ",
     " days ago", ""},
};

// Each attempt is reported, one a minute while a lock is held. The log has what changed.
static void aged_reported(const struct aged *kind, int64_t days, struct poller_aged *was,
                          const struct ingest_report *r)
{
    if (r->next)
        log_event(LOG_LVL_INFO, kind->deleted, "deleted=%" PRId64, r->next);
    if (r->code && !was->blocked)
        log_event(LOG_LVL_WARN, "retention.blocked", "text=\"%s\"", log_quote(r->text).text);
    if (!r->code && was->blocked)
        log_event(LOG_LVL_INFO, "retention.resumed", "deleted=%" PRId64, r->next);
    was->blocked = r->code;
    if (r->code)
        return;
    if (r->more && !was->held) {
        char text[192];
        snprintf(text, sizeof text,
                 "more months %s%" PRId64 "%s; %d are deleted each day: if %sthe clock is wrong, "
                 "correct it",
                 kind->older, days, kind->since, FLEET_RETAIN_MONTHS, kind->setting);
        log_event(LOG_LVL_WARN, kind->held, "text=\"%s\"", log_quote(text).text);
    }
    was->held = r->more;
}

static void retention_reported(struct poller *p, const struct ingest_report *r)
{
    const int64_t days[POLLER_AGED] = {p->c->keep_days, p->c->archive_keep_days, KEPT_CLOSED_DAYS};
    for (int i = 0; i < POLLER_AGED; i++)
        if (aged_kinds[i].of == r->of)
            aged_reported(&aged_kinds[i], days[i], &p->aged[i], r);
}

// Without a state of its own: whether it is slow or has gone is not known yet.
static void store_stalled(struct poller *p, const struct ingest_report *r)
{
    struct poller_totals *t = &p->totals;
    if (t->store_state != STORE_READY && t->store_state != STORE_OPENING)
        return;
    snprintf(t->store, sizeof t->store, "%s", r->text);
    if (*r->text)
        log_event(LOG_LVL_WARN, "store.stalled", "is=%s text=\"%s\"",
                  store_state_names[t->store_state], log_quote(r->text).text);
    else
        log_event(LOG_LVL_INFO, "store.responds", "is=%s", store_state_names[t->store_state]);
}

// A disk that is full can be opened: that something was stored shows that it can be written again.
static void store_reported(struct poller *p, const struct ingest_report *r)
{
    bool stored = r->kind == INGEST_STORED && r->of == INGEST_PAGE;
    if (r->kind == INGEST_RETAINED)
        retention_reported(p, r);
    if (r->kind == INGEST_STALLED)
        store_stalled(p, r);
    if (r->kind == INGEST_FAILED) {
        p->store_failed_open = r->opened;
        store_becomes(p, store_state_of(r->code), r->text);
    } else if (stored || (r->kind == INGEST_READY && !p->store_failed_open)) {
        p->store_failed_open = false;
        store_becomes(p, STORE_READY, "");
    }
}

static void poller_pass(struct poller *p, const struct ingest_report *r)
{
    for (int i = 0; i < POLLER_LISTENERS; i++)
        if (p->listeners[i].fn)
            p->listeners[i].fn(p->listeners[i].ctx, r);
}

static void on_ingest_report(void *ctx, const struct ingest_report *r)
{
    struct poller *p = ctx;
    struct polled *n =
        r->collector ? poller_find_collector(p, r->node) : poller_find_own(p, r->node);
    store_reported(p, r);
    if (r->kind == INGEST_PLACE && !r->collector && *r->history)
        node_has_history(p, r->node, r->other);
    if (r->kind == INGEST_READY) {
        p->owners = 0; // this process has no list yet
        send_owners(p);
        nodes_leave(p);
        whole_ends_tell(p);
    }
    if (r->kind == INGEST_WANTED)
        document_wanted(p, r);
    else if (r->kind == INGEST_WANTED_RUN)
        whole_wanted(p, r);
    else if (r->kind == INGEST_PLACE && n)
        node_placed(n, r);
    else if (r->of == INGEST_FACTS && r->kind == INGEST_STORED) {
        p->totals.documents++;
        p->facts_uncounted = true;
        push_lacks_no_more(p, r->hash);
    } else if (n && r->of == INGEST_PAGE && r->kind == INGEST_STORED)
        node_stored(n, r);
    else if (n && r->of == INGEST_PAGE)
        page_refused(n, r);
    if (n && n->pushes && r->of == INGEST_PAGE &&
        (r->kind == INGEST_STORED || r->kind == INGEST_REFUSED))
        push_reported(n, r);
    if (n && n->pushes && r->of == INGEST_FACTS &&
        (r->kind == INGEST_STORED || r->kind == INGEST_REFUSED))
        push_facts_reported(n, r);
    if (r->given_up)
        whole_given_up(p, n, r);
    if (r->kind == INGEST_STORED && r->of != INGEST_PAGE && r->of != INGEST_FACTS)
        p->totals.kept++;
    if (r->kind == INGEST_STORED || r->kind == INGEST_REFUSED || r->kind == INGEST_READY)
        wishes_next(p); // the backlog may have kept them back
    poller_pass(p, r);
    poller_wake(p);
}

// It is left alone for a while. By a document or a run that was requested, only requests for those
// end; of what a node pushes, its pages wait too.
static void node_poisoned(struct polled *n, enum ingest_kind of)
{
    n->poison_ms = clock_wall_ms();
    n->poison_until_ms = clock_mono_ms() + POISON_MS;
    n->poison_wish = of != INGEST_PAGE && !n->pushes;
    if (n->poison_wish)
        return;
    node_failed(n, "what it sent ended the process that reads it");
    n->due_ms = n->poison_until_ms;
}

static void on_ingest_ended(void *ctx, const struct ingest_head *suspect)
{
    struct poller *p = ctx;
    nodes_leave_forget(p);
    if (p->totals.store_state == STORE_READY)
        store_becomes(p, STORE_OPENING, "the process that stores has ended; it is started again");
    char why[POLLER_WHY];
    snprintf(why, sizeof why, "not stored, send it again: %.120s", p->totals.store);
    for (int i = 0; i < p->n; i++)
        if (p->nodes[i]->sent) {
            node_later(p->nodes[i], 0);
            push_settle(p->nodes[i], ERR_UNAVAILABLE, why);
        }
    for (int i = 0; i < FLEETD_SOURCES_MAX; i++)
        if (p->collectors[i] && p->collectors[i]->sent)
            node_later(p->collectors[i], 0);
    poller_pass(p, NULL);
    struct polled *n = !suspect             ? NULL
                       : suspect->collector ? poller_find_collector(p, suspect->node)
                                            : poller_find_own(p, suspect->node);
    if (n)
        node_poisoned(n, suspect->kind);
    if (n && suspect->kind == INGEST_WHOLE)
        whole_ends(p, suspect);
}

// ---- What others see and send -------------------------------------------------------------------

void poller_totals(const struct poller *p, struct poller_totals *out)
{
    *out = p->totals;
}

bool poller_stands_by(const struct poller *p)
{
    return p->totals.store_state == STORE_STANDBY;
}

int64_t poller_changes(struct poller *p, int64_t now_ms)
{
    // What another collector stores is not reported here.
    if (poller_stands_by(p) && now_ms >= p->standby_change_ms) {
        p->totals.kept++;
        p->standby_change_ms = now_ms + STANDBY_EVERY_MS;
    }
    if (p->facts_uncounted &&
        log_budget_take(&p->facts_changes, FACTS_BURST, FACTS_EVERY_MS, now_ms)) {
        p->totals.kept++;
        p->facts_uncounted = false;
    }
    return p->totals.stored + p->totals.kept;
}

void poller_listen(struct poller *p, poller_report_fn *fn, void *ctx)
{
    const void *wanted = fn ? NULL : ctx; // a free place, or its own
    for (int i = 0; i < POLLER_LISTENERS; i++)
        if (p->listeners[i].ctx == wanted) {
            p->listeners[i].fn = fn;
            p->listeners[i].ctx = fn ? ctx : NULL;
            return;
        }
}

void poller_soon(struct poller *p, const char *node)
{
    struct polled *n = poller_find_own(p, node);
    if (!n || !node_is_here(n))
        return;
    n->again = n->busy;
    if (n->busy)
        return;
    n->due_ms = clock_mono_ms();
    poller_wake(p);
}

size_t poller_backlog(const struct poller *p)
{
    return ingest_backlog(p->ingest);
}

// ---- Life ---------------------------------------------------------------------------------------

static int poller_open(struct poller *p, struct err *err)
{
    const struct ingest_user user = {on_ingest_report, on_ingest_ended, p};
    p->tls = (struct fetch_tls){p->c->node_ca, p->c->node_certificate, p->c->node_key};
    p->limits = fetch_limits_within(p->c->node_timeout_s);
    p->whole_limits = p->limits;
    p->whole_limits.body_max = FLEET_ARCHIVE_BYTES_MAX;
    p->addresses = fleetd_addresses(p->c, err);
    if (!p->addresses || fleetd_node_token(p->c, p->token, err) < 0 ||
        fleetd_node_tls(p->c, false, err) < 0 || poller_add_collectors(p, err) < 0)
        return -1;
    struct err why = {0};
    if (fleetd_node_tls(p->c, true, &why) < 0) // nodes that need no certificate still respond
        log_event(LOG_LVL_WARN, "tls.certificate", "problem=\"%s\"", log_quote(why.text).text);
    p->fetch = fetch_new((int)p->c->at_once, &p->limits, err);
    p->watch =
        p->fetch ? loop_watch_fd(p->loop, fetch_fd(p->fetch), EPOLLIN, on_fetch, p, err) : NULL;
    p->timer = p->watch ? loop_timer_new(p->loop, on_search, p, err) : NULL;
    const struct ingest_store store = {p->c->store, p->c->keep_days, p->c->archive_keep_days,
                                       (enum fleet_archive)p->c->archive};
    p->ingest = p->timer ? ingest_new(p->loop, &store, &user, err) : NULL;
    return p->ingest ? 0 : -1;
}

int poller_renew_tls(struct poller *p, struct err *err)
{
    fetch_trust_again(p->fetch);
    return fleetd_node_tls(p->c, true, err);
}

struct poller *poller_new(struct loop *loop, const struct fleetd_config *c, struct err *err)
{
    struct poller *p = calloc(1, sizeof *p);
    if (!p) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the poller");
        return NULL;
    }
    p->loop = loop;
    p->c = c;
    p->totals.store_since_ms = clock_wall_ms();
    if (poller_open(p, err) == 0)
        return p;
    poller_free(p);
    return NULL;
}

void poller_free(struct poller *p)
{
    if (!p)
        return;
    nodes_log_others(p);
    if (p->fetch)
        fetch_stop(p->fetch);
    ingest_free(p->ingest);
    loop_unwatch(p->watch);
    loop_timer_free(p->timer);
    fetch_free(p->fetch);
    addresses_free(p->addresses);
    for (int i = 0; i < p->n; i++)
        polled_free(p->nodes[i]);
    for (int i = 0; i < FLEETD_SOURCES_MAX; i++)
        polled_free(p->collectors[i]);
    free(p->nodes);
    nodes_leave_forget(p);
    free(p);
}
