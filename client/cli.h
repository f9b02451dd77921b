// SPDX-License-Identifier: Apache-2.0
// What every command gets: where the daemon is, how to print, and the table that it stands in.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/param.h"
#include "model/spec.h"

enum output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_NDJSON, OUTPUT_CSV };

enum colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

struct cli {
    char url[256]; // "http://127.0.0.1:7780" or "unix:/run/numaprobe/numaprobed.sock"
    char token_file[256];
    char cacert[256], cert[256], key[256]; // files of TLS
    bool url_assumed; // nobody named the daemon, and its socket is not there: the usual port
    int output;       // enum output
    int colour;       // enum colour
    int64_t timeout_s;
    bool to_terminal;  // stdout is one
    bool err_terminal; // stderr is one: progress bar
};

enum { OPERANDS_ANY = 1 << 20 };     // as many as the shell passes on
enum { BASELINE_OPERANDS_MAX = 18 }; // set NAME and 16 runs

struct invocation {
    const void *options;     // object of the command's table
    const struct spec *spec; // has_spec
    char **operands;
    int n;
};

struct command {
    const char *name;
    const char *operands; // "ID", "[ID|last]" or ""
    const char *summary;
    const struct param_table *options; // besides the global ones; NULL: none
    bool plugin;                       // of Nagios: failures are a line on stdout and exit status 3
    bool has_spec;    // options of a run too: the first operand may name the benchmark
    int n_min, n_max; // operands
    // options: the object that the table describes, filled. Returns the exit status or -1 + err.
    int (*run)(struct cli *c, const struct invocation *i, struct err *err);
};

extern const struct command commands[]; // name NULL ends
extern const struct param_table cli_options;
const struct command *command_find(const char *name);

// "numaprobe: <about>: <member>: <text>" on stderr; `about` may be NULL. Returns the exit status.
int cli_report(const char *about, const struct err *err);

int cli_main(int argc, char **argv);

// Where defaults come from: /etc/numaprobe/numaprobe.conf, ~/.config/numaprobe/config,
// NUMAPROBE_<NAME>.
int config_load(struct cli *c, struct err *err);
// Where nothing names the daemon: the system's socket, else the usual port.
void config_find_daemon(struct cli *c);

// The token to send, "" for none. ERR_USAGE: its file may be read by others, it would travel in
// clear, or nobody named the daemon that gets it.
enum { TOKEN_ROOM = 256 };
int token_find(const struct cli *c, char token[TOKEN_ROOM], struct err *err);

// Commands, one file each or a few that belong together.
int cmd_topo(struct cli *c, const struct invocation *i, struct err *err);
int cmd_node(struct cli *c, const struct invocation *i, struct err *err);
int cmd_avail(struct cli *c, const struct invocation *i, struct err *err);
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
int cmd_token(struct cli *c, const struct invocation *i, struct err *err);
int cmd_doctor(struct cli *c, const struct invocation *i, struct err *err);
int cmd_completion(struct cli *c, const struct invocation *i, struct err *err);
int cmd_help(struct cli *c, const struct invocation *i, struct err *err);
int cmd_version(struct cli *c, const struct invocation *i, struct err *err);
extern const struct param_table run_options, runs_options, show_options, plot_options;
extern const struct param_table compare_options, backup_options;
extern const struct param_table import_options, export_options;
extern const struct param_table history_options, check_options, token_options;
