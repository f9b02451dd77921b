// SPDX-License-Identifier: Apache-2.0
// A server for tests of fetch/: a child process that listens on a free port of 127.0.0.1 and on a
// Unix socket. The path of a request chooses what goes wrong (see the table in hostile.c). It ends
// with its parent.
#pragma once
#include "fetch/fetch.h"

struct hostile {
    int pid, port;
    char dir[32], socket[64]; // the socket is in dir
};

// Sizes are small enough that a test of a limit is short. The times are longer than a busy machine
// takes for a whole response.
extern const struct fetch_limits hostile_limits;
// For what is slow on purpose: as long as a busy machine takes for the first part of a response.
extern const struct fetch_limits hostile_impatient;

void hostile_start(struct hostile *h);
void hostile_stop(struct hostile *h);
