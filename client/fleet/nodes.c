// SPDX-License-Identifier: Apache-2.0
// From the options that all fleet commands share to the set of nodes.
#include <string.h>

#include "base/cleanup.h"
#include "client/fleet/fleet.h"
#include "nodes/sources.h"

bool fleet_nodes_named(const struct cli *c)
{
    const struct fleet_settings *f = &c->fleet;
    return *f->nodes || *f->hostfile || *f->from_slurm || f->idle;
}

// By enum fleet_use, of which each kind of use has the options of those before it too.
static const struct {
    const char *option;
    enum fleet_use use;
} of_collector[] = {{"fleet", FLEET_USES_COLLECTOR},     {"nodes", FLEET_USES_NODES},
                    {"hostfile", FLEET_USES_NODES},      {"from_slurm", FLEET_USES_NODES},
                    {"idle", FLEET_USES_NODES},          {"groups_file", FLEET_USES_NODES},
                    {"group_command", FLEET_USES_NODES}, {"at_once", FLEET_USES_AT_ONCE}};

static bool is_used(const char *option, enum fleet_use use)
{
    for (size_t i = 0; i < COUNT_OF(of_collector); i++)
        if (strcmp(option, of_collector[i].option) == 0)
            return use >= of_collector[i].use;
    return false;
}

// What a file or the environment sets is a default of all commands, and does not count here.
int fleet_only(const struct cli *c, enum fleet_use use, const char *command, struct err *err)
{
    for (int i = 0; i < fleet_settings.n; i++) {
        const struct param *p = &fleet_settings.params[i];
        char given[sizeof c->fleet.nodes], usual[sizeof given], option[PARAM_OPTION_ROOM];
        if (is_used(p->name, use))
            continue;
        param_get_text(p, &c->fleet, given, sizeof given);
        param_get_text(p, c->fleet_usual, usual, sizeof usual);
        if (strcmp(given, usual) != 0)
            return err_set(err, ERR_USAGE, "", "--%s has no effect on %s", param_option(p, option),
                           command);
    }
    return 0;
}

int fleet_nodes(const struct cli *c, struct nodeset *out, struct err *err)
{
    const struct fleet_settings *f = &c->fleet;
    return fleet_names(&(struct fleet_source){f->nodes, f->hostfile, f->from_slurm, f->idle,
                                              f->groups_file, f->group_command},
                       out, err);
}
