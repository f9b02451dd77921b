// SPDX-License-Identifier: Apache-2.0
// Processes below this one: killed, and gone.
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/os/processes.h"
#include "tests/unit/tap.h"

enum { CHILD_BYTES = 256 << 20 }; // to free them takes a while, and meanwhile it is no zombie

static void child_of_much_memory(int ready)
{
    char *p = mmap(NULL, CHILD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        memset(p, 1, CHILD_BYTES);
    if (write(ready, "x", 1) == 1)
        pause();
    _exit(0);
}

// A child, and one of its own.
static bool start_children(void)
{
    int ready[2];
    char byte;
    if (pipe(ready) < 0)
        return false;
    if (fork() == 0) {
        if (fork() == 0)
            child_of_much_memory(ready[1]);
        child_of_much_memory(ready[1]);
    }
    close(ready[1]);
    bool both = read(ready[0], &byte, 1) == 1 && read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    return both;
}

static void test_end_below(void)
{
    CHECK(start_children(), "a child and a grandchild");
    CHECK_INT(proc_kill_below(0), 2, "both are found");
    CHECK_INT(proc_end_below(60000), 2, "both are killed");
    CHECK_INT(proc_kill_below(0), 0, "and have ended");
    CHECK_INT(proc_end_below(0), 0, "then there are none");
    while (wait(NULL) > 0)
        ;
}

int main(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    test_end_below();
    return tap_done();
}
