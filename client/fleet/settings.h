// SPDX-License-Identifier: Apache-2.0
// Which nodes a fleet command concerns, how they are reached, and how much at once. These options
// are settings too: they may stand in the files and in the environment.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/param.h"

enum {
    FLEET_SET_ROOM = 64 << 10, // a set of nodes as text: NODESET_TEXT_MAX
    FLEET_AT_ONCE_MAX = 1024,  // a descriptor or two each: below the usual limit of 4,096
};

struct fleet_settings {
    char nodes[FLEET_SET_ROOM]; // "n[1-100]"
    char hostfile[256];
    char from_slurm[64]; // a partition; "*": every one; "": not from Slurm
    bool idle;
    char groups_file[256], group_command[256];
    char fleet_url[256];  // "https://%h:7443"; "": by ssh
    char ssh[256];        // the program
    char hosts_file[256]; // "": none
    int64_t at_once;
    int64_t node_timeout_s;
    bool partial_ok;
    char collector[256]; // address of the fleet's collector; "": none
    bool stored;         // what one daemon has stored, instead of the nodes
};

extern const struct param_table fleet_settings; // of struct fleet_settings
