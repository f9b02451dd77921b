// SPDX-License-Identifier: Apache-2.0
// Finds the command, reads its options, runs it, and says what went wrong.
#include "client/cli.h"
#include "client/exits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/print.h"

static const char *const outputs[] = {"table", "json", "ndjson", "csv", NULL};
static const char *const colours[] = {"auto", "always", "never", NULL};

static const struct param cli_params[] = {
    {.name = "url",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, url),
     .room = sizeof((struct cli *)0)->url,
     .def = "",
     .help =
         "The daemon: http://host:port or unix:/path. Default: the system's socket if it can be "
         "used, else http://127.0.0.1:7780, where no token is sent unless this names it."},
    {.name = "token_file",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, token_file),
     .room = sizeof((struct cli *)0)->token_file,
     .def = "",
     .metavar = "FILE",
     .help = "A file of mode 0600 with a token; NUMAPROBE_TOKEN may hold the token itself."},
    {.name = "cacert",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, cacert),
     .room = sizeof((struct cli *)0)->cacert,
     .def = "",
     .metavar = "FILE",
     .help = "Certificates of who signs for the daemon, in PEM, instead of those of the system."},
    {.name = "cert",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, cert),
     .room = sizeof((struct cli *)0)->cert,
     .def = "",
     .metavar = "FILE",
     .help = "Our own certificate, in PEM, for a daemon that wants one."},
    {.name = "key",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, key),
     .room = sizeof((struct cli *)0)->key,
     .def = "",
     .metavar = "FILE",
     .help = "Its key."},
    {.name = "output",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct cli, output),
     .choices = outputs,
     .letter = 'o',
     .def = "table",
     .help = "Form of the output; -o is short for it."},
    {.name = "colour",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct cli, colour),
     .choices = colours,
     .def = "auto",
     .help = "Colour; auto is on a terminal where NO_COLOR is not set."},
    {.name = "timeout",
     .kind = PARAM_INT,
     .offset = offsetof(struct cli, timeout_s),
     .min = 1,
     .max = 3600,
     .def = "80",
     .unit = "s",
     .help = "How long to wait for one answer."},
};
const struct param_table cli_options = {cli_params, COUNT_OF(cli_params)};

const struct command commands[] = {
    {.name = "run",
     .operands = "[BENCHMARK]",
     .summary = "probe the node and print what was measured",
     .options = &run_options,
     .has_spec = true,
     .n_max = 1,
     .run = cmd_run},
    {.name = "avail",
     .operands = "[BENCHMARK]",
     .summary = "would a run start now? what is in its way",
     .has_spec = true,
     .n_max = 1,
     .run = cmd_avail},
    {.name = "runs",
     .operands = "",
     .summary = "list runs, newest first",
     .options = &runs_options,
     .run = cmd_runs},
    {.name = "show",
     .operands = "[ID|last]",
     .summary = "one run: what, where, how sure, and its table",
     .options = &show_options,
     .n_max = 1,
     .run = cmd_show},
    {.name = "matrix",
     .operands = "[ID|last]",
     .summary = "the numbers of a run, for programs (-o json, ndjson, csv)",
     .n_max = 1,
     .run = cmd_matrix},
    {.name = "plot",
     .operands = "[ID|last]",
     .summary = "a run as a picture: SVG into a file or a pipe, characters on a terminal",
     .options = &plot_options,
     .n_max = 1,
     .run = cmd_plot},
    {.name = "log",
     .operands = "[ID|last]",
     .summary = "what the processes of a run printed",
     .n_max = 1,
     .run = cmd_log},
    {.name = "report",
     .operands = "[ID|last [ID]]",
     .summary = "what there is to say about a run, or a serial and a concurrent one",
     .n_max = 2,
     .run = cmd_report},
    {.name = "compare",
     .operands = "BEFORE AFTER|last",
     .summary = "is one run slower than another, by how much, how sure, and what changed",
     .options = &compare_options,
     .n_min = 2,
     .n_max = 2,
     .run = cmd_compare},
    {.name = "label",
     .operands = "ID|last [TEXT]",
     .summary = "name a run, so that it is found and stays; no TEXT takes the label away",
     .n_min = 1,
     .n_max = 2,
     .run = cmd_label},
    {.name = "import",
     .operands = "FILE|-...",
     .summary = "store results that were measured elsewhere: tables, CSV, exports",
     .options = &import_options,
     .n_min = 1,
     .n_max = OPERANDS_ANY,
     .run = cmd_import},
    {.name = "export",
     .operands = "[ID|last...]",
     .summary = "runs whole, to keep or to import elsewhere (-o json, ndjson, csv)",
     .options = &export_options,
     .n_max = OPERANDS_ANY,
     .run = cmd_export},
    {.name = "history",
     .operands = "[METRIC]",
     .summary = "a metric over runs and since when it changed, or which metrics there are",
     .options = &history_options,
     .n_max = 1,
     .run = cmd_history},
    {.name = "baseline",
     .operands = "set NAME ID... | list | show NAME | delete NAME",
     .summary = "runs under a name, to check others against",
     .n_min = 1,
     .n_max = BASELINE_OPERANDS_MAX,
     .run = cmd_baseline},
    {.name = "check",
     .operands = "[BASELINE]",
     .summary = "is the newest run as good as the baseline? speaks Nagios",
     .options = &check_options,
     .plugin = true,
     .n_max = 1,
     .run = cmd_check},
    {.name = "cancel",
     .operands = "ID|last",
     .summary = "stop a run that waits or goes on",
     .n_min = 1,
     .n_max = 1,
     .run = cmd_cancel},
    {.name = "delete",
     .operands = "ID",
     .summary = "delete a finished run",
     .n_min = 1,
     .n_max = 1,
     .run = cmd_delete},
    {.name = "backup",
     .operands = "FILE",
     .summary = "copy the daemon's database to a file, while the daemon works on",
     .options = &backup_options,
     .n_min = 1,
     .n_max = 1,
     .run = cmd_backup},
    {.name = "token",
     .operands = "create NAME | list | revoke NAME",
     .summary = "who may do what from where the unix socket does not reach",
     .options = &token_options,
     .n_min = 1,
     .n_max = 2,
     .run = cmd_token},
    {.name = "topo",
     .operands = "",
     .summary = "NUMA nodes, CPUs, caches, distances",
     .run = cmd_topo},
    {.name = "node",
     .operands = "",
     .summary = "what the machine is and how it is set up",
     .run = cmd_node},
    {.name = "doctor",
     .operands = "",
     .summary = "what stands in the way of good numbers, and what mends it",
     .run = cmd_doctor},
    {.name = "completion",
     .operands = "bash|zsh|fish",
     .summary = "a completion script for the shell",
     .n_min = 1,
     .n_max = 1,
     .run = cmd_completion},
    {.name = "help",
     .operands = "[COMMAND]",
     .summary = "this text, or all about one command",
     .n_max = 1,
     .run = cmd_help},
    {.name = "version", .operands = "", .summary = "the version", .run = cmd_version},
    {0},
};

const struct command *command_find(const char *name)
{
    for (const struct command *k = commands; k->name; k++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

int cmd_version(struct cli *c, const struct invocation *i, struct err *err)
{
    (void)c, (void)i, (void)err;
    puts("numaprobe " NUMAPROBE_VERSION);
    return 0;
}

static void print_usage(FILE *out)
{
    fputs("usage: numaprobe COMMAND [options]\n\nProbes the memory system of a node through its "
          "daemon, numaprobed.\n\n"
          "commands:\n",
          out);
    for (const struct command *k = commands; k->name; k++)
        fprintf(out, "  %-11s %-14s %s\n", k->name, k->operands, k->summary);
    fputs("\noptions of every command (also as NUMAPROBE_URL, … in the environment, or in "
          "~/.config/numaprobe/config):\n",
          out);
    param_print_help(&cli_options, out);
    cli_exits_print(out);
}

// Of all benchmarks, or of the one named.
static int print_command_usage(const struct command *k, const struct benchmark *only)
{
    printf("usage: numaprobe %s%s%s [options]\n\n%s\n", k->name, *k->operands ? " " : "",
           k->operands, k->summary);
    if (k->options) {
        fputs("\noptions:\n", stdout);
        param_print_help(k->options, stdout);
    }
    for (int b = 0; k->has_spec && b < BENCHMARKS; b++) {
        if (only && only != &benchmarks[b])
            continue;
        printf("\n%s: %s\n", benchmarks[b].name, benchmarks[b].title);
        param_print_help(&benchmarks[b].params, stdout);
    }
    if (k->has_spec) {
        fputs("\nevery benchmark:\n", stdout);
        param_print_help(&spec_common, stdout);
    }
    puts("\noptions of every command:");
    param_print_help(&cli_options, stdout);
    return 0;
}

int cmd_help(struct cli *c, const struct invocation *i, struct err *err)
{
    (void)c;
    if (!i->n) {
        print_usage(stdout);
        return 0;
    }
    const struct command *k = command_find(i->operands[0]);
    if (!k)
        return err_set(err, ERR_USAGE, "", "there is no command \"%.40s\" (numaprobe help)",
                       i->operands[0]);
    return print_command_usage(k, NULL);
}

// "run pingpong --x": the benchmark is the first word that is no option; latency when there is
// none.
static int choose_benchmark(struct spec *spec, int *argc, char ***argv, struct err *err)
{
    const struct benchmark *b = &benchmarks[BENCHMARK_LATENCY];
    if (*argc && (*argv)[0][0] != '-') {
        b = benchmark_find((*argv)[0]);
        if (!b)
            return err_set(err, ERR_USAGE, "",
                           "there is no benchmark \"%.40s\" (numaprobe help run)", (*argv)[0]);
        --*argc;
        ++*argv;
    }
    spec_init(spec, (enum benchmark_id)(b - benchmarks));
    return 0;
}

// Index of the word after the last one read, or -1.
static int parse_options(struct param_args *a, int argc, char **argv, int from, struct err *err)
{
    int next = from;
    if (param_parse_args(a, argc, argv, &next, err) == 0)
        return next;
    err->member[0] = '\0'; // the text names the option
    return -1;
}

enum { OPTIONS_BYTES = 8192 }; // a file's name may have 4095 bytes

static int run_command(struct cli *c, const struct command *k, int argc, char **argv,
                       struct err *err)
{
    static _Alignas(16) char options[OPTIONS_BYTES];
    static struct spec spec;
    struct param_target targets[4] = {{&cli_options, c}};
    struct param_args args = {.targets = targets, .n_targets = 1};
    CLEANUP_MEM char **operands = calloc((size_t)argc + 1, sizeof *operands);
    if (!operands)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the command line");
    struct invocation invocation = {options, &spec, operands, 0};
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return print_command_usage(k, k->has_spec ? benchmark_find(argv[0]) : NULL);
    if (k->options) {
        param_defaults(k->options, options);
        targets[args.n_targets++] = (struct param_target){k->options, options};
    }
    if (k->has_spec) {
        if (choose_benchmark(&spec, &argc, &argv, err) < 0)
            return -1;
        targets[args.n_targets++] = (struct param_target){&spec_common, &spec};
        targets[args.n_targets++] =
            (struct param_target){&benchmarks[spec.benchmark].params, &spec};
    }
    args.operands = operands;
    args.most = k->has_spec ? 0 : k->n_max;
    if (parse_options(&args, argc, argv, 0, err) < 0)
        return -1;
    if (k->has_spec && spec.quick) { // its values first, so that what is given holds
        spec_init(&spec, (enum benchmark_id)spec.benchmark);
        spec_quick(&spec);
        if (parse_options(&args, argc, argv, 0, err) < 0)
            return -1;
    }
    invocation.n = args.n;
    if (invocation.n < k->n_min)
        return err_set(err, ERR_USAGE, "", "%s needs %s", k->name, k->operands);
    config_find_daemon(c);
    return k->run(c, &invocation, err);
}

// Options before the command's name: "numaprobe -o json runs". Index of the command, or -1.
static int command_index(struct cli *c, int argc, char **argv, struct err *err)
{
    const struct param_target target = {&cli_options, c};
    struct param_args args = {.targets = &target, .n_targets = 1};
    int at = parse_options(&args, argc, argv, 1, err);
    if (at < 0 || at >= argc || argv[at][0] != '-' || !argv[at][1])
        return at;
    return err_set(err, ERR_USAGE, "", "unknown option %s (see --help)", argv[at]);
}

int cli_report(const char *about, const struct err *err)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    buf_str(&b, "numaprobe: ");
    if (about) {
        print_safe(&b, about);
        buf_str(&b, ": ");
    }
    bool said = strncmp(err->text, err->member, strlen(err->member)) == 0; // "line 3: …"
    if (*err->member && !said && strcmp(err->member, "url") != 0) {
        print_safe(&b, err->member);
        buf_str(&b, ": ");
    }
    print_safe(&b, err->text);
    fprintf(stderr, "%s\n", buf_text(&b));
    if (err->code == ERR_UNAUTHORIZED)
        fputs("Name a file with a token by --token-file, or ask at the unix socket of the daemon: "
              "--url=unix:/run/numaprobe/numaprobed.sock\n",
              stderr);
    return err_info(err->code)->exit;
}

// What watches takes the first line of the output and this status for "cannot be told"; 1 or 2
// would be an alarm.
static int report_as_plugin(const struct err *err)
{
    enum { PLUGIN_UNKNOWN = 3 };
    CLEANUP_BUF struct buf b = BUF_INIT;
    print_safe(&b, err->member);
    buf_str(&b, *err->member ? ": " : "");
    print_safe(&b, err->text);
    printf("NUMAPROBE UNKNOWN - %s\n", buf_text(&b));
    return PLUGIN_UNKNOWN;
}

// A closed stdout or stderr would be the number that the next socket gets, and be printed into.
static void keep_standard_fds(void)
{
    while (fcntl(STDERR_FILENO, F_GETFD) < 0 || fcntl(STDOUT_FILENO, F_GETFD) < 0 ||
           fcntl(STDIN_FILENO, F_GETFD) < 0)
        if (open("/dev/null", O_RDONLY) < 0) // writing to it fails, as it should
            return;
}

// A reader that has seen enough (head) is no failure of ours; a full disk is.
static int flush_output(int status)
{
    struct err err = {0};
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (print_lost() && status == 0) {
        err_set(&err, ERR_NO_MEMORY, "", "no memory for all of the output");
        status = cli_report(NULL, &err);
    }
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno == EPIPE || (poll(&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP)))
        return status;
    err_set(&err, ERR_SYSTEM, "", "what was asked for could not be written to the output");
    return cli_report(NULL, &err);
}

int cli_main(int argc, char **argv)
{
    struct cli c = {0};
    struct err err = {0};
    keep_standard_fds();
    signal(SIGPIPE, SIG_IGN);
    if (config_load(&c, &err) < 0)
        return cli_report(NULL, &err);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return cmd_help(&c, &(struct invocation){0}, &err);
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return cmd_version(&c, &(struct invocation){0}, &err);
    int at = command_index(&c, argc, argv, &err);
    if (at < 0)
        return cli_report(NULL, &err);
    if (at >= argc) {
        print_usage(stderr);
        return 2;
    }
    const struct command *k = command_find(argv[at]);
    if (!k) {
        err_set(&err, ERR_USAGE, "", "there is no command \"%.40s\" (numaprobe help)", argv[at]);
        return cli_report(NULL, &err);
    }
    int status = run_command(&c, k, argc - at - 1, argv + at + 1, &err);
    if (status < 0)
        status = k->plugin ? report_as_plugin(&err) : cli_report(NULL, &err);
    return flush_output(status);
}
