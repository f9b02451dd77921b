// SPDX-License-Identifier: Apache-2.0
// How much is stored, and retention in steps that fit between two requests.
#include "core/store/retention.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/store/age.h"
#include "core/store/db.h"
#include "core/store/remove.h"
#include "core/store/size.h"
#include "core/store/stage.h"
#include "core/store/transaction.h"

static int64_t file_bytes(const char *path, const char *suffix)
{
    char full[600];
    struct stat st;
    snprintf(full, sizeof full, "%s%s", path, suffix);
    return stat(full, &st) < 0 ? 0 : (int64_t)st.st_size;
}

static int used_bytes(struct store *s, int64_t *out, struct err *err)
{
    int64_t pages, unused, size;
    if (sq_number(s->db, "PRAGMA page_count", &pages, err) < 0 ||
        sq_number(s->db, "PRAGMA freelist_count", &unused, err) < 0 ||
        sq_number(s->db, "PRAGMA page_size", &size, err) < 0)
        return -1;
    *out = (pages - unused) * size;
    return 0;
}

static int count_runs(struct store *s, int64_t *all, int64_t *pinned, struct err *err)
{
    return sq_number(s->db, "SELECT count(*) FROM run", all, err) < 0 ||
                   sq_number(s->db,
                             "SELECT count(*) FROM (SELECT id FROM run WHERE label <> '' "
                             "UNION SELECT run_id FROM baseline_run)",
                             pinned, err) < 0
               ? -1
               : 0;
}

static int disk_free_bytes(const struct store *s, int64_t *out, struct err *err)
{
    struct statvfs fs;
    if (statvfs(s->path, &fs) < 0)
        return err_sys(err, "cannot see how full the disk of the database is");
    *out = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    return 0;
}

int store_has_room(const struct store *s, struct err *err)
{
    int64_t bytes = 0;
    if (disk_free_bytes(s, &bytes, err) < 0)
        return -1;
    if (bytes < STORE_DISK_SPARE_BYTES)
        return err_set(err, ERR_STORAGE, "", "%" PRId64 " MiB free beside the database, below %d",
                       bytes >> 20, (int)(STORE_DISK_SPARE_BYTES >> 20));
    return 0;
}

int store_usage(struct store *s, struct store_usage *out, struct err *err)
{
    struct store_usage u = {.file_bytes = file_bytes(s->path, ""),
                            .wal_bytes = file_bytes(s->path, "-wal")};
    if (used_bytes(s, &u.used_bytes, err) < 0 || count_runs(s, &u.runs, &u.pinned, err) < 0 ||
        sq_number(s->db, "SELECT coalesce((SELECT created_ms FROM run ORDER BY id LIMIT 1), 0)",
                  &u.oldest_ms, err) < 0 ||
        disk_free_bytes(s, &u.disk_free_bytes, err) < 0)
        return -1;
    *out = u;
    return 0;
}

// The next run that may go. 1: found, 0: none, -1.
static int next_old(struct store *s, int64_t after_id, int64_t *id, int64_t *created_ms,
                    struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_OLD];
    if (sq_bind(q, err, "i", after_id) < 0)
        return -1;
    int row = sq_step(q, err);
    if (row > 0) {
        *id = sqlite3_column_int64(q, 0);
        *created_ms = sqlite3_column_int64(q, 1);
    }
    return row;
}

// 1: older than the limit, 0: not, -1.
static int too_old(struct store *s, const struct store_limits *l, int64_t id, int64_t created_ms,
                   int64_t now_ms, struct err *err)
{
    int64_t born_ms;
    if (!l->keep_days)
        return 0;
    if (store_age_born(s, id, created_ms, now_ms, &born_ms, err) < 0)
        return -1;
    return born_ms < now_ms - l->keep_days * AGE_DAY_MS;
}

// 1: a limit on all runs together is passed, 0: none, -1.
static int too_much(struct store *s, const struct store_limits *l, const struct store_sweep *w,
                    struct err *err)
{
    int64_t used = 0;
    if (l->keep_runs && w->runs - w->deleted > l->keep_runs)
        return 1;
    if (l->keep_bytes && used_bytes(s, &used, err) < 0)
        return -1;
    return l->keep_bytes && (uint64_t)used > l->keep_bytes;
}

// The next run to be deleted, with w->aged counted if it is for its age. 1: *id, 0: none, -1.
static int next_to_go(struct store *s, const struct store_limits *l, int64_t now_ms,
                      struct store_sweep *w, int64_t *id, struct err *err)
{
    int64_t created_ms = 0;
    int much = too_much(s, l, w, err);
    int found = much < 0 ? -1 : next_old(s, w->after_id, id, &created_ms, err);
    if (found < 0)
        return -1;
    w->short_of = !found && much;
    if (!found || much)
        return found;
    int old = too_old(s, l, *id, created_ms, now_ms, err);
    if (old <= 0)
        return old;
    w->held = w->aged >= w->aged_most;
    w->aged += !w->held;
    return !w->held;
}

// Inside a transaction. 1: time is up, or w->large goes next, by itself; 0: the pass has ended, -1.
static int retention_sweep(struct store *s, const struct store_limits *l, int64_t now_ms,
                           int64_t budget_ms, struct store_sweep *w, struct err *err)
{
    const int64_t end = clock_mono_ms() + budget_ms;
    int64_t id = 0;
    do {
        int found = next_to_go(s, l, now_ms, w, &id, err);
        if (found <= 0)
            return found;
        struct run_size size = {0};
        if (store_run_size(s, id, &size, err) < 0)
            return -1;
        w->large = size.cells > STORE_STAGE_CELLS ? id : 0;
        if (!w->large && store_run_remove(s, id, err) < 0)
            return -1;
        w->after_id = id;
        w->deleted++;
        if (w->large)
            return 1;
    } while (clock_mono_ms() < end);
    return 1;
}

// The first step of a pass asks how many runs may go by age.
static int sweep_and_count(struct store *s, const struct store_limits *l, int64_t now_ms,
                           int64_t budget_ms, struct store_sweep *w, struct err *err)
{
    int64_t all = 0, pinned = 0, before = w->aged;
    bool limits = l->keep_days || l->keep_runs || l->keep_bytes;
    if (!w->after_id) {
        if ((limits && count_runs(s, &all, &pinned, err) < 0) ||
            store_age_begin(s, l->keep_days, all, &w->aged_most, err) < 0)
            return -1;
        w->runs = all - pinned;
    }
    if (!limits)
        return 0;
    int more = retention_sweep(s, l, now_ms, budget_ms, w, err);
    if (more < 0 || w->aged == before)
        return more;
    return store_age_count(s, w->aged - before, err) < 0 ? -1 : more;
}

int store_sweep_step(struct store *s, const struct store_limits *l, int64_t now_ms,
                     int64_t budget_ms, struct store_sweep *w, struct err *err)
{
    struct store_sweep next = *w;
    if (store_begin(s, err) < 0)
        return -1;
    int before = sqlite3_total_changes(s->db);
    int more = sweep_and_count(s, l, now_ms, budget_ms, &next, err);
    bool idle = more >= 0 && sqlite3_total_changes(s->db) == before; // nothing was written
    if (idle)
        store_end(s, -1, NULL);
    else if (store_end(s, more < 0 ? -1 : 0, err) < 0)
        return -1;
    if (next.large && store_run_unlink(s, next.large, err) < 0)
        return -1;
    next.large = 0;
    *w = next;
    return more;
}

int store_shrink_step(struct store *s, int pages, struct err *err)
{
    char text[64];
    int64_t before, after;
    if (sq_number(s->db, "PRAGMA freelist_count", &before, err) < 0)
        return -1;
    if (before == 0)
        return 0;
    snprintf(text, sizeof text, "PRAGMA incremental_vacuum(%d)", pages);
    if (sq_exec(s->db, text, err) < 0 || sq_number(s->db, "PRAGMA freelist_count", &after, err) < 0)
        return -1;
    if (after > 0 && after < before)
        return 1;
    // The file itself is cut when the log is copied into it.
    return sq_exec(s->db, "PRAGMA wal_checkpoint(PASSIVE)", err);
}
