// SPDX-License-Identifier: Apache-2.0
// From the options that all fleet commands share to the set of nodes.
#include "client/fleet/fleet.h"
#include "nodes/sources.h"

int fleet_nodes(const struct cli *c, struct nodeset *out, struct err *err)
{
    const struct fleet_settings *f = &c->fleet;
    return fleet_names(&(struct fleet_source){f->nodes, f->hostfile, f->from_slurm, f->idle,
                                              f->groups_file, f->group_command},
                       out, err);
}
