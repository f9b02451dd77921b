// SPDX-License-Identifier: Apache-2.0
// A rank that a launcher of MPI started finds its own entry in the list. It starts itself again
// below numactl, or binds itself where there is none; then it loads MPI.
#include "bench/session/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "bench/memory/placement.h"
#include "bench/ranks/bindings.h"
#include "bench/ranks/comm.h"

static int entries_of(const char *list)
{
    int n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static int bind_find_own(const char *list, struct binding *own, struct err *err)
{
    int rank = comm_rank_hint(), size = comm_size_hint();
    int n = size > 0 ? size : entries_of(list);
    if (rank >= n) // then the list is too short, which bindings_read says
        n = rank + 1;
    CLEANUP_MEM struct binding *all = calloc((size_t)n, sizeof *all);
    if (!all)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the places of %d ranks", n);
    if (bindings_read(list, all, n, err) < 0)
        return -1;
    *own = all[rank];
    return 0;
}

// How many words at argv[i] are the option of that name and its value; 0: it is another.
static int bind_option_words(char *const *argv, const char *name)
{
    size_t n = strlen(name);
    if (!str_starts(*argv, "--") || strncmp(*argv + 2, name, n) != 0)
        return 0;
    return (*argv)[2 + n] == '=' ? 1 : (*argv)[2 + n] ? 0 : 2;
}

// Comes back as an error only.
static int execute_below_numactl(const struct options *o, const struct binding *b, struct err *err)
{
    char self[512], cpu[48], node[48], program[sizeof o->numactl], local[] = "--localalloc";
    char **argv = calloc((size_t)o->argc + 4, sizeof *argv);
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    int n = 0;
    if (!argv || len < 0) {
        free(argv);
        return err_sys(err, "cannot find where this program is");
    }
    self[len] = '\0';
    snprintf(program, sizeof program, "%s", o->numactl);
    snprintf(cpu, sizeof cpu, "--physcpubind=%d", b->cpu);
    snprintf(node, sizeof node, "--membind=%d", b->node);
    argv[n++] = program;
    if (b->cpu >= 0)
        argv[n++] = cpu;
    argv[n++] = b->node >= 0 ? node : local;
    argv[n++] = self;
    for (int i = 1, skip; i < o->argc; i += skip ? skip : 1) {
        skip = bind_option_words(&o->argv[i], "bind") + bind_option_words(&o->argv[i], "numactl");
        if (!skip)
            argv[n++] = o->argv[i];
    }
    execv(program, argv);
    free(argv);
    return err_sys(err, "cannot run %s", program);
}

int bind_rank_of_mpi(const struct options *o, struct err *err)
{
    struct binding own;
    if (!*o->bind || o->ranks)
        return 0;
    if (bind_find_own(o->bind, &own, err) < 0)
        return -1;
    return *o->numactl ? execute_below_numactl(o, &own, err)
                       : place_process(own.cpu, own.node, err);
}
