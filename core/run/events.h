// SPDX-License-Identifier: Apache-2.0
// Who is told of what happens to runs, and the numbers of those events. runner_watch_remove() of
// core/run/runner.h is here too.
#pragma once
#include <sys/queue.h>

#include "core/run/runner.h"

enum { EVENTS_KEPT = 64 }; // runs whose last event is known: queue, current, and some that are over

struct run_events { // all 0: nobody is told; stays where it is while there are watches
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
// Calls those who watch this run, or any; they may do anything but free *e.
void run_events_tell(struct run_events *e, int64_t run_id, enum event_kind kind, bool final);
int64_t run_events_last(const struct run_events *e, int64_t run_id); // 0: none known
