// SPDX-License-Identifier: Apache-2.0
// A damaged database is renamed to numaprobe.db.damaged-<UTC time>, with its -wal and -shm, and a
// fresh one takes its place: with the runs that wait in the queue, as far as they can be read, and
// with the numbers of runs that are running. store_open does this for damage that it finds; for
// damage that shows later `on_damage` is called (from within any function of the store), and the
// owner calls store_set_aside when no other function of the store is on the stack: at once when the
// damage is plain, else after a second look, meanwhile store_doubt. One read that gave something
// else than what is on the disk is no damage, and store_reopen fixes it.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/store/damage_report.h"

struct store;

enum {
    STORE_DAMAGED_KEPT = 3, // damaged databases beside ours; of more the smallest goes, so that a
                            // dying disk does not fill up and the longest history stays
    STORE_DAMAGED_LISTED = 16,
};

const struct store_damage *store_damage(const struct store *s);
void store_on_damage(struct store *s, void (*fn)(void *ctx), void *ctx);
// From outside it is to be seen: the files are gone, or others, or cut.
bool store_damage_is_plain(struct store *s);
// Nothing is written (ERR_DAMAGED) until it was quarantined or opened anew.
void store_doubt(struct store *s);
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
// 0: the directory is locked by us and the files at the path are those that are open. Asked before
// anything at the path is opened or renamed: the directory may be another daemon's.
int store_files_ours(struct store *s, struct err *err);
