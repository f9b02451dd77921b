// SPDX-License-Identifier: Apache-2.0
// A finished run for people: the tables of its matrices, the ratio of the two modes, and what a
// reader should know before believing them.
#pragma once
#include "client/config.h"
#include "model/matrix.h"
#include "model/record.h"
#include "model/shape.h"

enum { RESULT_MATRICES_MAX = SHAPES_MAX };

struct result {
    struct matrix matrices[RESULT_MATRICES_MAX]; // owned, as all
    int n_matrices, n_ranks;
    struct rank_info *ranks;
};
void result_fini(struct result *r);
// Fetches /v1/runs/{id}/matrix; names are checked, so that they can be printed.
int result_fetch(const struct cli *c, int64_t id, struct result *r, struct err *err);

// Fetches /v1/runs/{id}/matrix and prints the numbers in the form requested.
int result_print(const struct cli *c, int64_t id, struct err *err);
// A run for people: parameters, placement, one line of quality, the tables. `notes`: all conditions
// and notes too. Forms other than the table have the numbers alone.
int result_print_run(const struct cli *c, const struct json *run, bool notes, struct err *err);
// "17", "last" (or nothing: last) or "last@NODE" to an id. Last is the newest run that the daemon's
// node measured; with a node's name, the newest that is stored of it.
int result_find(const struct cli *c, char **operands, int n, int64_t *id, struct err *err);
// The number of a run that a server responded with.
int result_run_id(const struct json *run, int64_t *id, struct err *err);
int result_get_run(const struct cli *c, int64_t id, int wait_s, struct json **run, struct err *err);
