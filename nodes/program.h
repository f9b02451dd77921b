// SPDX-License-Identifier: Apache-2.0
// Other programs that a fleet command uses: sinfo, nodeset, ssh. They are started without a shell,
// in a session of their own, so that none reads the terminal, and end with this process.
#pragma once
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

// What programs need of the environment, for a process between us and them that has none (up to
// NULL, as child_exec_with() takes them):
// - PATH: where they are.
// - SLURM_CONF: Slurm's configuration, where it is not where Slurm was built to look.
// - SLURM_CONF_SERVER: the host of slurmctld that has the configuration, where no file has it.
// - SLURM_SACK_SOCKET: the socket of the sackd that authenticates, where a host has several.
// Not SLURM_JWT: Slurm gives all SLURM_ variables of sbatch to the job. A token of an account that
// may drain nodes would be on each node.
extern const char *const program_variables[];

struct program_files {
    int out, err; // -1: /dev/null. stdin always is
};

// Starts argv[0] from $PATH, as the leader of a session: program_end() ends what it started too.
// ERR_UNAVAILABLE names the program and why it cannot be started.
int program_start(const char *const argv[], const struct program_files *files, pid_t *pid,
                  struct err *err);
// Kills the session and reaps the program. Its status, as of waitpid(); that of a program that had
// ended before is its own.
int program_end(pid_t pid);

struct program_limits {
    int time_ms;
    size_t bytes;
};

// Appends what the program prints. ERR_UNAVAILABLE: it cannot be started, or it fails; the text has
// the first line that it printed on stderr. ERR_TIMEOUT, ERR_TOO_LARGE: it exceeds a limit, and is
// ended. ERR_INVALID: it printed a NUL.
int program_read(const char *const argv[], const struct program_limits *limits, struct buf *out,
                 struct err *err);
