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
#include "core/os/child.h"

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

static int spawn_for(pid_t *pid, const struct supervisor_job *job, int control, int file)
{
    char program[] = "numaprobed", option[] = "--supervise", deadline[24], uid[16], gid[16];
    char isolated[] = {job->isolated ? '1' : '0', '\0'};
    snprintf(deadline, sizeof deadline, "%lld", (long long)job->deadline_s);
    snprintf(uid, sizeof uid, "%u", (unsigned)job->uid);
    snprintf(gid, sizeof gid, "%u", (unsigned)job->gid);
    char *dir = strdup(job->dir);
    char *group = strdup(job->group);
    char *argv[] = {program, option, dir, deadline, uid, gid, isolated, group, NULL};
    const struct child_fd fds[] = {{control, SUPERVISOR_CONTROL_FD},
                                   {file, SUPERVISOR_JOB_FD},
                                   {job->lock, SUPERVISOR_LOCK_FD}};
    int rc = dir && group ? child_exec(pid, argv, fds, COUNT_OF(fds), true) : ENOMEM;
    free(dir);
    free(group);
    return rc;
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
    pid_t pid;
    errno = spawn_for(&pid, job, theirs, file);
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
        return err_set(err, ERR_UNAVAILABLE, "",
                       "the supervisor exited without reporting a status");
    line[n] = 0;
    int how, status, killed;
    if (!strchr(line, '\n'))
        return 0;
    if (sscanf(line, SUPERVISOR_REPORT, &how, &status, &killed) != 3 || how < 0 || how >= SUP_ENDS)
        return err_set(err, ERR_INTERNAL, "", "the supervisor's report is invalid");
    *out = (struct supervisor_report){(enum supervisor_end)how, status, killed};
    return 1;
}

void supervisor_release(struct supervised *s)
{
    if (s->control >= 0)
        close(s->control);
    s->control = -1;
}

// By pidfd: it may have ended meanwhile, and its number may be another process's.
void supervisor_kill(const struct supervised *s)
{
    syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
}

bool supervisor_reap(struct supervised *s, int wait_ms)
{
    supervisor_release(s);
    struct pollfd gone = {.fd = s->pidfd, .events = POLLIN};
    bool by_itself = poll(&gone, 1, wait_ms) > 0;
    if (!by_itself)
        supervisor_kill(s);
    int status = 0;
    waitpid(s->pid, &status, 0);
    close(s->pidfd);
    *s = (struct supervised){.pid = 0, .pidfd = -1, .control = -1};
    return by_itself && WIFEXITED(status);
}
