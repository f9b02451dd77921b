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
#include "bench/comm.h"
#include "bench/life.h"
#include "bench/place.h"

static int bad_bind(const char *bind, struct err *err)
{
    return err_set(err, ERR_USAGE, "bind",
                   "--bind: must be CPU:NODE for each rank, such as 0:0,8:1; got \"%.80s\"", bind);
}

// The n-th CPU:NODE of the list.
static int binding(const char *bind, int n, int *cpu, int *node, struct err *err)
{
    const char *at = bind;
    for (int i = 0; i < n; i++) {
        at = strchr(at, ',');
        if (!at++)
            return bad_bind(bind, err);
    }
    int used = 0;
    if (sscanf(at, "%d:%d%n", cpu, node, &used) != 2 || (at[used] && at[used] != ','))
        return bad_bind(bind, err);
    return 0;
}

static int bind_rank(struct comm *c, struct err *err)
{
    int cpu, node;
    if (!*c->start->bind)
        return 0;
    if (binding(c->start->bind, c->rank, &cpu, &node, err) < 0)
        return -1;
    return place_process(cpu, node, err);
}

// Kills the rest when one has failed; the exit status is the first failure's.
static int wait_for_ranks(const pid_t *pids, int n)
{
    int status, worst = 0, left = n;
    while (left > 0) {
        pid_t pid = wait(&status);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            break;
        left--;
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (!code || worst)
            continue;
        worst = code;
        if (WIFSIGNALED(status))
            fprintf(stderr, "numa_bench: process %d was killed by signal %d\n", (int)pid,
                    WTERMSIG(status));
        for (int i = 0; i < n; i++)
            kill(pids[i], SIGKILL);
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
            for (int i = 0; i < r; i++)
                kill(pids[i], SIGKILL);
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

static int processes_open(struct comm *c, struct err *err)
{
    c->size = c->start->ranks;
    size_t bytes = board_bytes(c->size);
    void *board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *pids = calloc((size_t)c->size, sizeof *pids);
    if (board == MAP_FAILED || !pids) {
        free(pids);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", c->size);
    }
    c->board = board;
    fflush(NULL);
    int child = fork_ranks(c, pids, err);
    if (child == 0)
        run_ranks(c, pids, c->size);
    free(pids);
    if (child < 0)
        return -1;
    // All fail or none, as with any other step.
    int outcome = bind_rank(c, err);
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
