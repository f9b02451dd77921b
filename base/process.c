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

void process_begin(void)
{
    keep_standard_fds();
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}
