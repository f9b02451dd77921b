// SPDX-License-Identifier: Apache-2.0
// The numbers of a run: matrices with a row per cell, ranks, and the log of its processes.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/store/metrics.h"
#include "model/matrix.h"
#include "model/record.h"
#include "model/run.h"

struct run_result {       // borrowed pointers
    enum run_state state; // final
    enum err_code error;
    const char *error_member, *error_text;
    const char *method;
    const char *conditions_json, *plan_json; // NULL: as it started
    const double *phase_ms;                  // PHASES values or NULL
    const struct matrix *matrices;
    int n_matrices;
    const struct rank_info *ranks;
    int n_ranks;
    bool staged;                // cells and ranks are stored already (core/store/stage.h)
    const char *log;            // what the processes printed, capped by the caller
    int64_t finished_ms;        // 0: now
    struct run_metrics metrics; // version 0: not computed
};
int store_matrices_get(struct store *s, int64_t id, struct matrix **out, int *n, struct err *err);
// Without cells, whose number does not count then.
int store_matrix_axes_get(struct store *s, int64_t id, struct matrix **out, int *n,
                          struct err *err);
void store_matrices_free(struct matrix *list, int n);
int store_ranks_get(struct store *s, int64_t id, struct rank_info **out, int *n,
                    struct err *err); // free()

// Inside the store, in a transaction.
int store_cell_put(struct store *s, int64_t id, int matrix, int row, int col, const struct cell *c,
                   struct err *err);
int store_rank_put(struct store *s, int64_t id, const struct rank_info *r, struct err *err);
int store_result_put(struct store *s, int64_t id, const struct run_result *r, struct err *err);
