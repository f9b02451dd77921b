// SPDX-License-Identifier: Apache-2.0
// Output that is longer than the terminal goes to $PAGER (less where it is not set).
#pragma once
#include "client/config.h"

// Between the two, standard output is kept. pager_end() prints it, through the pager where it has
// more lines than the terminal. Does nothing where standard output is no terminal.
void pager_begin(const struct cli *c);
void pager_end(void);
int pager_terminal(void); // standard output, or what it was before pager_begin()
