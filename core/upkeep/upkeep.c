// SPDX-License-Identifier: Apache-2.0
// Retention runs when a run has finished, and at the start; when runs that are too old were kept
// back, also from time to time. While another run measures it does one step for each run that
// ended, so that it keeps up and does not disturb; the rest waits.
#include "core/upkeep/upkeep.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/store/age.h"
#include "core/store/damage.h"
#include "core/store/stage.h"
#include "core/store/worker.h"

enum work { REST, SWEEP, SHRINK };
// Of damage: seen by a statement of ours, then what a process that read all of it says.
enum verdict { OPEN, CONFIRMED, REFUTED };

struct upkeep {
    struct loop *loop;
    struct store *store;
    struct runner *runner;
    struct store_limits limits;
    struct loop_timer *next, *damage_timer, *held_over;
    int clock; // readable when the wall clock was set; -1: not known
    struct loop_watch *clock_watch;
    struct runner_watch *watch;
    enum work work;
    struct store_sweep sweep;
    int64_t used_before;
    bool owed;  // a run ended since the last step
    bool again; // and the current pass had begun before
    int64_t last_ms, last_deleted, last_freed_bytes;
    bool short_of, reported_short;
    bool held;     // runs are too old, but no more of them may go today
    char why[256]; // the damage that was seen; "": none
    enum verdict verdict;
    int n_refuted; // since refuted_ms
    int64_t refuted_ms;
    struct store_child check;
    bool suspected; // by one process; the running check decides
    struct backup *backup;
};

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

// ---- damage

static const char copy_mark[] = "backup.", copy_end[] = ".tmp";

static void log_damage(const struct upkeep *k)
{
    const struct store_damage *d = store_damage(k->store);
    if (d->when_ms)
        log_event(LOG_LVL_ERROR, "store.damaged",
                  "why=\"%s\" set_aside=\"%s\" queue_kept=%" PRId64
                  " text=\"a fresh database was begun; docs/STORAGE.md says how to get back what "
                  "the other one holds\"",
                  d->why, d->file, d->carried);
}

static void log_lock(const struct upkeep *k)
{
    if (!store_dir_is_locked(k->store))
        log_event(LOG_LVL_WARN, "store.lock",
                  "text=\"the state directory cannot be locked, only the file lock in it: as long "
                  "as that file stays, a second daemon is refused\"");
}

int upkeep_set_aside(struct upkeep *k, const char *why, struct err *err)
{
    store_child_stop(&k->check);
    int rc = store_set_aside(k->store, why, err);
    if (rc < 0)
        return -1;
    k->why[0] = '\0';
    k->suspected = false;
    k->n_refuted = 0;
    k->work = REST;
    if (rc > 0)
        log_event(LOG_LVL_ERROR, "store.rewritten",
                  "text=\"the database's files were deleted or replaced; all that they held was "
                  "written anew\"");
    else
        log_damage(k);
    runner_store_replaced(k->runner);
    return 0;
}

// The database is whole, so what our connection has read of it is not.
static int reopen_database(struct upkeep *k, struct err *err)
{
    if (store_reopen(k->store, err) < 0)
        return -1;
    k->why[0] = '\0';
    log_event(LOG_LVL_WARN, "store.reopened",
              "text=\"a statement found the database damaged, but all of it was checked and is "
              "whole; nothing was lost. If this comes again, look at the memory and the disk\"");
    runner_store_replaced(k->runner);
    if (k->work != REST)
        loop_timer_set(k->next, 0);
    return 0;
}

static void damaged(struct upkeep *k, enum verdict verdict, const char *why)
{
    if (*k->why)
        return;
    snprintf(k->why, sizeof k->why, "%s", why);
    k->verdict = verdict;
    loop_timer_set(k->damage_timer, 0);
}

static void on_damage(void *ctx)
{
    damaged(ctx, OPEN, "a statement found the database damaged");
}

static int start_check(struct upkeep *k, enum store_work work, const char *because);

static void check_whole_database(struct upkeep *k)
{
    store_doubt(k->store);
    store_child_stop(&k->check);
    k->suspected = false;
    if (start_check(k, STORE_VERIFY,
                    "a statement found the database damaged; all of it is checked") < 0)
        loop_timer_set(k->damage_timer, UPKEEP_RETRY_MS);
}

static bool refuted_too_often(struct upkeep *k)
{
    int64_t now_ms = clock_mono_ms();
    if (!k->n_refuted || now_ms - k->refuted_ms > UPKEEP_REFUTED_MS) {
        k->n_refuted = 0;
        k->refuted_ms = now_ms;
    }
    return ++k->n_refuted > UPKEEP_REFUTED_MOST;
}

static void decide_after_check(struct upkeep *k, const struct err *how)
{
    if (how->code && how->code != ERR_DAMAGED) { // it was not checked
        log_error("store.check", how);
        loop_timer_set(k->damage_timer, UPKEEP_RETRY_MS);
        return;
    }
    k->verdict = how->code ? CONFIRMED : REFUTED;
    if (how->code) {
        snprintf(k->why, sizeof k->why, "%s", how->text);
    } else if (refuted_too_often(k)) {
        k->verdict = CONFIRMED;
        snprintf(k->why, sizeof k->why,
                 "statements found the database damaged %d times in %d minutes, though checks did "
                 "not",
                 k->n_refuted, UPKEEP_REFUTED_MS / 60000);
    }
    loop_timer_set(k->damage_timer, 0);
}

static int resolve_damage(struct upkeep *k, struct err *err)
{
    char why[sizeof k->why];
    if (k->verdict == REFUTED) {
        if (reopen_database(k, err) == 0)
            return 0;
        if (err->code != ERR_DAMAGED)
            return -1;
        k->verdict = CONFIRMED; // by a second connection
        snprintf(k->why, sizeof k->why, "%s", err->text);
    }
    memcpy(why, k->why, sizeof why);
    return upkeep_set_aside(k, why, err);
}

static void on_damage_timer(void *ctx, uint32_t events)
{
    struct upkeep *k = ctx;
    struct err err;
    (void)events;
    if (!*k->why)
        return;
    // Also after a check: it may have read another file, which was put in the place of ours.
    if (k->verdict != CONFIRMED && store_damage_is_plain(k->store))
        k->verdict = CONFIRMED;
    if (k->verdict == OPEN) {
        check_whole_database(k);
    } else if (resolve_damage(k, &err) < 0) {
        log_error("store.set_aside", &err);
        loop_timer_set(k->damage_timer, UPKEEP_RETRY_MS);
    }
}

// One process could not read it, perhaps because a single read failed. A database that holds all
// runs is not quarantined for that: another process looks first.
static void check_before_believing(struct upkeep *k)
{
    if (k->suspected || *k->why)
        return;
    k->suspected = true;
    if (!k->check.pid)
        start_check(k, STORE_CHECK, "a process found the database damaged; all of it is checked");
}

static void on_checked(void *ctx, const struct err *how)
{
    struct upkeep *k = ctx;
    bool second = k->suspected;
    runner_disturbed(k->runner, "the database was checked meanwhile");
    if (*k->why) {
        decide_after_check(k, how);
        return;
    }
    if (how->code == ERR_DAMAGED && !second) {
        check_before_believing(k);
        return;
    }
    k->suspected = false;
    if (how->code == ERR_DAMAGED)
        damaged(k, CONFIRMED, how->text);
    else if (how->code)
        log_error("store.check", how);
    else
        log_event(LOG_LVL_INFO, "store.checked", "text=\"the database is whole\"");
}

static int start_check(struct upkeep *k, enum store_work work, const char *because)
{
    struct err err;
    log_event(LOG_LVL_INFO, "store.check", "text=\"%s\"", because);
    if (store_child_start(&k->check, k->loop, work, store_path(k->store), NULL, on_checked, k,
                          &err) < 0) {
        k->suspected = false;
        log_error("store.check", &err);
        return -1;
    }
    runner_disturbed(k->runner, "the database was checked meanwhile");
    return 0;
}

// ---- the clock

static void log_clock_step(int64_t step_ms)
{
    log_event(LOG_LVL_WARN, "clock.step",
              "hours=%.1f text=\"the wall clock moved by this against the time since the boot, or "
              "the node was off; runs age by the time that was seen to pass\"",
              (double)step_ms / 3600000);
}

// What the clocks say now; with `save` it is stored also when they agree.
static void compare_clocks(struct upkeep *k, bool save)
{
    struct age_clock now;
    struct err err;
    int64_t step_ms = 0;
    if (*k->why || age_clock_read(&now) < 0)
        return;
    if (store_age_look(k->store, &now, save, &step_ms, &err) < 0)
        log_error("clock", &err);
    else if (step_ms)
        log_clock_step(step_ms);
}

// The kernel reports each time that the wall clock is set, and then no more until it is asked anew.
static int watch_clock(int fd)
{
    const struct itimerspec never = {.it_value.tv_sec = INT64_MAX};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

static void on_clock_set(void *ctx, uint32_t events)
{
    struct upkeep *k = ctx;
    uint64_t times;
    (void)events;
    if (read(k->clock, &times, sizeof times) < 0 && watch_clock(k->clock) == 0) {
        compare_clocks(k, false);
        return;
    }
    loop_unwatch(k->clock_watch); // the looks when runs come and end must do
    k->clock_watch = NULL;
}

// ---- retention

static int64_t used(const struct upkeep *k)
{
    struct store_usage u;
    return store_usage(k->store, &u, NULL) < 0 ? 0 : u.used_bytes;
}

// The rest may go when the day has ended or the clock was steady for a day, whichever is first;
// each pass looks whether it is.
static void note_held_runs(struct upkeep *k)
{
    if (k->sweep.held && !k->held)
        log_event(LOG_LVL_WARN, "retention",
                  "deleted_by_age=%" PRId64 " text=\"more runs are older than keep_days=%" PRId64
                  "; they go after a day in which neither the clock nor keep_days changed\"",
                  k->sweep.aged, k->limits.keep_days);
    k->held = k->sweep.held;
    loop_timer_set(k->held_over, k->held ? UPKEEP_HELD_MS : -1);
}

static void end_pass(struct upkeep *k)
{
    k->work = k->again ? SWEEP : REST;
    k->again = false;
    k->short_of = k->sweep.short_of;
    if (k->short_of && !k->reported_short)
        log_event(LOG_LVL_WARN, "retention",
                  "text=\"a limit is passed, but all runs that are left are pinned\"");
    k->reported_short = k->short_of;
    note_held_runs(k);
    if (k->sweep.deleted) {
        k->last_ms = clock_wall_ms();
        k->last_deleted = k->sweep.deleted;
        k->last_freed_bytes = k->used_before - used(k);
        log_event(LOG_LVL_INFO, "retention", "deleted=%" PRId64 " freed_bytes=%" PRId64,
                  k->last_deleted, k->last_freed_bytes);
    }
    k->sweep = (struct store_sweep){0};
    k->used_before = k->work == SWEEP ? used(k) : 0;
}

// 1: there is more to do, 0: not now, -1.
static int step(struct upkeep *k, struct err *err)
{
    int more = store_leftover_step(k->store, UPKEEP_STEP_MS, err);
    if (more != 0)
        return more;
    if (k->work == SWEEP) {
        if (!k->sweep.after_id)
            compare_clocks(k, true);
        more =
            store_sweep_step(k->store, &k->limits, clock_wall_ms(), UPKEEP_STEP_MS, &k->sweep, err);
        k->work = more == 0 ? SHRINK : SWEEP;
        return more < 0 ? -1 : 1;
    }
    if (k->work == SHRINK) {
        more = store_shrink_step(k->store, UPKEEP_STEP_PAGES, err);
        if (more == 0)
            end_pass(k);
    }
    return more < 0 ? -1 : k->work != REST;
}

static void on_next(void *ctx, uint32_t events)
{
    struct upkeep *k = ctx;
    struct err err;
    (void)events;
    if (runner_busy(k->runner) && !k->owed)
        return; // its end wakes us
    if (*k->why)
        return; // so does what becomes of the damage
    k->owed = false;
    int more = step(k, &err);
    if (more < 0)
        log_error("retention", &err);
    if (more != 0)
        loop_timer_set(k->next, more < 0 ? UPKEEP_RETRY_MS : 0);
}

static void upkeep_begin(struct upkeep *k)
{
    k->owed = true;
    if (k->work == REST) {
        k->work = SWEEP;
        k->used_before = used(k);
    } else {
        k->again = true;
    }
    loop_timer_set(k->next, 0);
}

static void on_held_over(void *ctx, uint32_t events)
{
    (void)events;
    upkeep_begin(ctx);
}

static void upkeep_on_event(void *ctx, const struct run_event *e)
{
    if (e->final)
        upkeep_begin(ctx);
    else if (e->kind == EVENT_STATE)
        compare_clocks(ctx, false);
}

// ---- life

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

static void remove_copies(const struct upkeep *k)
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

struct upkeep *upkeep_new(struct loop *l, struct store *s, struct runner *r,
                          const struct store_limits *limits, struct err *err)
{
    struct upkeep *k = calloc(1, sizeof *k);
    if (!k) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the upkeep of the database");
        return NULL;
    }
    *k = (struct upkeep){.loop = l, .store = s, .runner = r, .limits = *limits};
    k->clock = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (k->clock >= 0 && watch_clock(k->clock) == 0)
        k->clock_watch = loop_watch_fd(l, k->clock, EPOLLIN, on_clock_set, k, NULL);
    k->next = loop_timer_new(l, on_next, k, err);
    k->damage_timer = k->next ? loop_timer_new(l, on_damage_timer, k, err) : NULL;
    k->held_over = k->damage_timer ? loop_timer_new(l, on_held_over, k, err) : NULL;
    k->watch = k->held_over ? runner_watch_add(r, 0, upkeep_on_event, k, err) : NULL;
    if (k->watch)
        return k;
    upkeep_free(k);
    return NULL;
}

void upkeep_free(struct upkeep *k)
{
    if (!k)
        return;
    store_on_damage(k->store, NULL, NULL);
    store_child_stop(&k->check);
    runner_watch_remove(k->watch);
    loop_unwatch(k->clock_watch);
    fd_cleanup(&k->clock);
    loop_timer_free(k->next);
    loop_timer_free(k->damage_timer);
    loop_timer_free(k->held_over);
    free(k);
}

void upkeep_start(struct upkeep *k)
{
    store_on_damage(k->store, on_damage, k);
    remove_copies(k);
    log_lock(k);
    log_damage(k);
    if (store_was_unclean(k->store) && !store_damage(k->store)->when_ms)
        start_check(k, STORE_CHECK,
                    "the last daemon did not close the database; all of it is checked");
    upkeep_begin(k);
}

void upkeep_tidy(struct upkeep *k)
{
    upkeep_begin(k);
}

void upkeep_set_limits(struct upkeep *k, const struct store_limits *limits)
{
    k->limits = *limits;
    upkeep_begin(k);
}

void upkeep_status(const struct upkeep *k, struct upkeep_status *out)
{
    *out = (struct upkeep_status){.limits = k->limits,
                                  .going_on = k->work != REST,
                                  .short_of = k->short_of,
                                  .held = k->held,
                                  .last_ms = k->last_ms,
                                  .last_deleted = k->last_deleted,
                                  .last_freed_bytes = k->last_freed_bytes,
                                  .checking = k->check.pid != 0,
                                  .backing_up = k->backup != NULL};
}

// A step of the clock is reported until the clock was steady for a day.
static int find_age(const struct upkeep *k, struct finding *out, int most)
{
    struct age a;
    struct age_clock now;
    int n = 0;
    if (store_age_get(k->store, &a, NULL) < 0 || age_clock_read(&now) < 0)
        return 0;
    age_advance(&a, &now);
    if (a.step_ms && age_unsteady_ms(&a) && n < most) {
        out[n] = (struct finding){.name = "clock_step"};
        snprintf(out[n].text, sizeof out[n].text,
                 "the wall clock moved by %+.1f h against the time since the boot, or the node was "
                 "off; runs age by the time that was seen to pass",
                 (double)a.step_ms / 3600000);
        snprintf(out[n].remedy, sizeof out[n].remedy, "timedatectl (shows whether NTP sets it)");
        n++;
    }
    if (k->held && n < most) {
        out[n] = (struct finding){.name = "retention_held"};
        snprintf(out[n].text, sizeof out[n].text,
                 "more runs are older than keep_days = %" PRId64 "; they go after a day in which "
                 "neither the clock nor keep_days changed (%" PRId64 " went today)",
                 k->limits.keep_days, a.day_deleted);
        snprintf(out[n].remedy, sizeof out[n].remedy,
                 "if keep_days or the clock is wrong, correct it now; labelled runs stay");
        n++;
    }
    return n;
}

int upkeep_findings(const struct upkeep *k, struct finding *out, int most)
{
    struct store_damaged_file files[1];
    int n = 0, damaged_files = store_damaged_list(k->store, files, 1);
    const struct store_damage *d = store_damage(k->store);
    if (*k->why && n < most) {
        out[n] = (struct finding){.name = "database_damaged", .serious = true};
        snprintf(out[n].text, sizeof out[n].text, "the database is being %s: %.150s",
                 k->verdict == CONFIRMED ? "quarantined" : "checked", k->why);
        n++;
    }
    if (damaged_files && n < most) {
        out[n] = (struct finding){.name = "damaged_database_kept", .serious = true};
        snprintf(out[n].text, sizeof out[n].text,
                 "%d damaged database%s quarantined, the last as %s%s%.70s; a fresh one was begun",
                 damaged_files, damaged_files == 1 ? " was" : "s were", files[0].name,
                 d->when_ms ? ": " : "", d->when_ms ? d->why : "");
        snprintf(out[n].remedy, sizeof out[n].remedy,
                 "look at the disk (dmesg, smartctl); get the runs back or remove the file as "
                 "STORAGE.md says, \"Damaged\"");
        n++;
    }
    n += find_age(k, out + n, most - n);
    if (k->short_of && n < most) {
        out[n] = (struct finding){.name = "retention_short"};
        snprintf(out[n].text, sizeof out[n].text,
                 "a retention limit is passed, but all runs that are left are labelled, in a "
                 "baseline, or not over");
        snprintf(out[n].remedy, sizeof out[n].remedy, "numaprobe label ID (takes a label away)");
        n++;
    }
    return n;
}

// ---- backup

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
        check_before_believing(b->upkeep);
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
