// SPDX-License-Identifier: Apache-2.0
// Directories of runs, <run-dir>/<id>-<nonce>, which belong to the account of the ranks. The nonce
// stands in the name, which only we can choose: after a crash it says which processes belong to the
// run.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "core/launch/account.h"

enum { NONCE_LEN = 32 };

struct run_dir {
    char path[400], nonce[NONCE_LEN + 1];
    int fifo; // read end of <path>/records, non-blocking
};

int run_dir_base_make(const char *base, struct err *err); // with parents, mode 0711
int run_dir_make(struct run_dir *d, const char *base, int64_t id, const struct account *a,
                 struct err *err);
// A lock on the directory, for as long as the caller keeps the descriptor: what is in it belongs to
// one daemon. ERR_CONFLICT: to another one.
int run_dir_lock(const char *base, struct err *err);
// The directory may have been removed and made again since it was locked: then the new one is
// locked as well, and `held` is let go. Returns the lock; -1 and an error with `held` as it was.
int run_dir_lock_again(int held, const char *base, struct err *err);
// Kills what has the nonce of a directory that is still there, and removes it. Returns how many
// directories.
int run_dir_sweep(const char *base);
