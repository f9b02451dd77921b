// SPDX-License-Identifier: Apache-2.0
// The list comes from our own planner. It is checked nevertheless, because a user may start
// numa_bench by hand.
#include "bench/ranks/bindings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bench/memory/affinity.h"
#include "bench/memory/cache.h"

static int bad_bind(const char *bind, struct err *err)
{
    return err_set(err, ERR_USAGE, "bind",
                   "--bind: must be CPU:NODE for each rank and no more, such as 0:0,8:1 (-1 for "
                   "anywhere); got \"%.80s\"",
                   bind);
}

// A number from -1 on, with what has to follow it.
static bool bindings_read_number(const char **at, char end, int *out)
{
    char *after;
    if (**at != '-' && !isdigit((unsigned char)**at))
        return false;
    errno = 0;
    long n = strtol(*at, &after, 10);
    if (errno || n < -1 || n > INT_MAX || *after != end)
        return false;
    *out = (int)n;
    *at = after + (end != '\0');
    return true;
}

int bindings_read(const char *list, struct binding *out, int n, struct err *err)
{
    const char *at = list;
    for (int i = 0; i < n; i++)
        if (!bindings_read_number(&at, ':', &out[i].cpu) ||
            !bindings_read_number(&at, i == n - 1 ? '\0' : ',', &out[i].node))
            return bad_bind(list, err);
    return 0;
}

static bool bindings_has(const int *list, int n, int what)
{
    for (int i = 0; i < n; i++)
        if (list[i] == what)
            return true;
    return false;
}

// Moves the first thread of each core to the front. -1: a core that the kernel does not name.
static int cores_first(int *cpus, int n, struct err *err)
{
    CLEANUP_MEM int *old = calloc((size_t)n, sizeof *old),
                    *cores = calloc((size_t)n, sizeof *cores);
    int found = 0;
    if (!old || !cores)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d CPUs", n);
    memcpy(old, cpus, (size_t)n * sizeof *old);
    for (int i = 0; i < n; i++) {
        int core = cache_cpu_place("", old[i]).core;
        if (core >= 0 && bindings_has(cores, found, core))
            continue;
        cores[found] = core;
        cpus[found++] = old[i];
        old[i] = -1;
    }
    for (int i = 0; i < n; i++)
        if (old[i] >= 0)
            cpus[found++] = old[i];
    return 0;
}

int bindings_spread(struct binding *out, int n, struct err *err)
{
    CLEANUP_MEM int *cpus = NULL;
    int n_cpus = affinity_cpus(&cpus, err);
    if (n_cpus < 0 || cores_first(cpus, n_cpus, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        out[i] = (struct binding){cpus[i % n_cpus], -1};
    return 0;
}
