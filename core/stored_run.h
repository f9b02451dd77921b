// SPDX-License-Identifier: Apache-2.0
// A stored run with everything that was measured.
#pragma once
#include "base/buf.h"
#include "core/store.h"

struct stored_run {
    struct run run;
    struct matrix *list; // owned, as all here
    int n, n_ranks;
    struct rank_info *ranks;
};

int stored_run_load(struct store *s, int64_t id, struct stored_run *out, struct err *err);
void stored_run_fini(struct stored_run *r);
const struct matrix *stored_run_matrix(const struct stored_run *r, const char *name); // NULL: none
void stored_run_variant(const struct stored_run *r, struct buf *out); // metrics_variant
