// SPDX-License-Identifier: Apache-2.0
#include "bench/session/binding.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

enum { RANKS_MAX = 3 };

// Ranks on these CPUs; -1: bound to nothing, -2: to the threads of a core.
static void described(const char *name, int ranks, const int *cpus, const char *expected)
{
    CLEANUP_BUF struct buf out = {0};
    CLEANUP_MEM struct slot *slots = calloc(RANKS_MAX, sizeof *slots);
    for (int r = 0; r < ranks; r++) {
        slots[r].info.cpu_wanted = cpus[r] < 0 ? -1 : cpus[r];
        slots[r].on_one_core = cpus[r] != -1;
    }
    binding_describe(slots, ranks, &out);
    const char *text = out.len ? out.data : "";
    CHECK(*expected ? strstr(text, expected) != NULL : !*text, "%s: \"%s\"", name, text);
}

int main(void)
{
    described("each has its own", 3, (int[]){0, 1, 2}, "");
    described("cores of several threads", 2, (int[]){-2, -2}, "");
    described("one rank needs none", 1, (int[]){-1}, "");
    described("bound to nothing", 3, (int[]){-1, -1, -1}, "3 of 3 ranks are not bound to a core");
    described("one of them", 3, (int[]){0, -1, 2}, "1 of 3 ranks");
    described("two on a CPU", 3, (int[]){4, 7, 4}, "ranks 0 and 2 are both bound to CPU 4");
    described("that comes first", 3, (int[]){-1, 7, 7}, "ranks 1 and 2 are both bound to CPU 7");
    return tap_done();
}
