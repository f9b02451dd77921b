// SPDX-License-Identifier: Apache-2.0
// Jobs of batch systems on this node, by what they leave in control groups and spool directories,
// by steps of Slurm among the newest processes (for at most JOBS_TIME_US), and by children of the
// daemons of PBS and Torque; no controller is asked. A job that we are in ourselves does not count.
#pragma once
#include "core/readings.h"

enum { JOBS_TIME_US = 1000 };

int batch_jobs_find(const char *root, struct batch_job *out, int most); // how many
