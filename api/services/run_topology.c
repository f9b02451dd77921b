// SPDX-License-Identifier: Apache-2.0
// Stored topologies that were read last are kept, because reading one takes a process of its
// own.
#include "api/services/run_topology.h"

#include <stdio.h>
#include <string.h>

#include "core/results/stored_run.h"

// hwloc reads a stored topology in a process of its own, 50 ms for a large machine: those read last
// are kept, and which of them it cannot read, or not in time. A pair of runs needs two at once.
enum { TOPOLOGIES_KEPT = 4 };
static struct {
    char hash[65];
    bool readable;
    struct topology t;
} topologies[TOPOLOGIES_KEPT];
static int topologies_next;

int run_topology(const struct api_services *api, const struct run *run, const struct topology **out,
                 struct err *err)
{
    *out = NULL;
    if (!*run->topology_hash)
        return 0;
    for (int i = 0; i < TOPOLOGIES_KEPT; i++)
        if (strcmp(topologies[i].hash, run->topology_hash) == 0) {
            *out = topologies[i].readable ? &topologies[i].t : NULL;
            return 0;
        }
    struct topology t = {0};
    const struct topology *found;
    if (stored_run_topology(api->store, api->machine, run->id, &t, &found, err) < 0)
        return -1;
    *out = found;
    if (found && found != &t) // this machine's
        return 0;
    int at = topologies_next;
    topologies_next = (topologies_next + 1) % TOPOLOGIES_KEPT;
    topology_fini(&topologies[at].t);
    snprintf(topologies[at].hash, sizeof topologies[at].hash, "%s", run->topology_hash);
    topologies[at].readable = found != NULL;
    topologies[at].t = t;
    *out = found ? &topologies[at].t : NULL;
    return 0;
}
