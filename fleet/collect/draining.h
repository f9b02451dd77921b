// SPDX-License-Identifier: Apache-2.0
// Drains nodes in Slurm, where the setting drain = apply allows it. Which nodes, the judgement says
// (fleet/judging_drain.h). A process of its own (draining_main.h) requests from Slurm what others
// have drained meanwhile, and starts scontrol without a shell. Each drain is logged, and stored
// with its finding.
#pragma once
#include "fleet/collect/poller.h"

enum {
    DRAINING_MOST = 64,      // nodes at once
    DRAINING_LIMIT_S = 120,  // a process that takes longer is ended
    DRAINING_LINE_MAX = 512, // bytes of a line
};

struct draining;
// Borrows all.
struct draining *draining_new(struct loop *loop, struct poller *p, struct err *err);
void draining_free(struct draining *d); // a process that runs is ended; NULL is fine

// Lines "FINDING\tNODE\tREASON\n". Nothing happens while a process runs.
void draining_begin(struct draining *d, const char *lines);
// What Slurm said before this moment may lack a drain of ours: monotonic; INT64_MIN: there was
// none. While a process runs, the end of time.
int64_t draining_last_ms(const struct draining *d);
const char *draining_problem(const struct draining *d); // of the last one; "": it had none
