// SPDX-License-Identifier: Apache-2.0
// Processes that compute right now, and those that stand for a job. A process computes if it is
// running (or a thread of it is) and has used at least BUSY_SHARE % of its life on CPUs: a shell
// that happens to run does not. Looks at the newest processes first and for at most
// PROCESSES_TIME_US of CPU time, so that a node with ten thousand of them does not hold up the
// daemon (by the clock, a busy node would be looked at least); what was started last is what was
// not there before.
#pragma once
#include "core/node/readings.h"

enum { BUSY_SHARE = 25, PROCESSES_TIME_US = 2000, STEPS_MAX = 16 };

// Those of other accounts too: not with hidepid (ProtectProc=), not in a PID namespace.
bool busy_tasks_visible(const char *root);

struct processes_found {
    int n_busy, n_steps;
    struct busy_task busy[READINGS_BUSY_MAX];
    int steps[STEPS_MAX]; // process numbers of slurmstepd
};
// `any_busy`: whether what computes is looked for at all.
void processes_find(struct processes_found *out, const char *root, bool any_busy);
