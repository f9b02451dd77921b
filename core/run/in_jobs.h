// SPDX-License-Identifier: Apache-2.0
// Which runs were requested from inside a batch job: each is measured within that job, and only
// while there is one. Kept in memory alone: after a restart such a run is a run like any other.
#pragma once
#include "core/node/batch_place.h"
#include "core/run/waits.h"

struct in_jobs { // all 0: none
    struct {
        int64_t run_id;
        struct batch_place place;
    } list[RUNNER_QUEUE_MAX + 1]; // those that wait, and the current one
    int n;
};

// Takes the place over; without room the run is like any other.
void in_jobs_put(struct in_jobs *p, int64_t run_id, struct batch_place *place);
const struct batch_place *in_jobs_find(const struct in_jobs *p, int64_t run_id); // NULL: none
void in_jobs_forget(struct in_jobs *p, int64_t run_id);
void in_jobs_fini(struct in_jobs *p);
