// SPDX-License-Identifier: Apache-2.0
// What the response of a node, or its absence, makes of it: its state, when it is contacted again,
// and which of its histories it is at.
#include "fleet/collect/parts.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "fleet/collect/poller.h"

enum {
    REPEATS_MAX = 3, // pages at once of a node whose place was elsewhere
    UNLOGGED_MS = 10 * 1000,
    DUPLICATE_RETURNS = 2,
    DUPLICATE_QUIET_MS = 24 * 3600 * 1000, // after the last return it is one machine again
};

// A rack that is switched off, or a token for ten thousand names, must not fill the log.
static void node_log(const struct polled *n, enum node_state was)
{
    struct poller *p = n->poller;
    struct unlogged *u = &p->unlogged[n->state];
    int64_t now = clock_mono_ms();
    if (log_may(&p->node_lines, now)) {
        log_event(LOG_LVL_INFO, "node", "name=%s was=%s is=%s why=\"%s\"", n->name,
                  node_states[was].name, node_states[n->state].name, log_quote(n->why).text);
        return;
    }
    memcpy(u->n++ ? u->last : u->first, n->name, sizeof n->name);
    if (p->unlogged_ms)
        return;
    p->unlogged_ms = now + UNLOGGED_MS;
    poller_search_in(p, UNLOGGED_MS);
}

void nodes_log_others(struct poller *p)
{
    for (int i = 0; i < NODE_STATES; i++) {
        struct unlogged *u = &p->unlogged[i];
        if (u->n)
            log_event(LOG_LVL_INFO, "nodes", "is=%s count=%d first=%s last=%s", node_states[i].name,
                      u->n, u->first, u->n > 1 ? u->last : u->first);
        u->n = 0;
    }
    p->unlogged_ms = 0;
}

void node_event(struct polled *n, enum node_event e)
{
    enum node_state was = n->state;
    n->state = node_states[n->state].after[e];
    if (n->state != was && (n->state == NODE_DOWN || was == NODE_DOWN))
        node_log(n, was);
}

void node_later(struct polled *n, int64_t ms)
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

void node_failed(struct polled *n, const char *why)
{
    struct poller *p = n->poller;
    p->totals.failed++;
    n->failures++;
    polled_why(n, why);
    node_event(n, NODE_FAILED);
    node_turn(n);
    node_later(n, node_wait_ms(n->state, n->failures, p->c->every_s * 1000,
                               (uint32_t)hash_text(n->name) + (uint32_t)n->failures * 2654435761u));
}

bool node_poison(const struct polled *n)
{
    return n->poison_ms && clock_mono_ms() < n->poison_until_ms;
}

bool node_allowed(struct polled *n, int runs)
{
    static const double day_ms = 86400e3;
    int64_t now = clock_mono_ms();
    n->allowance += (double)(now - n->allowance_ms) * RUNS_PER_DAY / day_ms;
    n->allowance_ms = now;
    if (n->allowance > RUNS_AT_ONCE)
        n->allowance = RUNS_AT_ONCE;
    n->allowance -= runs;
    return n->allowance > 0;
}

bool node_at_once(struct polled *n, int stored)
{
    return node_allowed(n, stored > PAGE_RUNS ? stored : PAGE_RUNS);
}

// A node that says "later" for ever must not seem to be up.
void node_busy(struct polled *n, const struct fetch_response *r)
{
    int64_t ms = (int64_t)r->retry_after_s * 1000;
    char why[POLLER_WHY];
    snprintf(why, sizeof why, "its response has status %d", r->status);
    n->poller->totals.errors[FETCH_OK]++;
    node_failed(n, why);
    int64_t due_ms = clock_mono_ms() + (ms < NODE_HOUR_MS ? ms : NODE_HOUR_MS);
    n->due_ms = due_ms > n->due_ms ? due_ms : n->due_ms;
}

// A machine that is set up again has a new history, and one that is restored comes back to an old
// one, once. Two machines do so again and again.
bool node_duplicate(const struct polled *n)
{
    return n->returns >= DUPLICATE_RETURNS && clock_mono_ms() - n->returned_ms < DUPLICATE_QUIET_MS;
}

bool node_asleep(const struct polled *n)
{
    return strchr(n->slurm_state, '~') != NULL;
}

bool node_is_here(const struct polled *n)
{
    return !n->pushes && !*n->behind;
}

static void note_history(struct polled *n, const char *history)
{
    if (strcmp(n->history_now, history) == 0)
        return;
    if (strcmp(n->history_before, history) == 0) {
        n->returns = clock_mono_ms() - n->returned_ms < DUPLICATE_QUIET_MS ? n->returns + 1 : 1;
        n->returned_ms = clock_mono_ms();
    }
    memcpy(n->history_before, n->history_now, sizeof n->history_before);
    snprintf(n->history_now, sizeof n->history_now, "%s", history);
}

// Of another collector: what it had deleted is a gap in our history.
static void note_lost(struct polled *n, int64_t lost)
{
    if (lost > n->lost)
        log_event(LOG_LVL_WARN, "collector.gap", "name=%s lost=%" PRId64, n->name, lost - n->lost);
    n->lost = lost;
}

// Once for each node: a hostile one labels every run. Of a collector, once for all behind it.
static void note_unkept(struct polled *n, int unkept)
{
    if (unkept && !n->unkept)
        log_event(LOG_LVL_WARN, "archive.limit",
                  "name=%s text=\"a node has %d runs in the archive: its labels and set-ups add no "
                  "more\"",
                  n->name, FLEET_LABELLED_MAX);
    n->unkept |= unkept > 0;
}

void node_stored(struct polled *n, const struct ingest_report *r)
{
    struct poller *p = n->poller;
    static const bool again[FLEET_OUTCOMES] = {
        [FLEET_BEHIND] = true, [FLEET_REINSTALLED] = true, [FLEET_RENAMED] = true};
    bool taken = r->outcome == FLEET_STORED || again[r->outcome];
    n->failures = 0;
    n->repeats = n->outcome == r->outcome ? n->repeats + 1 : 0;
    n->outcome = r->outcome;
    polled_text(&n->other, r->other);
    polled_text(&n->why, "");
    n->stored += r->stored;
    p->totals.stored += r->stored;
    p->totals.kept += r->notes;
    if (taken) {
        n->after = r->next;
        snprintf(n->history, sizeof n->history, "%s", r->history);
        n->seen_ms = r->at_ms;
        note_history(n, r->history);
        note_lost(n, r->lost);
    }
    if (!n->poison_wish)
        n->poison_ms = 0;
    n->too_old = r->outcome == FLEET_NAMELESS;
    snprintf(n->version, sizeof n->version, "%s", r->version);
    if (r->stored && r->newest_ms > n->newest_ms)
        n->newest_ms = r->newest_ms;
    note_unkept(n, r->unkept);
    node_event(n, NODE_RESPONDED);
    bool soon =
        r->outcome == FLEET_STORED ? r->more : again[r->outcome] && n->repeats < REPEATS_MAX;
    // A collector sends the runs of many nodes.
    bool many = n->pushes || poller_find_collector(p, n->name) == n;
    soon = soon && (many || node_at_once(n, r->stored + r->notes));
    if (!soon)
        node_turn(n);
    node_later(n, soon || n->again ? 0 : node_wait_ms(n->state, 0, p->c->every_s * 1000, 0));
}

void node_placed(struct polled *n, const struct ingest_report *r)
{
    if (n->busy)
        return; // its page says where it stands
    n->after = r->next;
    n->seen_ms = r->at_ms;
    n->lost = r->lost;
    n->outcome = r->outcome;
    memcpy(n->history, r->history, sizeof n->history);
    memcpy(n->version, r->version, sizeof n->version);
    polled_text(&n->other, r->other);
}
