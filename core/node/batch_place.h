// SPDX-License-Identifier: Apache-2.0
// The batch job that a process is part of: a run that it requests is measured inside that job.
//
// Nothing that an account can write is believed. A cgroup of a job is one that only root can make,
// at the path that Slurm gives it. Without cgroups (proctrack/linuxproc) it is the outermost
// ancestor that is root's slurmstepd, by its program and not by the name it gives itself.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/node/readings.h"

struct batch_place {
    struct batch_job job;
    char dir[512];            // its cgroup, below root; "": it is known by its step
    int step;                 // process number of that slurmstepd
    uint64_t step_start;      // when it started, in ticks: another process may get its number
    struct id_set cpus, mems; // that the process may use; owned
    int64_t memory_bytes;     // limit of the job; -1: none, or not known
};

// The job of process `pid`, which account `uid` has. False: it is in none, or has ended, or its
// number belongs to another account's process by now. The caller frees with batch_place_fini.
bool batch_place_find(struct batch_place *out, const char *root, pid_t pid, uid_t uid);
void batch_place_fini(struct batch_place *p);
// The job is still there.
bool batch_place_exists(const struct batch_place *p, const char *root);
bool batch_place_is(const struct batch_place *p, const struct batch_job *job); // p NULL: no
