// SPDX-License-Identifier: Apache-2.0
// A plan as command line: mpirun with one application context a rank,
//   mpirun <mca…> -np 1 setpriv --pdeathsig KILL numactl --physcpubind=C --membind=M numa_bench … :
//   -np 1 …
// or, without MPI, numa_bench itself, which starts and binds its ranks:
//   numa_bench … --np=N --bind=C:M,C:M,…
// argv only, every word ours or an integer or an enumeration; environment built from nothing.
#pragma once
#include "base/err.h"
#include "model/plan.h"
#include "model/spec.h"

struct launch_paths { // absolute
    char mpirun[256], numactl[256], setpriv[256],
        bench[256];       // "" if the machine has none, but bench
    int mpi_major;        // of Open MPI: 4, 5 …; names of its settings differ
    char taskset[256];    // binds to a CPU where numactl cannot
    bool policies_denied; // the kernel or a container's filter refuses memory policies
};

struct launch {
    char **argv; // NULL-terminated; owned
    char **envp; // NULL-terminated; owned
};

// Finds the programs: mpirun by NUMAPROBE_MPIRUN or PATH, the bench by NUMAPROBE_BENCH or beside
// this program (also ../bench, ../bin, ../libexec/numaprobe), the others by PATH. Asks mpirun its
// version. ERR_UNAVAILABLE: there is no bench.
int launch_find(struct launch_paths *paths, struct err *err);

// Settles who starts the ranks: what the spec asks for, MPI if it leaves the choice and all of it
// is there. Where memory policies are denied, ranks are bound to CPUs alone and the plan says so.
// ERR_UNAVAILABLE names what is missing and the package that has it, or the memory that would have
// to be bound.
int launch_choose(struct plan *p, const struct launch_paths *paths, const struct spec *s,
                  struct err *err);

// `dir` is the run's own directory, `nonce` its secret. `as_root`: mpirun is told that root is
// meant.
int launch_make(struct launch *l, const struct launch_paths *paths, const struct plan *p,
                const struct spec *s, const char *dir, const char *nonce, bool as_root,
                struct err *err);
void launch_fini(struct launch *l);
// For dry_run and logs: one line, quoted so that a shell would read the same words.
void launch_write_line(const struct launch *l, struct buf *out);
