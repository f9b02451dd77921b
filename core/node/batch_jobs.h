// SPDX-License-Identifier: Apache-2.0
// Jobs of batch systems on this node, by what they leave in cgroups and spool directories,
// by steps of Slurm among the processes, and by children of the daemons of PBS and Torque; no
// controller is asked. A job that we are in ourselves does not count.
#pragma once
#include "core/node/busy_tasks.h"
#include "core/node/readings.h"

// How many. `p`: the processes of the same reading.
int batch_jobs_find(const char *root, const struct processes_found *p, struct batch_job *out,
                    int most);
