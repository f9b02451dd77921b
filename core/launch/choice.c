// SPDX-License-Identifier: Apache-2.0
// What starts the ranks, and what keeps mpirun from it. All of it is decided from what a look has
// found (core/launch/programs.h): nothing is read here.
#include "core/launch/choice.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/launch/command.h"
#include "model/target.h"

static int cannot_give(const char *member, int target, int cpu, const char *why, struct err *err)
{
    char words[TARGET_LABEL_ROOM];
    target_words(target, words, sizeof words);
    return err_set(err, ERR_UNAVAILABLE, member, "memory of %s cannot be given to CPU %d: %s",
                   words, cpu, why);
}

// Memory then lies where it is first touched, on the CPU's own node: right as long as nothing else
// was requested. A number of another node's memory would be wrong and look right.
static int do_without_policies(struct plan *p, struct err *err)
{
    static const char why[] = "memory policies are denied here (docker allows them by --cap-add "
                              "SYS_NICE)";
    for (int i = 0; i < p->n_ranks; i++) {
        const struct plan_rank *r = &p->ranks[i];
        if (r->mem_node >= 0 && r->mem_node != r->cpu_node)
            return cannot_give("numa", r->mem_node, r->cpu, why, err);
        for (int k = 0; k < p->n_targets; k++)
            if (p->targets[k] != r->cpu_node)
                return cannot_give("targets", p->targets[k], r->cpu, why, err);
    }
    if (p->n_notes < PLAN_NOTES_MAX)
        snprintf(p->notes[p->n_notes++], sizeof p->notes[0],
                 "%s: memory lies where it is first touched", why);
    return 0;
}

static int count_loaders(const struct plan *p)
{
    CLEANUP_MEM int *cpus = NULL;
    int n = 0;
    return *p->load_cpus && str_to_ids(p->load_cpus, true, INT_MAX, "", &cpus, &n, NULL) == 0 ? n
                                                                                              : 0;
}

// Text of what keeps the account from having all processes and threads of the plan; false: nothing.
static bool few_tasks(char *why, size_t room, const struct launch_paths *paths,
                      const struct plan *p, int per_rank)
{
    int n = p->n_ranks;
    int64_t needed = (int64_t)n * per_rank + count_loaders(p) + LAUNCH_TASKS;
    if (paths->tasks < 0 || needed <= paths->tasks)
        return false;
    snprintf(why, room,
             "%d ranks take %" PRId64 " processes and threads, %d per rank, and limits leave "
             "%" PRId64 " (TasksMax of the unit, ulimit -u)",
             n, needed, per_rank, paths->tasks);
    return true;
}

// What keeps mpirun from starting the ranks of the plan; false: nothing.
static bool mpi_fault(char *why, size_t room, const struct launch_paths *paths,
                      const struct plan *p)
{
    int64_t bytes = (int64_t)p->n_ranks * LAUNCH_DIR_BYTES_PER_RANK + LAUNCH_DIR_BYTES;
    if (!*paths->mpirun)
        snprintf(why, room, "the program mpirun is missing: install the package openmpi-bin");
    else if (!*paths->numactl && !paths->policies_denied)
        snprintf(why, room, "the program numactl is missing: install the package numactl");
    else if (!paths->mpi_major)
        snprintf(why, room, "%s", paths->mpi_why);
    else if (paths->dir_bytes >= 0 && paths->dir_bytes < bytes)
        snprintf(why, room,
                 "the run directory has %" PRId64 " MiB free, and Open MPI needs %" PRId64
                 " MiB there (4 per rank)",
                 paths->dir_bytes >> 20, bytes >> 20);
    else
        return few_tasks(why, room, paths, p, LAUNCH_TASKS_PER_MPI_RANK);
    return true;
}

static int choice_refuse(const char *why, const struct spec *s, struct err *err)
{
    const struct benchmark *b = &benchmarks[s->benchmark];
    if (b->needs_mpi)
        return err_set(err, ERR_UNAVAILABLE, "launcher", "%s needs MPI: %s", b->name, why);
    return err_set(err, ERR_UNAVAILABLE, "launcher", "%s; launcher=processes needs no MPI", why);
}

static void take_processes(struct plan *p, const char *why)
{
    p->processes = true;
    snprintf(p->launcher_why, sizeof p->launcher_why, "%s", why);
    if (p->n_notes < PLAN_NOTES_MAX)
        snprintf(p->notes[p->n_notes++], sizeof p->notes[0], "ranks are started without MPI: %s",
                 why);
}

int launch_choose(struct plan *p, const struct launch_paths *paths, const struct spec *s,
                  struct err *err)
{
    char why[sizeof p->launcher_why];
    bool needs_mpi = s->launcher == LAUNCHER_MPI || benchmarks[s->benchmark].needs_mpi;
    if (paths->policies_denied && do_without_policies(p, err) < 0)
        return -1;
    p->processes = s->launcher == LAUNCHER_PROCESSES;
    if (!p->processes && mpi_fault(why, sizeof why, paths, p)) {
        if (needs_mpi)
            return choice_refuse(why, s, err);
        take_processes(p, why);
    }
    if (p->processes && few_tasks(why, sizeof why, paths, p, LAUNCH_TASKS_PER_PROCESS))
        return err_set(err, ERR_UNAVAILABLE, "ranks", "%s", why);
    return 0;
}
