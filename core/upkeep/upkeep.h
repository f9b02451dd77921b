// SPDX-License-Identifier: Apache-2.0
// Keeps the database: retention in small steps after each run, copies of it for backups, and what
// to do when it is damaged. Wakes only while there is something to do.
#pragma once
#include "core/node/checkup.h"
#include "core/node/machine.h"
#include "core/os/loop.h"
#include "core/run/runner.h"
#include "core/store/retention.h"

enum {
    UPKEEP_STEP_MS = 2, // of deleting, then a commit: together below the 10 ms that the loop has
    UPKEEP_STEP_PAGES = 32,  // given back in a step: 256 KiB
    UPKEEP_RETRY_MS = 30000, // when a step could not be done
    // Damage that a statement of ours shows and a check does not find: so often in such a time, and
    // it is damage all the same.
    UPKEEP_REFUTED_MOST = 3,
    UPKEEP_REFUTED_MS = 600000,
    UPKEEP_BACKUP_MAX_S = 1800, // 10 GB at 6 MB/s, read and written on a disk that others use
    UPKEEP_HELD_MS = 3600000,   // until it is asked again whether runs kept back may go
    UPKEEP_FINDINGS = 6,
};

struct upkeep;
struct upkeep *upkeep_new(struct loop *l, struct store *s, struct runner *r,
                          const struct store_limits *limits, struct err *err);
void upkeep_free(struct upkeep *k); // ends what is running; NULL is fine
// After store_open and before runner_start: reports damage, checks the rest of a database that was
// not closed well, removes what backups left, and begins retention.
void upkeep_start(struct upkeep *k);
// Sets a database aside at once that was found damaged; otherwise the loop does it.
int upkeep_set_aside(struct upkeep *k, const char *why, struct err *err);

void upkeep_tidy(struct upkeep *k); // something large was deleted, or not stored to its end
// Limits other than before: the next pass begins at once.
void upkeep_set_limits(struct upkeep *k, const struct store_limits *limits);

struct upkeep_status {
    struct store_limits limits;
    bool going_on, short_of; // short_of: a limit is passed, but only by pinned runs
    bool held;               // more runs are too old, but the clock must be steady for a day first
    int64_t last_ms;         // when retention last deleted something; 0: not since the start
    int64_t last_deleted, last_freed_bytes;
    bool checking, backing_up;
};
void upkeep_status(const struct upkeep *k, struct upkeep_status *out);
// What a person should know: damaged databases, limits that cannot be kept.
int upkeep_findings(const struct upkeep *k, struct finding *out, int most);

// A copy of the database as it is now, made while the daemon works on. One at a time, from here
// until backup_free. `done` is called once, from the loop. ERR_CONFLICT: there is another;
// ERR_STORAGE: no room on the disk.
struct backup;
struct backup *upkeep_backup(struct upkeep *k, void (*done)(void *ctx), void *ctx, struct err *err);
// After `done`: a file descriptor (the caller closes) of a file without a name, and its length. -1:
// why there is none.
int backup_take(struct backup *b, int64_t *bytes, struct err *err);
void backup_free(struct backup *b); // NULL is fine
