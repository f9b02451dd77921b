// SPDX-License-Identifier: Apache-2.0
// Three ways to have work done by another process: a forked child that shares memory with us, this
// program again with chosen file descriptors, and a limit that a child sets on itself.
#include "core/os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

void *child_share(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void child_unshare(void *p, size_t bytes)
{
    if (p)
        munmap(p, bytes);
}

static _Noreturn void child(int (*work)(void *), void *arg, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0); // its end is no news
    _exit(getppid() == parent ? work(arg) : 0);
}

// Waits for its end, and makes one if that does not come.
static int await(pid_t pid, int ms, int *status, struct err *err)
{
    int rc = 0;
    CLEANUP_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    if (fd < 0)
        rc = err_set(err, ERR_UNAVAILABLE, "", "pidfd_open: %s", strerror(errno));
    else if (poll(&end, 1, ms) != 1)
        rc = err_set(err, ERR_TIMEOUT, "", "it took more than %d ms", ms);
    *status = child_end(&pid, CHILD_END_MS);
    return rc;
}

int child_run(int (*work)(void *arg), void *arg, int limit_ms, struct err *err)
{
    int status = 0;
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return err_set(err, ERR_UNAVAILABLE, "", "no process can be made: %s", strerror(errno));
    if (pid == 0)
        child(work, arg, parent);
    if (await(pid, limit_ms, &status, err) < 0)
        return -1;
    if (!WIFEXITED(status))
        return err_set(err, ERR_INTERNAL, "", "it was ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

// Above all numbers that a child gets, so that no dup2 overwrites a file descriptor that is still
// to be copied.
enum { CHILD_FDS_MAX = 4, FIRST_COPY = 16 };

static void child_environment(const char *const *variables, char *envp[CHILD_VARIABLES_MAX + 1])
{
    int n = 0;
    for (; variables && *variables; variables++) {
        size_t length = strlen(*variables);
        for (char **e = environ; e && *e && n < CHILD_VARIABLES_MAX; e++)
            if (strncmp(*e, *variables, length) == 0 && (*e)[length] == '=') {
                envp[n++] = *e;
                break;
            }
    }
    envp[n] = NULL;
}

static int child_spawn(pid_t *pid, char *const argv[], const struct child_fd *fds, int n,
                       const int *copies, bool session, char *const envp[])
{
    sigset_t none, all;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t fa;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        (session ? POSIX_SPAWN_SETSID : 0));
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    for (int i = 0; i < n; i++)
        if (copies[i] >= 0)
            posix_spawn_file_actions_adddup2(&fa, copies[i], fds[i].to);
    int rc = posix_spawn(pid, "/proc/self/exe", &fa, &attr, argv, envp);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    return rc;
}

int child_exec(pid_t *pid, char *const argv[], const struct child_fd *fds, int n, bool session)
{
    return child_exec_with(pid, argv, fds, n, session, NULL);
}

int child_exec_with(pid_t *pid, char *const argv[], const struct child_fd *fds, int n, bool session,
                    const char *const *variables)
{
    char *envp[CHILD_VARIABLES_MAX + 1];
    int copies[CHILD_FDS_MAX], rc = n > CHILD_FDS_MAX ? EINVAL : 0, made = 0;
    for (; !rc && made < n; made++) {
        copies[made] = fds[made].from < 0 ? -1 : fcntl(fds[made].from, F_DUPFD_CLOEXEC, FIRST_COPY);
        if (fds[made].from >= 0 && copies[made] < 0) {
            rc = errno;
            break;
        }
    }
    child_environment(variables, envp);
    if (!rc)
        rc = child_spawn(pid, argv, fds, n, copies, session, envp);
    while (made > 0)
        fd_cleanup(&copies[--made]);
    return rc;
}

// Those that were killed and are held by the kernel, by pidfd: a number may be another's by now.
static int *held;
static int n_held;

static bool is_reaped(int pidfd)
{
    siginfo_t end = {0};
    return waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED | WNOHANG) < 0 || end.si_pid;
}

static void reap_held(void)
{
    int kept = 0;
    for (int i = 0; i < n_held; i++)
        if (is_reaped(held[i]))
            close(held[i]);
        else
            held[kept++] = held[i];
    n_held = kept;
    if (!kept) {
        free(held);
        held = NULL;
    }
}

// Where there is no memory for it, it is reaped with us.
static void hold_pidfd(int pidfd)
{
    int *more = realloc(held, ((size_t)n_held + 1) * sizeof *held);
    if (!more) {
        close(pidfd);
        return;
    }
    held = more;
    held[n_held++] = pidfd;
}

void child_reap(int pidfd)
{
    reap_held();
    if (is_reaped(pidfd))
        close(pidfd);
    else
        hold_pidfd(pidfd);
}

// False: it is held, and will be reaped later.
static bool ends_within(pid_t pid, int limit_ms)
{
    siginfo_t end = {0};
    CLEANUP_FD int fd = limit_ms < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    if (fd < 0 ||
        (poll(&ended, 1, limit_ms) == 1 &&
         (waitid(P_PIDFD, (id_t)fd, &end, WEXITED | WNOHANG | WNOWAIT) < 0 || end.si_pid)))
        return true;
    hold_pidfd(steal_fd(&fd));
    return false;
}

int child_end(pid_t *pid, int limit_ms)
{
    int status = 0;
    reap_held();
    if (*pid > 0) {
        kill(*pid, SIGKILL); // ours and not buried: the number is still its own
        if (!ends_within(*pid, limit_ms))
            status = SIGKILL;
        else
            while (waitpid(*pid, &status, 0) < 0 && errno == EINTR)
                continue;
    }
    *pid = 0;
    return status;
}

int child_text(const char *text, struct err *err)
{
    size_t n = strlen(text);
    CLEANUP_FD int fd = memfd_create("text", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, text, n, 0) != (ssize_t)n)
        return err_sys(err, "a memory file for a process");
    return steal_fd(&fd);
}

bool child_read_text(int fd, char *out, size_t room)
{
    ssize_t n = pread(fd, out, room, 0);
    if (n < 0 || (size_t)n >= room)
        return false;
    out[n] = '\0';
    return true;
}

bool child_limit_memory(size_t bytes)
{
    char text[200];
    unsigned long long pages;
    struct rlimit l;
    if (file_read_text("/proc/self/statm", text, sizeof text) < 0 ||
        sscanf(text, "%llu", &pages) != 1 || getrlimit(RLIMIT_AS, &l) < 0)
        return false;
    const rlim_t wanted = pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
    if (l.rlim_max > wanted) // a lower one of the account stays: only root may raise it
        l.rlim_max = wanted;
    l.rlim_cur = l.rlim_max;
    return setrlimit(RLIMIT_AS, &l) == 0;
}
