// SPDX-License-Identifier: Apache-2.0
// What log lines around a table say about it: where, when and how it was measured. No program
// promised their form, so what is found here is a guess, and an import says so.
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct hints {
    char node[64];      // "hostname: nid005021"; "" not said
    bool several_nodes; // they name more than one
    char mode[12];      // "serial" or "concurrent", whichever was said last; "" neither
    bool command;       // the command line is there ("argv[0] = …"), so no --serial is concurrent
    char method[40];    // "Method: prp4-v1"; "" not said
    int64_t date_ms;    // the first time or day; 0 none
    bool zoned;         // it said which time zone
};

void hints_read(struct hints *h, const char *line);
