// SPDX-License-Identifier: Apache-2.0
// Inside the store only: the open database, which every part of the store takes.
// core/store/connection.h opens and closes it.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "core/store/damage_report.h"
#include "core/store/sqlite.h"
#include "core/store/statements.h"

enum { STORE_QUEUE_KEPT = 64 }; // the runner lets 32 wait

// A file as it was when we looked; all 0: it was not there.
struct store_file {
    dev_t dev;
    ino_t ino;
    int64_t bytes;
};

struct store {
    sqlite3 *db;        // NULL: none could be opened after a damaged one was quarantined
    int lock, dir_lock; // -1: not held
    char dir[480], path[512];
    int64_t openings;          // of a database: a fresh one counts its changes anew
    int64_t last_id, last_seq; // given so far
    struct {
        int64_t version, last; // version: the store's when it was read; 0: it was not
        char history_id[33];
    } feed; // nearly every request of a collector needs it, and nothing has changed
    int64_t new_id, new_seq; // in the transaction that is open; 0: none
    struct buf carry;        // what a fresh database takes over, as SQL
    struct {
        int64_t id, wall_ms, mono_ms;
    } started;   // the run that began last
    bool opened; // since then the queue is kept in memory too
    struct store_queued {
        int64_t id;
        char *sql; // that puts it into a fresh database; sqlite3_free()
    } queue[STORE_QUEUE_KEPT];
    int n_queue;
    const struct store_stage *staging; // an import in pieces that is under way
    bool reader;                       // of another process: it reads only
    int64_t reader_version;            // what the writer's store_version was
    bool doubted;                      // nothing is written
    bool unclean, moved;         // moved: a damaged one was quarantined, there is no fresh one yet
    struct store_file file, log; // the open database and its -wal, after the last commit
    struct store_damage damage;
    void (*on_damage)(void *ctx);
    void *damage_ctx;
    sqlite3_stmt *queries[STORE_QUERIES];
};
