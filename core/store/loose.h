// SPDX-License-Identifier: Apache-2.0
// Inside the store only: cells and ranks that belong to no run, either not yet (an import in
// pieces) or no longer (a large run that was deleted).
#pragma once
#include <stdint.h>

#include "base/err.h"

struct store;
// A transaction that writes or removes such rows.
int store_loose_begin(struct store *s, struct err *err);
int store_loose_end(struct store *s, int result, struct err *err);
// Inside a transaction: says, or no longer says, that what is stored under this number belongs to
// no run.
int store_leftover_put(struct store *s, int64_t id, struct err *err);
int store_leftover_drop(struct store *s, int64_t id, struct err *err);
