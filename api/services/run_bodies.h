// SPDX-License-Identifier: Apache-2.0
// Runs that have finished, as they were written last: a crowd that requests them need not have
// the database read and the JSON written for each.
//
// There is no second truth: what is kept counts only while the database is exactly the one that it
// was read from (store_version), so any write forgets all of it.
#pragma once
#include "base/buf.h"
#include "core/store/store.h"
#include "http/messages/shared_body.h"

// 64 runs, as many as a page of a dashboard shows, of 2 KB (8 ranks) are 128 KB. With 1,024 ranks a
// run has 70 KB. Together they never have more than RUN_BODIES_BYTES.
enum { RUN_BODIES_MAX = 64, RUN_BODIES_BYTES = 512 << 10 };

struct run_bodies;
struct run_bodies *run_bodies_new(struct store *s, struct err *err);
void run_bodies_free(struct run_bodies *b); // NULL is fine

bool run_bodies_has(struct run_bodies *b, int64_t id); // so it has finished
// A reference of the caller's own to what is kept of run id. NULL: nothing is.
struct shared_body *run_bodies_get(struct run_bodies *b, int64_t id);
// To be called only for a run that has finished, with no write since it was read.
void run_bodies_put(struct run_bodies *b, int64_t id, const struct buf *body);
