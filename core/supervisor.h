// SPDX-License-Identifier: Apache-2.0
// The process that owns a run's processes. numaprobed starts itself again as
//   numaprobed --supervise <dir> <deadline_s> <uid> <gid>
// with a control socket on descriptor 3. It becomes a subreaper and a session leader, drops to the
// job account in its child, starts mpirun (argv and environment come in over the socket), and kills
// everything below it when the deadline passes, when told to, or when the socket closes because the
// daemon is gone. When nothing is left it answers how it ended, removes the directory, and exits.
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "core/launch.h"

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
    const struct launch *launch;
};

// How mpirun ended, as the supervisor reports it in one line of JSON on the control socket.
enum supervisor_end { SUP_EXITED, SUP_SIGNALED, SUP_DEADLINE, SUP_STOPPED, SUP_NOT_STARTED };
struct supervisor_report {
    enum supervisor_end how;
    int status; // exit status, signal number, or errno
    int killed; // processes that had to be killed
};

int supervisor_spawn(struct supervised *out, const struct supervisor_job *job, struct err *err);
void supervisor_stop(struct supervised *s); // asks it to end the run
int supervisor_read_report(struct supervised *s, struct supervisor_report *out, struct err *err);
int supervisor_main(int argc, char **argv); // the process itself

// For when a supervisor was killed: ends every process that carries NUMAPROBE_NONCE=<nonce> in its
// environment or descends from us as an adopted orphan of it. Returns how many were found.
int supervisor_sweep_processes(const char *nonce);
int supervisor_remove_tree(const char *dir, struct err *err); // never follows links
