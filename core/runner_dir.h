// SPDX-License-Identifier: Apache-2.0
// Directories of runs, <run-dir>/<id>-<nonce>, and the account that owns them. The nonce stands in
// the name, which only we can choose: after a crash it says which processes belong to the run.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "core/launch.h"

enum { NONCE_LEN = 32 };

struct account {
    uid_t uid;
    gid_t gid;
    bool root;      // ranks will be root's
    char name[64];  // "nobody"
    char text[200]; // "nobody", or "root (why)"
};

// Who ranks run as: when we are root `user` (NULL: numaprobe, else nobody), if it can reach what it
// needs; else ourselves. `paths` may be NULL when the programs are not known yet.
int account_find(struct account *a, const char *user, const char *run_dir,
                 const struct launch_paths *paths, struct err *err);

struct run_dir {
    char path[400], nonce[NONCE_LEN + 1];
    int fifo; // read end of <path>/records, non-blocking
};

int run_dir_base_make(const char *base, struct err *err); // with parents, mode 0711
int run_dir_make(struct run_dir *d, const char *base, int64_t id, const struct account *a,
                 struct err *err);
// Kills what has the nonce of a directory that is still there, and removes it. Returns how many
// directories.
int run_dir_sweep(const char *base);
