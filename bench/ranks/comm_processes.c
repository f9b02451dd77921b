// SPDX-License-Identifier: Apache-2.0
// The launcher without MPI: the process that was started forks the ranks, waits for them, and ends
// as the first that failed does, taking the others with it, as mpirun would. The board is memory
// that they inherit.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bench/memory/affinity.h"
#include "bench/memory/placement.h"
#include "bench/ranks/bindings.h"
#include "bench/ranks/comm.h"
#include "bench/ranks/life.h"

// Ranks that share a CPU measure each other's time slices: only where that is requested.
static int comm_processes_check_room(const struct comm_start *start, const struct binding *list,
                                     struct err *err)
{
    struct place all;
    if (start->oversubscribe)
        return 0;
    place_wanted(&all);
    if (!*start->bind && start->ranks > all.cpus)
        return err_set(
            err, ERR_USAGE, "np",
            "--np=%d: more ranks than the CPUs of this process, %d: ranks would take turns "
            "there. Give --np=%d at most, or --oversubscribe",
            start->ranks, all.cpus, all.cpus);
    for (int i = 0; *start->bind && i < start->ranks; i++)
        for (int k = 0; k < i && list[i].cpu >= 0; k++)
            if (list[k].cpu == list[i].cpu)
                return err_set(
                    err, ERR_USAGE, "bind",
                    "--bind: ranks %d and %d are on CPU %d: they would take turns there. "
                    "Give each a CPU of its own, or --oversubscribe",
                    k, i, list[i].cpu);
    return 0;
}

static int find_bindings(const struct comm_start *start, struct binding *list, struct err *err)
{
    int outcome = *start->bind ? bindings_read(start->bind, list, start->ranks, err)
                               : bindings_spread(list, start->ranks, err);
    return outcome < 0 ? -1 : comm_processes_check_room(start, list, err);
}

// A process that has been waited for has no number any more: another process may have it by now.
static void comm_processes_forget(pid_t *pids, int n, pid_t pid)
{
    for (int i = 0; i < n; i++)
        if (pids[i] == pid)
            pids[i] = -1;
}

static void comm_processes_kill_all(const pid_t *pids, int n)
{
    for (int i = 0; i < n; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
}

// Kills the rest when one has failed; the exit status is the first failure's.
static int wait_for_ranks(pid_t *pids, int n)
{
    int status, worst = 0, left = n;
    while (left > 0) {
        pid_t pid = wait(&status);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            break;
        left--;
        comm_processes_forget(pids, n, pid);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (!code || worst)
            continue;
        worst = code;
        if (WIFSIGNALED(status))
            fprintf(stderr, "numa_bench: process %d was killed by signal %d\n", (int)pid,
                    WTERMSIG(status));
        comm_processes_kill_all(pids, n);
    }
    return worst;
}

static _Noreturn void run_ranks(struct comm *c, pid_t *pids, int started)
{
    int status = wait_for_ranks(pids, started);
    free(pids);
    munmap(c->board, board_bytes(c->size));
    _exit(status);
}

static int fork_ranks(struct comm *c, pid_t *pids, struct err *err)
{
    for (int r = 0; r < c->size; r++) {
        pids[r] = fork();
        if (pids[r] < 0) {
            err_sys(err, "cannot start rank %d", r);
            comm_processes_kill_all(pids, r);
            return -1;
        }
        if (pids[r] == 0) {
            life_begin(); // who forked us is our parent now
            c->rank = r;
            return 1;
        }
    }
    return 0;
}

// In the process that was started: ends here, or comes back as an error. In a rank: 1.
static int start_ranks(struct comm *c, struct err *err)
{
    CLEANUP_MEM pid_t *pids = calloc((size_t)c->size, sizeof *pids);
    if (!pids)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", c->size);
    fflush(NULL);
    int child = fork_ranks(c, pids, err);
    if (child == 0)
        run_ranks(c, steal_ptr(&pids), c->size);
    return child;
}

static int bind_rank(const struct comm *c, const struct binding *b, struct err *err)
{
    return *c->start->bind ? place_process(b->cpu, b->node, err) : affinity_set(b->cpu, err);
}

static int processes_open(struct comm *c, struct err *err)
{
    c->size = c->start->ranks;
    CLEANUP_MEM struct binding *list = calloc((size_t)c->size, sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", c->size);
    if (find_bindings(c->start, list, err) < 0)
        return -1;
    c->board =
        mmap(NULL, board_bytes(c->size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->board == MAP_FAILED)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", c->size);
    if (start_ranks(c, err) < 0)
        return -1;
    // All fail or none, as with any other step.
    int outcome = bind_rank(c, &list[c->rank], err);
    if (outcome < 0)
        board_fault(c->board, c->rank, err);
    outcome = board_meet(c->board, c->size, err);
    while (outcome < 0 && c->rank != 0)
        pause(); // rank 0 says why and ends, which ends us
    return outcome;
}

static void processes_close(struct comm *c)
{
    struct err ignored;
    board_meet(c->board, c->size, &ignored); // who comes first waits: its exit may end the others
    munmap(c->board, board_bytes(c->size));
}

const struct comm_ops comm_processes = {"processes", processes_open, processes_close, NULL, NULL};
