// SPDX-License-Identifier: Apache-2.0
// The slim form of stored runs (model/summary.h): the run's row and its metrics, without cells,
// ranks and plan. Part of the store (core/store/store.h).
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "model/summary.h"

struct store;

// Metrics of one run after the other, in memory that grows; free(list).
struct summary_values {
    struct metric *list; // owned
    int n, room;
    bool pending; // it succeeded, and its metrics are not made yet
};
void summary_values_fini(struct summary_values *v);

// Reads all of *out but `layout`, `values`, `lo` and `hi`, and the run's metrics, which may be
// none. ERR_NOT_FOUND.
int store_summary_get(struct store *s, int64_t id, struct summary *out,
                      struct summary_values *values, struct err *err);
// The note of a run, with this number in the feed. ERR_NOT_FOUND.
int store_note_get(struct store *s, int64_t id, int64_t seq, struct summary_note *out,
                   struct err *err);
// How many metrics the run has.
int store_summary_count(struct store *s, int64_t id, int64_t *n, struct err *err);
