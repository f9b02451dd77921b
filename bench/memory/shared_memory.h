// SPDX-License-Identifier: Apache-2.0
// Memory of one rank that others map: a file without a name (memfd), found through /proc, so that
// nothing is left behind, whichever rank is killed. In small pages everywhere. Pages belong to the
// node of the rank that touches them first.
#pragma once
#include <stdint.h>

#include "base/err.h"

struct share {
    char *base;
    uint64_t bytes;
    int fd; // of the maker; -1 in those that opened it
};

int share_make(struct share *s, uint64_t bytes, struct err *err);
int share_open(struct share *s, int64_t pid, int fd, uint64_t bytes, struct err *err);
void share_fini(struct share *s);
