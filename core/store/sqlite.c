// SPDX-License-Identifier: Apache-2.0
// SQLite's results become error values in one function, sq_fail, which also calls the hook for
// damage. Waits for locks are shorter than SQLite's own, because the loop stands still meanwhile.
#include "core/store/sqlite.h"

#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
    int rc;
    enum err_code code;
    const char *text;
} meanings[] = {
    {SQLITE_FULL, ERR_STORAGE, "the disk is full"},
    {SQLITE_IOERR, ERR_STORAGE, "the disk gave an I/O error"},
    {SQLITE_READONLY, ERR_STORAGE, "the database cannot be written to"},
    {SQLITE_CORRUPT, ERR_DAMAGED, "the database is damaged"},
    {SQLITE_NOTADB, ERR_DAMAGED, "the file is not a database"},
    {SQLITE_CANTOPEN, ERR_STORAGE, "the database cannot be opened"},
    {SQLITE_PERM, ERR_STORAGE, "no permission for the database"},
    {SQLITE_BUSY, ERR_STORAGE, "another program has the database locked"},
    {SQLITE_PROTOCOL, ERR_STORAGE, "the database cannot be locked"},
    {SQLITE_LOCKED, ERR_STORAGE, "the database is locked"},
    {SQLITE_NOMEM, ERR_NO_MEMORY, "no memory for the database"},
};

static struct {
    sqlite3 *db;
    void (*fn)(void *ctx);
    void *ctx;
} on_damage;

void sq_on_damage(sqlite3 *db, void (*fn)(void *ctx), void *ctx)
{
    if (!fn && on_damage.db != db)
        return;
    on_damage.db = fn ? db : NULL;
    on_damage.fn = fn;
    on_damage.ctx = ctx;
}

// A log that cannot be locked is tried a hundred times, with pauses of 10 s in all, for each
// statement, and meanwhile no client is served. Readers need microseconds: 170 ms are enough.
enum { NAP_MAX_US = 2000, BUSY_STEP_MS = 5 };

static sqlite3_vfs own_vfs;
static int (*vfs_sleep)(sqlite3_vfs *vfs, int us);

static int nap(sqlite3_vfs *vfs, int us)
{
    return vfs_sleep(vfs, us < NAP_MAX_US ? us : NAP_MAX_US);
}

static bool waited; // the statement is tried again: no second wait

static int wait_busy(void *most_ms, int times)
{
    if (waited)
        return 0;
    poll(NULL, 0, BUSY_STEP_MS);
    return times < (int)(intptr_t)most_ms / BUSY_STEP_MS;
}

void sq_wait(sqlite3 *db, int ms)
{
    sqlite3_busy_handler(db, wait_busy, (void *)(intptr_t)ms);
}

// The usual one, which naps shorter. NULL without memory: opening then says so.
static const char *vfs_name(void)
{
    sqlite3_vfs *usual = own_vfs.zName ? NULL : sqlite3_vfs_find(NULL);
    if (usual) {
        vfs_sleep = usual->xSleep;
        own_vfs = *usual;
        own_vfs.pNext = NULL;
        own_vfs.zName = "numaprobe";
        own_vfs.xSleep = nap;
        sqlite3_vfs_register(&own_vfs, 0);
    }
    return own_vfs.zName;
}

int sq_open(sqlite3 **out, const char *path, int flags, struct err *err)
{
    int rc = sqlite3_open_v2(path, out, flags | SQLITE_OPEN_EXRESCODE, vfs_name());
    if (rc != SQLITE_OK)
        return sq_fail(err, *out, rc, path);
    sq_wait(*out, SQ_BUSY_MS);
    return 0;
}

// A lock of the log that could not be released blocks us as well, for good: SQLite's account of the
// locks of this process still has it. A reader then gets PROTOCOL, and since SQLite 3.45 a writer
// gets BUSY. Between transactions we hold no lock, so all are released.
static bool unstick(sqlite3 *db, int rc)
{
    sqlite3_file *file = NULL;
    if (((rc & 0xff) != SQLITE_PROTOCOL && (rc & 0xff) != SQLITE_BUSY) ||
        sqlite3_txn_state(db, NULL) != SQLITE_TXN_NONE)
        return false;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
        !file->pMethods || file->pMethods->iVersion < 2)
        return false;
    return file->pMethods->xShmLock(file, 0, SQLITE_SHM_NLOCK,
                                    SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE) == SQLITE_OK;
}

int sq_fail(struct err *err, sqlite3 *db, int rc, const char *what)
{
    const char *detail = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    if (!db)
        return err_set(err, ERR_STORAGE, "", "there is no database now (%s: %s)", what, detail);
    if (rc == SQLITE_IOERR_SHORT_READ) // only of the log: it was truncated
        return sq_damaged(err, db, "the database's log was truncated");
    if (((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB) && on_damage.db == db)
        on_damage.fn(on_damage.ctx);
    for (size_t i = 0; i < COUNT_OF(meanings); i++)
        if (meanings[i].rc == (rc & 0xff))
            return err_set(err, meanings[i].code, "", "%s (%s: %s)", meanings[i].text, what,
                           detail);
    return err_set(err, ERR_INTERNAL, "", "database: %s: %s", what, detail);
}

int sq_damaged(struct err *err, sqlite3 *db, const char *text)
{
    if (on_damage.db == db && on_damage.fn)
        on_damage.fn(on_damage.ctx);
    return err_set(err, ERR_DAMAGED, "", "%s", text);
}

int sq_exec(sqlite3 *db, const char *sql, struct err *err)
{
    char what[64];
    snprintf(what, sizeof what, "%s", sql);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    waited = unstick(db, rc);
    if (waited)
        rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    waited = false;
    return rc == SQLITE_OK ? 0 : sq_fail(err, db, rc, what);
}

int sq_number(sqlite3 *db, const char *sql, int64_t *out, struct err *err)
{
    sqlite3_stmt *q;
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc != SQLITE_OK)
        return sq_fail(err, db, rc, sql);
    int row = sq_step(q, err);
    if (row > 0)
        *out = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return row < 0 ? -1 : row > 0 ? 0 : err_set(err, ERR_INTERNAL, "", "%s: no result", sql);
}

int sq_check(sqlite3 *db, bool thorough, struct err *err)
{
    const char *sql = thorough ? "PRAGMA integrity_check(1)" : "PRAGMA quick_check(1)";
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc != SQLITE_OK)
        return sq_fail(err, db, rc, sql);
    int row = sq_step(q, err);
    if (row < 0)
        return -1;
    char text[160];
    snprintf(text, sizeof text, "%s", row ? sq_text(q, 0) : "no result");
    if (sq_row_whole(q, err) < 0)
        return -1;
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    return strcmp(text, "ok") == 0
               ? 0
               : err_set(err, ERR_DAMAGED, "", "the database is damaged (%s)", text);
}

static int bind_one(sqlite3_stmt *q, int at, char kind, va_list *ap)
{
    if (kind == 't')
        return sqlite3_bind_text(q, at, va_arg(*ap, const char *), -1, SQLITE_STATIC);
    if (kind == 'd')
        return sqlite3_bind_double(q, at, va_arg(*ap, double)); // NaN becomes NULL
    int64_t v = va_arg(*ap, int64_t);
    if (kind == 'z' && v == 0)
        return sqlite3_bind_null(q, at);
    return sqlite3_bind_int64(q, at, v);
}

int sq_bind(sqlite3_stmt *q, struct err *err, const char *kinds, ...)
{
    va_list ap;
    va_start(ap, kinds);
    int rc = SQLITE_OK;
    for (int i = 0; kinds[i] && rc == SQLITE_OK; i++)
        rc = bind_one(q, i + 1, kinds[i], &ap);
    va_end(ap);
    return rc == SQLITE_OK ? 0 : sq_fail(err, sqlite3_db_handle(q), rc, "bind");
}

// The statement whose row had no memory for a text, until a caller was notified.
static const sqlite3_stmt *lost;

static void forget_lost(const sqlite3_stmt *q)
{
    if (lost == q)
        lost = NULL;
}

void sq_finalize_cleanup(sqlite3_stmt **q)
{
    forget_lost(*q);
    sqlite3_finalize(*q);
}

int sq_row_whole(sqlite3_stmt *q, struct err *err)
{
    if (lost != q)
        return 0;
    lost = NULL;
    return sq_fail(err, sqlite3_db_handle(q), SQLITE_NOMEM, "row");
}

int sq_step(sqlite3_stmt *q, struct err *err)
{
    if (sq_row_whole(q, err) < 0)
        return -1;
    int rc = sqlite3_step(q);
    waited = unstick(sqlite3_db_handle(q), rc);
    if (waited)
        rc = sqlite3_step(q);
    waited = false;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return rc == SQLITE_ROW;
    return sq_fail(err, sqlite3_db_handle(q), rc, "step");
}

int sq_done(sqlite3_stmt *q, struct err *err)
{
    int row = sq_step(q, err);
    sq_reset(q);
    return row > 0 ? err_set(err, ERR_INTERNAL, "", "database: a row where none was expected")
                   : row;
}

const char *sq_text(sqlite3_stmt *q, int column)
{
    const char *s = (const char *)sqlite3_column_text(q, column);
    if (!s && (sqlite3_errcode(sqlite3_db_handle(q)) & 0xff) == SQLITE_NOMEM)
        lost = q;
    return s ? s : "";
}

void sq_reset(sqlite3_stmt *q)
{
    forget_lost(q);
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
}

void sq_reset_cleanup(sqlite3_stmt **q)
{
    if (*q)
        sq_reset(*q);
}

int sq_copy(sqlite3 *db, const char *to, struct err *err)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(db, "VACUUM INTO ?1", -1, &q, NULL);
    if (rc != SQLITE_OK)
        return sq_fail(err, db, rc, "VACUUM INTO");
    return sq_bind(q, err, "t", to) < 0 ? -1 : sq_step(q, err);
}
