// SPDX-License-Identifier: Apache-2.0
// How much memory each process of the collector may take that reads what others wrote. Each is
// begun with a store or a source that it cannot use, and looks at its limit when it has ended.
#include "tests/unit/tap.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/os/child.h"
#include "fleet/collect/ingest_main.h"
#include "fleet/collect/ingest_wire.h"
#include "fleet/collect/judged_wire.h"
#include "fleet/collect/naming_main.h"
#include "fleet/judging_main.h"
#include "fleet/reading_main.h"
#include "http/server/worker_process.h"

enum { WORDS_MAX = 9, FD_MAX = JUDGING_STORE_FD };
#define PROGRAM "numaprobe-fleetd"

static const struct process {
    int (*main)(int argc, char **argv);
    int store_fd; // where it finds the store; 0: it uses none
    size_t memory;
    int argc;
    const char *argv[WORDS_MAX];
} processes[] = {
    {ingest_main, INGEST_STORE_FD, INGEST_MEMORY, 5, {PROGRAM, "--ingest", "0", "0", "0"}},
    {reading_main, READING_STORE_FD, WORKER_MEMORY, 3, {PROGRAM, "--work", ""}},
    {judging_main, JUDGING_STORE_FD, WORKER_MEMORY, 3, {PROGRAM, "--judge", "0"}},
    {naming_main, 0, NAMING_MEMORY, WORDS_MAX, {PROGRAM, "--naming", "", "", "", "", "", "", ""}},
};

// Bytes of this program's address space.
static rlim_t space_now(void)
{
    char text[200];
    unsigned long long pages = 0;
    if (file_read_text("/proc/self/statm", text, sizeof text) < 0 ||
        sscanf(text, "%llu", &pages) != 1)
        return 0;
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

// In the child. Nothing that the process writes gets anywhere. Exit status: 0 if it is limited.
static int process_run(const struct process *p)
{
    static char words[WORDS_MAX][64];
    char *argv[WORDS_MAX + 1] = {NULL};
    struct rlimit l;
    struct err err;
    int nothing = open("/dev/null", O_RDWR), where = child_text("/nowhere/store", &err);
    rlim_t before = space_now();
    for (int fd = STDOUT_FILENO; fd <= FD_MAX; fd++)
        if (fd != nothing && fd != where)
            dup2(nothing, fd);
    dup2(where, STDIN_FILENO); // a source that is none
    if (p->store_fd)
        dup2(where, p->store_fd);
    for (int i = 0; i < p->argc; i++) {
        snprintf(words[i], sizeof words[i], "%s", p->argv[i]);
        argv[i] = words[i];
    }
    p->main(p->argc, argv);
    if (!before || getrlimit(RLIMIT_AS, &l) < 0 || l.rlim_cur != l.rlim_max)
        return 1;
    return l.rlim_cur < before + p->memory || l.rlim_cur > before + p->memory + p->memory / 2;
}

int main(void)
{
    for (size_t i = 0; i < COUNT_OF(processes); i++) {
        const struct process *p = &processes[i];
        int status = -1;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            _exit(process_run(p));
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
              "%s has %zu MiB at most (%d)", p->argv[1], p->memory >> 20, status);
    }
    return tap_done();
}
