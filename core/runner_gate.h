// SPDX-License-Identifier: Apache-2.0
// What a request must pass before it becomes a run, and a run before it starts: a plan for the
// machine as it is now, a node that is free, the programs, and an account that can run them.
#pragma once
#include "core/account.h"
#include "core/admission.h"
#include "core/launch.h"
#include "core/machine.h"
#include "core/runner.h"

struct gate {
    struct machine *machine;   // borrowed
    struct admitter *admitter; // owned
    char run_dir[300], job_user[64];
    struct account account;
    struct launch_paths paths; // valid if have_paths
    bool have_paths;
    struct admission admission; // of what was checked last; empty if it did not come so far
};

// ERR_USAGE: there is no such account.
int gate_init(struct gate *g, struct machine *m, const struct runner_config *c, struct err *err);
void gate_fini(struct gate *g); // all 0 is fine
// Looks for the programs and an account that can run them, until they were found once.
// ERR_UNAVAILABLE.
int gate_ready(struct gate *g, struct err *err);

// `now`: no run is going on, so the node must be free. `plan` may be NULL.
int gate_check(struct gate *g, const struct spec *s, struct plan *plan, bool now, struct err *err);
// As gate_check, but what will pass is no error of a run that can wait.
int gate_check_or_wait(struct gate *g, const struct spec *s, struct plan *plan, bool now,
                       struct err *err);
// As gate_check_or_wait, with the command line that would start.
int gate_dry_run(struct gate *g, const struct spec *s, bool now, struct plan *plan,
                 struct buf *command, struct err *err);
// Whether the node is free for it alone; with !now it is.
int gate_available(struct gate *g, const struct spec *s, bool now, struct admission *a,
                   struct err *err);
