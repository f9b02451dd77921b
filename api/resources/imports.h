// SPDX-License-Identifier: Apache-2.0
// A document with results from elsewhere on its way into the store. A small one is read and stored
// at once. A larger one is read by a worker (http/server/worker.h), which gives the runs back as
// the structures that they are, in a memory file; the loop stores them in pieces
// (core/store/stage.h).
#pragma once
#include "http/messages/http.h"

enum { IMPORT_INLINE = 16 << 10 }; // bytes of a document that the loop reads: 5 ms

// In the worker: what the document holds, as bytes for import_new. `body`: the document.
int import_read(struct request *q, const char *body, size_t n, struct buf *out, struct err *err);

// In the daemon: stores the runs of such a file (the descriptor stays the caller's), piece by piece
// in the loop; `done` is called once when that is over, unless import_free comes first.
struct import;
struct import *import_new(const struct api_services *api, int fd, size_t bytes,
                          void (*done)(void *ctx), void *ctx, struct err *err);
bool import_is_over(const struct import *i); // at once, if there is nothing to store
// After `done`: the answer, or why nothing was stored.
int import_answer(struct import *i, struct request *q, struct reply *r, struct err *err);
void import_free(struct import *i); // NULL is fine
// May a document of so many bytes come now? ERR_UNAVAILABLE: a run is being measured.
int import_check(const struct request *q, struct err *err);
