// SPDX-License-Identifier: Apache-2.0
// Runs that wait: for the node to be free, until when, or for a store that takes their start.
#pragma once
#include "core/admission/checks.h"
#include "model/run.h"

enum {
    // At 900 s each at most a night of work; more is a mistake of the client.
    RUNNER_QUEUE_MAX = 32,
};

enum { WAIT_FOR_STORE = ADMISSION_KINDS, WAIT_UNKNOWN };

struct wait {
    int64_t run_id;
    int64_t until_ms; // monotonic: the wall may jump
    int what;         // enum admission_kind, or WAIT_FOR_STORE, which has no end
    char text[200];
};

struct waits { // all 0: none waits
    struct wait list[RUNNER_QUEUE_MAX];
    int n;
};

// A run with queue_s was requested now: a clock that is set before it could start first changes
// nothing.
void waits_begin(struct waits *w, int64_t run_id, int64_t queue_s);
// `run` could not start because of `what` (see struct wait). *left_ms of the time that it may wait
// are left; none at 0 or less. 1: that is news, 0: the same was in its way before. -1: there is no
// room for it.
int waits_note(struct waits *w, const struct run *run, int what, const char *text,
               int64_t *left_ms);
void waits_forget(struct waits *w, int64_t run_id); // it need not be there
void waits_describe(const struct waits *w,
                    struct run *run); // fills what a run that waits says of it
