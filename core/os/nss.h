// SPDX-License-Identifier: Apache-2.0
// Accounts and groups by their names. Which module knows them is configured in nsswitch.conf:
// modules that load libraries, ask a directory on the network, and end the program where memory is
// short. So a child asks them, for LOOKUP_MS at most.
#pragma once
#include <sys/types.h>

#include "base/err.h"

enum {
    LOOKUP_MS = 5000,     // a start, and a run until it went well once, wait for it
    LOOKUP_NAME_MAX = 63, // Debian's adduser allows 32
};

struct lookup {
    uid_t uid; // of a group: -1
    gid_t gid;
    char name[LOOKUP_NAME_MAX + 1];
};

// 0; ERR_NOT_FOUND, there is none; else it is not known whether there is one.
int lookup_user(struct lookup *out, const char *name, struct err *err);
int lookup_user_id(struct lookup *out, uid_t uid, struct err *err);
int lookup_group(struct lookup *out, const char *name, struct err *err);
