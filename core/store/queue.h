// SPDX-License-Identifier: Apache-2.0
// Inside the store only: runs that wait are kept in memory as well, so that what was acknowledged
// outlives a database that cannot be read any more.
#pragma once
#include <stdint.h>

#include "base/buf.h"

struct store;
void store_queue_keep(struct store *s, int64_t from_id); // and later ones, as far as they are read
void store_queue_drop(struct store *s, int64_t id);
void store_queue_sql(const struct store *s,
                     struct buf *out); // that puts them into a fresh database
