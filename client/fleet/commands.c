// SPDX-License-Identifier: Apache-2.0
// The table of `numaprobe fleet`: a part of the table of commands, with the same columns.
#include "client/fleet/fleet.h"

const struct command fleet_commands[] = {
    {.name = "fleet run",
     .operands = "[BENCHMARK]",
     .summary = "measure many nodes, and print what the fleet does",
     .about = "Each node measures itself; at most --at-once nodes do at the same time. A busy node "
              "is tried again for as long as --wait-for-node allows. The table has the median over "
              "nodes, their spread, and the lowest and highest node. The results are stored on the "
              "nodes. After Ctrl-C no further run starts; a second Ctrl-C ends the command. Runs "
              "that have started continue on their nodes, unless --cancel-on-interrupt is given.",
     .examples = "numaprobe fleet run -w 'node[001-100]' --quick --size=1-64\n"
                 "numaprobe fleet run bandwidth --from-slurm --idle --at-once=16\n"
                 "numaprobe fleet run -w @rack3 --dry-run",
     .options = &fleet_run_options,
     .of_fleet = true,
     .has_spec = true,
     .n_max = 1,
     .run = cmd_fleet_run},
    {0},
};
