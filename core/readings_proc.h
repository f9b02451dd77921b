// SPDX-License-Identifier: Apache-2.0
// Processes that compute right now. A process counts if it is running (or a thread of it is) and
// has used at least BUSY_SHARE % of its life on CPUs: a shell that happens to run does not. Looks
// at the newest processes first and for at most BUSY_TIME_US, so that a node with ten thousand of
// them does not hold up the daemon; what was started last is what was not there before.
#pragma once
#include "core/readings.h"

enum { BUSY_SHARE = 25, BUSY_TIME_US = 2000 };

// Those of other accounts too: not with hidepid (ProtectProc=), not in a PID namespace.
bool busy_tasks_visible(const char *root);
int busy_tasks_find(const char *root, struct busy_task *out, int most);
// Numbers of the processes, the newest first. free(); NULL if there are none.
int *process_list(const char *root, int *n);
