// SPDX-License-Identifier: Apache-2.0
// The summary metrics of a run, ready to be stored: of one that has just ended, or of one that is
// stored without them (from an older version, or imported).
#pragma once
#include "analysis/metrics/metrics.h"
#include "base/buf.h"
#include "core/node/machine.h"
#include "core/results/stored_run.h"
#include "core/store/store.h"

struct metrics_made {
    struct metrics list;
    struct buf variant; // owned
};

// NULL + ERR_NO_MEMORY. Freed with metrics_made_free (NULL is fine).
struct metrics_made *metrics_make(const struct metrics_input *in, struct err *err);
void metrics_made_free(struct metrics_made *m);
struct run_metrics metrics_made_view(const struct metrics_made *m); // borrowed; NULL: version 0

// Computes those of one stored run, with the topology of its own time.
struct metrics_made *metrics_of(struct store *s, const struct machine *m, int64_t id,
                                struct err *err);
// Computes and stores those of one stored run, with the topology of its own time.
int metrics_fill(struct store *s, const struct machine *m, int64_t id, struct err *err);

// As bytes for another process of this program, and back; -1: they make no sense.
void metrics_image_add(const struct metrics_made *m, struct buf *out);
int metrics_image_view(const char *data, size_t n, struct run_metrics *out); // borrows data
