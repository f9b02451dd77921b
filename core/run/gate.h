// SPDX-License-Identifier: Apache-2.0
// What a request must pass before it becomes a run, and a run before it starts: a plan for the
// machine as it is now, a node that is free, the programs, and an account that can run them. What
// of the latter is there is what the last look has found (core/launch/programs.h).
#pragma once
#include "core/admission/checks.h"
#include "core/admission/monitor.h"
#include "core/launch/account.h"
#include "core/launch/programs.h"
#include "core/node/machine.h"
#include "core/run/runner_config.h"
#include "model/past.h"

struct loop;

struct gate {
    struct machine *machine;  // borrowed
    struct monitor *monitor;  // owned
    struct launch_look *look; // owned
    char run_dir[300];
    void (*on_look)(void *ctx); // after each look
    void *ctx;
    struct account account;
    struct launch_paths paths;        // of a look that was a success; bench "": there was none yet
    const struct batch_place *within; // borrowed: the job that what is checked next was requested
                                      // from; NULL: none
    struct past_runs past;            // of the spec that is checked next
    struct admission admission;       // of what was checked last; empty if it did not come so far
};

enum {
    GATE_READY_EVERY_MS = 60000, // between looks that /readyz causes while all is well
    GATE_FRESH_MS = 1000,        // the same for requests that are refused for what is missing
    GATE_WAIT_MS = 1000,         // for a look, by a request to start what could not start so far
};

// ERR_USAGE: there is no such account. `on_look` is called by the loop after each look.
int gate_init(struct gate *g, struct loop *l, struct machine *m, const struct runner_config *c,
              void (*on_look)(void *ctx), void *ctx, struct err *err);
void gate_fini(struct gate *g); // all 0 is fine
// Looks at programs and account unless that was done within `fresh_ms`, and makes the directory of
// runs again if it is gone. True: on_look will be called.
bool gate_look(struct gate *g, int64_t fresh_ms);
void gate_doubt(struct gate *g); // mpirun did not start a run: it is asked again at the next look
// What the last look has found: 0 if ranks can be started. ERR_UNAVAILABLE.
int gate_ready(const struct gate *g, struct err *err);

// `now`: no run is running, so the node must be free. `plan` may be NULL.
int gate_check(struct gate *g, const struct spec *s, struct plan *plan, bool now, struct err *err);
// As gate_check, but what will pass is no error of a run that can wait.
int gate_check_or_wait(struct gate *g, const struct spec *s, struct plan *plan, bool now,
                       struct err *err);
// The plan and the command line that would start. What blocks the run is no error: `admission` has
// it.
int gate_dry_run(struct gate *g, const struct spec *s, bool now, struct plan *plan,
                 struct buf *command, struct err *err);
// Whether the node is free for it alone; with !now it is.
int gate_available(struct gate *g, const struct spec *s, bool now, struct admission *a,
                   struct err *err);
