// SPDX-License-Identifier: Apache-2.0
// Somebody deletes, replaces or truncates the files of the open database. SQLite does not notice:
// it would go on writing to files that nobody finds again, and what is acknowledged then is lost at
// the next start. So each write looks first, which is two calls of stat. While the files are open
// their content is not lost, and is written anew; what was cut off is damage like any other.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/store/db.h"

enum { LEAST_BYTES = 8192 }; // the first page is there from the beginning

// All zero: it is not there. *unknown (if not NULL) is set when the system did not say.
static struct store_file look_at(const char *path, const char *suffix, bool *unknown)
{
    char full[600];
    struct stat st;
    snprintf(full, sizeof full, "%s%s", path, suffix);
    if (lstat(full, &st) < 0) {
        if (unknown && errno != ENOENT && errno != ENOTDIR)
            *unknown = true;
        return (struct store_file){0};
    }
    return (struct store_file){st.st_dev, st.st_ino, (int64_t)st.st_size};
}

static struct store_file files_look(const char *path, const char *suffix)
{
    return look_at(path, suffix, NULL);
}

static bool same(const struct store_file *a, const struct store_file *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}

void store_files_note(struct store *s)
{
    s->file = files_look(s->path, "");
    s->log = files_look(s->path, "-wal");
}

// Only of our own files: what another daemon has put at the path meanwhile must not count as ours,
// nor an empty path as not noted yet.
void store_files_grown(struct store *s)
{
    struct store_file file = files_look(s->path, ""), log = files_look(s->path, "-wal");
    if (!same(&file, &s->file) || (s->log.ino && !same(&log, &s->log)))
        return;
    s->file = file;
    s->log = log;
}

enum store_files store_files_look(const struct store *s)
{
    bool unknown = false;
    struct store_file file = look_at(s->path, "", &unknown);
    struct store_file log = look_at(s->path, "-wal", &unknown);
    if (!s->file.ino)
        return FILES_SAME; // not noted yet
    if (unknown)
        return FILES_UNKNOWN;
    if (!same(&file, &s->file) || (s->log.ino && !same(&log, &s->log)))
        return FILES_MOVED;
    return file.bytes < LEAST_BYTES || log.bytes < s->log.bytes ? FILES_CUT : FILES_SAME;
}

int store_files_check(struct store *s, struct err *err)
{
    static const char *const texts[] = {
        [FILES_MOVED] = "the database's files were deleted or replaced",
        [FILES_CUT] = "the database's files were truncated",
    };
    enum store_files found = store_files_look(s);
    if (found == FILES_UNKNOWN)
        return err_set(err, ERR_STORAGE, "", "the database's files cannot be looked at");
    // A shell that checkpoints empties the log as well, and then nothing is missing: SQLite knows.
    if (found == FILES_CUT && files_look(s->path, "").bytes >= LEAST_BYTES &&
        sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
            SQLITE_OK) {
        store_files_grown(s);
        found = FILES_SAME;
    }
    return found == FILES_SAME ? 0 : sq_damaged(err, s->db, texts[found]);
}

static int files_write_copy(struct store *s, const char *to, struct err *err)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(s->db, "VACUUM INTO ?1", -1, &q, NULL);
    if (rc != SQLITE_OK)
        return sq_fail(err, s->db, rc, "VACUUM INTO");
    if (sq_bind(q, err, "t", to) < 0 || sq_step(q, err) < 0)
        return -1;
    CLEANUP_FD int fd = open(to, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 || fchmod(fd, 0640) < 0 || fsync(fd) < 0 ? err_sys(err, "writing %s", to) : 0;
}

// The old log must be gone before the copy has the name: SQLite would take it for the copy's.
static int put_in_place(struct store *s, const char *copy, struct err *err)
{
    static const char *const beside[] = {"-wal", "-shm"};
    for (size_t i = 0; i < COUNT_OF(beside); i++) {
        char full[600];
        snprintf(full, sizeof full, "%s%s", s->path, beside[i]);
        if (unlink(full) < 0 && errno != ENOENT)
            return err_sys(err, "removing %s", full);
    }
    if (rename(copy, s->path) < 0)
        return err_sys(err, "renaming %s", copy);
    CLEANUP_FD int dir = open(s->dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    return dir < 0 || fsync(dir) < 0 ? err_sys(err, "writing %s", s->dir) : 0;
}

int store_files_rewrite(struct store *s, struct err *err)
{
    char copy[600];
    struct store_file file = files_look(s->path, "");
    snprintf(copy, sizeof copy, "%s.new", s->path);
    // Where the directory is another one now, a second daemon may be at work in it.
    if (store_dirs_make(s->dir, err) < 0 || store_lock_take(s, err) < 0)
        return -1;
    unlink(copy); // of an attempt that failed
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    if (files_write_copy(s, copy, err) < 0 ||
        (file.ino && !same(&file, &s->file) && store_damage_move(s, err) < 0)) {
        unlink(copy);
        return -1;
    }
    store_db_close(s, false);
    return put_in_place(s, copy, err) < 0 ? -1 : store_db_open(s, err);
}
