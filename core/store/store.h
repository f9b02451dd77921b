// SPDX-License-Identifier: Apache-2.0
// The database: one read-write connection, one thread. The only module that includes sqlite3.h.
// Failures that mean "cannot store now" are ERR_STORAGE. Rows belong to the caller after a read.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/store/imports.h"
#include "core/store/lock.h"
#include "core/store/metrics.h"
#include "core/store/remove.h"
#include "core/store/results.h"
#include "core/store/runs.h"

struct store;

// Opens or creates `dir`/numaprobe.db, locks `dir` and `dir`/lock (flock: a second daemon is
// refused by name), migrates forward; a newer schema is refused untouched.
struct store *store_open(const char *dir, struct err *err);
// The same database by a fresh connection, which has nothing of what the old one had read. -1:
// there is no database now; calling again tries again, and for ERR_DAMAGED there is
// store_set_aside.
int store_reopen(struct store *s, struct err *err);
void store_close(struct store *s);                     // NULL is fine; checkpoints
bool store_writable(struct store *s, struct err *err); // a write transaction, rolled back
const char *store_path(const struct store *s);
