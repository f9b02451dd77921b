// SPDX-License-Identifier: Apache-2.0
// A plan as command line: mpirun with one application context for all ranks,
//   mpirun <mca...> -np N numa_bench ... --bind=C:M,C:M,... --numactl=/usr/bin/numactl
// of which each rank finds its own CPU and node by its number, and executes itself once more below
//   numactl --physcpubind=C --membind=M numa_bench ...
// or, without MPI, numa_bench itself, which starts and binds its ranks:
//   numa_bench ... --np=N --bind=C:M,C:M,...
// argv only, every word ours or an integer or an enumeration; environment built from nothing.
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "model/plan.h"
#include "model/spec.h"

enum {
    // What Open MPI makes in the run's directory: a file of shared memory per rank of 4 MiB (4.1;
    // those of 5.0 are of 16 MiB and mostly holes), and 8 MiB for all.
    LAUNCH_DIR_BYTES_PER_RANK = 4 << 20,
    LAUNCH_DIR_BYTES = 8 << 20,
    // Processes and threads. A rank has two threads of Open MPI's beside its own (4.1.4; one in
    // 5.0.7), and none without MPI. mpirun has four, the supervisor one.
    LAUNCH_TASKS_PER_MPI_RANK = 3,
    LAUNCH_TASKS_PER_PROCESS = 1,
    LAUNCH_TASKS = 16,
};

// What a machine has to start ranks with, as one look has found it (core/launch/programs.h).
struct launch_paths {                           // absolute
    char mpirun[256], numactl[256], bench[256]; // "" if the machine has none, but bench
    int mpi_major;     // of Open MPI: 4, 5 ...; names of its settings differ. 0: it cannot be used
    char mpi_why[160]; // why not
    bool policies_denied; // the kernel or a container's filter refuses memory policies
    int64_t dir_bytes;    // free in the directory of runs; -1: not known
    int64_t tasks;        // more processes and threads that the account may have; -1: no limit
};

struct launch {
    char **argv; // NULL-terminated; owned
    char **envp; // NULL-terminated; owned
};

// Finds the bench: by NUMAPROBE_BENCH or beside this program (also ../bench, ../bin,
// ../libexec/numaprobe), or by PATH. ERR_UNAVAILABLE: there is none. What a directory of PATH on a
// network file system costs is why only a child of the daemon calls these two.
int launch_find_bench(struct launch_paths *paths, struct err *err);
// Finds mpirun by NUMAPROBE_MPIRUN or PATH, and numactl by PATH. Asks neither anything.
void launch_find_mpi(struct launch_paths *paths);

// `dir` is the run's own directory, `nonce` its secret. `as_root`: mpirun gets the option that root
// is meant.
int launch_make(struct launch *l, const struct launch_paths *paths, const struct plan *p,
                const struct spec *s, const char *dir, const char *nonce, bool as_root,
                struct err *err);
// "mpirun --version", in the environment that a run in `dir` has.
int launch_make_question(struct launch *l, const struct launch_paths *paths, const char *dir,
                         bool as_root, struct err *err);
void launch_fini(struct launch *l);
// For dry_run and logs: one line, quoted so that a shell would read the same words.
void launch_write_line(const struct launch *l, struct buf *out);
