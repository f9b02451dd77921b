// SPDX-License-Identifier: Apache-2.0
// There is exactly one connection that writes, and it does every checkpoint too: SQLite before
// 3.51.3 can damage the file when one connection checkpoints while another one resets the WAL
// (docs/STORAGE.md). In order: the file is made with its mode, opened, checked, migrated; then the
// statements are prepared and the files noted that a later write must find again.
#include "core/store/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/store/db.h"
#include "core/store/files.h"
#include "core/store/migrate.h"
#include "core/store/queue.h"
#include "schema/schema.h"

// quick_check reads about 300 MB/s: 50 ms of the 300 that a start may take.
enum {
    CHECK_WHOLE_BYTES = 16 << 20,
    SERVING_BUSY_MS = 200, // while another program writes, no client is served
};

// One transaction: a kill between two would leave a database that names no owner.
static const char *const before_first_table[] = {
    "BEGIN",
    "PRAGMA page_size=8192",
    "PRAGMA auto_vacuum=INCREMENTAL",
    ("PRAGMA application_id=" STORE_APPLICATION_TEXT),
    "COMMIT",
};
static const struct migration migration = {STORE_APPLICATION_ID, schema_sql, "--state-dir"};
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
static int check_opened(struct store *s, struct err *err)
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

// What was given so far, so that a fresh database can continue from there.
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
    if (migrate_check_file(s->path, &migration, err) < 0 || open_db(s, err) < 0 ||
        check_opened(s, err) < 0 || migrate_run(s->db, s->path, &migration, err) < 0 ||
        statements_prepare(s->db, s->queries, err) < 0 || read_numbers(s, err) < 0)
        return -1;
    sq_wait(s->db, SERVING_BUSY_MS);
    if (!s->opened)
        store_queue_keep(s, 0);
    s->opened = true;
    store_files_note(s);
    return 0;
}

void store_db_close(struct store *s, bool checkpoint)
{
    s->doubted = false;
    statements_finalize(s->queries);
    if (!s->db)
        return;
    sq_on_damage(s->db, NULL, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !checkpoint, NULL);
    sqlite3_close(s->db);
    s->db = NULL;
}
