// SPDX-License-Identifier: Apache-2.0
// From the options that all fleet commands share to the set of nodes.
#include <stdio.h>
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
static bool fleet_option_given(const struct cli *c, const struct param *p)
{
    char given[sizeof c->fleet.nodes], usual[sizeof given];
    if (!c->fleet_usual) // of the demo, which sets all of them itself
        return false;
    param_get_text(p, &c->fleet, given, sizeof given);
    param_get_text(p, c->fleet_usual, usual, sizeof usual);
    return strcmp(given, usual) != 0;
}

int fleet_only(const struct cli *c, enum fleet_use use, const char *command, struct err *err)
{
    for (int i = 0; i < fleet_settings.n; i++) {
        const struct param *p = &fleet_settings.params[i];
        char option[PARAM_OPTION_ROOM];
        if (!is_used(p->name, use) && fleet_option_given(c, p))
            return err_set(err, ERR_USAGE, "", "--%s has no effect on %s", param_option(p, option),
                           command);
    }
    return 0;
}

static int refuse_given(const struct cli *c, const char *const *names, const char *where,
                        struct err *err)
{
    char option[PARAM_OPTION_ROOM];
    for (; *names; names++) {
        const struct param *p = param_find(&fleet_settings, *names);
        if (p && fleet_option_given(c, p))
            return err_set(err, ERR_USAGE, "", "--%s has no effect %s", param_option(p, option),
                           where);
    }
    return 0;
}

static int check_addresses(const struct cli *c, struct err *err)
{
    static const char *const of_ssh[] = {"ssh", NULL}, *const of_addresses[] = {"hosts_file", NULL};
    return *c->fleet.fleet_url
               ? refuse_given(c, of_ssh,
                              "with --fleet-url; --fleet-url= contacts the nodes through ssh", err)
               : refuse_given(c, of_addresses, "without --fleet-url", err);
}

int fleet_check_source(const struct cli *c, struct err *err)
{
    static const char *const of_nodes[] = {"at_once", "node_timeout", "fleet_url",
                                           "ssh",     "hosts_file",   NULL};
    const struct fleet_settings *f = &c->fleet;
    if (f->stored && *f->collector &&
        fleet_option_given(c, param_find(&fleet_settings, "stored")) &&
        fleet_option_given(c, param_find(&fleet_settings, "fleet")))
        return err_set(err, ERR_USAGE, "",
                       "--stored and --fleet exclude each other: --stored judges what the daemon "
                       "of --url has stored, --fleet what the collector has");
    return f->stored ? refuse_given(c, of_nodes, "with --stored", err)
           : *f->collector
               ? refuse_given(c, of_nodes, "with --fleet=URL; --fleet= contacts the nodes", err)
               : check_addresses(c, err);
}

int fleet_check_nodes_only(const struct cli *c, const char *command, struct err *err)
{
    static const char *const of_others[] = {"stored", NULL};
    char where[40];
    snprintf(where, sizeof where, "on %s", command);
    if (*c->fleet.collector && fleet_option_given(c, param_find(&fleet_settings, "fleet")))
        return err_set(err, ERR_USAGE, "", "--fleet has no effect %s", where);
    return refuse_given(c, of_others, where, err) < 0 ? -1 : check_addresses(c, err);
}

int fleet_nodes(const struct cli *c, struct nodeset *out, struct err *err)
{
    const struct fleet_settings *f = &c->fleet;
    return fleet_names(&(struct fleet_source){f->nodes, f->hostfile, f->from_slurm, f->idle,
                                              f->groups_file, f->group_command},
                       out, err);
}
