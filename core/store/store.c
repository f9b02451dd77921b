// SPDX-License-Identifier: Apache-2.0
// Opening, locking, closing. Runs are in store_run.c, their numbers in store_matrix.c.
//
// There is exactly one connection that writes, and it does every checkpoint too: SQLite before
// 3.51.3 can damage the file when one connection checkpoints while another one resets the WAL
// (docs/STORAGE.md).
#include "core/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "core/store/db.h"
#include "core/store/migrate.h"
#include "schema/schema.h"

// quick_check reads about 300 MB/s: 50 ms of the 300 that a start may take.
enum {
    CHECK_WHOLE_BYTES = 16 << 20,
    SERVING_BUSY_MS = 200, // while another program writes, nobody is served
};

// INDEXED BY, where SQLite, which guesses that each value of an index is equally rare, takes or may
// take one that fits most runs.
static const char *const sql[STORE_QUERIES] = {
    [Q_INSERT] = "INSERT INTO run (state,benchmark,node,created_ms,idempotency_key,spec,id) "
                 "VALUES ('queued',?1,?2,?3,?4,?5,?6)",
    [Q_BY_KEY] = "SELECT id, spec FROM run WHERE idempotency_key = ?1",
    [Q_GET] = "SELECT " RUN_COLUMNS " FROM run WHERE id = ?1",
    [Q_SIZE] = "SELECT n_ranks,n_cells,seq,label,topology_hash,"
               "(SELECT rowid FROM topology WHERE hash = run.topology_hash) FROM run WHERE id = ?1",
    [Q_NEXT] = "SELECT id FROM run WHERE state = 'queued' AND id > ?1 "
               "ORDER BY id LIMIT 1",
    [Q_QUEUE_LENGTH] = "SELECT count(*) FROM run WHERE state = 'queued'",
    [Q_STATE] = "SELECT state FROM run WHERE id = ?1",
    [Q_STARTED] = "UPDATE run SET state = 'running', started_ms = ?2, plan = ?3, conditions = ?4, "
                  "class_hash = ?5, config_hash = ?6, topology_hash = ?7 "
                  "WHERE id = ?1 AND state = 'queued'",
    [Q_FINISHED] = "UPDATE run SET state = ?2, seq = ?3, finished_ms = ?4, error = ?5, "
                   "error_member = ?6, error_text = ?7, method = ?8, n_ranks = ?9, n_cells = ?10, "
                   "conditions = coalesce(?11, conditions), phases = ?12, "
                   "measured_ms = coalesce(measured_ms, started_ms, created_ms) WHERE id = ?1",
    [Q_NEXT_SEQ] = "UPDATE counter SET value = value + 1 WHERE name = 'seq' RETURNING value",
    [Q_LAST_SEQ] = "SELECT value FROM counter WHERE name = 'seq'",
    [Q_IDENTITY] = "SELECT name FROM identity",
    [Q_CHANGES] = "SELECT id FROM run WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    [Q_TOUCH] = "UPDATE counter SET value = value WHERE name = 'seq'",
    [Q_CLOCK_STEPS] = "SELECT value FROM counter WHERE name = 'clock_steps'",
    [Q_OLD] = "SELECT id, created_ms FROM run WHERE id > ?1 AND seq IS NOT NULL AND label = '' "
              "AND NOT EXISTS (SELECT 1 FROM baseline_run WHERE run_id = run.id) "
              "AND id < (SELECT id FROM run WHERE seq IS NOT NULL ORDER BY id DESC LIMIT 1) "
              "ORDER BY id LIMIT 1",
    [Q_AFTER] = "SELECT id, created_ms FROM run WHERE id > ?1 ORDER BY id LIMIT 1",
    [Q_AGE_GET] = "SELECT name, value FROM counter WHERE name >= 'age.' AND name < 'age.gap.' "
                  "OR name >= 'age.gap/' AND name < 'age/'",
    [Q_AGE_PUT] = "INSERT OR REPLACE INTO counter VALUES (?1, ?2)",
    [Q_AGE_GAP_PUT] = "INSERT INTO counter VALUES (?1, ?2) "
                      "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
    // Steps of the clock from before the first run there is.
    [Q_AGE_GAPS_OLD] = "DELETE FROM counter WHERE name >= 'age.gap.' AND name < "
                       "printf('age.gap.%020d', (SELECT min(id) FROM run))",
    [Q_AGE_SINCE] = "SELECT coalesce(sum(value), 0) FROM counter "
                    "WHERE name >= ?1 AND name < 'age.gap/'",
    [Q_RUNNING] = "SELECT id FROM run WHERE state = 'running' ORDER BY id LIMIT 1",
    [Q_DELETE_CELLS] = "DELETE FROM cell WHERE run_id = ?1",
    [Q_DELETE] = "DELETE FROM run WHERE id = ?1",
    [Q_FINGERPRINT_PUT] = "INSERT OR IGNORE INTO fingerprint (hash,kind,json) VALUES (?1,?2,?3)",
    [Q_FINGERPRINT_GET] = "SELECT json FROM fingerprint WHERE hash = ?1",
    [Q_TOPOLOGY_PUT] = "INSERT OR IGNORE INTO topology (hash,xml) VALUES (?1,?2)",
    [Q_MATRIX_PUT] = "INSERT INTO matrix (run_id,matrix,name,quantity,unit,row_axis,col_axis) "
                     "VALUES (?1,?2,?3,?4,?5,?6,?7)",
    [Q_MATRIX_GET] = "SELECT name,quantity,unit,row_axis,col_axis FROM matrix WHERE run_id = ?1 "
                     "ORDER BY matrix",
    [Q_MATRIX_COUNT] = "SELECT count(*) FROM matrix WHERE run_id = ?1",
    [Q_SERIES_PUT] = "INSERT OR IGNORE INTO series (metric,node,variant,unit) VALUES (?1,?2,?3,?4)",
    [Q_METRIC_PUT] = "INSERT OR REPLACE INTO metric (series,measured_ms,run_id,value_milli,"
                     "lo_milli,hi_milli) SELECT id,?4,?5,?6,?7,?8 FROM series "
                     "WHERE metric = ?1 AND node = ?2 AND variant = ?3",
    [Q_METRIC_CLEAR] = "DELETE FROM metric WHERE run_id = ?1",
    [Q_METRICS_DONE] = "UPDATE run SET metrics_version = ?2 WHERE id = ?1",
    [Q_METRICS_MISSING] = "SELECT id FROM run INDEXED BY run_without_metrics "
                          "WHERE state = 'succeeded' AND metrics_version < ?1 "
                          "ORDER BY metrics_version, id LIMIT 1",
    [Q_IMPORTED] = "UPDATE run SET source = 'imported', measured_ms = ?2, label = ?3, "
                   "started_ms = ?4, plan = ?5, class_hash = ?6, config_hash = ?7, "
                   "topology_hash = (SELECT hash FROM topology WHERE hash = ?8) WHERE id = ?1",
    [Q_IMPORT_BY_KEY] = "SELECT id FROM run WHERE idempotency_key = ?1",
    [Q_IMPORT_TWIN] = "SELECT id FROM run INDEXED BY run_started WHERE node = ?1 "
                      "AND started_ms = ?2 AND finished_ms = ?3 AND source = 'measured'",
    [Q_SERIES_COUNT] = "SELECT count(*) FROM (SELECT 1 FROM metric WHERE series = ?1 LIMIT ?2)",
    [Q_HISTORY] = "SELECT measured_ms,run_id,value_milli,lo_milli,hi_milli FROM metric "
                  "WHERE series = ?1 AND measured_ms >= ?2 AND measured_ms < ?3 "
                  "ORDER BY measured_ms DESC, run_id DESC LIMIT ?4",
    [Q_SERIES_BEFORE] = "SELECT measured_ms FROM metric WHERE series = ?1 AND measured_ms <= ?2 "
                        "ORDER BY measured_ms DESC LIMIT 1",
    [Q_LATEST] = "SELECT id FROM run INDEXED BY run_measured WHERE node = ?1 "
                 "AND source = 'measured' ORDER BY id DESC LIMIT 1",
    [Q_NEWEST_VALUES] =
        "SELECT s.id,s.metric,s.variant,s.unit,m.run_id,m.measured_ms,m.value_milli "
        "FROM series AS s INDEXED BY series_newest "
        "CROSS JOIN metric AS m INDEXED BY metric_run "
        "ON m.run_id = s.newest_run AND m.series = s.id "
        "WHERE s.node = ?1 AND s.newest_run > 0 "
        "ORDER BY s.newest_run DESC, s.id LIMIT ?2",
    [Q_NEWEST_COUNT] = "SELECT count(*) FROM (SELECT 1 FROM series INDEXED BY series_newest "
                       "WHERE node = ?1 AND newest_run > 0 LIMIT ?2)",
    [Q_PENDING] = "SELECT count(*) FROM (SELECT 1 FROM run INDEXED BY run_without_metrics "
                  "WHERE state = 'succeeded' AND metrics_version < ?1 LIMIT ?2)",
    [Q_PENDING_OF_NODE] =
        "SELECT count(*) FROM (SELECT 1 FROM run INDEXED BY run_of_node "
        "WHERE state = 'succeeded' AND metrics_version < ?1 AND node = ?3 LIMIT ?2)",
    [Q_STATES] = "SELECT substr(name, 6), value FROM counter "
                 "WHERE name >= 'runs.' AND name < 'runs/'",
    [Q_BASELINES] = "SELECT b.name,b.created_ms,r.run_id FROM baseline AS b "
                    "JOIN baseline_run AS r ON r.name = b.name WHERE b.name = ifnull(?1,b.name) "
                    "ORDER BY b.name, r.run_id",
    [Q_BASELINE_PUT] = "INSERT INTO baseline (name,created_ms) VALUES (?1,?2)",
    [Q_BASELINE_RUN_PUT] = "INSERT INTO baseline_run (name,run_id) VALUES (?1,?2)",
    [Q_BASELINE_DROP] = "DELETE FROM baseline WHERE name = ?1",
    [Q_BASELINE_OF_RUN] = "SELECT name FROM baseline_run WHERE run_id = ?1 LIMIT 1",
    [Q_LABEL] = "UPDATE run SET label = ?2 WHERE id = ?1",
    [Q_TOPOLOGY_GET] = "SELECT t.xml FROM run JOIN topology AS t ON t.hash = run.topology_hash "
                       "WHERE run.id = ?1",
    [Q_LOG_PUT] = "INSERT INTO log (run_id,text) VALUES (?1,?2)",
    [Q_LOG_GET] = "SELECT text FROM log WHERE run_id = ?1",
};

// One transaction: a kill between two would leave a database that says it is nobody's.
static const char *const before_first_table[] = {
    "BEGIN",
    "PRAGMA page_size=8192",
    "PRAGMA auto_vacuum=INCREMENTAL",
    ("PRAGMA application_id=" STORE_APPLICATION_TEXT),
    "COMMIT",
};
_Static_assert(STORE_APPLICATION_ID == 1853189473, "STORE_APPLICATION_TEXT is the same number");

static const char *const settings[] = {
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL", // what was acknowledged is on disk
    "PRAGMA foreign_keys=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
    "PRAGMA mmap_size=0",
    "PRAGMA journal_size_limit=16777216",
    "PRAGMA wal_autocheckpoint=256", // 2 MiB: a checkpoint is a wait for the loop
};

void store_cell_column(enum cell_field f, char *out, size_t room)
{
    static const char *const suffix[] = {
        [CELL_IS_COUNT] = "", [CELL_IS_VALUE] = "_milli", [CELL_IS_SHARE] = "_e4"};
    snprintf(out, room, "%s%s", cell_fields[f].name, suffix[cell_fields[f].kind]);
}

double store_cell_scale(enum cell_field f)
{
    static const double scale[] = {
        [CELL_IS_COUNT] = 1, [CELL_IS_VALUE] = 1000, [CELL_IS_SHARE] = 10000};
    return scale[cell_fields[f].kind];
}

void store_where(struct buf *out, const struct store_condition *list, size_t n)
{
    const char *word = "WHERE";
    for (size_t i = 0; i < n; i++)
        if (list[i].asked) {
            buf_fmt(out, "%s %s ", word, list[i].text);
            word = "AND";
        }
}

static int store_store_prepare(struct store *s, enum store_query q, const char *text,
                               struct err *err)
{
    int rc = sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, &s->queries[q], NULL);
    return rc == SQLITE_OK ? 0 : sq_fail(err, s->db, rc, "prepare");
}

static int prepare_cells(struct store *s, struct err *err)
{
    CLEANUP_BUF struct buf put = BUF_INIT, get = BUF_INIT, marks = BUF_INIT;
    buf_str(&put, "INSERT INTO cell (run_id,matrix,row,col");
    buf_str(&get, "SELECT row,col");
    for (int f = 0; f < CELL_FIELDS; f++) {
        char column[40];
        store_cell_column(f, column, sizeof column);
        buf_fmt(&put, ",%s", column);
        buf_fmt(&get, ",%s", column);
        buf_fmt(&marks, ",?%d", f + 5);
    }
    buf_fmt(&put, ") VALUES (?1,?2,?3,?4%s)", buf_text(&marks));
    buf_str(&get, " FROM cell WHERE run_id = ?1 AND matrix = ?2");
    if (!buf_ok(&put) || !buf_ok(&get) || !buf_ok(&marks))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for statements");
    return store_store_prepare(s, Q_CELL_PUT, buf_text(&put), err) < 0 ||
                   store_store_prepare(s, Q_CELL_GET, buf_text(&get), err) < 0
               ? -1
               : 0;
}

static int prepare_ranks(struct store *s, struct err *err)
{
    CLEANUP_BUF struct buf put = BUF_INIT, get = BUF_INIT, marks = BUF_INIT;
    buf_str(&put, "INSERT INTO rank (run_id,address,nodes");
    buf_str(&get, "SELECT address,nodes");
    for (int i = 0; i < RECORD_RANK_SLOTS; i++) {
        buf_fmt(&put, ",%s", record_rank_slots[i].name);
        buf_fmt(&get, ",%s", record_rank_slots[i].name);
        buf_fmt(&marks, ",?%d", i + 4);
    }
    buf_fmt(&put, ") VALUES (?1,?2,?3%s)", buf_text(&marks));
    buf_str(&get, " FROM rank WHERE run_id = ?1 ORDER BY rank");
    if (!buf_ok(&put) || !buf_ok(&get) || !buf_ok(&marks))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for statements");
    return store_store_prepare(s, Q_RANK_PUT, buf_text(&put), err) < 0 ||
                   store_store_prepare(s, Q_RANK_GET, buf_text(&get), err) < 0
               ? -1
               : 0;
}

int store_prepare(struct store *s, struct err *err)
{
    for (int q = 0; q < STORE_QUERIES; q++)
        if (sql[q] && store_store_prepare(s, q, sql[q], err) < 0)
            return err_prefix(err, "statement %d", q);
    return prepare_cells(s, err) < 0 ? -1 : prepare_ranks(s, err);
}

int store_dirs_make(const char *dir, struct err *err)
{
    char path[512];
    if ((size_t)snprintf(path, sizeof path, "%s", dir) >= sizeof path - 32)
        return err_set(err, ERR_STORAGE, "state-dir", "the path is too long");
    for (char *p = path + 1;; p++) {
        if (*p && *p != '/')
            continue;
        char kept = *p;
        *p = 0;
        if (mkdir(path, 0750) < 0 && errno != EEXIST)
            return err_set(err, ERR_STORAGE, "state-dir", "%s: %s", path, strerror(errno));
        *p = kept;
        if (!kept)
            return 0;
    }
}

static int exec_list(struct store *s, const char *const *list, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (sq_exec(s->db, list[i], err) < 0)
            return -1;
    return 0;
}

static bool file_empty(const char *path)
{
    struct stat st;
    return stat(path, &st) < 0 || st.st_size == 0;
}

// SQLite would make it readable for all; what is beside it (-wal, -shm) follows its mode. Closed
// before SQLite opens it: closing a file gives up every lock that the process has on it, and then a
// reader that leaves takes itself for the last one and deletes the log below us.
static int make_file(const char *path, struct err *err)
{
    CLEANUP_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    return fd < 0 ? err_set(err, ERR_STORAGE, "state-dir", "%s: %s", path, strerror(errno)) : 0;
}

static int open_db(struct store *s, struct err *err)
{
    int64_t pages;
    if (make_file(s->path, err) < 0)
        return -1;
    if (sq_open(&s->db, s->path,
                SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, err) < 0)
        return -1;
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    // Asked of SQLite, which first rolls back what a kill has left of the first pages.
    if (sq_number(s->db, "PRAGMA page_count", &pages, err) < 0)
        return -1;
    if (!pages && exec_list(s, before_first_table, COUNT_OF(before_first_table), err) < 0)
        return -1;
    return exec_list(s, settings, COUNT_OF(settings), err);
}

// All of a small file; of a large one the ends of each table. The rest of it is checked by a
// process of its own when the last daemon did not end well (core/upkeep/upkeep.c), and by every
// statement.
static int store_check(struct store *s, struct err *err)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    struct stat st;
    bool small = stat(s->path, &st) == 0 && st.st_size <= CHECK_WHOLE_BYTES;
    s->unclean = s->unclean && !small;
    if (small)
        return sq_check(s->db, false, err);
    int rc = sqlite3_prepare_v2(s->db, "SELECT name FROM sqlite_schema WHERE type = 'table'", -1,
                                &q, NULL);
    if (rc != SQLITE_OK)
        return sq_fail(err, s->db, rc, "schema");
    int row;
    while ((row = sq_step(q, err)) > 0) {
        char text[200];
        int64_t n;
        const char *table = sq_text(q, 0);
        if (sq_row_whole(q, err) < 0)
            return -1;
        snprintf(text, sizeof text, "SELECT count(*) FROM (SELECT * FROM \"%.60s\" LIMIT 9)",
                 table);
        if (sq_number(s->db, text, &n, err) < 0)
            return -1;
    }
    return row;
}

// What was given so far, so that a fresh database can go on from there.
static int read_numbers(struct store *s, struct err *err)
{
    return sq_number(s->db,
                     "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'run'), 0)",
                     &s->last_id, err) < 0 ||
                   sq_number(s->db, "SELECT value FROM counter WHERE name = 'seq'", &s->last_seq,
                             err) < 0
               ? -1
               : 0;
}

int store_db_open(struct store *s, struct err *err)
{
    char log[600];
    snprintf(log, sizeof log, "%s-wal", s->path);
    s->unclean = !file_empty(log);
    s->openings++;
    if (migrate_check_file(s->path, schema_sql, err) < 0 || open_db(s, err) < 0 ||
        store_check(s, err) < 0 || migrate_run(s->db, s->path, schema_sql, err) < 0 ||
        store_prepare(s, err) < 0 || read_numbers(s, err) < 0)
        return -1;
    sq_wait(s->db, SERVING_BUSY_MS);
    if (!s->opened)
        store_queue_keep(s, 0);
    s->opened = true;
    store_files_note(s);
    return 0;
}

// A single read that fails looks like damage: it is read twice.
static int open_twice(struct store *s, struct err *err)
{
    if (store_db_open(s, err) == 0)
        return 0;
    if (err->code != ERR_DAMAGED)
        return -1;
    store_db_close(s, false);
    return store_db_open(s, err);
}

int store_reopen(struct store *s, struct err *err)
{
    if (store_files_ours(s, err) < 0)
        return -1;
    store_db_close(s, false);
    if (open_twice(s, err) < 0) {
        store_db_close(s, false);
        return -1;
    }
    store_on_damage(s, s->on_damage, s->damage_ctx);
    return 0;
}

void store_db_close(struct store *s, bool checkpoint)
{
    s->doubted = false;
    for (int q = 0; q < STORE_QUERIES; q++) {
        sqlite3_finalize(s->queries[q]);
        s->queries[q] = NULL;
    }
    if (!s->db)
        return;
    sq_on_damage(s->db, NULL, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !checkpoint, NULL);
    sqlite3_close(s->db);
    s->db = NULL;
}

// Sets a damaged one aside, once.
static int open_or_replace(struct store *s, struct err *err)
{
    if (open_twice(s, err) == 0)
        return 0;
    struct err why = *err;
    return why.code == ERR_DAMAGED && store_set_aside(s, why.text, err) >= 0 ? 0 : -1;
}

struct store *store_open(const char *dir, struct err *err)
{
    struct store *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
        return NULL;
    }
    s->lock = s->dir_lock = -1;
    snprintf(s->dir, sizeof s->dir, "%s", dir);
    snprintf(s->path, sizeof s->path, "%s/numaprobe.db", s->dir);
    if (store_dirs_make(dir, err) == 0 && store_lock_take(s, err) == 0 &&
        open_or_replace(s, err) == 0)
        return s;
    store_db_close(s, false);
    store_close(s);
    return NULL;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    store_db_close(s, !s->reader);
    buf_free(&s->carry);
    while (s->n_queue)
        store_queue_drop(s, s->queue[0].id);
    store_lock_drop(s);
    free(s);
}

const char *store_path(const struct store *s)
{
    return s->path;
}

int store_begin(struct store *s, struct err *err)
{
    if (s->doubted)
        return err_set(err, ERR_DAMAGED, "",
                       "a statement found the database damaged; until all of it is checked nothing "
                       "is written");
    if (s->db && store_files_check(s, err) < 0)
        return -1;
    return sq_exec(s->db, "BEGIN IMMEDIATE", err);
}

int store_end(struct store *s, int result, struct err *err)
{
    bool done = result == 0 && sq_exec(s->db, "COMMIT", err) == 0;
    if (done)
        store_files_grown(s);
    if (done && s->new_id)
        s->last_id = s->new_id;
    if (done && s->new_seq)
        s->last_seq = s->new_seq;
    s->new_id = s->new_seq = 0;
    if (done)
        return 0;
    if (!sqlite3_get_autocommit(s->db)) // some errors have rolled back already
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

bool store_writable(struct store *s, struct err *err)
{
    if (store_begin(s, err) < 0)
        return false;
    bool ok = sq_done(s->queries[Q_TOUCH], err) == 0;
    store_end(s, -1, NULL);
    return ok;
}
