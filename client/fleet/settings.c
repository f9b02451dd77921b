// SPDX-License-Identifier: Apache-2.0
// One table for all fleet commands: a user who knows one knows the others.
#include "client/fleet/settings.h"

#include "base/cleanup.h"
#include "nodes/sources.h"

#define TEXT(member)                                                                               \
    .kind = PARAM_TEXT, .offset = offsetof(struct fleet_settings, member),                         \
    .room = sizeof((struct fleet_settings *)0)->member

static const struct param params[] = {
    {.name = "nodes",
     TEXT(nodes),
     .letter = 'w',
     .joins = ',',
     .filled = true,
     .def = "",
     .metavar = "SET",
     .help = "The nodes: n[001-100,120] or @group; alone also ^file, or - for standard input. ',' "
             "joins sets, '!' leaves nodes out, '&' keeps the common ones. May be repeated. Short "
             "form: -w."},
    {.name = "hostfile",
     TEXT(hostfile),
     .filled = true,
     .def = "",
     .metavar = "FILE",
     .help = "The nodes: a set per line of this file."},
    {.name = "from_slurm",
     TEXT(from_slurm),
     .filled = true,
     .def = "",
     .metavar = "PARTITION",
     .implied = "*",
     .help = "The nodes: those that sinfo lists, of this partition or of all."},
    {.name = "idle",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct fleet_settings, idle),
     .def = "false",
     .help = "Only nodes that Slurm lists as idle."},
    {.name = "stored",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct fleet_settings, stored),
     .def = "false",
     .help =
         "Judge the runs of all nodes that one daemon has stored, such as imports. No other node "
         "is contacted; --nodes narrows them."},
    {.name = "fleet",
     TEXT(collector),
     .def = "",
     .metavar = "URL",
     .help =
         "Judge what the fleet's collector (numaprobe-fleetd) has stored. No node is contacted; "
         "--nodes narrows them. The address, the token and TLS are as for --url. A run contacts "
         "the "
         "nodes, whatever is configured; --fleet= does so for the other commands."},
    {.name = "at_once",
     .kind = PARAM_INT,
     .offset = offsetof(struct fleet_settings, at_once),
     .min = 1,
     .max = FLEET_AT_ONCE_MAX,
     .def = "64",
     .help = "Maximum number of nodes in progress at the same time. Of campaign start: of probes; "
             "default there: 16."},
    {.name = "node_timeout",
     .kind = PARAM_INT,
     .offset = offsetof(struct fleet_settings, node_timeout_s),
     .min = 1,
     .max = 3600,
     .def = "20",
     .unit = "s",
     .help = "Time limit of one request to a node, with its connection. A node that sends nothing "
             "for a quarter of it, and at least for 5 s, has failed too."},
    {.name = "partial_ok",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct fleet_settings, partial_ok),
     .def = "false",
     .help = "Nodes that fail do not change the exit status. Default: 9 if some fail."},
    {.name = "fleet_url",
     TEXT(fleet_url),
     .def = "",
     .metavar = "PATTERN",
     .help = "Address of each node's daemon; %h is the node's name: https://%h:7443. Default: its "
             "Unix socket through ssh."},
    {.name = "ssh",
     TEXT(ssh),
     .filled = true,
     .def = "ssh",
     .metavar = "PROGRAM",
     .help = "The ssh program. Without fleet_url each node's socket is forwarded by it."},
    {.name = "hosts_file",
     TEXT(hosts_file),
     .def = "",
     .metavar = "FILE",
     .help = "Addresses of nodes that DNS does not know, in the format of /etc/hosts."},
    {.name = "groups_file",
     TEXT(groups_file),
     .def = "/etc/numaprobe/groups",
     .metavar = "FILE",
     .help = "Groups of nodes: a line \"name: set\" each."},
    {.name = "group_command",
     TEXT(group_command),
     .check = source_command_check,
     .def = "nodeset -e @%s",
     .metavar = "COMMAND",
     .help =
         "Program that prints the nodes of a group which the file does not have; each %s is "
         "the group's name. It is started without a shell. A group for which it prints no nodes "
         "is an error, unless its name has a source: @st:down."},
};
const struct param_table fleet_settings = {params, COUNT_OF(params)};
