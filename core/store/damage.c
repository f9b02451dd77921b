// SPDX-License-Identifier: Apache-2.0
// A damaged database is quarantined, never repaired and never deleted while it is the only one:
// what is in it may be all that there is. What waits in its queue was acknowledged, so that is
// taken over.
#include "core/store/damage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/store/connection.h"
#include "core/store/db.h"
#include "core/store/files.h"
#include "core/store/lock.h"
#include "core/store/queue.h"
#include "core/store/transaction.h"

static const char mark[] = "numaprobe.db.damaged-";
static const char *const parts[] = {"", "-wal", "-shm"};

const struct store_damage *store_damage(const struct store *s)
{
    return &s->damage;
}

bool store_was_unclean(const struct store *s)
{
    return s->unclean;
}

static void seen(void *ctx)
{
    struct store *s = ctx;
    if (s->on_damage)
        s->on_damage(s->damage_ctx);
}

void store_on_damage(struct store *s, void (*fn)(void *ctx), void *ctx)
{
    s->on_damage = fn;
    s->damage_ctx = ctx;
    sq_on_damage(s->db, fn ? seen : NULL, s);
}

bool store_damage_is_plain(struct store *s)
{
    struct err err;
    return s->db && store_files_check(s, &err) < 0 && err.code == ERR_DAMAGED;
}

void store_doubt(struct store *s)
{
    s->doubted = true;
}

// Numbers continue where they were: what we remember, else what can still be read.
static void numbers_out(struct store *s, struct buf *out)
{
    int64_t id = 0, seq = 0;
    sq_number(s->db, "SELECT seq FROM sqlite_sequence WHERE name = 'run'", &id, NULL);
    sq_number(s->db, "SELECT value FROM counter WHERE name = 'seq'", &seq, NULL);
    id = s->last_id > id ? s->last_id : id;
    seq = s->last_seq > seq ? s->last_seq : seq;
    buf_fmt(out,
            "DELETE FROM sqlite_sequence WHERE name = 'run';"
            "INSERT INTO sqlite_sequence (name,seq) VALUES ('run',%" PRId64 ");"
            "UPDATE counter SET value = %" PRId64 " WHERE name = 'seq';",
            id, seq);
}

static int damage_take_over(struct store *s, const struct buf *script, struct err *err)
{
    if (!buf_ok(script))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the queue");
    if (store_begin(s, err) < 0)
        return -1;
    return store_end(s, sq_exec(s->db, buf_text(script), err), err);
}

// ---- files

static void new_name(const struct store *s, char *out, size_t room)
{
    char when[32];
    struct tm tm;
    struct stat st;
    time_t now = (time_t)(clock_wall_ms() / 1000);
    gmtime_r(&now, &tm);
    strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &tm);
    snprintf(out, room, "%s/%s%s", s->dir, mark, when);
    for (int i = 2; lstat(out, &st) == 0; i++) // two in one second
        snprintf(out, room, "%s/%s%s.%d", s->dir, mark, when, i);
}

// The log first: a database without its log looks older than it is, a log without its database is
// nothing.
static int move_away(const struct store *s, const char *to, struct err *err)
{
    for (int i = COUNT_OF(parts) - 1; i >= 0; i--) {
        char from[600], full[620];
        snprintf(from, sizeof from, "%s%s", s->path, parts[i]);
        snprintf(full, sizeof full, "%s%s", to, parts[i]);
        if (rename(from, full) < 0 && errno != ENOENT)
            return err_set(err, ERR_STORAGE, "state-dir",
                           "the database is damaged and cannot be quarantined: %s: %s", from,
                           strerror(errno));
    }
    return 0;
}

static bool is_database(const char *name)
{
    size_t n = strlen(name);
    return str_starts(name, mark) && strcmp(name + n - 4, "-wal") != 0 &&
           strcmp(name + n - 4, "-shm") != 0;
}

// By the time in the name, then by the number of those of one second: none, 2, 3 ... 10.
static bool is_newer(const char *a, const char *b)
{
    size_t n = strlen(mark) + strlen("20260101T000000Z");
    int order = strncmp(a, b, n);
    return order ? order > 0 : strlen(a) != strlen(b) ? strlen(a) > strlen(b) : strcmp(a, b) > 0;
}

// Into its place among those that are listed; what is older than `most` others is left out.
static void insert(struct store_damaged_file *list, int n, int most,
                   const struct store_damaged_file *one)
{
    int at = n < most ? n : most;
    while (at > 0 && is_newer(one->name, list[at - 1].name)) {
        if (at < most)
            list[at] = list[at - 1];
        at--;
    }
    if (at < most)
        list[at] = *one;
}

int store_damaged_list(const struct store *s, struct store_damaged_file *out, int most)
{
    CLEANUP_DIR DIR *d = opendir(s->dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char full[600 + sizeof e->d_name];
        struct store_damaged_file one;
        struct stat st;
        snprintf(full, sizeof full, "%s/%s", s->dir, e->d_name);
        if (!is_database(e->d_name) || lstat(full, &st) < 0)
            continue;
        snprintf(one.name, sizeof one.name, "%s", e->d_name);
        one.bytes = (int64_t)st.st_size;
        insert(out, n++, most, &one);
    }
    return n;
}

static void remove_smallest(const struct store *s)
{
    struct store_damaged_file list[STORE_DAMAGED_LISTED];
    int n = store_damaged_list(s, list, STORE_DAMAGED_LISTED), least = 0;
    if (n <= STORE_DAMAGED_KEPT)
        return;
    for (int i = 1; i < n && i < STORE_DAMAGED_LISTED; i++)
        if (list[i].bytes <= list[least].bytes)
            least = i; // of equals the older one
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        char full[700];
        snprintf(full, sizeof full, "%s/%s%s", s->dir, list[least].name, parts[i]);
        unlink(full);
    }
}

// ---- the whole

// The first half: the files have other names, the connection is gone, what to take over is kept.
static int put_aside(struct store *s, const char *why, struct err *err)
{
    struct store_damage d = {.when_ms = clock_wall_ms(), .carried = s->damage.carried};
    snprintf(d.why, sizeof d.why, "%s", why);
    if (s->db) {
        if (!sqlite3_get_autocommit(s->db))
            sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        sq_on_damage(s->db, NULL, NULL); // it will show again while the queue is read
    }
    if ((s->db || s->opened) && !s->carry.len) {
        if (!s->opened)
            store_queue_keep(s, 0);
        d.carried = s->n_queue;
        store_queue_sql(s, &s->carry);
        numbers_out(s, &s->carry);
    }
    new_name(s, d.file, sizeof d.file);
    if (move_away(s, d.file, err) < 0) {
        store_on_damage(s, s->on_damage, s->damage_ctx);
        return -1;
    }
    s->damage = d;
    s->moved = true;
    store_db_close(s, false);
    remove_smallest(s);
    return 0;
}

static int damage_move(struct store *s, struct err *err)
{
    char to[600];
    new_name(s, to, sizeof to);
    return rename(s->path, to) < 0 ? err_sys(err, "renaming %s", s->path) : 0;
}

static int files_write_copy(struct store *s, const char *to, struct err *err)
{
    if (sq_copy(s->db, to, err) < 0)
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

// After FILES_MOVED: what is still open is written anew and opened. -1 with s->db NULL: the copy is
// whole, but could not be put in place.
static int files_rewrite(struct store *s, struct err *err)
{
    char copy[600];
    snprintf(copy, sizeof copy, "%s.new", s->path);
    // Where the directory is another one now, a second daemon may be at work in it.
    if (store_dir_make(s->dir, err) < 0 || store_lock_take(s, err) < 0)
        return -1;
    unlink(copy); // of an attempt that failed
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    if (files_write_copy(s, copy, err) < 0 ||
        (store_files_replaced(s) && damage_move(s, err) < 0)) {
        unlink(copy);
        return -1;
    }
    store_db_close(s, false);
    return put_in_place(s, copy, err) < 0 ? -1 : store_db_open(s, err);
}

static int write_again(struct store *s, struct err *err)
{
    sq_on_damage(s->db, NULL, NULL);
    int rc = files_rewrite(s, err);
    if (s->db)
        store_on_damage(s, s->on_damage, s->damage_ctx);
    return rc;
}

// What has the names of our files may be another daemon's database by now.
int store_files_ours(struct store *s, struct err *err)
{
    if (store_lock_take(s, err) < 0)
        return -1;
    return s->db && store_files_look(s) == FILES_MOVED
               ? err_set(err, ERR_STORAGE, "", "the database's files were deleted or replaced")
               : 0;
}

int store_set_aside(struct store *s, const char *why, struct err *err)
{
    if (!s->moved && s->db && store_files_look(s) == FILES_MOVED) {
        if (write_again(s, err) == 0)
            return 1;
        if (s->db && err->code != ERR_DAMAGED)
            return -1; // as long as they are open, nothing is lost
    } else if (!s->moved && store_files_ours(s, err) < 0) {
        return -1; // the next try finds them moved
    }
    if (!s->moved && put_aside(s, why, err) < 0)
        return -1;
    if (!s->db && store_db_open(s, err) < 0) {
        store_db_close(s, false);
        s->moved = err->code != ERR_DAMAGED; // the fresh one too: it goes the same way
        return -1;
    }
    if (s->carry.len && damage_take_over(s, &s->carry, err) < 0)
        return -1;
    buf_free(&s->carry);
    s->moved = false;
    store_on_damage(s, s->on_damage, s->damage_ctx);
    return 0;
}
