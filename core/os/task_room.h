// SPDX-License-Identifier: Apache-2.0
// How many more processes and threads an account may have: what is left of RLIMIT_NPROC, which does
// not bind root, and of pids.max of our cgroups (TasksMax of a unit).
#pragma once
#include <stdint.h>
#include <sys/types.h>

// -1: no limit. Reads all of /proc where the limit is not far away: for a child of the daemon.
int64_t task_room(uid_t uid);
