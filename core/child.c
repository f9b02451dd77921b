// SPDX-License-Identifier: Apache-2.0
#include "core/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

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
    if (rc < 0)
        kill(pid, SIGKILL); // ours and not buried: the number is still its own
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        continue;
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
