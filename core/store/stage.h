// SPDX-License-Identifier: Apache-2.0
// Large runs come and go in pieces, between which the loop serves others. Part of the store.
//
// The cells and ranks of a run that is being imported are stored under the number that it will
// have, in short transactions; the last transaction makes the run, and only then is there one. A
// large run that was measured here is stored likewise: it is running until the last transaction.
// The cells of a large run that is deleted stay behind for a while. A row 'leftover:<number>' of
// `counter` says that what is stored under that number belongs to no run: it is removed in pieces,
// also after a kill in the middle.
#pragma once
#include "core/store/imports.h"

enum {
    STORE_STAGE_CELLS = 1000, // so many are stored at once: 6 ms
    STORE_STAGE_MS = 4,       // of a piece, then a commit without a sync
};

// Imports of one document, as store_runs_import, or the result of one run, as store_run_finished,
// in pieces. One at a time.
struct store_stage {
    int64_t run;                   // the run whose result this is; 0: imports
    struct run_import own;         // `list` of it
    const struct run_import *list; // borrowed, as the next four
    int n;
    int64_t *ids;
    bool *again;
    struct run_result *results; // of list, to be marked as staged
    int64_t openings, created_ms;
    int at, matrix, row, rank; // the next piece
    int64_t *numbers;          // owned; 0: the run is there already
};
int store_stage_begin(struct store *s, struct store_stage *st, struct err *err);
// `st` is filled here, and `result` is borrowed.
int store_stage_begin_result(struct store *s, struct store_stage *st, int64_t run,
                             struct run_result *result, struct err *err);
// 1: there is more, 0: all is stored and acknowledged, -1.
int store_stage_step(struct store *s, struct store_stage *st, struct err *err);
void store_stage_end(struct store *s, struct store_stage *st); // also in the middle
