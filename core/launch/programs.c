// SPDX-License-Identifier: Apache-2.0
// The child shares two places with us: what is known when bench and account are, and when all is.
// It counts `stage` up after it has filled one. The end of the pipe says that the child is gone.
#include "core/launch/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/launch/mpirun_version.h"
#include "core/os/child.h"
#include "core/os/task_room.h"

enum { STAGES = 2 };

struct shared {
    atomic_int stage; // how many of `found` are filled
    struct launch_found found[STAGES];
};

struct launch_look {
    struct loop *loop;
    char run_dir[300], job_user[64];
    void (*on_done)(void *ctx);
    void *ctx;
    struct shared *shared;
    struct launch_found found;
    int64_t ended_ms;
    bool doubt;
    int child, pipe; // pidfd, and the end of the pipe; -1: no look is under way
    bool late;       // the child did not end in time
    struct loop_watch *watch;
    struct loop_timer *limit;
};

// --- in the child

static int64_t free_bytes(const char *dir)
{
    struct statvfs fs;
    return statvfs(dir, &fs) == 0 ? (int64_t)fs.f_bavail * (int64_t)fs.f_frsize : -1;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return file_is_same(a, b) && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool answer_holds(const struct launch_look *l, const struct launch_found *now)
{
    const struct launch_found *was = &l->found;
    return !l->doubt && was->asked_ms && was->err.code == ERR_NONE &&
           clock_mono_ms() - was->asked_ms < LAUNCH_ASK_EVERY_MS &&
           strcmp(was->paths.mpirun, now->paths.mpirun) == 0 &&
           was->account.uid == now->account.uid && same_file(&was->mpirun, &now->mpirun);
}

static void look_for_mpi(const struct launch_look *l, struct launch_found *f)
{
    launch_find_mpi(&f->paths);
    f->paths.dir_bytes = free_bytes(l->run_dir);
    f->paths.tasks = task_room(f->account.uid);
    if (!*f->paths.mpirun || stat(f->paths.mpirun, &f->mpirun) < 0)
        return;
    if (answer_holds(l, f)) {
        f->asked_ms = l->found.asked_ms;
        f->paths.mpi_major = l->found.paths.mpi_major;
        memcpy(f->paths.mpi_why, l->found.paths.mpi_why, sizeof f->paths.mpi_why);
        return;
    }
    f->asked_ms = clock_mono_ms();
    mpirun_version_read(&f->paths, &f->account, l->run_dir);
}

static void look_for_bench(const struct launch_look *l, struct launch_found *f)
{
    const char *user = *l->job_user ? l->job_user : NULL;
    f->err = (struct err){0};
    if (launch_find_bench(&f->paths, &f->err) == 0)
        account_find(&f->account, user, l->run_dir, &f->paths, &f->err);
}

// As a subreaper it gets all that mpirun leaves behind. It needs nothing that we have open, and
// must not keep it from others: locks, listeners.
static _Noreturn void programs_look(const struct launch_look *l, int out, pid_t parent)
{
    struct shared *s = l->shared;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (getppid() != parent || dup2(out, STDERR_FILENO + 1) < 0)
        _exit(1);
    fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC);
    syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0);
    look_for_bench(l, &s->found[0]);
    atomic_store(&s->stage, 1);
    if (s->found[0].err.code != ERR_NONE)
        _exit(1);
    s->found[1] = s->found[0];
    look_for_mpi(l, &s->found[1]);
    atomic_store(&s->stage, 2);
    _exit(0);
}

// --- in the daemon

// Of a child that takes too long the bench may be known, and MPI is done without.
static void programs_take(struct launch_look *l)
{
    struct launch_found *f = &l->found;
    int stage = atomic_load(&l->shared->stage);
    if (stage > 0)
        *f = l->shared->found[stage - 1];
    else if (!*f->paths.bench)
        err_set(&f->err, ERR_UNAVAILABLE, "",
                "numa_bench was not found within %d s: does a directory of PATH hang?",
                LAUNCH_LOOK_MS / 1000);
    l->ended_ms = clock_mono_ms();
    l->doubt = false;
    if (stage == STAGES || f->err.code != ERR_NONE)
        return;
    f->asked_ms = 0;
    f->paths.mpi_major = 0;
    snprintf(f->paths.mpi_why, sizeof f->paths.mpi_why,
             "mpirun has not answered --version in time");
    if (!*f->paths.mpirun) // whether it is missing is not known
        snprintf(f->paths.mpirun, sizeof f->paths.mpirun, "mpirun");
    if (!*f->paths.numactl)
        snprintf(f->paths.numactl, sizeof f->paths.numactl, "numactl");
}

static void forget_child(struct launch_look *l)
{
    loop_unwatch(l->watch);
    l->watch = NULL;
    fd_cleanup(&l->child);
    fd_cleanup(&l->pipe);
    l->late = false;
    loop_timer_set(l->limit, -1);
}

// The pipe is never written to: it ends when the child does.
static void child_ended(struct launch_look *l)
{
    if (!l->late || atomic_load(&l->shared->stage) == STAGES)
        programs_take(l);
    waitid(P_PIDFD, (id_t)l->child, &(siginfo_t){0}, WEXITED); // it may have been buried already
    forget_child(l);
}

static void programs_on_pipe(void *ctx, uint32_t events)
{
    struct launch_look *l = ctx;
    (void)events;
    child_ended(l);
    l->on_done(l->ctx);
}

static void kill_child(const struct launch_look *l)
{
    syscall(SYS_pidfd_send_signal, l->child, SIGKILL, NULL, 0);
}

static void on_limit(void *ctx, uint32_t events)
{
    struct launch_look *l = ctx;
    (void)events;
    kill_child(l);
    if (l->late)
        return;
    l->late = true;
    programs_take(l);
    l->on_done(l->ctx);
}

struct launch_look *launch_look_new(struct loop *loop, const char *run_dir, const char *job_user,
                                    void (*on_done)(void *ctx), void *ctx, struct err *err)
{
    struct launch_look *l = calloc(1, sizeof *l);
    struct shared *shared = l ? child_share(sizeof *shared) : NULL;
    if (!shared) {
        free(l);
        err_set(err, ERR_NO_MEMORY, "", "no memory to look for programs");
        return NULL;
    }
    *l = (struct launch_look){
        .loop = loop, .on_done = on_done, .ctx = ctx, .shared = shared, .child = -1, .pipe = -1};
    snprintf(l->run_dir, sizeof l->run_dir, "%s", run_dir);
    snprintf(l->job_user, sizeof l->job_user, "%s", job_user);
    err_set(&l->found.err, ERR_UNAVAILABLE, "", "the programs have not been looked for yet");
    l->limit = loop_timer_new(loop, on_limit, l, err);
    if (l->limit)
        return l;
    launch_look_free(l);
    return NULL;
}

void launch_look_free(struct launch_look *l)
{
    if (!l)
        return;
    if (l->child >= 0) {
        kill_child(l);
        forget_child(l);
    }
    loop_timer_free(l->limit);
    child_unshare(l->shared, sizeof *l->shared);
    free(l);
}

static int programs_begin(struct launch_look *l)
{
    int p[2];
    struct err err;
    pid_t parent = getpid();
    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    l->pipe = p[0];
    atomic_store(&l->shared->stage, 0);
    memset(l->shared->found, 0, sizeof l->shared->found);
    pid_t pid = fork();
    if (pid == 0)
        programs_look(l, p[1], parent);
    close(p[1]);
    l->child = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    if (l->child >= 0)
        l->watch = loop_watch_fd(l->loop, l->pipe, EPOLLIN, programs_on_pipe, l, &err);
    if (l->watch)
        return 0;
    if (pid > 0)
        kill(pid, SIGKILL); // ours and not buried: the number is still its own
    forget_child(l);
    return -1;
}

bool launch_look_begin(struct launch_look *l)
{
    if (l->child >= 0)
        return !l->late;
    if (programs_begin(l) < 0)
        return false;
    loop_timer_set(l->limit, LAUNCH_LOOK_MS);
    return true;
}

void launch_look_wait(struct launch_look *l, int ms)
{
    struct pollfd end = {.fd = l->pipe, .events = POLLIN};
    if (l->child < 0 || l->late)
        return;
    if (poll(&end, 1, ms) == 1) {
        child_ended(l);
        return;
    }
    l->late = true;
    programs_take(l);
}

const struct launch_found *launch_look_found(const struct launch_look *l)
{
    return &l->found;
}

int64_t launch_look_age_ms(const struct launch_look *l)
{
    return l->ended_ms ? clock_mono_ms() - l->ended_ms : INT64_MAX;
}

void launch_look_doubt(struct launch_look *l)
{
    l->doubt = true;
}
