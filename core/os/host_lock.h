// SPDX-License-Identifier: Apache-2.0
// One run at a time on a host, whatever the daemons and their state directories: a file that is
// locked (flock) while a run is running. It is never written, so a file that root made will do for
// every account. A run's supervisor holds it too, so it stays locked until the run is gone,
// whatever becomes of the daemon.
#pragma once
#include <stdbool.h>

// Locks and returns the file descriptor; -1: another process has it, HOST_LOCK_NONE: there is no
// such file and none can be made, so no other daemon is seen.
enum { HOST_LOCK_TAKEN = -1, HOST_LOCK_NONE = -2 };
int host_lock_take(const char *path);
// Whether `path` still names what was locked. If not, another process may have it under that name.
bool host_lock_is_named(int lock, const char *path);
