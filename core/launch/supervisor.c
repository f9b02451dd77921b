// SPDX-License-Identifier: Apache-2.0
// The daemon's side: starting a supervisor and hearing from it. The process itself is in
// supervisor_main.c.
#include "core/launch/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/launch/supervisor_job.h"

static void add_strings(struct buf *out, char *const *list)
{
    for (; *list; list++)
        buf_add(out, *list, strlen(*list) + 1);
    buf_char(out, 0);
}

// Words as in /proc: each with its NUL, an empty one ends a list.
static int make_job_file(const struct launch *l, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    add_strings(&text, l->argv);
    add_strings(&text, l->envp);
    if (!buf_ok(&text))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a command line");
    CLEANUP_FD int fd = memfd_create("numaprobe-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_sys(err, "memfd_create");
    if (write(fd, text.data, text.len) != (ssize_t)text.len)
        return err_sys(err, "writing the job");
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
    return steal_fd(&fd);
}

// What the child gets at SUPERVISOR_CONTROL_FD and those after it; -1: nothing.
struct inheritance {
    int control, job, lock;
};

static int launch_supervisor_spawn(pid_t *pid, char **argv, const struct inheritance *fds)
{
    char *envp[] = {NULL};
    sigset_t none, all;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t fa;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, fds->control, SUPERVISOR_CONTROL_FD);
    posix_spawn_file_actions_adddup2(&fa, fds->job, SUPERVISOR_JOB_FD);
    if (fds->lock >= 0)
        posix_spawn_file_actions_adddup2(&fa, fds->lock, SUPERVISOR_LOCK_FD);
    int rc = posix_spawn(pid, "/proc/self/exe", &fa, &attr, argv, envp);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    return rc;
}

static int spawn_for(pid_t *pid, const struct supervisor_job *job, const struct inheritance *fds)
{
    char program[] = "numaprobed", option[] = "--supervise", deadline[24], uid[16], gid[16];
    char isolated[] = {job->isolated ? '1' : '0', '\0'};
    snprintf(deadline, sizeof deadline, "%lld", (long long)job->deadline_s);
    snprintf(uid, sizeof uid, "%u", (unsigned)job->uid);
    snprintf(gid, sizeof gid, "%u", (unsigned)job->gid);
    char *dir = strdup(job->dir);
    char *group = strdup(job->group);
    char *argv[] = {program, option, dir, deadline, uid, gid, isolated, group, NULL};
    int rc = dir && group ? launch_supervisor_spawn(pid, argv, fds) : ENOMEM;
    free(dir);
    free(group);
    return rc;
}

// A copy away from the numbers that the child's descriptors get, so that no dup2 overwrites
// another.
static int copy_above(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, SUPERVISOR_LOCK_FD + 1);
}

int supervisor_spawn(struct supervised *out, const struct supervisor_job *job, struct err *err)
{
    int pair[2];
    CLEANUP_FD int file = make_job_file(job->launch, err);
    if (file < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    CLEANUP_FD int ours = pair[0], theirs = pair[1];
    CLEANUP_FD int control = copy_above(theirs), words = copy_above(file);
    CLEANUP_FD int lock = job->lock >= 0 ? copy_above(job->lock) : -1;
    if (control < 0 || words < 0 || (job->lock >= 0 && lock < 0))
        return err_sys(err, "descriptors for the supervisor");
    pid_t pid;
    errno = spawn_for(&pid, job, &(struct inheritance){control, words, lock});
    if (errno)
        return err_sys(err, "starting the supervisor");
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        err_sys(err, "pidfd_open");
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -1;
    }
    *out = (struct supervised){.pid = pid, .pidfd = pidfd, .control = steal_fd(&ours)};
    return 0;
}

void supervisor_stop(struct supervised *s)
{
    if (s->control >= 0)
        send(s->control, "s", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int supervisor_read_report(struct supervised *s, struct supervisor_report *out, struct err *err)
{
    char line[128];
    ssize_t n = recv(s->control, line, sizeof line - 1, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return err_sys(err, "cannot hear how the run ended");
    if (n == 0)
        return err_set(err, ERR_UNAVAILABLE, "", "the run's supervisor was killed");
    line[n] = 0;
    int how, status, killed;
    if (!strchr(line, '\n'))
        return 0;
    if (sscanf(line, SUPERVISOR_REPORT, &how, &status, &killed) != 3 || how < 0 || how >= SUP_ENDS)
        return err_set(err, ERR_INTERNAL, "", "the run's supervisor makes no sense");
    *out = (struct supervisor_report){(enum supervisor_end)how, status, killed};
    return 1;
}

void supervisor_release(struct supervised *s)
{
    if (s->control >= 0)
        close(s->control);
    s->control = -1;
}

bool supervisor_reap(struct supervised *s, int wait_ms)
{
    supervisor_release(s);
    struct pollfd gone = {.fd = s->pidfd, .events = POLLIN};
    bool by_itself = poll(&gone, 1, wait_ms) > 0;
    if (!by_itself)
        kill(s->pid, SIGKILL);
    int status = 0;
    waitpid(s->pid, &status, 0);
    close(s->pidfd);
    *s = (struct supervised){.pid = 0, .pidfd = -1, .control = -1};
    return by_itself && WIFEXITED(status);
}
