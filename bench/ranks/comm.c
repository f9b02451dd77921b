// SPDX-License-Identifier: Apache-2.0
// The environment says which launcher started this rank: one of MPI, numa_bench itself, or
// none. The module with MPI is loaded in the first case only, so that the program runs without
// Open MPI.
#include "bench/ranks/comm.h"

#include <dlfcn.h>
#include <limits.h>
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

// One rank, started by hand without a launcher.
static const struct comm_ops comm_solo = {"none", solo_open, solo_close, NULL, NULL};

#define MPI_MODULE "numa_bench_mpi.so"

#define MPICH_MODULE "numa_bench_mpi_mpich.so"

// What launchers leave in the environment of a rank; size NULL: it leaves none. The module is that
// of an MPI that such a launcher can start; where it was not built, the other one.
static const struct {
    const char *rank, *size, *module;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", MPI_MODULE},
    {"PMIX_RANK", NULL, MPI_MODULE},
    {"PMI_RANK", "PMI_SIZE", MPICH_MODULE}, // hydra, Intel MPI, srun --mpi=pmi2
};

// Libraries with the ABI of MPICH, which its module is not linked with: the first that is found has
// its symbols. Intel MPI, MVAPICH and Cray MPICH have the first name, Debian's MPICH the second.
static const char *const mpich_libraries[] = {"libmpi.so.12", "libmpich.so.12"};

static int64_t comm_number_of(const char *name, int64_t otherwise)
{
    int64_t n;
    const char *text = name ? getenv(name) : NULL;
    return text && str_to_i64(text, &n) ? n : otherwise;
}

static int hint(const char *name)
{
    int64_t n = comm_number_of(name, 0);
    return n > 0 && n <= INT_MAX ? (int)n : 0;
}

// Hydra (MPICH, Intel MPI) starts its proxies by srun, and where that gives PMIx by default, each
// of its ranks has PMIX_RANK=0 of the proxy. Then the ranks are not the tasks of Slurm's step.
static bool pmix_of_proxy(void)
{
    int64_t tasks = comm_number_of("SLURM_STEP_NUM_TASKS", 0);
    return getenv("PMI_RANK") && tasks > 0 && hint("PMI_SIZE") && tasks != hint("PMI_SIZE");
}

// That of which there is a rank; -1: none.
static int launcher_of_mpi(void)
{
    bool proxy = pmix_of_proxy();
    for (size_t i = 0; i < COUNT_OF(launchers); i++)
        if (getenv(launchers[i].rank) && !(proxy && strcmp(launchers[i].rank, "PMIX_RANK") == 0))
            return (int)i;
    return -1;
}

bool comm_uses_mpi(void)
{
    return launcher_of_mpi() >= 0;
}

int comm_rank_hint(void)
{
    int by = launcher_of_mpi();
    if (by >= 0)
        return hint(launchers[by].rank);
    return getenv("SLURM_STEP_NUM_TASKS") ? hint("SLURM_PROCID") : 0;
}

int comm_size_hint(void)
{
    int by = launcher_of_mpi();
    return by >= 0 ? hint(launchers[by].size) : 0;
}

// In the program's own folder and nowhere else. Returns the name of the file; NULL and an error.
static const char *find_module(char *path, size_t room, struct err *err)
{
    const char *own = launchers[launcher_of_mpi()].module;
    ssize_t n = readlink("/proc/self/exe", path, room - 32);
    if (n < 0) {
        err_sys(err, "cannot find where this program is");
        return NULL;
    }
    path[n] = '\0';
    char *name = strrchr(path, '/') + 1;
    snprintf(name, 32, "%s", own);
    if (access(path, F_OK) < 0)
        snprintf(name, 32, MPI_MODULE);
    return name;
}

// By the names that LD_LIBRARY_PATH and the system's folders give.
static int load_mpich(struct err *err)
{
    char why[120] = "";
    for (size_t i = 0; i < COUNT_OF(mpich_libraries); i++) {
        if (dlopen(mpich_libraries[i], RTLD_NOW | RTLD_GLOBAL))
            return 0;
        const char *said = dlerror(); // of a library that is there it names what that lacks
        if (!*why && said)
            snprintf(why, sizeof why, "%s", said);
    }
    return err_set(
        err, ERR_UNAVAILABLE, "launcher",
        "started by an MPI launcher (%s is set), but neither %s nor %s can be loaded "
        "(%s): put their folder into LD_LIBRARY_PATH, or use --np=N without the launcher",
        launchers[launcher_of_mpi()].rank, mpich_libraries[0], mpich_libraries[1], why);
}

// The module stays loaded until the program ends.
static const struct comm_ops *load_mpi(struct err *err)
{
    char path[512];
    const char *name = find_module(path, sizeof path, err);
    if (!name || (strcmp(name, MPICH_MODULE) == 0 && load_mpich(err) < 0))
        return NULL;
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const struct comm_ops *ops = module ? dlsym(module, "comm_mpi") : NULL;
    if (!ops)
        err_set(err, ERR_UNAVAILABLE, "launcher",
                "started by an MPI launcher (%s is set), so install what is missing, or use --np=N "
                "without the launcher: %.150s",
                launchers[launcher_of_mpi()].rank, dlerror());
    return ops;
}

static const struct comm_ops *comm_choose(const struct comm_start *start, struct err *err)
{
    if (comm_uses_mpi() && start->ranks) {
        const char *by = launchers[launcher_of_mpi()].rank;
        err_set(err, ERR_USAGE, "np",
                "--np=%d is for ranks without MPI, but an MPI launcher has started this one (%s is "
                "set): leave it out, or start with env -u %s where that is left of a shell",
                start->ranks, by, by);
        return NULL;
    }
    if (comm_uses_mpi())
        return load_mpi(err);
    return start->ranks ? &comm_processes : &comm_solo;
}

// Who writes records and who is bound where was decided by what the launcher left in the
// environment before MPI was there. MPI has to count alike: that of another vendor than the
// launcher's makes each rank the only one of a job of its own. (And then Open MPI writes its own
// count into the environment, so that has to be read before.) So does `variable`, by which this is
// a rank, in a shell that a launcher has started.
static int agree(struct comm *c, const char *variable, int rank, int size, struct err *err)
{
    char path[512];
    if (c->ops == &comm_processes || c->ops == &comm_solo)
        return 0;
    if (rank != c->rank || (size > 0 && size != c->size)) {
        char of[24] = "";
        const char *module = find_module(path, sizeof path, NULL);
        if (size > 0)
            snprintf(of, sizeof of, " of %d", size);
        err_set(err, ERR_UNAVAILABLE, "launcher",
                "the launcher counts this as rank %d%s, MPI as rank %d of %d: use the mpirun of "
                "the MPI that %s is built with, or start with env -u %s where that is left of a "
                "shell",
                rank, of, c->rank, c->size, module ? module : MPI_MODULE, variable);
        board_fault(c->board, c->rank, err);
    }
    return board_meet(c->board, c->size, err);
}

// srun gives tasks PMIx, PMI-2 or nothing; what the MPI of our module does not know is no help.
static int refuse_srun(int64_t tasks, int by, struct err *err)
{
    if (by < 0)
        return err_set(err, ERR_USAGE, "mpi",
                       "srun started %lld tasks without PMIx, so they cannot find each other: use "
                       "srun --mpi=pmix (or --mpi=pmi2 with an MPICH)",
                       (long long)tasks);
    bool pmix = strcmp(launchers[by].rank, "PMIX_RANK") == 0;
    return err_set(err, ERR_USAGE, "mpi",
                   "srun started %lld tasks by %s, but MPI sees one each: use srun --mpi=%s%s",
                   (long long)tasks, pmix ? "PMIx" : "PMI-2", pmix ? "pmi2" : "pmix",
                   pmix ? ", or a numa_bench built with an Open MPI that has PMIx" : "");
}

// May leave it open on failure.
static int comm_join(struct comm *c, int by, struct err *err)
{
    int rank = comm_rank_hint(), size = comm_size_hint();
    int64_t tasks = comm_number_of("SLURM_STEP_NUM_TASKS", 1);
    // mpirun inside of an srun step has its own ranks.
    bool by_srun = tasks > 1 && !getenv("OMPI_COMM_WORLD_RANK");
    if (by_srun && by < 0)
        return refuse_srun(tasks, by, err);
    const struct comm_ops *ops = comm_choose(c->start, err);
    if (!ops)
        return -1;
    c->ops = ops;
    if (ops->open(c, err) < 0) {
        c->ops = NULL;
        return -1;
    }
    if (by_srun && c->size == 1)
        return refuse_srun(tasks, by, err);
    return agree(c, by < 0 ? "" : launchers[by].rank, rank, size, err);
}

int comm_open(struct comm *c, const struct comm_start *start, struct err *err)
{
    *c = (struct comm){.start = start};
    int by = launcher_of_mpi(); // asked now: MPI changes the environment when it starts
    if (comm_join(c, by, err) == 0)
        return 0;
    // Where MPI has not joined ranks, none knows whether there is a rank 0 that says why. Of the
    // tasks of a step of Slurm there is one.
    bool alone = by >= 0 && c->size <= 1 && comm_number_of("SLURM_STEP_NUM_TASKS", 1) <= 1;
    if (c->ops)
        comm_close(c);
    c->alone = alone;
    return -1;
}

void comm_close(struct comm *c)
{
    if (c->ops)
        c->ops->close(c);
    *c = (struct comm){0};
}
