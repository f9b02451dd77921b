// SPDX-License-Identifier: Apache-2.0
// The commands of the family `numaprobe fleet`, one file each: cmd_fleet_<command>.c.
#pragma once
#include "client/commands.h"
#include "model/nodeset.h"

int cmd_fleet_run(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_status(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_coverage(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_outliers(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_ranking(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_compare(struct cli *c, const struct invocation *i, struct err *err);
int fleet_compare_sides(struct cli *c, struct err *err); // without METRIC
int cmd_fleet_history(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_effect(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_demo(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_reference(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_campaign(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_findings(struct cli *c, const struct invocation *i, struct err *err);
int cmd_fleet_drain(struct cli *c, const struct invocation *i, struct err *err);

extern const struct param_table fleet_run_options, fleet_ranking_options, fleet_compare_options;
extern const struct param_table fleet_effect_options, fleet_demo_options, fleet_campaign_options;
extern const struct param_table fleet_findings_options;

// Do the options name nodes?
bool fleet_nodes_named(const struct cli *c);
// Which of the options of all fleet commands one for the collector alone reads: its address; also
// those that name nodes; also --at-once.
enum fleet_use { FLEET_USES_COLLECTOR, FLEET_USES_NODES, FLEET_USES_AT_ONCE };
// Refuses the others of the command line.
int fleet_only(const struct cli *c, enum fleet_use use, const char *command, struct err *err);
// Refuses options of the command line that are without effect on what the others name: the runs of
// a daemon (--stored), those of the collector (--fleet), or the nodes, at addresses (--fleet-url)
// or through ssh.
int fleet_check_source(const struct cli *c, struct err *err);
// Likewise for a command that contacts the nodes, whatever a file says of --stored and --fleet.
int fleet_check_nodes_only(const struct cli *c, const char *command, struct err *err);
// The nodes that the options of every fleet command name. ERR_USAGE: none do, or the set is empty.
int fleet_nodes(const struct cli *c, struct nodeset *out, struct err *err);
