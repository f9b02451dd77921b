// SPDX-License-Identifier: Apache-2.0
// Progress of a run, on stderr: a bar with the time left on a terminal, a line a phase elsewhere.
#pragma once
#include "client/config.h"

struct progress_bar {
    const struct cli *cli;
    char phase[280]; // with what it waits for
    bool drawn, warned;
};

// Draws the line of the terminal that stderr is again, cut to its width: one that wraps would stay.
void progress_line(const char *text);
// Before it a line, once, if the time limit has no room for the whole run.
void progress_show(struct progress_bar *p, const struct json *run);
void progress_clear(struct progress_bar *p); // before anything else is printed
