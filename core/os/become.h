// SPDX-License-Identifier: Apache-2.0
// What a child does between fork and exec to become one of a run's processes: it changes its
// account, and gets a network namespace of its own.
//
// mpirun listens on all interfaces and believes whoever connects. In a network namespace that has
// only loopback, nothing outside of the run can reach that port, nor any abstract Unix socket reach
// the run. A daemon that is root makes the namespace with its own privilege, before the account
// changes. Otherwise it takes a user namespace, in which the account keeps its own uid and gid, has
// no capability after exec, and can regain none.
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct become {
    uid_t uid;
    gid_t gid;
    bool isolated; // in a network namespace of its own, with loopback up
};

// For a process with one thread. -1: errno, and *step names what failed; the process must end then.
int become(const struct become *b, const char **step);
