// SPDX-License-Identifier: Apache-2.0
// The process that owns a run's processes. numaprobed starts itself again as
//   numaprobed --supervise <dir> <deadline_s> <uid> <gid> <isolated> <group>
// with a control socket on file descriptor 3, mpirun's argv and environment in a sealed memory file
// on file descriptor 4, and the lock of the host on file descriptor 5, if there is one. It becomes
// a subreaper and a session leader, drops to the job account in its child, starts mpirun, and kills
// everything below it when the deadline passes, when asked to, or when the socket closes because
// the daemon is gone. mpirun gets a network namespace of its own where the job wants that
// (core/os/become.h), or is not started. What the processes print goes to <dir>/log, at most
// SUPERVISOR_LOG_MAX bytes.
//
// The end, in this order: nothing is left below it; it reports; the daemon reads what is left in
// the FIFO and the log, and closes the socket; the supervisor removes the directory, and exits.
// Without a daemon the directory is removed at once.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "core/launch/command.h"

enum { SUPERVISOR_LOG_MAX = 1 << 20 };

struct supervised {
    pid_t pid;
    int pidfd;   // readable when the supervisor is gone
    int control; // our end of the socket
};

struct supervisor_job {
    const char *dir;
    int64_t deadline_s;
    uid_t uid;
    gid_t gid;
    bool isolated; // in a network namespace of their own, or not at all
    const struct launch *launch;
    const char *group; // cgroup of the run, removed at the end; "": none
    int lock;          // of the host, held until the run is gone; borrowed; -1: none
};

// How mpirun ended, as the supervisor reports it in one line of JSON on the control socket.
// SUP_STUCK: its processes had ended, and it did not within SUPERVISOR_STUCK_S. SUP_NOT_ISOLATED:
// it was not started, because it could not have a network namespace of its own.
enum supervisor_end {
    SUP_EXITED,
    SUP_SIGNALED,
    SUP_DEADLINE,
    SUP_STOPPED,
    SUP_STUCK,
    SUP_NOT_STARTED,
    SUP_NOT_ISOLATED,
    SUP_ENDS
};
enum { SUPERVISOR_STUCK_S = 10 };
struct supervisor_report {
    enum supervisor_end how;
    int status; // exit status, signal number, or errno
    int killed; // processes that had to be killed
};

int supervisor_spawn(struct supervised *out, const struct supervisor_job *job, struct err *err);
void supervisor_stop(struct supervised *s); // asks it to end the run
// Does not block. 1: *out is set, 0: not yet, -1: there will be no report; the supervisor is gone,
// or waits for supervisor_release.
int supervisor_read_report(struct supervised *s, struct supervisor_report *out, struct err *err);
// Closes our end: the report was read and so was the directory (or: the run shall end now).
void supervisor_release(struct supervised *s);
void supervisor_kill(const struct supervised *s); // one that is stuck
// After pidfd was readable, or to wait for it at most `wait_ms`: reaps, closes everything. A
// supervisor that is still there then is killed. True if it went by itself.
bool supervisor_reap(struct supervised *s, int wait_ms);
