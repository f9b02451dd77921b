// SPDX-License-Identifier: Apache-2.0
// What comes down the channel of one run, checked: whoever wrote it may be broken or hostile. Only
// a stream that is whole and says what was planned becomes a result.
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/plan.h"
#include "model/record.h"
#include "model/shape.h"
#include "model/spec.h"

enum {
    RECORDS_MATRICES_MAX = SHAPES_MAX,
    // 262,144 cells of at most 450 bytes, and half as much for progress and heads.
    RECORDS_BYTES_MAX = 176 << 20,
};

struct records {
    const char *nonce; // borrowed, as the next two
    const struct spec *spec;
    const struct plan *plan;
    struct buf line; // a line that has not ended yet
    int64_t bytes;
    bool have_hello, have_end;
    struct hello hello;
    struct matrix matrices[RECORDS_MATRICES_MAX];
    int n_matrices;
    int64_t n_cells;
    int64_t pairs_most;      // that the bench measures instead of those planned; 0: these
    struct rank_info *ranks; // plan->n_ranks of them; owned
    bool *have_rank;
    int n_ranks;
    struct progress progress;
    bool progressed; // progress is new; the reader clears it
    struct conditions conditions;
    struct end end;
};

int records_init(struct records *r, const char *nonce, const struct spec *spec,
                 const struct plan *plan, struct err *err);
void records_fini(struct records *r);
// Takes what was read. After an error nothing more may be fed.
int records_feed(struct records *r, const char *bytes, size_t n, struct err *err);
// Whole? ERR_INTERNAL says what is missing; a failure that the bench reported comes back as it
// is.
int records_check(const struct records *r, struct err *err);
