// SPDX-License-Identifier: Apache-2.0
// The file's header is read without SQLite first, so that a foreign or newer file stays untouched.
// Before the first step a copy is written beside the database; each step is a transaction. A new
// database is made in one.
#include "core/store/migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

// Offsets in the file header: https://www.sqlite.org/fileformat.html section 1.3
enum {
    HEADER_SIZE = 100,
    AT_PAGE_SIZE = 16,
    AT_FORMATS = 18,
    AT_FRACTIONS = 21,
    AT_CHANGES = 24,
    AT_PAGES = 28,
    AT_SCHEMA_COOKIE = 40, // rises with each table that is made
    AT_USER_VERSION = 60,
    AT_APPLICATION_ID = 68,
    AT_PAGES_VALID_FOR = 92,
    FIRST_PAGE_BYTES = 8192, // our page_size, see core/store/store.c
};

static int check_identity(const char *path, int64_t application, int64_t version,
                          const struct migration *m, struct err *err)
{
    if (application != m->application)
        return err_set(err, ERR_STORAGE, "",
                       "%s is a database of another program; it is left alone", path);
    if (version > embedded_count(m->steps))
        return err_set(err, ERR_STORAGE, "",
                       "%s was written by a newer numaprobe (schema %" PRId64
                       ", this one knows %" PRId64
                       "); it is left alone: run that version, or give another %s",
                       path, version, embedded_count(m->steps), m->option);
    return 0;
}

static int64_t big_endian(const unsigned char *p)
{
    return (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | p[3];
}

// Whether any program could have written this as the beginning of a database of `bytes` bytes.
static int check_header(const unsigned char *head, int64_t n, int64_t bytes, bool has_log,
                        const char *path, struct err *err)
{
    static const unsigned char fractions[] = {64, 32, 32};
    if (n < HEADER_SIZE || memcmp(head, "SQLite format 3", 16) != 0)
        return err_set(err, ERR_DAMAGED, "", "%s is not a database", path);
    int64_t page = head[AT_PAGE_SIZE] << 8 | head[AT_PAGE_SIZE + 1];
    if (page == 1)
        page = 65536;
    if (page < 512 || (page & (page - 1)) || head[AT_FORMATS] - 1u > 1 ||
        head[AT_FORMATS + 1] - 1u > 1 || memcmp(head + AT_FRACTIONS, fractions, 3) != 0)
        return err_set(err, ERR_DAMAGED, "", "%s: invalid SQLite header", path);
    int64_t pages = big_endian(head + AT_PAGES);
    bool known = memcmp(head + AT_CHANGES, head + AT_PAGES_VALID_FOR, 4) == 0;
    if (known && !has_log && bytes < pages * page)
        return err_set(err, ERR_DAMAGED, "",
                       "%s is cut off: %" PRId64 " of %" PRId64 " bytes are there", path, bytes,
                       pages * page);
    return 0;
}

static bool has_beside(const char *path, const char *suffix)
{
    char beside[600];
    struct stat st;
    snprintf(beside, sizeof beside, "%s%s", path, suffix);
    return stat(beside, &st) == 0 && st.st_size > 0;
}

// A daemon was killed while it made the file: SQLite rolls that back, and then the file is empty.
// Later there is never a journal, only a log.
static bool half_made(const char *path, int64_t bytes)
{
    return bytes <= FIRST_PAGE_BYTES && has_beside(path, "-journal");
}

int migrate_check_file(const char *path, const struct migration *m, struct err *err)
{
    unsigned char head[HEADER_SIZE] = {0};
    struct stat st;
    // Of a pipe the opening would wait for a writer.
    CLEANUP_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_set(err, ERR_STORAGE, "", "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(err, ERR_STORAGE, "", "%s is not a regular file", path);
    ssize_t n = read(fd, head, sizeof head);
    if (n < 0 || fstat(fd, &st) < 0)
        return err_set(err, ERR_STORAGE, "", "%s: %s", path, strerror(errno));
    if (n == 0 || half_made(path, (int64_t)st.st_size))
        return 0;
    if (check_header(head, n, (int64_t)st.st_size, has_beside(path, "-wal"), path, err) < 0)
        return -1;
    // Begun, and ended before anything was in it; migrate_run looks what a log holds.
    if (big_endian(head + AT_SCHEMA_COOKIE) == 0 && big_endian(head + AT_APPLICATION_ID) == 0 &&
        big_endian(head + AT_USER_VERSION) == 0)
        return 0;
    return check_identity(path, big_endian(head + AT_APPLICATION_ID),
                          big_endian(head + AT_USER_VERSION), m, err);
}

// The copy is on disk before anything is changed, and has its name only when it is whole.
static int migrate_keep(const char *part, const char *copy, struct err *err)
{
    CLEANUP_FD int fd = open(part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fsync(fd) < 0 || rename(part, copy) < 0)
        return err_set(err, ERR_STORAGE, "", "%s: %s", part, strerror(errno));
    char dir[600];
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(copy, '/') - copy), copy);
    CLEANUP_FD int d = open(*dir ? dir : "/", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    return d < 0 || fsync(d) < 0 ? err_set(err, ERR_STORAGE, "", "%s: %s", dir, strerror(errno))
                                 : 0;
}

// SQLite fills an empty file, and would make its own readable by every account.
static int make_empty(const char *part, struct err *err)
{
    unlink(part); // of an attempt that failed
    CLEANUP_FD int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
    return fd < 0 ? err_set(err, ERR_STORAGE, "", "%s: %s", part, strerror(errno)) : 0;
}

static int backup(sqlite3 *db, const char *path, int64_t version, struct err *err)
{
    char copy[600], part[620];
    snprintf(copy, sizeof copy, "%s.v%" PRId64 ".bak", path, version);
    snprintf(part, sizeof part, "%s.part", copy);
    if (make_empty(part, err) == 0 && sq_copy(db, part, err) == 0 &&
        migrate_keep(part, copy, err) == 0)
        return 0;
    unlink(part);
    return err_prefix(err, "copy before the migration to %s", copy);
}

// Steps `from` to `to` in one transaction: a database that is being made is not seen half made.
static int apply(sqlite3 *db, const struct embedded *steps, int64_t from, int64_t to,
                 struct err *err)
{
    char set[64];
    int64_t at = from;
    snprintf(set, sizeof set, "PRAGMA user_version=%" PRId64, to);
    if (sq_exec(db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    while (at < to && sq_exec(db, steps[at].data, err) == 0)
        at++;
    if (at == to && sq_exec(db, set, err) == 0 && sq_exec(db, "COMMIT", err) == 0)
        return 0;
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return err_prefix(err, "migration %s", steps[at < to ? at : to - 1].name);
}

int migrate_check_tables(sqlite3 *db, const char *path, int64_t version, const struct migration *m,
                         struct err *err)
{
    int64_t there = 1;
    char sql[120];
    if (version > 0 && m->table) {
        snprintf(sql, sizeof sql, "SELECT count(*) FROM sqlite_schema WHERE name = '%s'", m->table);
        if (sq_number(db, sql, &there, err) < 0)
            return -1;
    }
    return there ? 0
                 : err_set(err, ERR_STORAGE, "",
                           "%s was written by a numaprobe from before the first release (schema "
                           "%" PRId64 " without the table \"%s\"); it is left alone: run that "
                           "version, or give another %s",
                           path, version, m->table, m->option);
}

int migrate_run(sqlite3 *db, const char *path, const struct migration *m, struct err *err)
{
    int64_t version, application, things;
    char claim[64];
    snprintf(claim, sizeof claim, "PRAGMA application_id=%" PRId64, m->application);
    if (sq_number(db, "PRAGMA user_version", &version, err) < 0 ||
        sq_number(db, "PRAGMA application_id", &application, err) < 0 ||
        sq_number(db, "SELECT count(*) FROM sqlite_schema", &things, err) < 0)
        return -1;
    bool empty = !version && !application && !things;
    if (!empty && (check_identity(path, application, version, m, err) < 0 ||
                   migrate_check_tables(db, path, version, m, err) < 0))
        return -1;
    if (empty && sq_exec(db, claim, err) < 0)
        return -1;
    if (version > 0 && version < embedded_count(m->steps) && backup(db, path, version, err) < 0)
        return -1;
    if (version == 0)
        return apply(db, m->steps, 0, embedded_count(m->steps), err);
    for (; version < embedded_count(m->steps); version++)
        if (apply(db, m->steps, version, version + 1, err) < 0)
            return -1;
    return 0;
}
