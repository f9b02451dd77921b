// SPDX-License-Identifier: Apache-2.0
// What lasts and what goes: how much is stored, retention, and what happens to a damaged database.
// docs/STORAGE.md tells it for people.
#pragma once
#include "core/store/store.h"

enum {
    STORE_DAMAGED_KEPT = 3, // damaged databases beside ours; of more the smallest goes, so that a
                            // dying disk does not fill up and the longest history stays
    STORE_DAMAGED_LISTED = 16,
};

// The largest matrix is 27 MB; stored, in the log of writes and in the file: twice that, and room.
#define STORE_DISK_SPARE_BYTES ((int64_t)64 << 20)

struct store_usage {
    int64_t file_bytes, wal_bytes; // on disk
    int64_t used_bytes;            // of the file; the rest is given back in steps
    int64_t disk_free_bytes;       // where the file is
    int64_t runs, pinned;          // pinned: labelled, or of a baseline
    int64_t oldest_ms;             // when the oldest run was asked for; 0: there is none
};
int store_usage(struct store *s, struct store_usage *out, struct err *err);
// ERR_STORAGE: less than STORE_DISK_SPARE_BYTES are free beside the database. Then nothing is taken
// in that only takes room: imports, labels and baselines. Results of runs need what is left.
int store_has_room(const struct store *s, struct err *err);

// Retention. 0: no limit.
struct store_limits {
    int64_t keep_days;   // since they were asked for
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
// Deletes runs that are over and not pinned while a limit is passed, but never the newest, for at
// most `budget_ms` and then what the commit takes. By age no more go in a day than
// core/store/age.h says, until the clock was steady for a day. 1: there is more to do, 0: the pass
// is over, -1.
int store_sweep_step(struct store *s, const struct store_limits *l, int64_t now_ms,
                     int64_t budget_ms, struct store_sweep *w, struct err *err);
// Gives at most `pages` free pages back to the disk. 1: there are more, 0: none is left, -1.
int store_shrink_step(struct store *s, int pages, struct err *err);

// A damaged database is renamed to numaprobe.db.damaged-<UTC time>, with its -wal and -shm, and a
// fresh one takes its place: with the runs that wait in the queue, as far as they can be read, and
// with the numbers of runs going on. store_open does this for damage that it finds; for damage that
// shows later `on_damage` is called (from within any function of the store), and the owner calls
// store_set_aside when no other function of the store is on the stack: at once when the damage is
// plain, else after a second look, meanwhile store_doubt. One read that gave something else than
// what is on the disk is no damage, and store_reopen mends it.
struct store_damage {
    int64_t when_ms; // 0: none since the start
    char file[600];  // where the damaged database is now
    char why[256];
    int64_t carried; // runs of the queue that were taken over
};
const struct store_damage *store_damage(const struct store *s);
void store_on_damage(struct store *s, void (*fn)(void *ctx), void *ctx);
// From outside it is to be seen: the files are gone, or others, or cut.
bool store_damage_is_plain(struct store *s);
// Nothing is written (ERR_DAMAGED) until it was set aside or opened anew.
void store_doubt(struct store *s);
// The same database by a fresh connection, which has nothing of what the old one had read. -1:
// there is no database now; calling again tries again, and for ERR_DAMAGED there is
// store_set_aside.
int store_reopen(struct store *s, struct err *err);
// -1: nothing was moved, or there is no database now (every function fails with ERR_STORAGE);
// calling again tries again.
// 1: nothing was damaged, its files were deleted or replaced below us: what they held was written
// anew from the open ones, and all of it is there.
int store_set_aside(struct store *s, const char *why, struct err *err);
// Whether the last daemon ended without closing the database, and so much is in it that opening did
// not check all of it.
bool store_was_unclean(const struct store *s);

struct store_damaged_file {
    char name[64]; // beside the database
    int64_t bytes;
};
// Returns how many there are, newest first; at most `most` are written.
int store_damaged_list(const struct store *s, struct store_damaged_file *out, int most);

// A run that was going on while its database was set aside: as queued and as started, with the same
// number. Does nothing if it is there.
struct run_restore {
    int64_t id, created_ms, started_ms;
    const struct spec *spec;
    const char *node, *plan_json, *conditions_json;
    const struct fingerprint *fingerprint;
    const char *topology_xml;
};
int store_run_restore(struct store *s, const struct run_restore *r, struct err *err);
