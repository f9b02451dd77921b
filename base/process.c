// SPDX-License-Identifier: Apache-2.0
// Descriptors and signals that a program inherits, and cannot work with.
#include "base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void keep_standard_fds(void)
{
    while (fcntl(STDERR_FILENO, F_GETFD) < 0 || fcntl(STDOUT_FILENO, F_GETFD) < 0 ||
           fcntl(STDIN_FILENO, F_GETFD) < 0)
        if (open("/dev/null", O_RDONLY) < 0) // writing to it fails, as it should
            return;
}

static void end_at_once(int signo)
{
    (void)signo;
    _exit(0);
}

void process_may_be_stopped(void)
{
    signal(SIGTERM, end_at_once);
    signal(SIGINT, end_at_once);
}

void process_begin(void)
{
    keep_standard_fds();
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}
