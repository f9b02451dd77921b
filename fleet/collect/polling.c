// SPDX-License-Identifier: Apache-2.0
// What all files of the poller use: the next search, nodes by name, and requests.
#include "fleet/collect/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "fleet/collect/poller.h"

// The search comes after `ms`, or as soon as it was going to. A wish must not put off an earlier
// one: reports come faster than searches.
void poller_search_in(struct poller *p, int64_t ms)
{
    int64_t now = clock_mono_ms();
    if (p->search_ms > now && p->search_ms <= now + ms)
        return;
    p->search_ms = now + ms;
    loop_timer_set(p->timer, ms);
}

void poller_wake(struct poller *p)
{
    poller_search_in(p, POLLER_SEARCH_MS);
}

static int by_polled_name(const void *key, const void *entry)
{
    return strcmp(key, (*(struct polled *const *)entry)->name);
}

struct polled *poller_find_own(const struct poller *p, const char *name)
{
    struct polled **at =
        p->n ? bsearch(name, p->nodes, (size_t)p->n, sizeof *at, by_polled_name) : NULL;
    return at ? *at : NULL;
}

const struct polled *poller_find(const struct poller *p, const char *name)
{
    return poller_find_own(p, name);
}

struct polled *poller_find_collector(const struct poller *p, const char *name)
{
    for (int i = 0; i < FLEETD_SOURCES_MAX; i++)
        if (p->collectors[i] && strcmp(p->collectors[i]->name, name) == 0)
            return p->collectors[i];
    return NULL;
}

// ---- Requests -----------------------------------------------------------------------------------

struct fetch_request poller_request(const struct poller *p)
{
    return (struct fetch_request){.token = p->token, .tls = &p->tls};
}

void poller_address(const struct poller *p, struct fetch_request *q, const char *url)
{
    q->url = url;
    q->address = addresses_of_url(p->addresses, url);
    if (!str_starts(url, "https://"))
        q->token = NULL; // it does not travel in clear, whatever address a source names
}

int poller_fetch(struct poller *p, const char *url, const struct fetch_limits *limits,
                 fetch_done *done, void *ctx, struct err *err)
{
    struct fetch_request q = poller_request(p);
    q.limits = limits;
    poller_address(p, &q, url);
    if (fetch_start(p->fetch, &q, done, ctx, err) < 0)
        return -1;
    p->totals.requests++;
    p->totals.in_flight++;
    return 0;
}

int poller_check_open(const struct poller *p, struct err *err)
{
    return ingest_ready(p->ingest)
               ? 0
               : err_set(err, ERR_UNAVAILABLE, "store", "the collector's store is %s: %s",
                         store_state_names[p->totals.store_state],
                         *p->totals.store ? p->totals.store : "it is being opened");
}

int poller_keep(struct poller *p, const struct ingest_item *item, struct buf *body, struct err *err)
{
    if (poller_check_open(p, err) < 0)
        return -1;
    return ingest_send(p->ingest, item, body, err);
}
