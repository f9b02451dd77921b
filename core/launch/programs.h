// SPDX-License-Identifier: Apache-2.0
// Looks at what there is to start ranks with: the programs, an account that can run them, whether
// mpirun is Open MPI's and works in a network namespace of its own, and the room for its files and
// processes. All of that may hang (a directory of PATH on a network file system) or take its time
// (`mpirun --version`), so a child does it, the loop waits for it, and what a look has found holds
// until the next one has ended. mpirun is asked anew when its file has changed, and otherwise at
// most every LAUNCH_ASK_EVERY_MS.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/launch/account.h"
#include "core/launch/command.h"
#include "core/os/loop.h"

enum {
    LAUNCH_ASK_EVERY_MS = 60000,
    LAUNCH_LOOK_MS = 7000, // for the whole look
};

struct launch_found {
    struct err err; // ERR_NONE: numa_bench and an account that can run it are there
    struct launch_paths paths;
    struct account account;
    struct stat mpirun; // the file that answered
    int64_t asked_ms;   // of the monotonic clock; 0: never
};

struct launch_look;

// `job_user` as in core/launch/account.h, "": none was named. `on_done` is called by the loop after
// each look.
struct launch_look *launch_look_new(struct loop *l, const char *run_dir, const char *job_user,
                                    void (*on_done)(void *ctx), void *ctx, struct err *err);
void launch_look_free(struct launch_look *l); // NULL is fine

// Begins one, unless one is under way. True: `on_done` will be called. False: no child can be made,
// or an earlier one hangs so that not even SIGKILL ends it.
bool launch_look_begin(struct launch_look *l);
// Waits for a look that is under way, at most so long; then what it has found so far holds, until
// it ends after all. Blocks the loop.
void launch_look_wait(struct launch_look *l, int ms);
const struct launch_found *launch_look_found(const struct launch_look *l);
int64_t launch_look_age_ms(const struct launch_look *l); // since the last look ended
void launch_look_doubt(struct launch_look *l); // the next look asks mpirun, whatever it knows
