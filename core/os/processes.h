// SPDX-License-Identifier: Apache-2.0
// Finding and killing processes through /proc, and removing what they left in the file system.
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

// Sends `signo` to everything below this process (which must be a subreaper for that to be all) but
// zombies; returns how many. They may live a moment longer.
int proc_kill_below(int signo);
// SIGKILL to them; waits until they have ended, at most `ms`. Returns how many there were.
int proc_end_below(int64_t ms);
int64_t proc_tasks_of(uid_t uid); // processes and threads of an account, as far as we see them
// The children of a process that is not ours; CHILDREN_UNKNOWN where the kernel does not list them
// (CONFIG_PROC_CHILDREN). A zombie has ended.
enum proc_children { CHILDREN_UNKNOWN, CHILDREN_NONE, CHILDREN_ENDED, CHILDREN_LIVE };
enum proc_children proc_children_of(pid_t pid);
// SIGKILL to every process with NUMAPROBE_NONCE=<nonce> in its environment, and to the supervisor
// of that run, which a SIGSTOP may have kept from hearing that its daemon is gone; waits until they
// are gone (at most about 2 s each). Returns how many.
int proc_kill_nonce(const char *nonce);

// Removes a directory and all in it. Follows no link, stays on whatever is below. Gone is fine.
int tree_remove(const char *path, struct err *err);
