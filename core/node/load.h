// SPDX-License-Identifier: Apache-2.0
// What a node is doing, from files of /proc and /sys that are cheap to read: it does not sleep,
// start a process or ask a service. `root` stands before /proc, /sys, /var and /run: "" on this
// machine, a folder in tests.
//
// How busy CPUs are is a difference of two readings; the caller keeps the earlier one. Without one
// the processes that run right now are looked at: one that has used much of its life's time on a
// CPU, and is running, is computing.
#pragma once
#include "base/err.h"
#include "core/node/readings.h"

bool id_set_has(const struct id_set *s, int id); // of an unknown set: everything
// The CPUs and nodes that the kernel lets this process use. The caller frees the ids.
void readings_allowed(struct id_set *cpus, struct id_set *mems, const char *root);

// `cpus`: those whose throttling counts; on large machines a sample of them is looked at.
int readings_take(struct readings *r, const char *root, int64_t at_ms, const int *cpus, int n_cpus,
                  struct err *err);
void readings_fini(struct readings *r);

// Highest frequency that a CPU is allowed, in % of what the hardware can.
double readings_frequency_share(const char *root, int cpu);

void readings_take_groups(struct group_readings *r, const char *root, int64_t at_ms);
