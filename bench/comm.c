// SPDX-License-Identifier: Apache-2.0
#include "bench/comm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

static int solo_open(struct comm *c, struct err *err)
{
    c->size = 1;
    c->board = aligned_alloc(_Alignof(struct slot), board_bytes(1));
    if (!c->board)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to start");
    memset(c->board, 0, board_bytes(1));
    return 0;
}

static void solo_close(struct comm *c)
{
    free(c->board);
}

const struct comm_ops comm_solo = {"none", solo_open, solo_close, NULL, NULL};

static const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

bool comm_uses_mpi(void)
{
    for (size_t i = 0; i < COUNT_OF(rank_names); i++)
        if (getenv(rank_names[i]))
            return true;
    return false;
}

static int64_t number_of(const char *name, int64_t otherwise)
{
    int64_t n;
    const char *text = getenv(name);
    return text && str_to_i64(text, &n) ? n : otherwise;
}

int comm_rank_hint(void)
{
    for (size_t i = 0; i < COUNT_OF(rank_names); i++)
        if (getenv(rank_names[i]))
            return (int)number_of(rank_names[i], 0);
    return getenv("SLURM_STEP_NUM_TASKS") ? (int)number_of("SLURM_PROCID", 0) : 0;
}

// The module stays loaded until the program ends. From the program's own folder and nowhere else.
static const struct comm_ops *load_mpi(struct err *err)
{
    char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    if (n < 0) {
        err_sys(err, "cannot find where this program is");
        return NULL;
    }
    path[n] = '\0';
    char *folder_end = strrchr(path, '/');
    snprintf(folder_end + 1, 32, "numa_bench_mpi.so");
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const struct comm_ops *ops = module ? dlsym(module, "comm_mpi") : NULL;
    if (!ops)
        err_set(err, ERR_UNAVAILABLE, "launcher",
                "started by an MPI launcher, but its module cannot be used: %.160s", dlerror());
    return ops;
}

static const struct comm_ops *choose(const struct comm_start *start, struct err *err)
{
    if (comm_uses_mpi() && start->ranks) {
        err_set(err, ERR_USAGE, "np", "--np contradicts the launcher that has started this rank");
        return NULL;
    }
    if (comm_uses_mpi())
        return load_mpi(err);
    return start->ranks ? &comm_processes : &comm_solo;
}

int comm_open(struct comm *c, const struct comm_start *start, struct err *err)
{
    *c = (struct comm){.start = start};
    int64_t tasks = number_of("SLURM_STEP_NUM_TASKS", 1);
    // mpirun inside of an srun step has its own ranks.
    bool by_srun = tasks > 1 && !getenv("OMPI_COMM_WORLD_RANK");
    if (by_srun && !comm_uses_mpi())
        return err_set(err, ERR_USAGE, "mpi",
                       "srun started %lld tasks without PMIx, so they cannot find each other: use "
                       "srun --mpi=pmix",
                       (long long)tasks);
    const struct comm_ops *ops = choose(start, err);
    if (!ops)
        return -1;
    c->ops = ops;
    if (ops->open(c, err) < 0) {
        c->ops = NULL;
        return -1;
    }
    if (!by_srun || c->size > 1)
        return 0;
    comm_close(c);
    return err_set(err, ERR_USAGE, "mpi",
                   "srun started %lld tasks, but MPI sees one each: use srun --mpi=pmix",
                   (long long)tasks);
}

void comm_close(struct comm *c)
{
    if (c->ops)
        c->ops->close(c);
    *c = (struct comm){0};
}
