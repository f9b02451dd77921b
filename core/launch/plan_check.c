// SPDX-License-Identifier: Apache-2.0
// A plan that is being carried out, and the machine as it is by then.
#include "core/launch/plan_check.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/launch/planner.h"
#include "model/target.h"

static int check_cpu(const struct topology *now, int os, const char *member, struct err *err)
{
    const struct topo_cpu *cpu = topology_cpu(now, os);
    if (cpu && cpu->allowed)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, member, "CPU %d %s during the run", os,
                   cpu ? "was taken out of the cpuset of the daemon" : "went off-line");
}

static int plan_check_memory(const struct topology *now, int os, const char *member,
                             struct err *err)
{
    const struct topo_node *node = topology_node(now, os);
    bool has_some = node && node->memory_bytes > 0;
    if (os < 0 || (has_some && node->allowed))
        return 0;
    return err_set(err, ERR_UNAVAILABLE, member, "the memory of node %d %s during the run", os,
                   has_some ? "was taken out of the mems of the daemon" : "went off-line");
}

// Interleaved memory needs all of its nodes.
static int plan_check_target(const struct topology *now, int target, const char *member,
                             struct err *err)
{
    if (!target_is_interleaved(target))
        return plan_check_memory(now, target, member, err);
    for (int node = 0; node < TARGET_NODES; node++)
        if (target_has(target, node) && plan_check_memory(now, node, member, err) < 0)
            return -1;
    return 0;
}

int plan_check_there(const struct plan *p, const struct topology *now, struct err *err)
{
    CLEANUP_MEM int *load = NULL;
    int n = 0;
    for (int i = 0; i < p->n_ranks; i++)
        if (check_cpu(now, p->ranks[i].cpu, "cpus", err) < 0 ||
            plan_check_target(now, p->ranks[i].mem_node, "numa", err) < 0)
            return -1;
    for (int i = 0; i < p->n_targets; i++)
        if (plan_check_target(now, p->targets[i], "targets", err) < 0)
            return -1;
    if (*p->load_cpus &&
        str_to_ids(p->load_cpus, true, TOPOLOGY_CPUS_MAX, "load_cpus", &load, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (check_cpu(now, load[i], "load_cpus", err) < 0)
            return -1;
    return 0;
}
