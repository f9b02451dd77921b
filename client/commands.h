// SPDX-License-Identifier: Apache-2.0
// The table of commands: what each takes and which function runs it. Help, completion and the
// manual page are made from it.
#pragma once
#include <stdio.h>

#include "client/config.h"
#include "model/spec.h"

enum { OPERANDS_ANY = 1 << 20 };     // as many as the shell passes on
enum { BASELINE_OPERANDS_MAX = 18 }; // set NAME and 16 runs

struct command;

struct invocation {
    const void *options;             // object of the command's table
    const struct spec *spec;         // has_spec
    const struct param_given *given; // options of the command line
    char **operands;
    int n;
    const struct command *table; // all commands
};

struct command {
    const char *name, *alias;          // alias NULL: none; of a subcommand both words
    const struct command *subcommands; // name NULL ends; NULL: it is a command itself
    const char *operands;              // "ID", "[ID|last]" or ""
    const char *summary;               // no capital, no full stop
    const char *about;                 // more sentences, for its help and the manual; NULL: none
    const char *examples;              // lines
    const struct param_table *options; // besides the global ones; NULL: none
    bool of_fleet;                     // takes fleet_settings too
    bool plugin;                       // of Nagios: failures are a line on stdout and exit status 3
    bool labels;                       // has the output of -o nfd and -o slurm
    bool pages;                        // long output goes to $PAGER on a terminal
    bool has_spec;         // options of a run too: the first operand may name the benchmark
    const char *spec_verb; // has_spec: only with this first operand; NULL: always
    int n_min, n_max;      // operands
    // options: the object that the table describes, filled. Returns the exit status or -1 + err.
    int (*run)(struct cli *c, const struct invocation *i, struct err *err);
};

extern const struct command commands[];       // name NULL ends
extern const struct command fleet_commands[]; // of the family "fleet"; likewise
// The command that `words` begin with; *used: how many of the `n` words name it. NULL: `table` has
// none of this name or alias; err names the nearest. Of a family ("fleet") alone: the family.
const struct command *command_find(const struct command *table, char *const *words, int n,
                                   int *used, struct err *err);
// ERR_USAGE names the nearest benchmark.
const struct benchmark *command_benchmark(const char *name, struct err *err);

// One function a command, in the file cmd_<command>.c.
int cmd_topo(struct cli *c, const struct invocation *i, struct err *err);
int cmd_node(struct cli *c, const struct invocation *i, struct err *err);
int cmd_availability(struct cli *c, const struct invocation *i, struct err *err);
int cmd_run(struct cli *c, const struct invocation *i, struct err *err);
int cmd_runs(struct cli *c, const struct invocation *i, struct err *err);
int cmd_show(struct cli *c, const struct invocation *i, struct err *err);
int cmd_matrix(struct cli *c, const struct invocation *i, struct err *err);
int cmd_plot(struct cli *c, const struct invocation *i, struct err *err);
int cmd_log(struct cli *c, const struct invocation *i, struct err *err);
int cmd_label(struct cli *c, const struct invocation *i, struct err *err);
int cmd_backup(struct cli *c, const struct invocation *i, struct err *err);
int cmd_cancel(struct cli *c, const struct invocation *i, struct err *err);
int cmd_delete(struct cli *c, const struct invocation *i, struct err *err);
int cmd_compare(struct cli *c, const struct invocation *i, struct err *err);
int cmd_report(struct cli *c, const struct invocation *i, struct err *err);
int cmd_import(struct cli *c, const struct invocation *i, struct err *err);
int cmd_export(struct cli *c, const struct invocation *i, struct err *err);
int cmd_history(struct cli *c, const struct invocation *i, struct err *err);
int cmd_baseline(struct cli *c, const struct invocation *i, struct err *err);
int cmd_check(struct cli *c, const struct invocation *i, struct err *err);
// The verdict that there is none, as JSON or CSV: what reads verdicts can read it.
void check_print_unknown(const struct cli *c, const char *text, const char *line);
int cmd_token(struct cli *c, const struct invocation *i, struct err *err);
int cmd_push(struct cli *c, const struct invocation *i, struct err *err);
int cmd_doctor(struct cli *c, const struct invocation *i, struct err *err);
int cmd_completion(struct cli *c, const struct invocation *i, struct err *err);
int cmd_help(struct cli *c, const struct invocation *i, struct err *err);
int cmd_version(struct cli *c, const struct invocation *i, struct err *err);

// Help as text, for the table and for one command (of all benchmarks, or of the one named).
void help_print_usage(const struct command *table, FILE *out);
void help_print_family(const struct command *family, FILE *out);
int help_print_command(const struct command *k, const struct benchmark *only);

extern const struct param_table cancel_options, run_options, runs_options, show_options,
    plot_options;
extern const struct param_table report_options, compare_options, backup_options, label_options;
extern const struct param_table import_options, export_options;
extern const struct param_table history_options, check_options, token_options, push_options,
    topo_options;
