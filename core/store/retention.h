// SPDX-License-Identifier: Apache-2.0
// What lasts and what goes: how much is stored, retention, and what happens to a damaged database.
// docs/STORAGE.md describes it for users.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct store;

// The largest matrix is 27 MB; stored, in the log of writes and in the file: twice that, and room.
#define STORE_DISK_SPARE_BYTES ((int64_t)64 << 20)

struct store_usage {
    int64_t file_bytes, wal_bytes; // on disk
    int64_t used_bytes;            // of the file; the rest is given back in steps
    int64_t disk_free_bytes;       // where the file is
    int64_t runs, pinned;          // pinned: labelled, or of a baseline
    int64_t oldest_ms;             // when the oldest run was requested; 0: there is none
};
int store_usage(struct store *s, struct store_usage *out, struct err *err);
// ERR_STORAGE: less than STORE_DISK_SPARE_BYTES are free beside the database. Then nothing is taken
// in that only takes room: imports, labels and baselines. Results of runs need what is left.
int store_has_room(const struct store *s, struct err *err);

// Retention. 0: no limit.
struct store_limits {
    int64_t keep_days;   // since they were requested
    int64_t keep_runs;   // besides those that are pinned
    uint64_t keep_bytes; // of what the file uses
};

struct store_sweep { // one pass over the runs, oldest first; {0} begins it
    int64_t large;   // the next to go, in a transaction of its own; 0: none
    int64_t after_id;
    int64_t runs;    // that are not pinned; counted at the beginning
    int64_t deleted; // so far
    int64_t aged;    // of these for their age alone
    int64_t aged_most;
    bool short_of; // a limit is passed, but every run left is pinned or not over
    bool held;     // runs are too old, but no more of them may go today
};
// Deletes runs that have finished and are not pinned while a limit is passed, but never the newest,
// for at most `budget_ms` and then what the commit takes. By age no more go in a day than
// core/store/age.h says, until the clock was steady for a day. 1: there is more to do, 0: the pass
// has ended, -1.
int store_sweep_step(struct store *s, const struct store_limits *l, int64_t now_ms,
                     int64_t budget_ms, struct store_sweep *w, struct err *err);
// Gives at most `pages` free pages back to the disk. 1: there are more, 0: none is left, -1.
int store_shrink_step(struct store *s, int pages, struct err *err);
