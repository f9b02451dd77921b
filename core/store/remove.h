// SPDX-License-Identifier: Apache-2.0
// Runs go: a small one in one transaction, a large one in pieces, between which the loop serves
// others. Its cells stay behind for a while, and a row 'leftover:<number>' of `counter` says that
// what is stored under that number belongs to no run; they are removed in pieces, also after a kill
// in the middle.
#pragma once
#include <stdint.h>

#include "base/err.h"

struct store;
int store_run_delete(struct store *s, int64_t id, struct err *err); // ERR_CONFLICT unless final
// Removes some of what belongs to no run. 1: there is more, 0: nothing (or an import is under way),
// -1.
int store_leftover_step(struct store *s, int64_t budget_ms, struct err *err);

// Inside the store.
// Inside a transaction: the run and all that belongs to it. Its cells first: left to the foreign
// keys they take eight times as long, because SQLite looks for the matrix, which is gone, at each.
int store_run_remove(struct store *s, int64_t id, struct err *err);
// A transaction of its own: a large run goes, and its cells and ranks are left over
// (core/store/stage.h). It is in no baseline.
int store_run_unlink(struct store *s, int64_t id, struct err *err);
