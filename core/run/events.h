// SPDX-License-Identifier: Apache-2.0
// Who watches runs, and the numbers of the events they are notified of.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"

enum { RUNNER_ANY_RUN = 0 }; // in the place of a run's id: events of all

enum event_kind { EVENT_STATE, EVENT_PROGRESS };
struct run_event {
    int64_t run_id;
    int64_t event_id; // rises by one for each event of the run, from 1
    enum event_kind kind;
    bool final; // the run has finished; nothing follows
};
typedef void event_fn(void *ctx, const struct run_event *e);

struct runner_watch;

enum {
    EVENTS_KEPT = 64
}; // runs whose last event is known: queue, current, and some that have finished

struct run_events { // all 0: no watch; stays where it is while there are watches
    LIST_HEAD(, runner_watch) watches;
    int telling;
    struct run_event_last {
        int64_t run_id, event_id;
    } last[EVENTS_KEPT];
    int next_slot;
};

void run_events_fini(struct run_events *e); // with the watches that are left
struct runner_watch *run_events_watch(struct run_events *e, int64_t run_id, event_fn *fn, void *ctx,
                                      struct err *err);
// Calls the watches of this run and of any; callbacks may do anything but free *e.
void run_events_send(struct run_events *e, int64_t run_id, enum event_kind kind, bool final);
int64_t run_events_last(const struct run_events *e, int64_t run_id); // 0: none known
void runner_watch_remove(struct runner_watch *w); // may be called from a callback
