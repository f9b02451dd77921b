// SPDX-License-Identifier: Apache-2.0
// The child reports a failed exec by a pipe that a successful one closes. Both outputs are read
// until both have ended, so that a program that fills stderr does not wait for us.
#include "nodes/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

const char *const program_variables[] = {"PATH", "SLURM_CONF", "SLURM_CONF_SERVER",
                                         "SLURM_SACK_SOCKET", NULL};

// In the child. Returns only if it fails.
static void program_become(const char *const argv[], const struct program_files *files,
                           pid_t parent)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) // it ended before that
        _exit(1);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(files->out < 0 ? null : files->out, STDOUT_FILENO) < 0 ||
        dup2(files->err < 0 ? null : files->err, STDERR_FILENO) < 0)
        return;
    union {
        const char *const *given;
        char *const *taken; // by an interface older than const
    } words = {argv};
    execvp(argv[0], words.taken);
}

int program_start(const char *const argv[], const struct program_files *files, pid_t *pid,
                  struct err *err)
{
    int ends[2], failure = 0;
    const pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "cannot start %.60s", argv[0]);
    pid_t child = fork();
    if (child == 0) {
        program_become(argv, files, parent);
        failure = errno;
        _exit(write(ends[1], &failure, sizeof failure) > 0);
    }
    close(ends[1]);
    CLEANUP_FD int result = ends[0];
    if (child < 0)
        return err_sys(err, "cannot start %.60s", argv[0]);
    ssize_t n;
    while ((n = read(result, &failure, sizeof failure)) < 0 && errno == EINTR)
        ;
    if (n > 0) {
        program_end(child);
        return err_set(err, ERR_UNAVAILABLE, "", "cannot start %.60s: %s", argv[0],
                       failure == ENOENT ? "it is not installed" : strerror(failure));
    }
    *pid = child;
    return 0;
}

int program_end(pid_t pid)
{
    int status = 0;
    // Its number is no other's before it is reaped, also if it has ended.
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

struct output {
    int fd;
    size_t most; // bytes that are kept
    struct buf *kept;
    bool exceeded;
};

static void output_read(struct output *o)
{
    char block[16384];
    ssize_t n = read(o->fd, block, sizeof block);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        fd_cleanup(&o->fd);
        return;
    }
    o->exceeded = o->exceeded || (size_t)n > o->most - o->kept->len;
    if (!o->exceeded)
        buf_add(o->kept, block, (size_t)n);
}

// Until both have ended, the first has exceeded its limit, or it is time: -1.
static int outputs_read(struct output o[static 2], int64_t until_ms)
{
    while ((o[0].fd >= 0 || o[1].fd >= 0) && !o[0].exceeded) {
        struct pollfd fds[2] = {{.fd = o[0].fd, .events = POLLIN},
                                {.fd = o[1].fd, .events = POLLIN}};
        int64_t left = until_ms - clock_mono_ms();
        if (left <= 0)
            return -1;
        if (poll(fds, 2, (int)left) <= 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (o[i].fd >= 0 && fds[i].revents)
                output_read(&o[i]);
    }
    return 0;
}

// Waits without reaping, so that program_end() may still kill the session.
static int program_wait(pid_t pid, int64_t until_ms)
{
    CLEANUP_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    siginfo_t info;
    if (fd < 0) // before Linux 5.3; its outputs have ended, and so will it
        return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    for (int64_t left; (left = until_ms - clock_mono_ms()) > 0;)
        if (poll(&end, 1, (int)left) > 0)
            return 0;
    return -1;
}

int program_read(const char *const argv[], const struct program_limits *limits, struct buf *out,
                 struct err *err)
{
    enum { SAID_MAX = 16384, SAID_SHOWN = 160 };
    CLEANUP_BUF struct buf said = BUF_INIT, printed = BUF_INIT;
    int a[2] = {-1, -1}, b[2] = {-1, -1};
    pid_t pid;
    const int64_t until_ms = clock_mono_ms() + limits->time_ms;
    if (pipe2(a, O_CLOEXEC) < 0 || pipe2(b, O_CLOEXEC) < 0) {
        fd_cleanup(&a[0]);
        fd_cleanup(&a[1]);
        return err_sys(err, "cannot start %.60s", argv[0]);
    }
    struct output outputs[] = {{a[0], limits->bytes, &printed, false},
                               {b[0], SAID_MAX, &said, false}};
    int done = program_start(argv, &(struct program_files){a[1], b[1]}, &pid, err);
    close(a[1]);
    close(b[1]);
    bool late = done == 0 && (outputs_read(outputs, until_ms) < 0 ||
                              (!outputs[0].exceeded && program_wait(pid, until_ms) < 0));
    int status = done == 0 ? program_end(pid) : 0;
    fd_cleanup(&outputs[0].fd);
    fd_cleanup(&outputs[1].fd);
    if (done < 0)
        return -1;
    if (late)
        return err_set(err, ERR_TIMEOUT, "", "%.60s has not ended within %d s", argv[0],
                       limits->time_ms / 1000);
    if (outputs[0].exceeded)
        return err_set(err, ERR_TOO_LARGE, "", "%.60s printed more than %zu bytes", argv[0],
                       limits->bytes);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        said.len = said.len ? strcspn(said.data, "\r\n") : 0;
        return err_set(err, ERR_UNAVAILABLE, "", "%.60s failed with %s %d%s%.*s", argv[0],
                       WIFSIGNALED(status) ? "signal" : "status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                       said.len ? ": " : "", said.len < SAID_SHOWN ? (int)said.len : SAID_SHOWN,
                       said.data ? said.data : "");
    }
    if (strlen(buf_text(&printed)) != printed.len)
        return err_set(err, ERR_INVALID, "", "%.60s printed a NUL, which no text has", argv[0]);
    buf_add(out, printed.data ? printed.data : "", printed.len);
    buf_needs(out, &printed);
    return 0;
}
