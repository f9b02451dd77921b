// SPDX-License-Identifier: Apache-2.0
// How a run ends: what is noted of it at the end, and its result on disk.
#pragma once
#include "core/admission/checks.h"
#include "core/admission/monitor.h"
#include "core/node/machine.h"
#include "core/run/job.h"

// Of a run of which nothing is left: what may have spoiled it, what the bench noted, ranks that
// were not where the plan wanted them. Before monitor_end.
void job_note_end(struct job *j, struct monitor *a);
// Stores the result: 1: a part of a large one, call again; 0: all of it; -1: call again later.
// *state: how it ended. *no_metrics: the run is stored without metrics, because there was no memory
// for them or because it is large.
int job_store(struct job *j, struct store *s, const struct machine *m, enum run_state *state,
              bool *no_metrics, struct err *err);
