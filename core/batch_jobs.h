// SPDX-License-Identifier: Apache-2.0
// Jobs of batch systems on this node, by what they leave in control groups and spool directories;
// no controller is asked. A job that we are in ourselves does not count.
#pragma once
#include "core/readings.h"

int batch_jobs_find(const char *root, struct batch_job *out, int most); // how many
