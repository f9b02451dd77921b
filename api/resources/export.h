// SPDX-License-Identifier: Apache-2.0
// One finished run whole, as exports and the feed of changes give it: all that another daemon needs
// to answer about it as this one does (schema/json/run-1.json).
//
//     {"format":"numaprobe-run","version":1,"run":{…as GET /v1/runs/{id}…},
//      "fingerprint":{"hardware":{…},"config":{…}} or null,
//      "topology":{"hash":"…","xml":"…" or null} or null,
//      "matrices":[…],"ranks":[…],"log":"…" or null}
//
// Without "id", "seq" and "created" of the run, which are this daemon's own, and "source", two
// exports of one run are equal byte for byte, whichever daemon they come from.
#pragma once
#include "base/jsonw.h"
#include "core/store/store.h"

// Large parts that a reader may have already, or not want. Without one its text is null.
enum run_document_parts {
    RUN_DOCUMENT_NONE = 0,
    RUN_DOCUMENT_TOPOLOGY = 1,      // hwloc's XML, 10 to 500 KB; the hash is always there
    RUN_DOCUMENT_LOG = 2,           // what the processes printed, at most 1 MiB
    RUN_DOCUMENT_DISTRIBUTIONS = 4, // of each cell's samples, about 100 bytes a cell
};

// A member "ranks" with what each rank of a run says of itself.
int ranks_write(struct store *s, int64_t id, struct jsonw *w, struct err *err);
// `run` is of this store and final: else ERR_CONFLICT on "state". Writes one value (an object, with
// `key` as jsonw does); on failure it may be cut in the middle, so the caller drops it.
int run_document_write(struct store *s, const struct run *run, enum run_document_parts parts,
                       struct jsonw *w, const char *key, struct err *err);
