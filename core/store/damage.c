// SPDX-License-Identifier: Apache-2.0
// A damaged database is set aside, never mended and never deleted while it is the only one: what is
// in it may be all that there is. What waits in its queue was acknowledged, so that is taken over.
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "core/store/db.h"
#include "core/store/retention.h"

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

// ---- what is taken over

static bool spec_is_good(const char *text)
{
    struct spec spec;
    CLEANUP_JSON struct json *o = json_parse(text, strlen(text), NULL);
    return o && spec_from_json(&spec, o, NULL, NULL) == 0;
}

static void queue_put(struct store *s, sqlite3_stmt *q)
{
    if (s->n_queue == STORE_QUEUE_KEPT || !spec_is_good(sq_text(q, 5)))
        return;
    char *line = sqlite3_mprintf(
        "INSERT INTO run (id,state,benchmark,node,created_ms,idempotency_key,spec) VALUES "
        "(%lld,'queued',%Q,%Q,%lld,%Q,%Q);",
        (long long)sqlite3_column_int64(q, 0), sq_text(q, 1), sq_text(q, 2),
        (long long)sqlite3_column_int64(q, 3), sqlite3_column_text(q, 4), sq_text(q, 5));
    if (line)
        s->queue[s->n_queue++] = (struct store_queued){sqlite3_column_int64(q, 0), line};
}

// Runs from this number on that wait, as far as they can be read.
void store_queue_keep(struct store *s, int64_t from_id)
{
    sqlite3_stmt *q = NULL;
    sqlite3_prepare_v2(s->db,
                       "SELECT id,benchmark,node,created_ms,idempotency_key,spec FROM run "
                       "WHERE state = 'queued' AND id >= ?1 ORDER BY id",
                       -1, &q, NULL);
    if (q && sqlite3_bind_int64(q, 1, from_id) == SQLITE_OK)
        while (sqlite3_step(q) == SQLITE_ROW)
            queue_put(s, q);
    sqlite3_finalize(q);
}

void store_queue_drop(struct store *s, int64_t id)
{
    for (int i = 0; i < s->n_queue; i++)
        if (s->queue[i].id == id) {
            sqlite3_free(s->queue[i].sql);
            s->n_queue--;
            memmove(&s->queue[i], &s->queue[i + 1], (size_t)(s->n_queue - i) * sizeof s->queue[0]);
            return;
        }
}

static void queue_out(const struct store *s, struct buf *out)
{
    for (int i = 0; i < s->n_queue; i++)
        buf_str(out, s->queue[i].sql);
}

// Numbers go on where they were: what we remember, else what can still be read.
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
                           "the database is damaged and cannot be set aside: %s: %s", from,
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
        queue_out(s, &s->carry);
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

int store_damage_move(struct store *s, struct err *err)
{
    char to[600];
    new_name(s, to, sizeof to);
    return rename(s->path, to) < 0 ? err_sys(err, "renaming %s", s->path) : 0;
}

static int write_again(struct store *s, struct err *err)
{
    sq_on_damage(s->db, NULL, NULL);
    int rc = store_files_rewrite(s, err);
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

int store_run_restore(struct store *s, const struct run_restore *r, struct err *err)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    CLEANUP_BUF struct buf spec = BUF_INIT;
    struct jsonw w = jsonw_to(&spec);
    if (store_run_state(s, r->id, err) >= 0)
        return 0;
    spec_write_json(r->spec, &w, NULL);
    if (!buf_ok(&spec))
        return err_set(err, ERR_NO_MEMORY, "", "no memory to restore a run");
    int rc = sqlite3_prepare_v2(s->db,
                                "INSERT INTO run (id,state,benchmark,node,created_ms,spec) "
                                "VALUES (?1,'queued',?2,?3,?4,?5)",
                                -1, &q, NULL);
    if (rc != SQLITE_OK)
        return sq_fail(err, s->db, rc, "restore a run");
    if (sq_bind(q, err, "ittit", r->id, benchmarks[r->spec->benchmark].name, r->node, r->created_ms,
                buf_text(&spec)) < 0 ||
        sq_done(q, err) < 0 ||
        store_run_started(s, r->id, r->plan_json, r->conditions_json, r->fingerprint,
                          r->topology_xml, err) < 0)
        return -1;
    char text[96];
    snprintf(text, sizeof text, "UPDATE run SET started_ms = %" PRId64 " WHERE id = %" PRId64,
             r->started_ms, r->id);
    return sq_exec(s->db, text, err);
}
