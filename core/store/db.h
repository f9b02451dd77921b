// SPDX-License-Identifier: Apache-2.0
// Inside the store only: what its files share.
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "core/store/retention.h"
#include "core/store/sqlite.h"
#include "core/store/store.h"

enum store_query {
    Q_INSERT,
    Q_BY_KEY,
    Q_GET,
    Q_SIZE,
    Q_NEXT,
    Q_QUEUE_LENGTH,
    Q_STATE,
    Q_STARTED,
    Q_FINISHED,
    Q_NEXT_SEQ,
    Q_LAST_SEQ,
    Q_IDENTITY,
    Q_CHANGES,
    Q_TOUCH,
    Q_CLOCK_STEPS,
    Q_OLD,
    Q_AFTER,
    Q_AGE_GET,
    Q_AGE_PUT,
    Q_AGE_GAP_PUT,
    Q_AGE_GAPS_OLD,
    Q_AGE_SINCE,
    Q_RUNNING,
    Q_DELETE_CELLS,
    Q_DELETE,
    Q_FINGERPRINT_PUT,
    Q_FINGERPRINT_GET,
    Q_TOPOLOGY_PUT,
    Q_MATRIX_PUT,
    Q_MATRIX_GET,
    Q_MATRIX_COUNT,
    Q_SERIES_PUT,
    Q_METRIC_PUT,
    Q_METRIC_CLEAR,
    Q_METRICS_DONE,
    Q_METRICS_MISSING,
    Q_SERIES_COUNT,
    Q_HISTORY,
    Q_SERIES_BEFORE,
    Q_LATEST,
    Q_NEWEST_VALUES,
    Q_NEWEST_COUNT,
    Q_PENDING,
    Q_PENDING_OF_NODE,
    Q_STATES,
    Q_BASELINES,
    Q_BASELINE_PUT,
    Q_BASELINE_RUN_PUT,
    Q_BASELINE_DROP,
    Q_BASELINE_OF_RUN,
    Q_IMPORTED,
    Q_IMPORT_BY_KEY,
    Q_IMPORT_TWIN,
    Q_LABEL,
    Q_TOPOLOGY_GET,
    Q_LOG_PUT,
    Q_LOG_GET,
    Q_RANK_PUT, // made from record_rank_slots
    Q_RANK_GET,
    Q_CELL_PUT, // made from cell_fields
    Q_CELL_GET,
    STORE_QUERIES
};

#define RUN_COLUMNS                                                                                \
    "id,seq,state,node,created_ms,started_ms,finished_ms,method,n_ranks,n_cells,class_hash,"       \
    "config_hash,error,error_member,error_text,spec,plan,conditions,phases,measured_ms,source,"    \
    "label,topology_hash"

enum { STORE_QUEUE_KEPT = 64 }; // the runner lets 32 wait

// A file as it was when we looked; all 0: it was not there.
struct store_file {
    dev_t dev;
    ino_t ino;
    int64_t bytes;
};

struct store {
    sqlite3 *db;        // NULL: none could be opened after a damaged one was set aside
    int lock, dir_lock; // -1: not held
    char dir[480], path[512];
    int64_t openings;          // of a database: a fresh one counts its changes anew
    int64_t last_id, last_seq; // given so far
    int64_t new_id, new_seq;   // in the transaction that is open; 0: none
    struct buf carry;          // what a fresh database takes over, as SQL
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
    bool unclean, moved;         // moved: a damaged one was set aside, there is no fresh one yet
    struct store_file file, log; // the open database and its -wal, after the last commit
    struct store_damage damage;
    void (*on_damage)(void *ctx);
    void *damage_ctx;
    sqlite3_stmt *queries[STORE_QUERIES];
};

// Only the conditions that are asked for, so that each combination finds its index.
struct store_condition {
    bool asked;
    const char *text;
};
void store_where(struct buf *out, const struct store_condition *list, size_t n);

int store_db_open(struct store *s, struct err *err); // all but the locks
// `checkpoint`: a healthy database; the log of a damaged one stays as it is.
void store_db_close(struct store *s, bool checkpoint);
int store_prepare(struct store *s, struct err *err); // all statements
int store_dirs_make(const char *dir, struct err *err);
// The locks of the state directory, by the names that it and its file `lock` have now; those that
// are held already stay as they are. ERR_CONFLICT: another daemon works with it.
int store_lock_take(struct store *s, struct err *err);
// 0: the directory is locked by us and the files at the path are those that are open. Asked before
// anything at the path is opened or renamed: the directory may be another daemon's.
int store_files_ours(struct store *s, struct err *err);
void store_lock_drop(struct store *s);
// What is at the database's name gets that of a damaged one.
int store_damage_move(struct store *s, struct err *err);

enum store_files { FILES_SAME, FILES_MOVED, FILES_CUT, FILES_UNKNOWN };
void store_files_note(struct store *s);  // which files are ours: those just opened
void store_files_grown(struct store *s); // after each commit
enum store_files store_files_look(const struct store *s);
int store_files_check(struct store *s, struct err *err); // ERR_DAMAGED unless they are the same
// After FILES_MOVED: what is still open is written anew and opened. -1 with s->db NULL: the copy is
// whole, but could not be put in place.
int store_files_rewrite(struct store *s, struct err *err);
// What was acknowledged outlives the file: runs that wait are kept in memory as well.
void store_queue_keep(struct store *s, int64_t from_id);
void store_queue_drop(struct store *s, int64_t id);
int store_begin(struct store *s, struct err *err);
// Commits if `result` is 0, else rolls back; returns -1 if anything failed.
int store_end(struct store *s, int result, struct err *err);

// Inside a transaction: the run and all that belongs to it. Its cells first: left to the foreign
// keys they take eight times as long, because SQLite looks for the matrix, which is gone, at each.
int store_run_remove(struct store *s, int64_t id, struct err *err);
// A transaction of its own: a large run goes, and its cells and ranks are left over
// (core/store/stage.h). It is in no baseline.
int store_run_unlink(struct store *s, int64_t id, struct err *err);
int store_finish(struct store *s, int64_t id, const struct run_result *r, struct err *err);
// `as`: the number and the time of a run that was given them before; NULL: new ones.
struct store_number {
    int64_t id, created_ms;
};
int store_insert(struct store *s, const struct spec *spec, const char *node, const char *key,
                 const struct store_number *as, int64_t *id, struct err *err);
int store_import_put(struct store *s, const struct run_import *i, const struct store_number *as,
                     int64_t *id, struct err *err);
int store_cell_put(struct store *s, int64_t id, int matrix, int row, int col, const struct cell *c,
                   struct err *err);
int store_rank_put(struct store *s, int64_t id, const struct rank_info *r, struct err *err);
int store_facts_put(struct store *s, const char *hash, const char *kind, const char *json,
                    struct err *err);
int store_topology_put(struct store *s, const char *hash, const char *xml, struct err *err);
int store_run_state(struct store *s, int64_t id, struct err *err); // enum run_state; ERR_NOT_FOUND
int store_metrics_put(struct store *s, int64_t id, const struct run_metrics *m, struct err *err);
int store_result_put(struct store *s, int64_t id, const struct run_result *r, struct err *err);
// "median_milli", "n", "overlap_e4": column of a field, and 1000, 1, 10000.
void store_cell_column(enum cell_field f, char *out, size_t room);
double store_cell_scale(enum cell_field f);
