// SPDX-License-Identifier: Apache-2.0
// Moves a history from SQLite to an empty database of PostgreSQL. The file is only read, and stays.
// Nothing else can write to either meanwhile, and until the end no program opens the new one
// (meta: moving). What was copied is counted in the transaction that copies it, so after an end at
// any point the same call continues. If the file was written to in between, it begins anew.
#pragma once
#include <stdint.h>

#include "base/err.h"

struct fleet_transfer {
    const char *step;  // "copying", "comparing"
    int64_t done, all; // rows
};
typedef void fleet_transfer_fn(void *ctx, const struct fleet_transfer *t);

// At the end the number of rows of each table, and the sum of their hashes, are those of the file;
// ERR_DAMAGED: they are not, and the next call begins anew. ERR_CONFLICT: it has a history of
// its own, or one of the two is being written to. `progress` is called now and then.
int fleet_store_transfer(const char *from, const char *to, fleet_transfer_fn *progress, void *ctx,
                         struct err *err);
