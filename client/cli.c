// SPDX-License-Identifier: Apache-2.0
// Finds the command, reads its options, runs it, and says what went wrong.
#include "client/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "base/str.h"
#include "base/written.h"
#include "client/commands.h"
#include "client/exits.h"
#include "client/pager.h"
#include "client/print.h"
#include "client/problem.h"

// "-w" and "--nodes", but not "--nodes=x" or "--quick": the next word belongs to it.
static bool takes_next_word(const struct param_args *a, const char *word)
{
    if (word[0] != '-' || strchr(word, '='))
        return false;
    for (int i = 0; i < a->n_targets; i++)
        for (int k = 0; k < a->targets[i].table->n; k++) {
            const struct param *p = &a->targets[i].table->params[k];
            char option[PARAM_OPTION_ROOM];
            bool meant = word[1] == '-' ? strcmp(param_option(p, option), word + 2) == 0
                                        : p->letter == word[1] && !word[2];
            if (meant)
                return p->kind != PARAM_BOOL && !p->implied;
        }
    return false;
}

// "run pingpong --x" and "run -o json pingpong": the benchmark is the first word, or one behind
// other options that names one; latency when there is none. It is taken out of argv.
static int choose_benchmark(const struct param_args *a, struct spec *spec, int *argc, char **argv,
                            struct err *err)
{
    const struct benchmark *b = NULL;
    int at = 0;
    for (; at < *argc && !b; at++)
        if (argv[at][0] != '-' && (at == 0 || !takes_next_word(a, argv[at - 1])))
            b = at ? benchmark_find(argv[at]) : command_benchmark(argv[at], err);
    if (!b && *argc && argv[0][0] != '-')
        return -1;
    if (b) {
        memmove(argv + at - 1, argv + at, (size_t)(*argc - at) * sizeof *argv);
        --*argc;
    }
    spec_init(spec, b ? (enum benchmark_id)(b - benchmarks) : BENCHMARK_LATENCY);
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

// An empty word would be a name that nothing has. Of other commands it may be a text.
static int check_operands(const struct command *k, const struct invocation *i, struct err *err)
{
    if (i->n < k->n_min)
        return err_set(err, ERR_USAGE, "", "%s needs %s", k->name, k->operands);
    for (int word = 0; k->of_fleet && word < i->n; word++)
        if (!*i->operands[word])
            return err_set(err, ERR_USAGE, "", "%s: word %d of %s must not be empty", k->name,
                           word + 1, k->operands);
    return 0;
}

// The member of an error that is an option of the command is called by the option's name.
static int name_option(const struct command *k, struct err *err)
{
    char option[PARAM_OPTION_ROOM], first[sizeof err->member]; // of "at_once_each.n"
    snprintf(first, sizeof first, "%.*s", (int)strcspn(err->member, "."), err->member);
    const struct param *p = k->options ? param_find(k->options, first) : NULL;
    if (p && !str_starts(err->text, err->member))
        snprintf(err->member, sizeof err->member, "--%s", param_option(p, option));
    return -1;
}

// Whether --at-once is given shows a value that it cannot have. A default of files stays.
static void settle_at_once(struct cli *c)
{
    c->at_once_given = c->fleet.at_once;
    if (!c->at_once_given)
        c->fleet.at_once = c->fleet_usual->at_once;
}

// --fleet of the command line goes before what files and the environment say of --stored.
static void settle_source(struct cli *c, struct fleet_settings *usual)
{
    if (c->fleet.stored && usual->stored && *c->fleet.collector &&
        strcmp(c->fleet.collector, usual->collector) != 0)
        c->fleet.stored = usual->stored = false;
}

enum { OPTIONS_BYTES = 8192 }; // a file's name may have 4095 bytes

static int run_command(struct cli *c, const struct command *k, int argc, char **argv,
                       const struct param_given *before, struct err *err)
{
    static _Alignas(16) char options[OPTIONS_BYTES];
    static struct spec spec;
    static struct fleet_settings usual;
    // Settings of files are taken back by an empty option. Nothing else is: --node=$UNSET must not
    // mean all nodes.
    struct param_target targets[5] = {{&cli_options, c}};
    struct param_given given = *before;
    struct param_args args = {.targets = targets, .n_targets = 1, .given = &given};
    CLEANUP_MEM char **operands = calloc((size_t)argc + 1, sizeof *operands);
    if (!operands)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the command line");
    struct invocation invocation = {options, &spec, &given, operands, 0, commands};
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return help_print_command(k, k->has_spec ? benchmark_find(argv[0]) : NULL);
    if (k->subcommands) {
        help_print_family(k, stderr);
        return argc ? err_set(err, ERR_USAGE, "", "%s: the command comes before its options",
                              k->name)
                    : CLI_EXIT_USAGE;
    }
    if (k->of_fleet) {
        if (config_load_fleet(c, err) < 0)
            return -1;
        usual = c->fleet;
        c->fleet_usual = &usual;
        c->fleet.at_once = 0;
        targets[args.n_targets++] = (struct param_target){&fleet_settings, &c->fleet};
    }
    if (k->options) {
        param_defaults(k->options, options);
        targets[args.n_targets++] = (struct param_target){k->options, options, true};
    }
    // "start latency": the benchmark is the word after it.
    int verb = k->spec_verb && argc && strcmp(argv[0], k->spec_verb) == 0;
    bool has_spec = k->spec_verb ? verb : k->has_spec;
    operands[0] = verb ? argv[0] : NULL;
    argv += verb;
    argc -= verb;
    if (has_spec) {
        targets[args.n_targets++] = (struct param_target){&spec_common, &spec, true};
        if (choose_benchmark(&args, &spec, &argc, argv, err) < 0)
            return -1;
        targets[args.n_targets++] =
            (struct param_target){&benchmarks[spec.benchmark].params, &spec, true};
    }
    args.operands = operands + verb;
    args.most = has_spec ? 0 : k->n_max;
    if (parse_options(&args, argc, argv, 0, err) < 0)
        return -1;
    if (has_spec && spec.quick) { // its values first, so that what is given holds
        spec_init(&spec, (enum benchmark_id)spec.benchmark);
        spec_quick(&spec);
        given = *before;
        if (parse_options(&args, argc, argv, 0, err) < 0)
            return -1;
    }
    if (k->of_fleet) {
        settle_at_once(c);
        settle_source(c, &usual);
    }
    invocation.n = args.n + verb;
    if (c->output >= OUTPUT_NFD && !k->labels)
        return err_set(err, ERR_USAGE, "",
                       "-o nfd and -o slurm are for numaprobe check, not for %s", k->name);
    if (check_operands(k, &invocation, err) < 0)
        return -1;
    config_find_daemon(c);
    if (k->pages && c->output == OUTPUT_TABLE)
        pager_begin(c);
    int status = k->run(c, &invocation, err);
    pager_end();
    return status < 0 ? name_option(k, err) : status;
}

// Options before the command's name: "numaprobe -o json runs". Index of the command, or -1.
static int command_index(struct cli *c, int argc, char **argv, struct param_given *given,
                         struct err *err)
{
    const struct param_target target = {&cli_options, c};
    struct param_args args = {.targets = &target, .n_targets = 1, .given = given};
    int at = parse_options(&args, argc, argv, 1, err);
    if (at < 0 || at >= argc || argv[at][0] != '-' || !argv[at][1])
        return at;
    return err_set(err, ERR_USAGE, "", "unknown option %s (see --help)", argv[at]);
}

// What watches takes the first line of the output and this status for "not known"; 1 or 2
// would be an alarm. A file of labels has no place for such a line.
enum { PLUGIN_UNKNOWN = 3 };

static int report_as_plugin(const struct cli *c, const struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT, line = BUF_INIT;
    problem_write(err, &text);
    buf_fmt(&line, "NUMAPROBE UNKNOWN - %s", buf_text(&text));
    buf_needs(&line, &text);
    if (!buf_ok(&line)) {
        fputs("NUMAPROBE UNKNOWN - no memory\n", c->output == OUTPUT_TABLE ? stdout : stderr);
        return PLUGIN_UNKNOWN;
    }
    if (c->output != OUTPUT_TABLE && c->output < OUTPUT_NFD)
        check_print_unknown(c, buf_text(&text), buf_text(&line));
    else
        fprintf(c->output >= OUTPUT_NFD ? stderr : stdout, "%s\n", buf_text(&line));
    return PLUGIN_UNKNOWN;
}

static int report_failure(const struct cli *c, bool plugin, const struct err *err)
{
    return plugin ? report_as_plugin(c, err) : problem_report(NULL, err);
}

// The first word that is a command decides, also where the options before it are wrong, or a file
// of settings.
static bool names_plugin(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        for (const struct command *k = commands; k->name; k++)
            if (strcmp(argv[i], k->name) == 0)
                return k->plugin;
    return false;
}

// A reader that has seen enough (head) is no failure of ours; a full disk is.
static int flush_output(int status, bool plugin)
{
    struct err err = {0};
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (print_lost() && status == 0) {
        err_set(&err, ERR_NO_MEMORY, "", "no memory for all of the output");
        status = problem_report(NULL, &err);
        status = plugin ? PLUGIN_UNKNOWN : status;
    }
    if (all_written(stdout))
        return status;
    if (errno == EPIPE || (poll(&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP)))
        return status;
    err_set(&err, ERR_SYSTEM, "", "the output could not be written");
    status = problem_report(NULL, &err);
    return plugin ? PLUGIN_UNKNOWN : status;
}

// "fleet help run" is "help fleet run".
static void put_help_first(char **words, int n)
{
    for (const struct command *k = commands; n > 1 && k->name; k++)
        if (k->subcommands && strcmp(k->name, words[0]) == 0 && strcmp(words[1], "help") == 0) {
            char *family = words[0];
            words[0] = words[1];
            words[1] = family;
            return;
        }
}

int cli_main(int argc, char **argv)
{
    struct cli c = {0};
    struct err err = {0};
    const bool plugin = names_plugin(argc, argv);
    process_begin();
    signal(SIGPIPE, SIG_IGN);
    if (config_load(&c, &err) < 0)
        return report_failure(&c, plugin, &err);
    c.output_usual = c.output;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return flush_output(cmd_help(&c, &(struct invocation){.table = commands}, &err), false);
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return flush_output(cmd_version(&c, &(struct invocation){.table = commands}, &err), false);
    struct param_given given = {0};
    int at = command_index(&c, argc, argv, &given, &err);
    if (at < 0)
        return report_failure(&c, plugin, &err);
    if (at >= argc) {
        help_print_usage(commands, stderr);
        return CLI_EXIT_USAGE;
    }
    int used;
    put_help_first(argv + at, argc - at);
    const struct command *k = command_find(commands, argv + at, argc - at, &used, &err);
    if (!k)
        return problem_report(NULL, &err);
    int status = run_command(&c, k, argc - at - used, argv + at + used, &given, &err);
    if (status < 0)
        status = report_failure(&c, k->plugin, &err);
    return flush_output(status, k->plugin);
}
