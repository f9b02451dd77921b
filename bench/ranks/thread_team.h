// SPDX-License-Identifier: Apache-2.0
// A team of threads inside one rank, each pinned to one CPU: for benchmarks that need several CPUs
// on the same memory (bandwidth, core to core, first touch). Pure pthreads, no MPI.
#pragma once
#include <stdbool.h>

#include "base/err.h"

struct team;

// One thread a CPU (OS numbers), pinned before it does anything. ERR_SYSTEM names the CPU that
// cannot be had. The calling thread is not part of the team.
struct team *team_new(const int *cpus, int n, struct err *err);
void team_free(struct team *t); // NULL is fine; waits for the threads to end

// Runs fn(ctx, index) on every member and returns when all are back. Between two calls the members
// sleep in the kernel.
void team_run(struct team *t, void (*fn)(void *ctx, int index), void *ctx);

bool team_strayed(const struct team *t); // a member was seen on another CPU than its own
