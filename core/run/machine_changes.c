// SPDX-License-Identifier: Apache-2.0
// The plan was made for one machine; after each reading the plan is checked against the new one.
// What the run uses and has lost stops it, what else changed is a condition.
#include "core/run/machine_changes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "core/launch/plan_check.h"
#include "core/launch/planner.h"
#include "model/target.h"

const struct machine *job_machine(const struct job *j, const struct machine *now)
{
    return j->planned.topology.cpus ? &j->planned : now;
}

static int64_t memory_of(const struct topology *t, int node)
{
    const struct topo_node *of = topology_node(t, node);
    return of ? of->memory_bytes : 0;
}

static bool uses(const struct plan *p, int node)
{
    bool found = false;
    for (int i = 0; i < p->n_ranks; i++)
        found |= target_has(p->ranks[i].mem_node, node);
    for (int i = 0; i < p->n_targets; i++)
        found |= target_has(p->targets[i], node);
    return found;
}

// A part of a node's memory that goes takes along, to another node, what lay there.
static void note_memory(struct job *j, const struct topology *was, const struct topology *now)
{
    char what[80];
    for (int i = 0; i < was->n_nodes; i++) {
        int os = was->nodes[i].os;
        snprintf(what, sizeof what, "part of the memory of node %d was taken away", os);
        if (memory_of(now, os) < was->nodes[i].memory_bytes && uses(&j->plan, os))
            job_disturbed(j, what);
    }
}

void job_machine_changed(struct job *j, struct machine *was, const struct machine *now)
{
    struct err why = {0};
    bool there = plan_check_there(&j->plan, &now->topology, &why) == 0;
    if (there)
        note_memory(j, &was->topology, &now->topology);
    if (!j->planned.topology.cpus) { // the first change
        j->planned = *was;
        *was = (struct machine){0};
    }
    if (there)
        return;
    log_event(LOG_LVL_WARN, "run.machine_gone", "id=%" PRId64 " text=\"%s\"", j->id,
              log_quote(why.text).text);
    if (j->running)
        job_stop(j, &why);
    else if (j->error.code == ERR_NONE)
        j->error = why;
}
