// SPDX-License-Identifier: Apache-2.0
// Exit statuses of the command line, once: --help prints them, the manual page is tested against
// them. 1 to 6 are those of errors (base/err.c).
#pragma once
#include <stdio.h>

enum {
    CLI_EXIT_SUCCESS = 0,
    CLI_EXIT_FAILED = 1,
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_UNREACHABLE = 3,
    CLI_EXIT_BUSY = 6,
    CLI_EXIT_SLOWER = 7,
    CLI_EXIT_INCONCLUSIVE = 8,
    CLI_EXIT_PARTIAL = 9,
    CLI_EXIT_INTERRUPTED = 130,
};

struct cli_exit {
    int status;
    const char *text;
};
extern const struct cli_exit cli_exits[]; // text NULL ends
#define CLI_EXITS_OF_CHECK "check: 0 OK, 1 warning, 2 critical, 3 unknown (Nagios)"
void cli_exits_print(FILE *out); // a line each
