// SPDX-License-Identifier: Apache-2.0
// The account of the ranks. A daemon that is not root runs them as itself. One that is root gives
// them an ordinary account and never its own: Open MPI, numactl and the bench need no privilege,
// and what needs none shall have none. Root only if it was named. Whether the account can run
// mpirun is a question of its own (core/launch/programs.h): without it ranks are started without
// MPI.
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "core/launch/command.h"

struct account {
    uid_t uid;
    gid_t gid;
    bool root;      // ranks run as root, as requested
    char name[64];  // "nobody"; "" if there is none
    char text[300]; // "nobody", "root (as --job-user says)", or "none" and why
};

// When we are root `user` (NULL: numaprobe, else nobody), if it can reach what it needs; else
// ourselves. `paths` may be NULL when the programs are not known yet. A bench that the account
// cannot reach, such as one below /root, is copied with its module into `run_dir`, and `paths`
// names the copy then. ERR_USAGE: there is no such account; ERR_UNAVAILABLE: no account can be
// used, *a says so too.
int account_find(struct account *a, const char *user, const char *run_dir,
                 struct launch_paths *paths, struct err *err);
// Removes the copy that `paths` names, if it is one.
void account_forget_copy(const struct launch_paths *paths, const char *run_dir);
