// SPDX-License-Identifier: Apache-2.0
// A callback may add or remove watches, also its own: while events are sent, a removed watch is
// only marked, and freed afterwards.
#include "core/run/events.h"

#include <stdlib.h>

struct runner_watch {
    struct run_events *events;
    int64_t run_id;
    event_fn *fn;
    void *ctx;
    bool dead;                      // removed while events are handed out
    LIST_ENTRY(runner_watch) entry; // of events->watches
};

int64_t run_events_last(const struct run_events *e, int64_t run_id)
{
    for (int i = 0; i < EVENTS_KEPT; i++)
        if (e->last[i].run_id == run_id)
            return e->last[i].event_id;
    return 0;
}

static int64_t next_id(struct run_events *e, int64_t run_id)
{
    for (int i = 0; i < EVENTS_KEPT; i++)
        if (e->last[i].run_id == run_id)
            return ++e->last[i].event_id;
    e->last[e->next_slot++ % EVENTS_KEPT] = (struct run_event_last){run_id, 1};
    return 1;
}

static void events_drop(struct runner_watch *w)
{
    LIST_REMOVE(w, entry);
    free(w);
}

static void drop_dead(struct run_events *e)
{
    for (struct runner_watch *w = LIST_FIRST(&e->watches), *next; w; w = next) {
        next = LIST_NEXT(w, entry);
        if (w->dead)
            events_drop(w);
    }
}

void run_events_send(struct run_events *e, int64_t run_id, enum event_kind kind, bool final)
{
    struct run_event event = {run_id, next_id(e, run_id), kind, final};
    e->telling++;
    for (struct runner_watch *w = LIST_FIRST(&e->watches); w; w = LIST_NEXT(w, entry))
        if (!w->dead && (w->run_id == RUNNER_ANY_RUN || w->run_id == run_id))
            w->fn(w->ctx, &event);
    if (--e->telling == 0)
        drop_dead(e);
}

struct runner_watch *run_events_watch(struct run_events *e, int64_t run_id, event_fn *fn, void *ctx,
                                      struct err *err)
{
    struct runner_watch *w = calloc(1, sizeof *w);
    if (!w) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a watch");
        return NULL;
    }
    *w = (struct runner_watch){.events = e, .run_id = run_id, .fn = fn, .ctx = ctx};
    LIST_INSERT_HEAD(&e->watches, w, entry);
    return w;
}

void runner_watch_remove(struct runner_watch *w)
{
    if (!w)
        return;
    w->dead = true;
    if (w->events->telling == 0)
        events_drop(w);
}

void run_events_fini(struct run_events *e)
{
    while (!LIST_EMPTY(&e->watches))
        events_drop(LIST_FIRST(&e->watches));
}
