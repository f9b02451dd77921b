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

// Small enough that a test of a limit is short; long enough that nothing else ends by them.
extern const struct fetch_limits hostile_limits;

void hostile_start(struct hostile *h);
void hostile_stop(struct hostile *h);
