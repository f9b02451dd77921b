// SPDX-License-Identifier: Apache-2.0
// Where the daemon is and how to print: the options of every command. Options on the command line
// beat the environment, which beats the user's file, which beats the machine's file.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/param.h"
#include "client/fleet/settings.h"

// The last two are labels for schedulers: of commands that have them (struct command).
enum output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_NDJSON, OUTPUT_CSV, OUTPUT_NFD, OUTPUT_SLURM };

enum colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

struct cli {
    char url[256]; // "http://127.0.0.1:7780" or "unix:/run/numaprobe/numaprobed.sock"
    char token_file[256];
    char cacert[256], cert[256], key[256]; // files of TLS
    bool ignores_token_variable;           // NUMAPROBE_TOKEN is for another server
    const char *url_option;                // that names the address; NULL: --url
    bool url_assumed; // no setting names the daemon, and its socket is not there: the usual port
    int output;       // enum output
    int output_usual; // as files and the environment have it
    int colour;       // enum colour
    int64_t timeout_s;
    bool to_terminal;  // stdout is one
    bool err_terminal; // stderr is one that obeys: progress bar
    bool term_obeys;   // control sequences: TERM is set, and not "dumb"
    struct fleet_settings fleet;
    const struct fleet_settings *fleet_usual; // as files and the environment have it
    int64_t at_once_given;                    // --at-once of the command line; 0: not there
};

extern const struct param_table cli_options; // of struct cli

// Reads /etc/numaprobe/numaprobe.conf, ~/.config/numaprobe/config and NUMAPROBE_<NAME>.
int config_load(struct cli *c, struct err *err);
// NUMAPROBE_<NAME> of the fleet settings, which no other command minds.
int config_load_fleet(struct cli *c, struct err *err);
int config_columns_of(int fd); // of a terminal, as wide as it is now
int config_lines_of(int fd);   // 0: it is none, or does not say
// Where nothing names the daemon: the system's socket, else the usual port.
void config_find_daemon(struct cli *c);
