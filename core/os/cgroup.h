// SPDX-License-Identifier: Apache-2.0
// A cgroup (v2) for each run, beside one for the daemon, below the group that systemd or a
// container delegated to us: the run has a limit of memory and a small weight of CPU time of its
// own, and is ended as a whole by cgroup.kill, whatever its processes became.
//
//   <ours>/                       as /proc/self/cgroup had it at the start
//   <ours>/numaprobed/            the daemon and supervisors: a group has processes or controllers
//   <ours>/numaprobe-run-<id>/    mpirun and ranks
//
// Where there is no such group (v1 or hybrid, not ours to write, others are in it) runs go without,
// and say why in their conditions.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define RUN_GROUP_PREFIX "numaprobe-run-"

enum {
    RUN_GROUP_PATH_ROOM = 700,
    RUN_GROUP_CPU_WEIGHT = 10, // of 100, which the daemon has: it answers while ranks measure
};

struct run_groups {
    char base[RUN_GROUP_PATH_ROOM]; // "": none
    char why[200];                  // there is none
    bool memory, cpu;               // controllers that runs get
};

// Moves this process into its group of its own, turns the controllers on, and ends what a former
// daemon left. `root` stands before /proc and /sys: "" but in tests. Never fails: *g says.
void run_groups_open(struct run_groups *g, const char *root);

// Makes the group of a run that is expected to use `bytes`. False: there is none, and `why` of
// 200 bytes says.
bool run_group_make(const struct run_groups *g, int64_t run_id, int64_t bytes,
                    char path[static RUN_GROUP_PATH_ROOM], char why[static 200]);

// For a process itself: becomes a member. False: it could not.
bool run_group_enter(const char *path);
// Kills all of it and waits at most `wait_ms` until it is empty. "" is fine.
void run_group_kill(const char *path, int wait_ms);
void run_group_remove(const char *path); // what is empty; "" and gone are fine
