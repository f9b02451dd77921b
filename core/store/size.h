// SPDX-License-Identifier: Apache-2.0
// How large what is stored is, before it is read: a few microseconds, however large it is. Part of
// the store (core/store/store.h).
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/run.h"

struct store;

struct run_size {
    bool final;
    int64_t ranks, cells;
    int64_t log_bytes, topology_bytes;
    char topology_hash[65];
    char label[RUN_LABEL_MAX + 1];
};
int store_run_size(struct store *s, int64_t id, struct run_size *out,
                   struct err *err); // 1: found, 0: there is none, -1
// How many series, or points of all series, there are, counting no further than `most`.
enum store_total { STORE_SERIES, STORE_POINTS };
int store_total(struct store *s, enum store_total what, int most, int64_t *n, struct err *err);
