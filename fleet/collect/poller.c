// SPDX-License-Identifier: Apache-2.0
// One timer for all nodes: when it fires, the list is searched from where it was left for nodes
// that are due. Ten thousand are searched in 0.1 ms, and at most a hundred times a second.
#include "fleet/collect/poller.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "nodes/announced.h"

enum {
    PAGE_RUNS = 100,
    SEARCH_MS = 10,          // between two searches
    FIRST_RATE = 4000,       // nodes a second, of those that are new
    POISON_MS = 3600 * 1000, // until a node is contacted again whose page ended the process
    WANTED_ROOM = 256,       // documents that were requested lately
    WHOLE_ROOM = 64,         // whole runs that wait to be requested; the store repeats others
    NOT_PUSHED = 410,        // as the status of a whole run: it is given up
    WHOLE_AT_ONCE = 4,       // of at most 32 MiB each
    REPEATS_MAX = 3,         // pages at once of a node whose place was elsewhere
    DUPLICATE_RETURNS = 2,
    DUPLICATE_QUIET_MS = 24 * 3600 * 1000, // after the last return it is one machine again
};

struct wanted {
    char hash[65];
    int64_t until_ms; // not requested again before, monotonic
};

struct wanted_fetch {
    struct poller *poller;
    char node[64];
};

// A whole run that the store wants.
struct whole_run {
    struct poller *poller;
    char node[64];
    int64_t seq, run;
};

struct poller {
    struct loop *loop;
    const struct fleetd_config *c;
    struct ingest *ingest;
    struct fetch *fetch;
    struct fetch_limits limits;
    struct fetch_tls tls;
    struct loop_watch *watch;
    struct loop_timer *timer;
    struct addresses *addresses;
    struct polled **nodes; // by name; owned, each too
    int n, at;             // at: where the search continues
    int64_t search_ms;     // when the timer fires, monotonic
    struct poller_totals totals;
    struct wanted wanted[WANTED_ROOM];
    int wanted_at;
    struct whole_run wholes[WHOLE_ROOM];
    int n_wholes, wholes_in_flight;
    struct fetch_limits whole_limits;
    int64_t pushed;         // pages that nodes sent themselves
    bool store_failed_open; // it was opened, and failed when it was written to
    char token[200];
    struct {
        poller_report_fn *fn; // NULL: none
        void *ctx;
    } listeners[POLLER_LISTENERS];
};

// ---- What became of a node ----------------------------------------------------------------------

// The search comes after `ms`, or as soon as it was going to. A wish must not put off an earlier
// one: reports come faster than searches.
static void search_in(struct poller *p, int64_t ms)
{
    int64_t now = clock_mono_ms();
    if (p->search_ms > now && p->search_ms <= now + ms)
        return;
    p->search_ms = now + ms;
    loop_timer_set(p->timer, ms);
}

static void poller_wake(struct poller *p)
{
    search_in(p, SEARCH_MS);
}

static void node_event(struct polled *n, enum node_event e)
{
    enum node_state was = n->state;
    n->state = node_states[n->state].after[e];
    if (n->state != was && (n->state == NODE_DOWN || was == NODE_DOWN))
        log_event(LOG_LVL_INFO, "node", "name=%s was=%s is=%s why=\"%s\"", n->name,
                  node_states[was].name, node_states[n->state].name, n->why);
}

static void node_later(struct polled *n, int64_t ms)
{
    if (n->pushes)
        ms = n->poller->c->push_every_s * 1000; // it is late then
    n->busy = n->sent = false;
    n->due_ms = clock_mono_ms() + ms;
    poller_wake(n->poller);
}

// Where sources disagree about its address, all are contacted in turn.
static void node_turn(struct polled *n)
{
    n->at_base = *n->base[1] ? !n->at_base : 0;
}

static void node_failed(struct polled *n, const char *why)
{
    struct poller *p = n->poller;
    p->totals.failed++;
    n->failures++;
    snprintf(n->why, sizeof n->why, "%s", why);
    node_event(n, NODE_FAILED);
    node_turn(n);
    node_later(n, node_wait_ms(n->state, n->failures, p->c->every_s * 1000,
                               (uint32_t)hash_text(n->name) + (uint32_t)n->failures * 2654435761u));
}

bool node_clock_wrong(const struct polled *n)
{
    return n->skew_ms > NODE_SKEW_MAX_MS || n->skew_ms < -NODE_SKEW_MAX_MS;
}

// A machine that is set up again has a new history, and one that is restored comes back to an old
// one, once. Two machines do so again and again.
bool node_duplicate(const struct polled *n)
{
    return n->returns >= DUPLICATE_RETURNS && clock_wall_ms() - n->returned_ms < DUPLICATE_QUIET_MS;
}

bool node_asleep(const struct polled *n)
{
    return strchr(n->slurm_state, '~') != NULL;
}

static void note_history(struct polled *n, const char *history)
{
    if (strcmp(n->history_now, history) == 0)
        return;
    if (strcmp(n->history_before, history) == 0) {
        n->returns = clock_wall_ms() - n->returned_ms < DUPLICATE_QUIET_MS ? n->returns + 1 : 1;
        n->returned_ms = clock_wall_ms();
    }
    memcpy(n->history_before, n->history_now, sizeof n->history_before);
    snprintf(n->history_now, sizeof n->history_now, "%s", history);
}

static void node_stored(struct polled *n, const struct ingest_report *r)
{
    struct poller *p = n->poller;
    static const bool again[FLEET_OUTCOMES] = {
        [FLEET_BEHIND] = true, [FLEET_REINSTALLED] = true, [FLEET_RENAMED] = true};
    bool taken = r->outcome == FLEET_STORED || again[r->outcome];
    n->failures = 0;
    n->repeats = n->outcome == r->outcome ? n->repeats + 1 : 0;
    n->outcome = r->outcome;
    memcpy(n->other, r->other, sizeof n->other);
    n->why[0] = '\0';
    n->stored += r->stored;
    p->totals.stored += r->stored;
    if (taken) {
        n->after = r->next;
        snprintf(n->history, sizeof n->history, "%s", r->history);
        n->seen_ms = r->at_ms;
        note_history(n, r->history);
    }
    n->poison_ms = 0;
    n->too_old = r->outcome == FLEET_NAMELESS;
    snprintf(n->version, sizeof n->version, "%s", r->version);
    if (r->newest_ms > n->newest_ms)
        n->newest_ms = r->newest_ms;
    node_event(n, NODE_RESPONDED);
    bool soon =
        r->outcome == FLEET_STORED ? r->more : again[r->outcome] && n->repeats < REPEATS_MAX;
    if (!soon)
        node_turn(n);
    node_later(n, soon ? 0 : node_wait_ms(n->state, 0, p->c->every_s * 1000, 0));
}

static void node_placed(struct polled *n, const struct ingest_report *r)
{
    if (n->busy)
        return; // its page says where it stands
    n->after = r->next;
    n->seen_ms = r->at_ms;
    n->outcome = r->outcome;
    memcpy(n->history, r->history, sizeof n->history);
    memcpy(n->version, r->version, sizeof n->version);
    memcpy(n->other, r->other, sizeof n->other);
}

// ---- Nodes that push ----------------------------------------------------------------------------

static void push_settle(struct polled *n, enum err_code failed, const char *why)
{
    struct pushed *s = &n->push;
    if (s->settled || !s->number)
        return;
    s->settled = true;
    s->failed = failed;
    snprintf(s->why, sizeof s->why, "%s", why);
    if (s->wake)
        s->wake(s->ctx);
}

static void push_reported(struct polled *n, const struct ingest_report *r)
{
    n->push.more = r->more;
    n->push.stored = r->stored;
    memcpy(n->push.member, r->member, sizeof n->push.member);
    push_settle(n, r->kind == INGEST_STORED ? ERR_NONE : ERR_INVALID, r->text);
}

static void push_missed(struct polled *n)
{
    n->failures++;
    snprintf(n->why, sizeof n->why, "it has not pushed for %" PRId64 " s",
             n->failures * n->poller->c->push_every_s);
    node_event(n, NODE_FAILED);
    node_later(n, 0);
}

static struct polled *find_polled(const struct poller *p, const char *name);

static struct polled *find_pushing(const struct poller *p, const char *node, struct err *err)
{
    struct polled *n = find_polled(p, node);
    if (n && n->pushes && n->state != NODE_GONE)
        return n;
    err_set(err, ERR_NOT_FOUND, "name",
            "no source names %s as a node that pushes; the collector needs source = announce",
            node);
    return NULL;
}

const struct polled *poller_pushing(const struct poller *p, const char *node, struct err *err)
{
    return find_pushing(p, node, err);
}

int64_t poller_push(struct poller *p, const char *node, struct buf *body, struct err *err)
{
    struct polled *n = find_pushing(p, node, err);
    struct ingest_item item = {
        .kind = INGEST_PAGE, .node = node, .after = INGEST_AS_SAID, .received_ms = clock_wall_ms()};
    if (!n)
        return -1;
    if (n->poison_ms && item.received_ms - n->poison_ms < POISON_MS)
        return err_set(err, ERR_CONFLICT, "name",
                       "a page of this node ended the process that reads pages; others are taken "
                       "an hour later");
    if (n->busy)
        return err_set(err, ERR_CONFLICT, "name", "the page before is not stored yet");
    if (ingest_backlog(p->ingest) >= INGEST_BACKLOG_MAX)
        return err_set(err, ERR_UNAVAILABLE, "store", "too many pages wait for the store");
    if (poller_keep(p, &item, body, err) < 0)
        return -1;
    n->busy = n->sent = true;
    n->push = (struct pushed){.number = ++p->pushed};
    return n->push.number;
}

struct polled *poller_push_watch(struct poller *p, int64_t number, void (*wake)(void *ctx),
                                 void *ctx)
{
    for (int i = 0; i < p->n; i++)
        if (p->nodes[i]->push.number == number) {
            p->nodes[i]->push.wake = wake;
            p->nodes[i]->push.ctx = ctx;
            return p->nodes[i];
        }
    return NULL;
}

// ---- Requests -----------------------------------------------------------------------------------

static int send_on(struct polled *n, struct fetch_response *r)
{
    struct err err;
    struct ingest_item item = {.kind = INGEST_PAGE,
                               .node = n->name,
                               .after = n->after,
                               .received_ms = clock_wall_ms(),
                               .skew_ms = r->dated ? (int)r->skew_ms : 0};
    n->skew_ms = item.skew_ms;
    n->sent = true;
    return ingest_send(n->poller->ingest, &item, &r->body, &err);
}

static void on_page(void *ctx, struct fetch_response *r)
{
    struct polled *n = ctx;
    char why[POLLER_WHY];
    n->poller->totals.in_flight--;
    n->poller->totals.errors[r->error] += r->error != FETCH_OK;
    poller_wake(n->poller); // there is room for another one
    if (r->error != FETCH_OK)
        node_failed(n, fetch_error_info(r->error)->text);
    else if (r->status == 409 && *n->history) {
        // Another history than before: from its beginning.
        n->history[0] = '\0';
        n->after = 0;
        node_later(n, 0);
    } else if ((r->status == 429 || r->status == 503) && r->retry_after_s > 0)
        node_later(n, (int64_t)r->retry_after_s * 1000);
    else if (r->status != 200) {
        // An older daemon does not know the feed, or not all of its parameters.
        n->too_old = r->status == 404 || r->status == 400;
        snprintf(why, sizeof why, "its response has status %d", r->status);
        n->poller->totals.errors[FETCH_OK]++;
        node_failed(n, why);
    } else if (send_on(n, r) < 0)
        node_failed(n, "the collector has no memory for its page");
}

struct fetch_request poller_request(const struct poller *p)
{
    return (struct fetch_request){.token = p->token, .tls = &p->tls};
}

void poller_address(struct fetch_request *q, const char *url)
{
    q->url = url;
    if (!str_starts(url, "https://"))
        q->token = NULL; // it does not travel in clear, whatever address a source names
}

static int poller_fetch(struct poller *p, const char *url, fetch_done *done, void *ctx,
                        struct err *err)
{
    struct fetch_request q = poller_request(p);
    poller_address(&q, url);
    if (fetch_start(p->fetch, &q, done, ctx, err) < 0)
        return -1;
    p->totals.requests++;
    p->totals.in_flight++;
    return 0;
}

static void poll_node(struct polled *n)
{
    struct err err;
    char url[500];
    snprintf(url, sizeof url, "%s/v1/feed?form=summary&limit=%d&after=%" PRId64 "%s%s",
             n->base[n->at_base], PAGE_RUNS, n->after, *n->history ? "&history_id=" : "",
             n->history);
    n->busy = true;
    if (poller_fetch(n->poller, url, on_page, n, &err) < 0)
        node_failed(n, err.text);
}

// More is requested only while there is room for what comes.
static bool poller_has_room(const struct poller *p)
{
    return ingest_ready(p->ingest) && p->totals.in_flight < p->c->at_once &&
           ingest_backlog(p->ingest) < INGEST_BACKLOG_MAX;
}

static void on_search(void *ctx, uint32_t events)
{
    struct poller *p = ctx;
    int64_t now = clock_mono_ms(), next = INT64_MAX;
    (void)events;
    p->search_ms = 0;
    for (int i = 0; i < p->n && poller_has_room(p); i++) {
        struct polled *n = p->nodes[p->at = (p->at + 1) % p->n];
        if (n->busy || n->state == NODE_GONE || node_asleep(n))
            continue;
        if (n->due_ms <= now && n->pushes)
            push_missed(n);
        else if (n->due_ms <= now)
            poll_node(n);
        else if (n->due_ms < next)
            next = n->due_ms;
    }
    fetch_turn(p->fetch);
    if (next < INT64_MAX)
        search_in(p, next - now > SEARCH_MS ? next - now : SEARCH_MS);
}

static void on_fetch(void *ctx, uint32_t events)
{
    struct poller *p = ctx;
    (void)events;
    fetch_turn(p->fetch);
}

// ---- Documents ----------------------------------------------------------------------------------

static void on_document(void *ctx, struct fetch_response *r)
{
    struct wanted_fetch *w = ctx;
    struct ingest_item item = {.kind = INGEST_FACTS, .node = w->node};
    struct err err;
    w->poller->totals.in_flight--;
    if (r->error == FETCH_OK && r->status == 200)
        ingest_send(w->poller->ingest, &item, &r->body, &err); // else another node will send it
    poller_wake(w->poller);
    free(w);
}

// Whether a document was not requested lately; it counts as requested now.
static bool take_wish(struct poller *p, const char *hash)
{
    int64_t now = clock_mono_ms();
    for (int i = 0; i < WANTED_ROOM; i++)
        if (strcmp(p->wanted[i].hash, hash) == 0) {
            if (p->wanted[i].until_ms > now)
                return false;
            p->wanted[i].until_ms = now + p->c->every_s * 1000;
            return true;
        }
    struct wanted *w = &p->wanted[p->wanted_at++ % WANTED_ROOM];
    snprintf(w->hash, sizeof w->hash, "%s", hash);
    w->until_ms = now + p->c->every_s * 1000;
    return true;
}

static void fetch_document(struct poller *p, const struct ingest_report *r)
{
    const struct polled *n = poller_find(p, r->node);
    char url[500];
    struct err err;
    if (!n || n->state == NODE_GONE || n->pushes || !take_wish(p, r->hash))
        return;
    struct wanted_fetch *w = calloc(1, sizeof *w);
    if (!w)
        return;
    w->poller = p;
    snprintf(w->node, sizeof w->node, "%s", r->node);
    snprintf(url, sizeof url, "%s/v1/facts/%s", n->base[n->at_base], r->hash);
    if (poller_fetch(p, url, on_document, w, &err) < 0)
        free(w);
}

// ---- Whole runs ---------------------------------------------------------------------------------

static void whole_next(struct poller *p);

static void whole_send(const struct whole_run *w, int status, struct buf *body)
{
    struct err err;
    const struct ingest_item item = {
        .kind = INGEST_WHOLE, .node = w->node, .after = w->seq, .status = status};
    if (ingest_send(w->poller->ingest, &item, body, &err) < 0)
        log_error("archive", &err); // the store wants it again later
}

static void on_whole(void *ctx, struct fetch_response *r)
{
    struct whole_run *w = ctx;
    struct poller *p = w->poller;
    struct buf nothing = BUF_INIT;
    bool here = r->error == FETCH_OK && r->status == 200;
    int status = r->error == FETCH_OK ? r->status : r->error == FETCH_BODY_TOO_LARGE ? 413 : 0;
    p->totals.in_flight--;
    p->wholes_in_flight--;
    whole_send(w, status, here ? &r->body : &nothing);
    free(w);
    whole_next(p);
    poller_wake(p);
}

static int whole_fetch(struct poller *p, const struct whole_run *w, struct err *err)
{
    const struct polled *n = poller_find(p, w->node);
    char url[500];
    struct whole_run *own = n && n->state != NODE_GONE && !n->pushes ? malloc(sizeof *own) : NULL;
    if (!own)
        return -1;
    *own = *w;
    snprintf(url, sizeof url, "%s/v1/runs/%" PRId64 "/export?topology=false", n->base[n->at_base],
             w->run);
    const struct fetch_request q = {
        .url = url, .token = p->token, .tls = &p->tls, .limits = &p->whole_limits};
    if (fetch_start(p->fetch, &q, on_whole, own, err) == 0)
        return 0;
    free(own);
    return -1;
}

static void whole_next(struct poller *p)
{
    struct err err;
    struct buf nothing = BUF_INIT;
    while (p->n_wholes && p->wholes_in_flight < WHOLE_AT_ONCE &&
           ingest_backlog(p->ingest) < INGEST_BACKLOG_MAX) {
        struct whole_run w = p->wholes[0];
        memmove(p->wholes, p->wholes + 1, (size_t)--p->n_wholes * sizeof w);
        const struct polled *n = poller_find(p, w.node);
        if (whole_fetch(p, &w, &err) < 0) {
            whole_send(&w, n && n->pushes ? NOT_PUSHED : 0, &nothing);
            continue;
        }
        p->totals.requests++;
        p->totals.in_flight++;
        p->wholes_in_flight++;
    }
}

static void whole_wanted(struct poller *p, const struct ingest_report *r)
{
    char key[65];
    snprintf(key, sizeof key, "%016" PRIx64 " %" PRId64, hash_text(r->node), r->next);
    if (p->n_wholes == WHOLE_ROOM || !take_wish(p, key))
        return;
    struct whole_run *w = &p->wholes[p->n_wholes++];
    *w = (struct whole_run){.poller = p, .seq = r->next, .run = r->run};
    snprintf(w->node, sizeof w->node, "%s", r->node);
    whole_next(p);
}

// ---- The process that stores --------------------------------------------------------------------

static int by_polled_name(const void *key, const void *entry)
{
    return strcmp(key, (*(struct polled *const *)entry)->name);
}

static struct polled *find_polled(const struct poller *p, const char *name)
{
    struct polled **at =
        p->n ? bsearch(name, p->nodes, (size_t)p->n, sizeof *at, by_polled_name) : NULL;
    return at ? *at : NULL;
}

static void store_becomes(struct poller *p, enum store_state state, const char *why)
{
    struct poller_totals *t = &p->totals;
    snprintf(t->store, sizeof t->store, "%s", why);
    if (state == t->store_state)
        return;
    log_event(state == STORE_READY ? LOG_LVL_INFO : LOG_LVL_WARN, "store",
              "was=%s is=%s text=\"%s\"", store_state_names[t->store_state],
              store_state_names[state], why);
    t->store_state = state;
    t->store_since_ms = clock_wall_ms();
}

// A disk that is full can be opened: that something was stored shows that it can be written again.
static void store_reported(struct poller *p, const struct ingest_report *r)
{
    bool stored = r->kind == INGEST_STORED && r->of == INGEST_PAGE;
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
    struct polled *n = find_polled(p, r->node);
    store_reported(p, r);
    if (r->kind == INGEST_WANTED)
        fetch_document(p, r);
    else if (r->kind == INGEST_WANTED_RUN)
        whole_wanted(p, r);
    else if (r->kind == INGEST_PLACE && n)
        node_placed(n, r);
    else if (r->of == INGEST_FACTS && r->kind == INGEST_STORED)
        p->totals.documents++;
    else if (n && r->of == INGEST_PAGE && r->kind == INGEST_STORED)
        node_stored(n, r);
    else if (n && r->of == INGEST_PAGE)
        node_failed(n, r->text);
    if (n && n->pushes && r->of == INGEST_PAGE &&
        (r->kind == INGEST_STORED || r->kind == INGEST_REFUSED))
        push_reported(n, r);
    if (r->kind == INGEST_STORED && r->of != INGEST_PAGE)
        p->totals.kept++;
    poller_pass(p, r);
    poller_wake(p);
}

static void on_ingest_ended(void *ctx, const char *suspect)
{
    struct poller *p = ctx;
    if (p->totals.store_state == STORE_READY)
        store_becomes(p, STORE_OPENING, "the process that stores has ended; it is started again");
    for (int i = 0; i < p->n; i++)
        if (p->nodes[i]->sent) {
            node_later(p->nodes[i], 0);
            push_settle(p->nodes[i], ERR_UNAVAILABLE,
                        "the process that stores has ended; send the page again");
        }
    poller_pass(p, NULL);
    struct polled *n = suspect ? find_polled(p, suspect) : NULL;
    if (!n)
        return;
    node_failed(n, "its page ended the process that reads it");
    n->due_ms = clock_mono_ms() + POISON_MS;
    n->poison_ms = clock_wall_ms();
}

// ---- Nodes --------------------------------------------------------------------------------------

// "//n1:7780" of a source has the scheme of the setting. A source that names its node by the host
// of its address leaves it to hosts_file where that is.
static int node_base(const struct poller *p, const char *name, const char *said, char *out,
                     size_t room, struct err *err)
{
    char url[NAMED_URL_MAX + 16];
    int scheme = strncmp(said, "//", 2) == 0 ? (int)strcspn(p->c->url, "/") : 0;
    const char *slashes = strstr(said, "//");
    size_t n = strlen(name), before = slashes ? (size_t)(slashes - said) + 2 : 0;
    if (slashes && strncmp(slashes + 2, name, n) == 0 && slashes[2 + n] == ':')
        snprintf(url, sizeof url, "%.*s%.*s%%h%s", scheme, p->c->url, (int)before, said,
                 said + before + n);
    else
        snprintf(url, sizeof url, "%.*s%s", scheme, p->c->url, *said ? said : p->c->url);
    if (*said && !strstr(url, "%h"))
        return snprintf(out, room, "%s", url) >= (int)room
                   ? err_set(err, ERR_USAGE, "url", "is too long")
                   : 0;
    return addresses_url(p->addresses, url, "url", name, out, room, err);
}

static void node_said(struct polled *n, const struct naming_node *said)
{
    const struct named_node *s = &said->said;
    const size_t room = sizeof n->base[0];
    struct err err;
    n->sources = said->sources;
    snprintf(n->class_hint, sizeof n->class_hint, "%.63s", s->class_hint);
    snprintf(n->slurm_state, sizeof n->slurm_state, "%.23s", s->state);
    snprintf(n->partitions, sizeof n->partitions, "%s", s->partitions);
    n->base[1][0] = '\0';
    n->pushes = strcmp(s->url, ANNOUNCED_URL) == 0 || strcmp(said->other_url, ANNOUNCED_URL) == 0;
    if (n->pushes) {
        n->base[0][0] = '\0';
        n->at_base = 0;
        return;
    }
    if (node_base(n->poller, n->name, s->url, n->base[0], room, &err) < 0 ||
        (*said->other_url &&
         node_base(n->poller, n->name, said->other_url, n->base[1], room, &err) < 0))
        snprintf(n->why, sizeof n->why, "%s", err.text);
    if (!*n->base[1])
        n->at_base = 0;
}

static struct polled *polled_new(struct poller *p, const char *name, int64_t first_ms)
{
    struct polled *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->poller = p;
    n->due_ms = first_ms;
    snprintf(n->name, sizeof n->name, "%s", name);
    return n;
}

static int by_two_names(const void *a, const void *b)
{
    return strcmp((*(struct polled *const *)a)->name, (*(struct polled *const *)b)->name);
}

static int add_nodes(struct poller *p, const struct naming_node *list, int count, struct err *err)
{
    int64_t now = clock_mono_ms();
    int known = p->n;
    struct polled **more = realloc(p->nodes, (size_t)(p->n + count + 1) * sizeof *more);
    if (!more)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", count);
    p->nodes = more;
    for (int i = 0; i < count; i++) {
        const char *name = list[i].said.name;
        struct polled **at =
            known ? bsearch(name, p->nodes, (size_t)known, sizeof *at, by_polled_name) : NULL;
        if (at) {
            node_event(*at, NODE_NAMED);
            node_said(*at, &list[i]);
            continue;
        }
        struct polled *n = polled_new(p, name, now + i * 1000 / FIRST_RATE);
        if (!n)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", count);
        node_said(n, &list[i]);
        if (n->pushes)
            n->due_ms = now + p->c->push_every_s * 1000;
        p->nodes[p->n++] = n;
    }
    qsort(p->nodes, (size_t)p->n, sizeof *p->nodes, by_two_names);
    return 0;
}

static int by_naming_name(const void *key, const void *entry)
{
    return strcmp(key, ((const struct naming_node *)entry)->said.name);
}

int poller_set_nodes(struct poller *p, const struct naming_node *nodes, int count, struct err *err)
{
    for (int i = 0; i < p->n; i++) {
        struct polled *n = p->nodes[i];
        struct buf nothing = BUF_INIT;
        if (n->state == NODE_GONE ||
            (count && bsearch(n->name, nodes, (size_t)count, sizeof *nodes, by_naming_name)))
            continue;
        node_event(n, NODE_UNNAMED);
        n->sources = 0;
        ingest_send(p->ingest, &(struct ingest_item){.kind = INGEST_GONE, .node = n->name},
                    &nothing, err);
    }
    if (add_nodes(p, nodes, count, err) < 0)
        return -1;
    poller_wake(p);
    return 0;
}

struct polled *const *poller_nodes(const struct poller *p, int *n)
{
    *n = p->n;
    return p->nodes;
}

const struct polled *poller_find(const struct poller *p, const char *name)
{
    return find_polled(p, name);
}

void poller_totals(const struct poller *p, struct poller_totals *out)
{
    *out = p->totals;
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

int poller_keep(struct poller *p, const struct ingest_item *item, struct buf *body, struct err *err)
{
    if (!ingest_ready(p->ingest))
        return err_set(err, ERR_UNAVAILABLE, "store", "%s",
                       *p->totals.store ? p->totals.store : "the store is being opened");
    return ingest_send(p->ingest, item, body, err);
}

void poller_soon(struct poller *p, const char *node)
{
    struct polled *n = find_polled(p, node);
    if (!n || n->busy || n->pushes)
        return;
    n->due_ms = clock_mono_ms();
    poller_wake(p);
}

size_t poller_backlog(const struct poller *p)
{
    return ingest_backlog(p->ingest);
}

// ---- Life ---------------------------------------------------------------------------------------

static int read_node_token(struct poller *p, struct err *err)
{
    struct stat st;
    if (!*p->c->node_token_file)
        return 0;
    if (stat(p->c->node_token_file, &st) < 0 ||
        file_read_text(p->c->node_token_file, p->token, sizeof p->token) < 0)
        return err_sys(err, "node_token_file: cannot read %s", p->c->node_token_file);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return err_set(err, ERR_USAGE, "node_token_file",
                       "node_token_file: others may read %s; its mode must be 0600",
                       p->c->node_token_file);
    return 0;
}

static int poller_open(struct poller *p, struct err *err)
{
    const struct ingest_user user = {on_ingest_report, on_ingest_ended, p};
    p->tls = (struct fetch_tls){p->c->node_ca, p->c->node_certificate, p->c->node_key};
    p->limits = fetch_defaults;
    p->limits.total_ms = (int)p->c->node_timeout_s * 1000;
    p->whole_limits = p->limits;
    p->whole_limits.body_max = FLEET_ARCHIVE_BYTES_MAX;
    p->addresses = addresses_read(p->c->hosts_file, err);
    if (!p->addresses || read_node_token(p, err) < 0)
        return -1;
    p->fetch = fetch_new((int)p->c->at_once, &p->limits, err);
    p->watch =
        p->fetch ? loop_watch_fd(p->loop, fetch_fd(p->fetch), EPOLLIN, on_fetch, p, err) : NULL;
    p->timer = p->watch ? loop_timer_new(p->loop, on_search, p, err) : NULL;
    const struct ingest_store store = {p->c->store, p->c->keep_days, p->c->archive_keep_days,
                                       (enum fleet_archive)p->c->archive};
    p->ingest = p->timer ? ingest_new(p->loop, &store, &user, err) : NULL;
    return p->ingest ? 0 : -1;
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
    if (p->fetch)
        fetch_stop(p->fetch);
    ingest_free(p->ingest);
    loop_unwatch(p->watch);
    loop_timer_free(p->timer);
    fetch_free(p->fetch);
    addresses_free(p->addresses);
    for (int i = 0; i < p->n; i++)
        free(p->nodes[i]);
    free(p->nodes);
    free(p);
}
