// SPDX-License-Identifier: Apache-2.0
// How much is stored, what goes and what stays, what is wrong with it; and all of it as a file.
#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "core/node/checkup.h"
#include "core/store/damage.h"

static void write_usage(const struct api_services *api, const struct store_usage *u,
                        struct jsonw *w)
{
    jsonw_text(w, "file", store_path(api->store));
    jsonw_i64(w, "file_bytes", u->file_bytes);
    jsonw_i64(w, "log_bytes", u->wal_bytes);
    jsonw_i64(w, "used_bytes", u->used_bytes);
    jsonw_i64(w, "disk_free_bytes", u->disk_free_bytes);
    jsonw_i64(w, "runs", u->runs);
    jsonw_i64(w, "pinned", u->pinned);
    jsonw_time(w, "oldest", u->oldest_ms);
}

static void write_limit(struct jsonw *w, const char *name, int64_t limit)
{
    if (limit)
        jsonw_i64(w, name, limit);
    else
        jsonw_null(w, name);
}

static void write_retention(const struct upkeep_status *k, struct jsonw *w)
{
    jsonw_object(w, "retention");
    write_limit(w, "keep_days", k->limits.keep_days);
    write_limit(w, "keep_runs", k->limits.keep_runs);
    write_limit(w, "keep_bytes", (int64_t)k->limits.keep_bytes);
    jsonw_bool(w, "running", k->going_on);
    jsonw_bool(w, "only_pinned_left", k->short_of);
    jsonw_bool(w, "deferred", k->held);
    jsonw_time(w, "last", k->last_ms);
    jsonw_i64(w, "last_deleted", k->last_deleted);
    jsonw_i64(w, "last_freed_bytes", k->last_freed_bytes);
    jsonw_end(w);
}

static void write_damaged(const struct api_services *api, struct jsonw *w)
{
    struct store_damaged_file files[STORE_DAMAGED_LISTED];
    int n = store_damaged_list(api->store, files, STORE_DAMAGED_LISTED);
    jsonw_array(w, "quarantined");
    for (int i = 0; i < n && i < STORE_DAMAGED_LISTED; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "file", files[i].name);
        jsonw_i64(w, "bytes", files[i].bytes);
        jsonw_end(w);
    }
    jsonw_end(w);
}

void storage_write_findings(const struct api_services *api, struct jsonw *w)
{
    struct finding found[UPKEEP_FINDINGS];
    int n = upkeep_findings(api->upkeep, found, UPKEEP_FINDINGS);
    findings_write_json(found, n, w, "findings");
}

int storage_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct store_usage usage;
    struct upkeep_status status;
    if (store_usage(api_of(q)->store, &usage, err) < 0)
        return -1;
    upkeep_status(api_of(q)->upkeep, &status);
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    write_usage(api_of(q), &usage, &w);
    write_retention(&status, &w);
    jsonw_bool(&w, "checking", status.checking);
    jsonw_bool(&w, "backing_up", status.backing_up);
    write_damaged(api_of(q), &w);
    storage_write_findings(api_of(q), &w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

static void *backup_open(void *context, int64_t of, int64_t after, void (*wake)(void *ctx),
                         void *ctx, struct err *err)
{
    const struct api_services *api = context;
    (void)of;
    (void)after;
    return upkeep_backup(api->upkeep, wake, ctx, err);
}

static void backup_close(void *opened)
{
    backup_free(opened);
}

static int backup_take_file(void *opened, int64_t *bytes, struct err *err)
{
    return backup_take(opened, bytes, err);
}

static const struct reply_source backup_file = {
    .open = backup_open,
    .close = backup_close,
    .take = backup_take_file,
    .file_name = "numaprobe.db",
    .retry_after_conflict = 30, // a gigabyte and its way to the client
};

int backup_get(struct request *q, struct reply *r, struct err *err)
{
    (void)q;
    (void)err;
    return reply_made_file(r, &backup_file, "application/vnd.sqlite3");
}
