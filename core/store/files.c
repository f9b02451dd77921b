// SPDX-License-Identifier: Apache-2.0
// A user or a script deletes, replaces or truncates the files of the open database. SQLite does not
// notice: it would continue to write to files that no path leads to, and what is acknowledged then
// is lost at the next start. So each write looks first, which is two calls of stat. While the files
// are open their content is not lost, and is written anew; what was cut off is damage like any
// other.
#include "core/store/files.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

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

bool store_files_replaced(const struct store *s)
{
    struct store_file file = files_look(s->path, "");
    return file.ino && !same(&file, &s->file);
}
