// SPDX-License-Identifier: Apache-2.0
// A stored run with everything that was measured.
#pragma once
#include "analysis/metrics/metrics.h"
#include "base/buf.h"
#include "core/node/machine.h"
#include "core/store/store.h"

struct stored_run {
    struct run run;
    struct matrix *list; // owned, as all here
    int n, n_ranks;
    struct rank_info *ranks;
};

int stored_run_load(struct store *s, int64_t id, struct stored_run *out, struct err *err);
// Without cells and ranks: n_ranks only. It takes 1 ms, however large the run is.
int stored_run_load_axes(struct store *s, int64_t id, struct stored_run *out, struct err *err);
void stored_run_fini(struct stored_run *r);
const struct matrix *stored_run_matrix(const struct stored_run *r, const char *name); // NULL: none
// What its metrics are made from. Borrows both; t may be NULL.
struct metrics_input stored_run_metrics_input(const struct stored_run *r, const struct topology *t);
void stored_run_variant(const struct stored_run *r, struct buf *out); // metrics_variant
// The topology of the run's own time: this machine's, if nothing has changed, else read back into
// *room, which the caller clears with topology_fini. NULL: none is stored (imports), or what is
// stored is none. -1: it could not be had now.
int stored_run_topology(struct store *s, const struct machine *m, int64_t id, struct topology *room,
                        const struct topology **out, struct err *err);
