// SPDX-License-Identifier: Apache-2.0
// A document with results from elsewhere on its way into the store. A small one is read and stored
// at once. A larger one is read by a worker (http/server/worker.h), which gives the runs back as
// the structures that they are, in a memory file; the loop stores them in pieces
// (core/store/stage.h).
#pragma once
#include "http/messages/reply.h"

enum {
    // Bytes of a document that the loop reads. A cell of a CSV has two, and takes 4 us to be read,
    // hashed and stored.
    IMPORT_INLINE = 2 << 10,
    // The largest run has 1024 ranks x 48 sizes in two modes, 98,304 cells of at most 210 bytes as
    // JSON (20.6 MB), 1024 ranks of 600 (0.6), hwloc's XML of such a machine (1), a log (1 MiB). As
    // a table it is 1 MB. Such a run of 16 MB takes 1.5 s and 200 MB while it is read and stored.
    IMPORT_MAX = 32 << 20,
};

// In the worker: what the document holds, as bytes for the daemon. `body`: the document.
int import_read(struct request *q, const char *body, size_t n, struct buf *out, struct err *err);
