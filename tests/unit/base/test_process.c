// SPDX-License-Identifier: Apache-2.0
// A process that inherits the worst, in a child: the report needs its own standard output.
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/tap.h"

enum { CLOSED = 8 }; // sets of three descriptors

static bool is_null(int fd)
{
    char path[32], to[32] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, to, sizeof to - 1) > 0 && strcmp(to, "/dev/null") == 0;
}

// In a child: 0, or what is wrong.
static int after_closing(int closed)
{
    const int other = open("/dev/zero", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        if (closed & 1 << fd ? close(fd) < 0 : dup2(other, fd) < 0)
            return 1;
    process_begin();
    for (int fd = 0; fd < 3; fd++)
        if (is_null(fd) != !!(closed & 1 << fd))
            return 2;
    if (closed & 2 && (write(1, "x", 1) != -1 || errno != EBADF))
        return 3;
    return open("/dev/null", O_RDONLY) > 2 ? 0 : 4;
}

static int after_signals(void)
{
    char path[] = "/tmp/test_process.XXXXXX";
    struct rlimit none = {0};
    int status = 0, file = mkstemp(path);
    unlink(path);
    signal(SIGCHLD, SIG_IGN);
    process_begin();
    if (setrlimit(RLIMIT_FSIZE, &none) < 0 || write(file, "x", 1) != -1 || errno != EFBIG)
        return 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    return waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7 ? 0 : 2;
}

static int result_of(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
    fflush(stdout);
    for (int closed = 0; closed < CLOSED; closed++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(after_closing(closed));
        CHECK_INT(result_of(pid), 0, "closed descriptors, as bits: %d", closed);
    }
    pid_t pid = fork();
    if (pid == 0)
        _exit(after_signals());
    CHECK_INT(result_of(pid), 0, "a limit of file sizes, and a parent that ignores its children");
    return tap_done();
}
