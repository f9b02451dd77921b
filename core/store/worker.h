// SPDX-License-Identifier: Apache-2.0
// What takes longer than the loop may wait: reading the whole database. A process of its own does
// it, on a connection that neither writes nor checkpoints, at the lowest priority. numaprobed
// starts itself again as
//   numaprobed --database check <database>
//   numaprobed --database verify <database>
//   numaprobed --database copy <database> <new file>
// and hears on a pipe how it went: one line, the number of an err_code and a text.
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "core/os/loop.h"

struct store_child {
    pid_t pid; // 0: none
    int pidfd, pipe;
    struct loop_watch *watch;
    char said[400];
    size_t n;
    void (*done)(void *ctx, const struct err *how); // ERR_NONE: well. May start another.
    void *ctx;
};

enum store_work { STORE_CHECK, STORE_VERIFY, STORE_COPY }; // STORE_VERIFY: indexes too

// `done` is called once, from the loop, unless it is stopped before. `to` only for STORE_COPY.
int store_child_start(struct store_child *c, struct loop *l, enum store_work work,
                      const char *database, const char *to,
                      void (*done)(void *ctx, const struct err *how), void *ctx, struct err *err);
void store_child_stop(struct store_child *c); // kills it; fine if there is none
int store_child_main(int argc, char **argv);  // the process itself
