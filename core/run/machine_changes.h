// SPDX-License-Identifier: Apache-2.0
// CPUs and memory that come or go while a run is running.
#pragma once
#include "core/node/machine.h"
#include "core/run/job.h"

// What the machine was when the run was planned.
const struct machine *job_machine(const struct job *j, const struct machine *now);
// The machine is no longer what it `was`, which may be taken over and is then empty. Notes memory
// that the run has lost, and stops it when a CPU or all memory of a node of its plan is gone.
void job_machine_changed(struct job *j, struct machine *was, const struct machine *now);
