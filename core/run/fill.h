// SPDX-License-Identifier: Apache-2.0
// Gives stored runs the metrics that they lack, a few at a time, while nothing else is to be done.
#pragma once
#include "core/node/machine.h"
#include "core/os/loop.h"
#include "core/store/store.h"

// Has the metrics of a run made elsewhere, because they take long, and then calls filler_made.
// False: they do not.
typedef bool filler_fn(void *ctx, int64_t id);

struct filler {
    struct store *store;           // borrowed, as the next
    const struct machine *machine; // topology of runs that came without one
    struct loop_timer *timer;      // armed only while runs without metrics may be left
    bool due;                      // such runs may be there
    int64_t filled;                // of the present backlog
    filler_fn *elsewhere;          // NULL: all are made here
    void *ctx;
    int64_t taken, failed; // the run whose metrics are made elsewhere; that of the last failure
};

int filler_init(struct filler *f, struct loop *l, struct store *s, const struct machine *m,
                struct err *err);
void filler_fini(struct filler *f);
void filler_go(struct filler *f);    // nothing runs and nothing waits: continues if it is due
void filler_pause(struct filler *f); // a run begins
// Stores those that were made elsewhere; NULL and why: there are none.
void filler_made(struct filler *f, int64_t id, const struct run_metrics *m, const struct err *why);
