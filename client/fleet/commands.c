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
              "nodes. After Ctrl-C no further run starts; a second Ctrl-C, SIGTERM or SIGHUP "
              "ends the command. Runs that have started continue on their nodes, unless "
              "--cancel-on-interrupt is given.",
     .examples = "numaprobe fleet run -w 'node[001-100]' --quick --size=1-64\n"
                 "numaprobe fleet run bandwidth --from-slurm --idle --at-once=16\n"
                 "numaprobe fleet run -w @rack3 --dry-run",
     .options = &fleet_run_options,
     .of_fleet = true,
     .has_spec = true,
     .n_max = 1,
     .run = cmd_fleet_run},
    {.name = "fleet status",
     .operands = "",
     .summary = "list classes of nodes: how many respond and have enough runs",
     .about =
         "A class is a kind of machine: nodes with the same hardware. FRESH nodes have a run of "
         "the last 14 days. A set-up is firmware, kernel and settings. Lines below the table name "
         "nodes that are not as usual, and what is wrong with the collector itself.",
     .examples = "numaprobe fleet status -w @compute\n"
                 "numaprobe fleet status --stored -o json",
     .of_fleet = true,
     .pages = true,
     .run = cmd_fleet_status},
    {.name = "fleet coverage",
     .operands = "",
     .summary = "list how much of the fleet was measured, and how old that is",
     .about =
         "Per class of hardware: the nodes, those that are up, those with a run of the last 14 "
         "days (FRESH) and with enough runs to be judged. STALE nodes have no run of the last 14 "
         "days. MEDIAN DAYS and OLDEST are ages of the nodes' newest runs. Nodes whose class is "
         "not known, because no run of them is known, are the class 'none'. The lines below the "
         "table name the stale nodes by age.",
     .examples = "numaprobe fleet coverage -w @compute\n"
                 "numaprobe fleet coverage --fleet=https://fleet:7790 -o csv",
     .of_fleet = true,
     .pages = true,
     .run = cmd_fleet_coverage},
    {.name = "fleet outliers",
     .operands = "",
     .summary = "find nodes slower than their peers, or than they were",
     .about =
         "Judges each node by its newest five runs of each benchmark: against the nodes of its "
         "class, within hidden kinds, and against its own past. A grade takes all of its metrics "
         "into account and limits false findings over the whole fleet: sure 0.1 %, suspect 5 %. "
         "The lines below the table name facts of its set-up that most of its peers do not share. "
         "Nodes that are slow together are one group. The exit status is 7 if there is a finding.",
     .examples = "numaprobe fleet outliers -w 'node[001-100]'\n"
                 "numaprobe fleet outliers --stored\n"
                 "numaprobe fleet outliers -w @rack3 -o json",
     .of_fleet = true,
     .pages = true,
     .run = cmd_fleet_outliers},
    {.name = "fleet ranking",
     .operands = "METRIC",
     .summary = "list the nodes of a class by a metric, the worst first",
     .about = "The value is the median of a node's newest five runs, with its 95 % interval. The "
              "difference is that to the median of the nodes.",
     .examples = "numaprobe fleet ranking latency.local.dram.median_ns -w @compute\n"
                 "numaprobe fleet ranking bandwidth.triad.peak.gbps --stored -o csv",
     .options = &fleet_ranking_options,
     .of_fleet = true,
     .pages = true,
     .n_min = 1,
     .n_max = 1,
     .run = cmd_fleet_ranking},
    {.name = "fleet compare",
     .operands = "[METRIC]",
     .summary = "compare nodes, or groups of nodes that differ in a fact",
     .about = "Without METRIC, two to four nodes are side by side: the facts in which they differ, "
              "and each metric with the median of the newest five runs and its 95 % interval. Of "
              "two nodes also the difference of the second from the first: it is slower or faster "
              "if the difference is at least 1 % and q is at most 5 %, and both have three runs. "
              "With METRIC, this metric of all nodes. With --group-by, nodes with the same value "
              "of the fact are a group. Each group is compared with the largest one. A group is "
              "slower or faster by the same limits. The exit status is 7 if the second node or a "
              "group is slower.",
     .examples = "numaprobe fleet compare -w node17,node18\n"
                 "numaprobe fleet compare latency.local.dram.median_ns -w node17,node18\n"
                 "numaprobe fleet compare bandwidth.triad.peak.gbps -w @all --group-by=microcode",
     .options = &fleet_compare_options,
     .of_fleet = true,
     .pages = true,
     .n_max = 1,
     .run = cmd_fleet_compare},
    {.name = "fleet history",
     .operands = "NODE METRIC",
     .summary = "show a node's metric over time inside the band of its class",
     .about =
         "--nodes names the node and its peers. The band is that of the nodes measured on the "
         "same day; it needs eight. A change is one of the node alone: what all of its class do "
         "is taken off. It has the newest 25 runs of each benchmark of a node: a collector has all "
         "of them, on its page of the node and in GET /v1/fleet/history.",
     .examples = "numaprobe fleet history n042 latency.dram.median_ns -w 'n[001-100]'\n"
                 "numaprobe fleet history n042 latency.dram.median_ns --stored",
     .of_fleet = true,
     .pages = true,
     .n_min = 2,
     .n_max = 2,
     .run = cmd_fleet_history},
    {.name = "fleet effect",
     .operands = "FACT",
     .summary = "measure what a rollout of a firmware, kernel or setting did",
     .about =
         "Compares nodes before and after the fact changed, beside nodes of their class that did "
         "not change, over the same days. Facts are those of 'numaprobe node'. Facts that "
         "changed together are named. Fewer than 20 untouched nodes allow no verdict. The exit "
         "status is 7 if a metric is worse.",
     .examples = "numaprobe fleet effect microcode -w @compute\n"
                 "numaprobe fleet effect kernel --stored --to=6.1.0-28-amd64",
     .options = &fleet_effect_options,
     .of_fleet = true,
     .pages = true,
     .n_min = 1,
     .n_max = 1,
     .run = cmd_fleet_effect},
    {.name = "fleet reference",
     .operands = "",
     .summary = "write what a class of hardware does, to check nodes by",
     .about =
         "Prints a JSON document on standard output: per class and metric the median of the nodes, "
         "how much nodes and runs differ, and the number of nodes. A class needs three nodes. "
         "'numaprobe check --reference=FILE' judges a node by it, on any machine of that class.",
     .examples = "numaprobe fleet reference -w @compute > reference.json\n"
                 "numaprobe check --reference=reference.json",
     .of_fleet = true,
     .run = cmd_fleet_reference},
    {.name = "fleet demo",
     .operands = "",
     .summary = "show the fleet commands on simulated nodes of this machine",
     .about =
         "Starts 100 simulated nodes behind real sockets on 127.0.0.0/8, of which one is slow, and "
         "finds it. Nothing is installed or measured, and nothing is left behind. With --keep the "
         "nodes stay for other commands.",
     .examples = "numaprobe fleet demo\n"
                 "numaprobe fleet demo --virtual-nodes=2000 --bad=5 --keep",
     .options = &fleet_demo_options,
     .run = cmd_fleet_demo},
    {.name = "fleet drain",
     .operands = "",
     .summary = "print the scontrol lines that drain slow nodes",
     .about =
         "Executes nothing. Prints a line per node with a sure finding, until 2 % of a class are "
         "drained by numaprobe, and for at least one node. A node with a reason of another origin "
         "is left alone. Comments say what was left out, and which drained nodes are like their "
         "peers again. Reasons are those of sinfo. Where it is not installed, the collector of "
         "--fleet has them, if a source of it is Slurm.",
     .examples = "numaprobe fleet drain --from-slurm\n"
                 "numaprobe fleet drain -w @compute | sh",
     .of_fleet = true,
     .run = cmd_fleet_drain},
    {.name = "fleet campaign",
     .operands = "start [BENCHMARK] | list | show ID | script ID | cancel ID",
     .summary = "let the collector probe the fleet, a few nodes at a time",
     .about = "The collector (numaprobe-fleetd) requests the run from one node after the other, "
              "within --at-once, --window and --node-minutes, and never disturbs a job. Nodes "
              "whose newest "
              "run is oldest come first. Without --nodes all nodes of the collector are probed. "
              "Starting and cancelling needs the scope run at the collector.",
     .examples = "numaprobe fleet campaign start --quick --fleet=https://fleet:7790 --dry-run\n"
                 "numaprobe fleet campaign start --name=weekly --each=7d --at-once-each=rack:2\n"
                 "numaprobe fleet campaign list\n"
                 "numaprobe fleet campaign script 3 | sh\n"
                 "numaprobe fleet campaign cancel 3",
     .options = &fleet_campaign_options,
     .of_fleet = true,
     .pages = true,
     .has_spec = true,
     .spec_verb = "start",
     .n_min = 1,
     .n_max = 2,
     .run = cmd_fleet_campaign},
    {.name = "fleet findings",
     .operands = "[acknowledge ID | fix ID | reopen ID]",
     .summary = "list what is wrong with the fleet, and say what is done",
     .about =
         "The collector (numaprobe-fleetd) keeps what is wrong as a list, and closes by itself "
         "what it does not find any more. 'acknowledge' says that a person knows of it, 'fix' "
         "that it was repaired, 'reopen' takes that back. These need the scope run at the "
         "collector.",
     .examples = "numaprobe fleet findings --fleet=https://fleet:7790\n"
                 "numaprobe fleet findings --what=outlier --where='n[001-040]' -o csv\n"
                 "numaprobe fleet findings acknowledge 17 --note='DIMM ordered'\n"
                 "numaprobe fleet findings fix 17",
     .options = &fleet_findings_options,
     .of_fleet = true,
     .pages = true,
     .n_max = 2,
     .run = cmd_fleet_findings},
    {0},
};
