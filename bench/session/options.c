// SPDX-License-Identifier: Apache-2.0
// The words are read once, and a second time if --quick is among them: its values apply before
// the others, wherever it stands.
#include "bench/session/options.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/param.h"
#include "base/str.h"
#include "bench/ranks/comm.h"
#include "model/spec_request.h"
#include "model/target.h"

#define AT(member) offsetof(struct options, member)
#define ROOM(member) sizeof(((struct options *)NULL)->member)

static const struct param own[] = {
    {.name = "serial",
     .kind = PARAM_BOOL,
     .offset = AT(serial),
     .def = "false",
     .help = "The same as --mode=serial (latency)."},
    {.name = "quick",
     .kind = PARAM_BOOL,
     .offset = AT(quick),
     .def = "false",
     .help =
         "Quick, rough result (5 %). Sets other defaults; options given explicitly still apply."},
    {.name = "np",
     .kind = PARAM_INT,
     .offset = AT(ranks),
     .min = 0,
     .max = SPEC_RANKS_MAX,
     .def = "0",
     .help = "Start this many ranks without MPI. Default: no ranks but this one."},
    {.name = "bind",
     .filled = true,
     .kind = PARAM_TEXT,
     .offset = AT(bind),
     .room = ROOM(bind),
     .def = "",
     .metavar = "LIST",
     .help = "CPU:NODE of each rank, with --np or below mpirun, such as 0:0,8:1. -1: not bound. "
             "Without a list, --np binds each rank to a core of its own while there are cores."},
    {.name = "numa",
     .kind = PARAM_TEXT,
     .offset = AT(spec.numa),
     .room = ROOM(spec.numa),
     .def = "local",
     .metavar = "POLICY",
     .help = "Memory of all ranks: local (as each rank is bound), interleave:NODES or "
             "weighted:NODES."},
    {.name = "numactl",
     .kind = PARAM_TEXT,
     .offset = AT(numactl),
     .room = ROOM(numactl),
     .def = "",
     .metavar = "PROGRAM",
     .help = "With --bind below mpirun: run each rank under this numactl, which binds it."},
    {.name = "oversubscribe",
     .kind = PARAM_BOOL,
     .offset = AT(oversubscribe),
     .def = "false",
     .help = "With --np: allow several ranks on one CPU."},
    {.name = "csv",
     .kind = PARAM_BOOL,
     .offset = AT(csv),
     .def = "false",
     .help = "Print every cell as CSV instead of the table."},
    {.name = "json",
     .kind = PARAM_BOOL,
     .offset = AT(json),
     .def = "false",
     .help = "Print everything as JSON instead of the table."},
    {.name = "channel",
     .filled = true,
     .kind = PARAM_TEXT,
     .offset = AT(channel),
     .room = ROOM(channel),
     .def = "",
     .metavar = "PATH",
     .help = "Write records, one JSON object per line, to this FIFO or file; print nothing."},
    {.name = "nonce",
     .kind = PARAM_TEXT,
     .offset = AT(nonce),
     .room = ROOM(nonce),
     .def = "",
     .metavar = "TEXT",
     .help = "Identifier of the run, put into the first record."},
    {.name = "deadline",
     .kind = PARAM_INT,
     .offset = AT(deadline_s),
     .min = 0,
     .max = 86400,
     .def = "0",
     .unit = "s",
     .help = "Time limit: stop before it at the end of a step, and report the cells that exist. "
             "0: no limit."},
    {.name = "budget",
     .kind = PARAM_INT,
     .offset = AT(spec.budget_s),
     .min = 0,
     .max = 86400,
     .def = "0",
     .unit = "s",
     .help =
         "Time that the run may take: repetitions that would exceed it are left out, but one of "
         "each cell. scan repeats its measurements as often as fits. 0: no budget."},
    {.name = "found-cache",
     .kind = PARAM_BYTES,
     .offset = AT(found_bytes),
     .min = 0,
     .max = 1099511627776.0,
     .def = "0",
     .help = "Cache of each NUMA node beyond those that the kernel lists, such as a system-level "
             "cache: the size auto follows from it where it is larger. 0: there is none."},
    {.name = "help",
     .kind = PARAM_BOOL,
     .offset = AT(help),
     .def = "false",
     .help = "Print this text."},
    {.name = "version",
     .kind = PARAM_BOOL,
     .offset = AT(version),
     .def = "false",
     .help = "Print the version."},
};
const struct param_table options_own = {own, COUNT_OF(own)};

// `option` with its dashes, whatever its value.
static bool option_given(const struct options *o, const char *option)
{
    size_t n = strlen(option);
    for (int i = 1; i < o->argc; i++)
        if (str_starts(o->argv[i], option) && (!o->argv[i][n] || o->argv[i][n] == '='))
            return true;
    return false;
}

// Named as it is typed: --load-rate for the member load_rate.
static int prefix_option(struct err *err)
{
    char option[sizeof err->member];
    snprintf(option, sizeof option, "%s", err->member);
    for (char *p = option; *p; p++)
        *p = *p == '_' ? '-' : *p;
    return err_prefix(err, "--%s", option);
}

static int options_settle(struct options *o, struct err *err)
{
    if (o->csv && o->json)
        return err_set(err, ERR_USAGE, "json", "--csv and --json exclude each other");
    o->format = o->csv ? FORMAT_CSV : o->json ? FORMAT_JSON : FORMAT_TABLE;
    if (o->serial && !spec_param(&o->spec, "mode"))
        return err_set(err, ERR_USAGE, "serial", "--serial belongs to the latency benchmark");
    if (o->serial && option_given(o, "--mode") && o->spec.mode != MODE_SERIAL)
        return err_set(err, ERR_USAGE, "serial", "--serial contradicts another --mode");
    if (o->serial)
        o->spec.mode = MODE_SERIAL;
    if (!o->ranks && option_given(o, "--np"))
        return err_set(err, ERR_USAGE, "np", "--np: must be from 1 to %d, got 0", SPEC_RANKS_MAX);
    if (*o->bind && !o->ranks && !comm_uses_mpi())
        return err_set(err, ERR_USAGE, "bind", "--bind needs --np, or a launcher of MPI");
    if (*o->numactl && (!*o->bind || o->ranks))
        return err_set(err, ERR_USAGE, "numactl", "--numactl needs --bind and a launcher of MPI");
    if (strcmp(o->spec.numa, "local") != 0 && !target_is_policy(o->spec.numa))
        return err_set(err, ERR_USAGE, "numa",
                       "--numa must be local, interleave:NODES or weighted:NODES; --bind binds a "
                       "rank to a node");
    if (o->oversubscribe && !o->ranks)
        return err_set(err, ERR_USAGE, "oversubscribe", "--oversubscribe needs --np");
    // Of a daemon's run (channel) the daemon has checked the request, and a budget has changed it.
    if (spec_check(&o->spec, err) < 0 || (!*o->channel && spec_check_request(&o->spec, err) < 0))
        return prefix_option(err);
    return 0;
}

static int no_benchmark(const char *word, struct err *err)
{
    char names[120] = "";
    for (int i = 0; i < BENCHMARKS; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 benchmarks[i].name);
    return err_set(err, ERR_USAGE, "", "\"%.40s\" is not a benchmark (there are: %s)", word, names);
}

// Options of other programs that start ranks, and what they are called here.
static const struct {
    const char *theirs, *ours;
} renamed[] = {
    {"cpus", "bind"}, {"cpu-bind", "bind"},    {"ranks", "np"},      {"ntasks", "np"},
    {"n", "np"},      {"timeout", "deadline"}, {"time", "deadline"}, {"run-timeout", "deadline"},
};

// The benchmarks that have the option, "latency, pagefault"; "" without one.
static const char *have_option(const char *option, char *out, size_t room)
{
    *out = '\0';
    for (int i = 0; i < BENCHMARKS; i++) {
        size_t used = strlen(out);
        if (param_find_option(&benchmarks[i].params, option))
            snprintf(out + used, room - used, "%s%s", used ? ", " : "", benchmarks[i].name);
    }
    return out;
}

// What no table of this benchmark has may be another benchmark's or another program's.
static int options_refuse_other(void *context, const char *option, const char *value,
                                struct err *err)
{
    const struct options *o = context;
    char names[120];
    (void)value;
    if (*have_option(option, names, sizeof names))
        return err_set(err, ERR_USAGE, option, "--%s is no option of %s, but of %s (see --help)",
                       option, benchmarks[o->spec.benchmark].name, names);
    for (size_t i = 0; i < COUNT_OF(renamed); i++)
        if (strcmp(option, renamed[i].theirs) == 0)
            return err_set(err, ERR_USAGE, option,
                           "unknown option --%s; numa_bench has --%s instead (see --help)", option,
                           renamed[i].ours);
    if (param_find_option(&spec_common, option))
        return err_set(err, ERR_USAGE, option,
                       "--%s is an option of numaprobe run, not of numa_bench (see --help)",
                       option);
    return 0;
}

// From the defaults on: what the words from *next say.
static int options_read_words(struct options *o, const struct benchmark *b, bool quick, int *next,
                              struct err *err)
{
    const struct param_target targets[] = {{&b->params, &o->spec}, {&options_own, o}};
    struct param_args args = {.targets = targets,
                              .n_targets = COUNT_OF(targets),
                              .other = options_refuse_other,
                              .context = o};
    spec_init(&o->spec, (enum benchmark_id)(b - benchmarks));
    param_defaults(&options_own, o);
    if (quick)
        spec_quick(&o->spec);
    return param_parse_args(&args, o->argc, o->argv, next, err);
}

static int session_options_parse(struct options *o, int argc, char **argv, struct err *err)
{
    int next = 1;
    const struct benchmark *b = &benchmarks[BENCHMARK_LATENCY];
    if (argc > 1 && argv[1][0] != '-') {
        b = benchmark_find(argv[1]);
        next = 2;
    }
    if (!b)
        return no_benchmark(argv[1], err);
    // Twice: the first time shows whether --quick is given, in whatever form and place; its
    // values come before what is given.
    int again = next;
    if (options_read_words(o, b, false, &next, err) < 0 ||
        (o->quick && options_read_words(o, b, true, &again, err) < 0))
        return -1;
    if (next < argc)
        return err_set(err, ERR_USAGE, "", "\"%.40s\" is not an option%s (see --help)", argv[next],
                       argv[next][0] == '-' && argv[next][1] != '-'
                           ? "; options begin with two dashes, such as --np=2"
                           : "");
    return o->help || o->version ? 0 : options_settle(o, err);
}

int options_parse(struct options *o, int argc, char **argv, struct err *err)
{
    *o = (struct options){.argc = argc, .argv = argv};
    if (session_options_parse(o, argc, argv, err) == 0)
        return 0;
    err->code = ERR_USAGE;
    return -1;
}

void options_help(const struct options *o, FILE *out)
{
    const struct benchmark *b = &benchmarks[o->spec.benchmark];
    fprintf(out,
            "usage: mpirun -np N numa_bench [BENCHMARK] [OPTION]...\n"
            "       srun --mpi=pmix --nodes=1 --ntasks=N numa_bench [BENCHMARK] [OPTION]...\n"
            "       numa_bench [BENCHMARK] --np=N [OPTION]...      (without MPI)\n\nBenchmarks:\n");
    for (int i = 0; i < BENCHMARKS; i++)
        fprintf(out, "  %-12s %s\n", benchmarks[i].name, benchmarks[i].title);
    fputs("\nnuma_bench BENCHMARK --help lists the options of a benchmark.\n\n", out);
    CLEANUP_BUF struct buf about = BUF_INIT;
    buf_fmt(&about, "%s: %s", b->name, b->help);
    param_print_paragraph(buf_text(&about), out);
    param_print_help(&b->params, out);
    fputs("\nHow it is started and reported:\n", out);
    param_print_help(&options_own, out);
    fprintf(out,
            "\nA rank measures with the CPU and the memory that it is bound to, by numactl or\n"
            "run_numa.sh. Exit status: 0 success, 1 failure, 2 wrong usage.\n\nexamples:\n"
            "  mpirun -np 2 numa_bench %s --quick\n"
            "  numactl --physcpubind=0,1 --membind=0 numa_bench %s --np=2 --csv\n",
            b->name, b->name);
}
