// SPDX-License-Identifier: Apache-2.0
// Preloaded into numa_bench, it has pages that move: who asks for the node of the same pages again
// hears of another one. Each question is a line of the file MOVED_PAGES: process, first page.
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ASKED_MAX = 4096, ELSEWHERE = 7 };

static void *asked[ASKED_MAX];
static int n_asked;

static int asked_before(void *page)
{
    for (int i = 0; i < n_asked; i++)
        if (asked[i] == page)
            return 1;
    if (n_asked < ASKED_MAX)
        asked[n_asked++] = page;
    return 0;
}

static void log_question(void *page)
{
    char line[64];
    const char *path = getenv("MOVED_PAGES");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    int n = snprintf(line, sizeof line, "%d %p\n", (int)getpid(), page);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
}

long move_pages(int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags);
long move_pages(int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags)
{
    long outcome = syscall(SYS_move_pages, pid, n, pages, nodes, status, flags);
    if (nodes || outcome < 0 || !n)
        return outcome;
    log_question(pages[0]);
    if (asked_before(pages[0]))
        for (unsigned long i = 0; i < n; i++)
            status[i] = ELSEWHERE;
    return outcome;
}
