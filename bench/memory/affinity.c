// SPDX-License-Identifier: Apache-2.0
// Where the kernel refuses a CPU, the error lists those that it would allow: they are found by
// asking for all, and what was set before is set again.
#include "bench/memory/affinity.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

enum {
    CPUS_MOST = 4096, // CPUs the kernel may be built for
};

int affinity_cpus(int **cpus, struct err *err)
{
    int n = 0;
    cpu_set_t *set = CPU_ALLOC(CPUS_MOST);
    size_t size = CPU_ALLOC_SIZE(CPUS_MOST);
    *cpus = calloc(CPUS_MOST, sizeof **cpus);
    if (!set || !*cpus)
        n = err_set(err, ERR_NO_MEMORY, "", "no memory for a CPU set");
    else if (sched_getaffinity(0, size, set) < 0)
        n = err_sys(err, "cannot read the CPUs of this process");
    for (int cpu = 0; n >= 0 && cpu < CPUS_MOST; cpu++)
        if (CPU_ISSET_S(cpu, size, set))
            (*cpus)[n++] = cpu;
    CPU_FREE(set);
    return n;
}

// All that this process may be bound to: the kernel takes those of the cpuset from any mask.
static int cpus_possible(int **cpus)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MOST), *before = CPU_ALLOC(CPUS_MOST);
    size_t size = CPU_ALLOC_SIZE(CPUS_MOST);
    bool known = set && before && sched_getaffinity(0, size, before) == 0;
    if (known) {
        memset(set, 0xff, size);
        sched_setaffinity(0, size, set);
    }
    int n = affinity_cpus(cpus, NULL);
    if (known)
        sched_setaffinity(0, size, before);
    CPU_FREE(set);
    CPU_FREE(before);
    return n < 0 ? 0 : n;
}

int affinity_refuse(int cpu, const char *member, const char *option, struct err *err)
{
    CLEANUP_MEM int *cpus = NULL;
    char list[100] = "not known";
    int n = cpus_possible(&cpus);
    if (n)
        str_from_ids(cpus, n, list, sizeof list);
    return err_set(err, ERR_USAGE, member,
                   "%sCPU %d is not there, offline or outside the cpuset; CPUs are %s", option, cpu,
                   list);
}

int affinity_set(int cpu, struct err *err)
{
    if (cpu >= CPUS_MOST)
        return affinity_refuse(cpu, "bind", "--bind: ", err);
    cpu_set_t *set = CPU_ALLOC(CPUS_MOST);
    size_t size = CPU_ALLOC_SIZE(CPUS_MOST);
    if (!set)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a CPU set");
    CPU_ZERO_S(size, set);
    CPU_SET_S(cpu, size, set);
    int refused = sched_setaffinity(0, size, set);
    CPU_FREE(set);
    return refused ? affinity_refuse(cpu, "bind", "--bind: ", err) : 0;
}
