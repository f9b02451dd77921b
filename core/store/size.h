// SPDX-License-Identifier: Apache-2.0
// How large what is stored is, before it is read: a few microseconds, however large it is. Part of
// the store (core/store/store.h).
#pragma once
#include "core/store/store.h"

struct run_size {
    bool final;
    int64_t ranks, cells;
    int64_t log_bytes, topology_bytes;
    char topology_hash[65];
    char label[RUN_LABEL_MAX + 1];
};
int store_run_size(struct store *s, int64_t id, struct run_size *out,
                   struct err *err); // 1: found, 0: there is none, -1
// Ranks of all runs that store_run_list would give together.
int store_run_list_ranks(struct store *s, const struct run_filter *f, int64_t *ranks,
                         struct err *err);
// How many series, or points of all series, there are, counting no further than `most`.
enum store_total { STORE_SERIES, STORE_POINTS };
int store_total(struct store *s, enum store_total what, int most, int64_t *n, struct err *err);
