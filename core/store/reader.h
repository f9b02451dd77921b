// SPDX-License-Identifier: Apache-2.0
// The database as another process of this program reads it while the daemon writes: a connection
// that neither writes nor checkpoints (docs/STORAGE.md). Part of the store (core/store/store.h).
#pragma once
#include "core/store/store.h"

// The database `path`, which the daemon holds open. For store_close.
struct store *store_reader_open(const char *path, struct err *err);
// One moment of the database, until store_reader_end: what is read in between belongs together.
// `version`: the daemon's store_version, before it asked.
int store_reader_begin(struct store *s, int64_t version, struct err *err);
void store_reader_end(struct store *s);
// The daemon's side: how often a database was opened. A reader is of one opening.
int64_t store_openings(const struct store *s);
// And: a reader has found the database damaged.
void store_reader_saw_damage(struct store *s);
