// SPDX-License-Identifier: Apache-2.0
// The table of commands. It stands above the functions that it lists: none of them includes it,
// they get it with the call.
#include "client/commands.h"

const struct command commands[] = {
    {.name = "run",
     .operands = "[BENCHMARK]",
     .summary = "measure the node's memory and print the result",
     .about = "The default benchmark is latency. The plan is printed before the run starts, and a "
              "progress bar while it lasts. Ctrl-C, SIGTERM and SIGHUP cancel the run.",
     .examples = "numaprobe run --quick\n"
                 "numaprobe run matrix\n"
                 "numaprobe run scan --budget=60s\n"
                 "numaprobe run scan --quick --deviation=3\n"
                 "numaprobe run latency --size=1-1024 --mode=both --note=\"after BIOS update\"",
     .options = &run_options,
     .has_spec = true,
     .n_max = 1,
     .run = cmd_run},
    {.name = "availability",
     .alias = "avail",
     .operands = "[BENCHMARK]",
     .summary = "check whether a run would be admitted now",
     .about =
         "Takes the options of run. Prints each condition that blocks a run, with the measured "
         "value and the limit. The exit status is 6 if the run would be refused.",
     .examples = "numaprobe availability\n"
                 "numaprobe availability matrix --ranks=one-per-numa",
     .has_spec = true,
     .n_max = 1,
     .run = cmd_availability},
    {.name = "runs",
     .operands = "",
     .summary = "list runs, newest first",
     .about = "Lists the stored runs of all nodes. An imported run is shown with the time of its "
              "measurement.",
     .examples = "numaprobe runs --since=2d\n"
                 "numaprobe runs --benchmark=matrix --limit=5 -o json",
     .options = &runs_options,
     .pages = true,
     .run = cmd_runs},
    {.name = "show",
     .operands = "[ID|last]",
     .summary = "show a run: parameters, placement, precision and results",
     .about = "\"last\" is the newest run that this node measured, in any state; imports do not "
              "count. last@NODE is the newest run of another node. The quality line sums up what "
              "affects the numbers; --notes prints all of it.",
     .examples = "numaprobe show last\n"
                 "numaprobe show 17 --notes\n"
                 "numaprobe show last -o csv",
     .options = &show_options,
     .pages = true,
     .n_max = 1,
     .run = cmd_show},
    {.name = "matrix",
     .operands = "[ID|last]",
     .summary = "print the numbers of a run for programs (-o json, ndjson, csv)",
     .examples = "numaprobe matrix last -o csv\n"
                 "numaprobe matrix 17 -o json",
     .n_max = 1,
     .run = cmd_matrix},
    {.name = "plot",
     .operands = "[ID|last|topo] | history METRIC | compare ID ID",
     .summary = "draw a run, a metric over time, two runs or the machine",
     .about =
         "Draws characters on a terminal, and SVG into a file or a pipe. On a terminal the "
         "plot uses Unicode if LC_ALL, LC_CTYPE or LANG names UTF-8. history marks each change "
         "and what changed on the machine. compare draws the difference of each cell. "
         "topo draws packages, nodes, caches and cores with their latency and bandwidth, as SVG.",
     .examples = "numaprobe plot last\n"
                 "numaprobe plot last --file=latency.svg\n"
                 "numaprobe plot history latency.local.dram.median_ns --since=4w\n"
                 "numaprobe plot compare 17 18 --file=difference.svg\n"
                 "numaprobe plot topo --file=node.svg\n"
                 "numaprobe plot last --distribution --row=0 --col=64M",
     .options = &plot_options,
     .n_max = 3,
     .run = cmd_plot},
    {.name = "log",
     .operands = "[ID|last]",
     .summary = "print the output of a run's processes",
     .examples = "numaprobe log last\n"
                 "numaprobe log 17",
     .pages = true,
     .n_max = 1,
     .run = cmd_log},
    {.name = "report",
     .operands = "[ID|last [ID]]",
     .summary = "analyse a run, or a serial/concurrent pair",
     .about = "For latency: steps of the curve, cache capacities, contention, slow groups of ranks "
              "and outliers. For other benchmarks: local and remote memory, the best kernel, "
              "classes of pairs, the knee. Always: placement and disturbance. --html writes one "
              "file to send, with pictures, tables, conditions and facts.",
     .examples = "numaprobe report last\n"
                 "numaprobe report 8 9 -o json\n"
                 "numaprobe report last --html=report.html",
     .options = &report_options,
     .pages = true,
     .n_max = 2,
     .run = cmd_report},
    {.name = "compare",
     .operands = "BEFORE AFTER|last",
     .summary = "compare two runs: which is slower, where, and what changed",
     .about = "The first line is the verdict. It names the parts that differ: a rank, a size, the "
              "memory of a node, or a block of these. The last lines name the facts of the machine "
              "that differ. -o csv has a row for each part, with the unit. The exit status is 0 "
              "for same or faster, 7 for slower and 8 for inconclusive.",
     .examples = "numaprobe compare 17 last\n"
                 "numaprobe compare 17 18 --all",
     .options = &compare_options,
     .pages = true,
     .n_min = 2,
     .n_max = 2,
     .run = cmd_compare},
    {.name = "label",
     .operands = "ID|last [TEXT]",
     .summary = "print or set the label of a run",
     .about = "Retention never deletes a run with a label.",
     .examples = "numaprobe label last\n"
                 "numaprobe label 17 \"before BIOS update\"\n"
                 "numaprobe label 17 --remove",
     .options = &label_options,
     .n_min = 1,
     .n_max = 2,
     .run = cmd_label},
    {.name = "import",
     .operands = "FILE|-...",
     .summary = "store results that were measured elsewhere",
     .about = "Reads tables that numa_bench printed (with the log lines around them), CSV with a "
              "heading \"size (MB),0,1,...\", matrices as JSON, and output of export. Each file is "
              "one request: if one fails, the others are stored, and the exit status is that of "
              "the last failure. Files of JSON lines are sent in parts of at most 500 runs; each "
              "part is stored completely or not at all. A run that is already stored is not stored "
              "again.",
     .examples = "numaprobe import results/*.txt --node=nid000017\n"
                 "mpirun numa_bench latency | numaprobe import -",
     .options = &import_options,
     .n_min = 1,
     .n_max = OPERANDS_ANY,
     .run = cmd_import},
    {.name = "export",
     .operands = "[ID|last...]",
     .summary = "write complete runs, to keep or to import elsewhere",
     .about = "Oldest first. The default format is JSON for one run and JSON lines for several. "
              "With -o csv there is one line per cell.",
     .examples = "numaprobe export last > run.json\n"
                 "numaprobe export --all --file=node.ndjson",
     .options = &export_options,
     .n_max = OPERANDS_ANY,
     .run = cmd_export},
    {.name = "history",
     .operands = "[METRIC]",
     .summary = "show a metric over time and when it changed, or list metrics",
     .about =
         "For each change it names the facts of the machine that changed with it. If there "
         "is a default baseline, it ends with the verdict of check on the newest run. After an "
         "import the metrics of some runs are not computed yet. The command waits up to 15 "
         "seconds for them. If some are still missing it says how many, and makes no "
         "statement about changes. -o csv has a row for each run, with the unit.",
     .examples = "numaprobe history\n"
                 "numaprobe history latency.local.dram.median_ns --since=4w",
     .options = &history_options,
     .pages = true,
     .n_max = 1,
     .run = cmd_history},
    {.name = "baseline",
     .operands = "set NAME ID... | list | show NAME | delete NAME",
     .summary = "manage the reference runs that check uses",
     .about = "A baseline has up to 16 runs with the same parameters. Its value is their median. "
              "Runs in a baseline cannot be deleted.",
     .examples = "numaprobe baseline set default 17 18 19\n"
                 "numaprobe baseline list",
     .n_min = 1,
     .n_max = BASELINE_OPERANDS_MAX,
     .run = cmd_baseline},
    {.name = "check",
     .operands = "[BASELINE]",
     .summary = "check the newest run against a baseline (a Nagios plugin)",
     .about = "Checks the newest run with the parameters of the baseline. The default baseline is "
              "the one named default, or the only one. Prints one line with performance data. The "
              "exit status is that of Nagios plugins: 0 OK, 1 warning, 2 critical, 3 unknown. "
              "-o csv prints one row, -o json all that the verdict was made from. Without a "
              "verdict both have the state UNKNOWN and the reason. "
              "-o nfd prints the node's labels for Node Feature Discovery, -o slurm as features of "
              "a node of Slurm.",
     .examples = "numaprobe check --max-age=90000\n"
                 "numaprobe check default --warn=5 --crit=15\n"
                 "numaprobe check -o nfd\n"
                 "numaprobe check --reference=epyc.json",
     .options = &check_options,
     .plugin = true,
     .labels = true,
     .n_max = 1,
     .run = cmd_check},
    {.name = "fleet",
     .operands = "COMMAND",
     .subcommands = fleet_commands,
     .summary = "measure, judge and compare many nodes",
     .about =
         "Each command contacts the daemons of the nodes itself; no server is needed. By default "
         "it forwards each node's Unix socket through ssh, so that nothing has to be opened and "
         "no token is needed. With --fleet-url it connects to each node's HTTP port.",
     .examples = "numaprobe fleet run -w 'node[001-100]' --quick\n"
                 "numaprobe fleet outliers -w @rack3\n"
                 "numaprobe help fleet",
     .n_max = OPERANDS_ANY},
    {.name = "cancel",
     .operands = "[ID|last]",
     .summary = "cancel a run, or all that are waiting or running",
     .about = "A run is canceled when its processes have ended. With --wait the exit status is 0 "
              "when nothing is left, and 6 if something is left after that time. The prolog of a "
              "batch system frees the node with --all --wait=2.",
     .examples = "numaprobe cancel last\n"
                 "numaprobe cancel 17 --wait=5\n"
                 "numaprobe cancel --all --wait=2",
     .options = &cancel_options,
     .n_max = 1,
     .run = cmd_cancel},
    {.name = "delete",
     .operands = "ID|last",
     .summary = "delete a finished run",
     .examples = "numaprobe delete 17\n"
                 "numaprobe delete last",
     .n_min = 1,
     .n_max = 1,
     .run = cmd_delete},
    {.name = "backup",
     .operands = "FILE",
     .summary = "copy the daemon's database to a file while the daemon runs",
     .about = "FILE is written completely or not at all.",
     .examples = "numaprobe backup numaprobe.db\n"
                 "numaprobe backup /backup/numaprobe.db --force",
     .options = &backup_options,
     .n_min = 1,
     .n_max = 1,
     .run = cmd_backup},
    {.name = "token",
     .operands = "create NAME | list | revoke NAME",
     .summary = "manage the tokens of clients without socket access",
     .about = "Requires root, the daemon's account or a member of admin_group, on the Unix socket. "
              "create prints the token once. revoke takes effect immediately.",
     .examples = "numaprobe token create prometheus --scope=read > token\n"
                 "numaprobe token create rack1 --scope=push --nodes='n[1-16]' > rack1.token\n"
                 "numaprobe token revoke prometheus",
     .options = &token_options,
     .n_min = 1,
     .n_max = 2,
     .run = cmd_token},
    {.name = "push",
     .operands = "",
     .summary = "send this node's new runs to a collector that cannot contact it",
     .about = "Reads the runs from the daemon and sends those that the collector does not have, as "
              "summaries. --url names the daemon, --to the collector. numaprobe-push.timer runs it "
              "at intervals.",
     .examples = "numaprobe push --to=https://fleet.example:7790 --to-token-file=push.token\n"
                 "numaprobe push --to=https://fleet:7790 --to-token-file=push.token -o json",
     .options = &push_options,
     .run = cmd_push},
    {.name = "topo",
     .operands = "",
     .summary = "show packages, NUMA nodes, caches and cores",
     .about = "With --measured it adds what was measured between the nodes. With --xml the values "
              "are memory attributes of hwloc: Latency and ReadLatency in ns, Bandwidth, "
              "ReadBandwidth and WriteBandwidth in MiB/s, all else under names of their own.",
     .examples = "numaprobe topo\n"
                 "numaprobe topo --measured=last\n"
                 "numaprobe topo --xml --measured=last > node.xml",
     .options = &topo_options,
     .pages = true,
     .run = cmd_topo},
    {.name = "node",
     .operands = "",
     .summary = "show the facts of the machine: hardware and configuration",
     .examples = "numaprobe node\n"
                 "numaprobe node -o csv",
     .pages = true,
     .run = cmd_node},
    {.name = "doctor",
     .operands = "",
     .summary = "find conditions that distort measurements, and how to fix them",
     .about = "Also checks the database and shows how much is stored. The exit status is 1 if a "
              "finding is serious.",
     .examples = "numaprobe doctor\n"
                 "numaprobe doctor -o json",
     .run = cmd_doctor},
    {.name = "completion",
     .operands = "bash|zsh|fish",
     .summary = "print a completion script for a shell",
     .examples = "source <(numaprobe completion bash)\n"
                 "numaprobe completion fish > ~/.config/fish/completions/numaprobe.fish",
     .n_min = 1,
     .n_max = 1,
     .run = cmd_completion},
    {.name = "help",
     .operands = "[COMMAND]",
     .summary = "list the commands, or describe one",
     .examples = "numaprobe help run\n"
                 "numaprobe help fleet outliers\n"
                 "numaprobe run matrix --help",
     .pages = true,
     .n_max = 2,
     .run = cmd_help},
    {.name = "version",
     .operands = "",
     .summary = "print the version",
     .examples = "numaprobe version\n"
                 "numaprobe --version",
     .run = cmd_version},
    {0},
};
