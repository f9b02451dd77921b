// SPDX-License-Identifier: Apache-2.0
// How a run begins: from a row that waits to one that is stored as started.
#pragma once
#include "core/run/gate.h"
#include "core/run/job.h"

// `j` is new, `run` waits. It gets what the row says, its plan by the machine of now, what there
// is to note of the node, its directory, its cgroup and the host's lock; nothing of it runs
// yet. After an error only job_free() is left for it, and g->admission says what blocked it.
int job_begin(struct job *j, struct store *s, struct gate *g, const struct run_groups *groups,
              const struct run *run, struct err *err);
// Puts the row of a running run into a database that does not have it.
int job_restore(struct job *j, struct store *s, const struct machine *m, struct err *err);
