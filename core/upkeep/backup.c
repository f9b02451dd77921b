// SPDX-License-Identifier: Apache-2.0
// A copy of the database is made by a process of its own, into a file beside the database that has
// no name any more once it is open: whatever happens then, nothing is left.
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "core/upkeep/parts.h"
#include "core/upkeep/upkeep.h"

struct backup {
    struct upkeep *upkeep;
    struct store_child child;
    struct loop_timer *deadline;
    void (*done)(void *ctx);
    void *ctx;
    char path[700];
    int fd;
    struct err how;
};

static const char copy_mark[] = "backup.", copy_end[] = ".tmp";

static bool left_by_backup(const char *name)
{
    return str_starts(name, copy_mark) && strstr(name, copy_end); // with -journal and the like
}

// SQLite's journal of a copy whose maker was killed stays beside it.
static void remove_copy(const char *path)
{
    char journal[720];
    snprintf(journal, sizeof journal, "%s-journal", path);
    unlink(path);
    unlink(journal);
}

void upkeep_remove_copies(const struct upkeep *k)
{
    char dir[600];
    snprintf(dir, sizeof dir, "%s", store_path(k->store));
    *strrchr(dir, '/') = '\0';
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (left_by_backup(e->d_name))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

static void finish_backup(struct backup *b, const struct err *how)
{
    b->how = *how;
    if (!how->code) {
        b->fd = open(b->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (b->fd < 0)
            err_sys(&b->how, "cannot open the copy of the database");
    }
    remove_copy(b->path);
    loop_timer_set(b->deadline, -1);
    if (b->how.code)
        log_error("backup", &b->how);
    b->done(b->ctx);
}

static void on_copied(void *ctx, const struct err *how)
{
    struct backup *b = ctx;
    runner_disturbed(b->upkeep->runner, "a backup of the database was made meanwhile");
    if (how->code == ERR_DAMAGED)
        upkeep_check_before_believing(b->upkeep);
    finish_backup(b, how);
}

static void upkeep_on_deadline(void *ctx, uint32_t events)
{
    struct backup *b = ctx;
    struct err how;
    (void)events;
    store_child_stop(&b->child);
    err_set(&how, ERR_TIMEOUT, "", "the copy of the database was not ready after %d s",
            UPKEEP_BACKUP_MAX_S);
    finish_backup(b, &how);
}

static int upkeep_check_room(const struct upkeep *k, struct err *err)
{
    struct store_usage u;
    if (store_usage(k->store, &u, err) < 0)
        return -1;
    if (u.disk_free_bytes < u.used_bytes + STORE_DISK_SPARE_BYTES)
        return err_set(err, ERR_STORAGE, "",
                       "a backup needs room for a copy beside the database: %" PRId64
                       " MiB and %" PRId64 " to spare; %" PRId64 " are free",
                       u.used_bytes >> 20, STORE_DISK_SPARE_BYTES >> 20, u.disk_free_bytes >> 20);
    return 0;
}

static int upkeep_start_backup(struct backup *b, struct err *err)
{
    struct upkeep *k = b->upkeep;
    snprintf(b->path, sizeof b->path, "%s", store_path(k->store));
    char *slash = strrchr(b->path, '/');
    snprintf(slash + 1, sizeof b->path - (size_t)(slash + 1 - b->path), "%s%d%s", copy_mark,
             (int)getpid(), copy_end);
    remove_copy(b->path);
    b->deadline = loop_timer_new(k->loop, upkeep_on_deadline, b, err);
    if (!b->deadline)
        return -1;
    loop_timer_set(b->deadline, UPKEEP_BACKUP_MAX_S * 1000);
    return store_child_start(&b->child, k->loop, STORE_COPY, store_path(k->store), b->path,
                             on_copied, b, err);
}

struct backup *upkeep_backup(struct upkeep *k, void (*done)(void *ctx), void *ctx, struct err *err)
{
    if (k->backup) {
        err_set(err, ERR_CONFLICT, "", "a backup is running already; one at a time");
        return NULL;
    }
    if (upkeep_check_room(k, err) < 0)
        return NULL;
    struct backup *b = calloc(1, sizeof *b);
    if (!b) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a backup");
        return NULL;
    }
    *b = (struct backup){.upkeep = k, .done = done, .ctx = ctx, .fd = -1};
    k->backup = b;
    if (upkeep_start_backup(b, err) < 0) {
        backup_free(b);
        return NULL;
    }
    runner_disturbed(k->runner, "a backup of the database was made meanwhile");
    return b;
}

int backup_take(struct backup *b, int64_t *bytes, struct err *err)
{
    struct stat st;
    if (b->how.code) {
        *err = b->how;
        return -1;
    }
    if (b->fd < 0 || fstat(b->fd, &st) < 0)
        return err_set(err, ERR_UNAVAILABLE, "", "the copy of the database is not ready");
    *bytes = (int64_t)st.st_size;
    return steal_fd(&b->fd);
}

void backup_free(struct backup *b)
{
    if (!b)
        return;
    if (b->child.pid) {
        store_child_stop(&b->child);
        remove_copy(b->path);
    }
    fd_cleanup(&b->fd);
    loop_timer_free(b->deadline);
    b->upkeep->backup = NULL;
    free(b);
}
