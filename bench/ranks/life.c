// SPDX-License-Identifier: Apache-2.0
// Settings of the process at its start: it dies with its parent, and the kernel kills it first
// when memory is short. The deadline is a signal whose handler writes the end record.
#include "bench/ranks/life.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/process.h"

static volatile int words_fd = -1;
static const char *words, *complaint;

void life_begin(void)
{
    process_begin();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN); // a reader that went away is an error of write()
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "1000", 4) < 0) {
        // Raising one's own score is always allowed; where /proc is read-only we continue without.
    }
    close(fd);
}

// Only calls that are safe in a signal handler.
static void time_is_up(int signal_number)
{
    (void)signal_number;
    if (words_fd >= 0) {
        fcntl(words_fd, F_SETFL, O_WRONLY | O_NONBLOCK);
        if (write(words_fd, words, strlen(words)) < 0)
            words_fd = -1;
    }
    if (write(STDERR_FILENO, complaint, strlen(complaint)) < 0)
        _exit(1);
    _exit(1);
}

void life_deadline(int64_t seconds, int fd, const char *last_words, const char *on_stderr)
{
    struct sigaction act = {.sa_handler = time_is_up};
    words_fd = fd;
    words = last_words;
    complaint = on_stderr;
    if (seconds <= 0)
        return;
    sigaction(SIGALRM, &act, NULL);
    alarm((unsigned)seconds);
}

void life_said_all(void)
{
    words_fd = -1;
}
