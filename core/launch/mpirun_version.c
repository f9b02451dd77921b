// SPDX-License-Identifier: Apache-2.0
// The question to mpirun, in the child that looks. What it starts may be anything: a script, a
// program that forks and hangs. It runs with the rights of a rank and no network, and all of it is
// killed at the end.
#include "core/launch/mpirun_version.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/os/become.h"
#include "core/os/processes.h"

// Why the child did not become mpirun. Its texts are constants, which both processes have.
struct refusal {
    enum { BECOME, NUMACTL, EXEC } what;
    int error;
    const char *step;
};

struct question {
    struct launch launch;
    struct become become;
    const struct launch_paths *paths;
};

static _Noreturn void be_mpirun(const struct question *q, int out, int refused)
{
    struct refusal r = {.what = BECOME};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (become(&q->become, &r.step) == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL); // the change of account has cleared it
        r.what = NUMACTL;
        if (!*q->paths->numactl || access(q->paths->numactl, X_OK) == 0) {
            r.what = EXEC;
            if (dup2(out, 1) >= 0 && dup2(out, 2) >= 0)
                execve(q->launch.argv[0], q->launch.argv, q->launch.envp);
        }
    }
    r.error = errno;
    if (write(refused, &r, sizeof r) < 0)
        _exit(1);
    _exit(1);
}

// "mpirun (Open MPI) 4.1.4" at the begin of a line -> 4; 0: it is not there.
static int version_in(const char *text)
{
    int major = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (sscanf(line, "mpirun (Open MPI) %d", &major) == 1 && major > 0)
            return major;
    return 0;
}

// Reads until the version has come, or nothing more will. True: it ended in time.
static bool read_answer(int in, char *text, size_t room, int64_t until_ms)
{
    size_t have = 0;
    text[0] = '\0';
    while (have < room - 1 && !version_in(text)) {
        int64_t left = until_ms - clock_mono_ms();
        struct pollfd ready = {.fd = in, .events = POLLIN};
        if (left <= 0 || poll(&ready, 1, (int)left) == 0)
            return false;
        ssize_t n = read(in, text + have, room - 1 - have);
        if (n <= 0)
            return true;
        have += (size_t)n;
        text[have] = '\0';
    }
    return true;
}

// Also what forks while we look. What hangs in the kernel is left to the daemon, which is a
// subreaper.
static void end_all(void)
{
    for (int round = 0; round < 20 && proc_kill_below(SIGKILL) > 0; round++)
        poll(NULL, 0, 10);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static void explain_refusal(struct launch_paths *p, const struct account *a,
                            const struct refusal *r)
{
    const char *why = strerror(r->error);
    if (r->what == BECOME)
        snprintf(p->mpi_why, sizeof p->mpi_why,
                 "other accounts could reach the control port of mpirun: no network namespace "
                 "(%.40s: %.40s)",
                 r->step, why);
    else
        snprintf(p->mpi_why, sizeof p->mpi_why, "the account %.32s cannot run %.60s: %.40s",
                 a->name, r->what == EXEC ? p->mpirun : p->numactl, why);
}

// The first line of what it printed, as far as it can be shown.
static void explain_answer(struct launch_paths *p, char *text)
{
    text[strcspn(text, "\n")] = '\0';
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    snprintf(p->mpi_why, sizeof p->mpi_why,
             "%.60s is not Open MPI's mpirun: its --version prints %s%.40s%s", p->mpirun,
             *text ? "\"" : "nothing", text, *text ? "\"" : "");
}

static int mpirun_version_ask(struct launch_paths *p, const struct question *q, char *text,
                              size_t room, struct refusal *r, bool *in_time)
{
    int out[2], refused[2];
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(refused, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        be_mpirun(q, out[1], refused[1]);
    close(out[1]);
    close(refused[1]);
    CLEANUP_FD int in = out[0], failure = refused[0];
    if (pid < 0)
        return -1;
    p->mpi_why[0] = '\0';
    *in_time = read_answer(in, text, room, clock_mono_ms() + LAUNCH_ASK_MS);
    struct pollfd ready = {.fd = failure, .events = POLLIN};
    if (poll(&ready, 1, 0) != 1 || read(failure, r, sizeof *r) != sizeof *r)
        r->error = 0;
    end_all();
    return 0;
}

void mpirun_version_read(struct launch_paths *p, const struct account *a, const char *run_dir)
{
    char text[4096];
    bool in_time;
    struct refusal r = {.error = 0};
    struct err err;
    struct question q = {.become = {a->uid, a->gid, true}, .paths = p};
    p->mpi_major = 0;
    if (launch_make_question(&q.launch, p, run_dir, a->root, &err) < 0 ||
        mpirun_version_ask(p, &q, text, sizeof text, &r, &in_time) < 0) {
        snprintf(p->mpi_why, sizeof p->mpi_why, "mpirun --version could not be run");
        return;
    }
    p->mpi_major = version_in(text);
    if (r.error)
        explain_refusal(p, a, &r);
    else if (!in_time && !p->mpi_major)
        snprintf(p->mpi_why, sizeof p->mpi_why, "%.80s did not answer --version within %d s",
                 p->mpirun, LAUNCH_ASK_MS / 1000);
    else if (!p->mpi_major)
        explain_answer(p, text);
    launch_fini(&q.launch);
}
