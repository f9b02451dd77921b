// SPDX-License-Identifier: Apache-2.0
// State is a few rows of the table `counter` named "age.…", and a row "age.gap.<run>" for each step
// of the clock: its size in ms. No run is between two steps at the same run, so these are added.
#include "core/store/age.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "core/store/db.h"
#include "core/store/transaction.h"

enum { LOOKS_MOST = 500 }; // for a run whose time makes sense: 2 ms

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
    {"age.boot", offsetof(struct age, boot)},
    {"age.up_ms", offsetof(struct age, up_ms)},
    {"age.offset_ms", offsetof(struct age, offset_ms)},
    {"age.last_id", offsetof(struct age, last_id)},
    {"age.seen_ms", offsetof(struct age, seen_ms)},
    {"age.steady_ms", offsetof(struct age, steady_ms)},
    {"age.step_ms", offsetof(struct age, step_ms)},
    {"age.keep_days", offsetof(struct age, keep_days)},
    {"age.day_ms", offsetof(struct age, day_ms)},
    {"age.day_runs", offsetof(struct age, day_runs)},
    {"age.day_deleted", offsetof(struct age, day_deleted)},
};

static int64_t *field(struct age *a, size_t i)
{
    return (int64_t *)(void *)((char *)a + fields[i].offset);
}

int age_clock_read(struct age_clock *out)
{
    char boot[64], up[64];
    double seconds;
    // The file and not clock_gettime: a library that fakes the wall clock for a process (faketime)
    // moves that one too.
    if (file_read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot) < 0 || !*boot ||
        file_read_text("/proc/uptime", up, sizeof up) < 0)
        return -1;
    up[strcspn(up, " ")] = '\0';
    if (!str_to_double(up, &seconds))
        return -1;
    // A boot is stored as a number, which is neither negative nor 0.
    *out = (struct age_clock){.wall_ms = clock_wall_ms(),
                              .up_ms = (int64_t)(seconds * 1000),
                              .boot = (int64_t)(hash_text(boot) >> 1 | 1)};
    return 0;
}

int store_age_get(struct store *s, struct age *out, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_AGE_GET];
    struct age a = {0};
    int row;
    while ((row = sq_step(q, err)) > 0)
        for (size_t i = 0; i < COUNT_OF(fields); i++)
            if (strcmp(sq_text(q, 0), fields[i].name) == 0)
                *field(&a, i) = sqlite3_column_int64(q, 1);
    if (row < 0)
        return -1;
    *out = a;
    return 0;
}

static int age_put(struct store *s, const struct age *was, struct age *now, struct err *err)
{
    struct age old = *was;
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (*field(now, i) != *field(&old, i) &&
            (sq_bind(s->queries[Q_AGE_PUT], err, "ti", fields[i].name, *field(now, i)) < 0 ||
             sq_done(s->queries[Q_AGE_PUT], err) < 0))
            return -1;
    return 0;
}

static int put_gap(struct store *s, int64_t id, int64_t step_ms, struct err *err)
{
    char name[40];
    snprintf(name, sizeof name, "age.gap.%020" PRId64, id);
    return sq_bind(s->queries[Q_AGE_GAP_PUT], err, "ti", name, step_ms) < 0
               ? -1
               : sq_done(s->queries[Q_AGE_GAP_PUT], err);
}

static int save_look(struct store *s, const struct age *was, struct age *now, int64_t gap_id,
                     int64_t step_ms, struct err *err)
{
    if (age_put(s, was, now, err) < 0 || sq_done(s->queries[Q_AGE_GAPS_OLD], err) < 0)
        return -1;
    return step_ms ? put_gap(s, gap_id, step_ms, err) : 0;
}

// Of a history that no look was at yet: as if no time had passed since its newest run.
static int first_step(struct store *s, const struct age_clock *now, int64_t *step_ms,
                      struct err *err)
{
    int64_t newest_ms = 0;
    if (sq_number(s->db,
                  "SELECT coalesce((SELECT max(created_ms, coalesce(finished_ms, 0)) FROM run "
                  "ORDER BY id DESC LIMIT 1), 0)",
                  &newest_ms, err) < 0)
        return -1;
    *step_ms = newest_ms && now->wall_ms > newest_ms ? now->wall_ms - newest_ms : 0;
    return 0;
}

void age_advance(struct age *a, const struct age_clock *now)
{
    int64_t passed = now->boot == a->boot ? now->up_ms - a->up_ms : now->up_ms;
    a->seen_ms += passed > 0 ? passed : 0;
    a->boot = now->boot;
    a->up_ms = now->up_ms;
}

int store_age_look(struct store *s, const struct age_clock *now, bool save, int64_t *step_ms,
                   struct err *err)
{
    struct age was, a;
    int64_t step = 0;
    if (store_age_get(s, &was, err) < 0)
        return -1;
    a = was;
    bool same_boot = now->boot == was.boot;
    int64_t offset = now->wall_ms - now->up_ms;
    if (!was.boot && first_step(s, now, &step, err) < 0)
        return -1;
    if (was.boot) // while the node was off no time was seen to pass
        step = offset - was.offset_ms - (same_boot ? 0 : was.up_ms);
    bool stepped = step > AGE_STEP_MS || step < -AGE_STEP_MS;
    age_advance(&a, now);
    if (stepped || !same_boot)
        a.offset_ms = offset;
    if (stepped) {
        a.steady_ms = a.seen_ms;
        a.step_ms = step;
    }
    // Runs that came since the last look may have come before the step or after it: either way the
    // step must not make them older.
    int64_t gap_id = step > 0 ? s->last_id : was.last_id;
    a.last_id = s->last_id;
    *step_ms = stepped ? step : 0;
    if (!save && !stepped && same_boot && a.last_id == was.last_id)
        return 0;
    if (store_begin(s, err) < 0)
        return -1;
    return store_end(s, save_look(s, &was, &a, gap_id, *step_ms, err), err);
}

int64_t age_unsteady_ms(const struct age *a)
{
    int64_t steady = a->seen_ms - a->steady_ms;
    return steady < AGE_DAY_MS ? AGE_DAY_MS - steady : 0;
}

int store_age_begin(struct store *s, int64_t keep_days, int64_t runs, int64_t *most,
                    struct err *err)
{
    struct age was, a;
    if (store_age_get(s, &was, err) < 0)
        return -1;
    a = was;
    if (a.keep_days != keep_days)
        a.steady_ms = a.seen_ms;
    a.keep_days = keep_days;
    if (!a.day_runs || a.seen_ms - a.day_ms >= AGE_DAY_MS) {
        a.day_ms = a.seen_ms;
        a.day_runs = runs;
        a.day_deleted = 0;
    }
    int64_t bound = a.day_runs / AGE_SHARE > AGE_DAY_RUNS ? a.day_runs / AGE_SHARE : AGE_DAY_RUNS;
    int64_t left = bound > a.day_deleted ? bound - a.day_deleted : 0;
    *most = age_unsteady_ms(&a) ? left : INT64_MAX;
    return age_put(s, &was, &a, err);
}

int store_age_count(struct store *s, int64_t deleted, struct err *err)
{
    struct age was, a;
    if (store_age_get(s, &was, err) < 0)
        return -1;
    a = was;
    a.day_deleted += deleted;
    return age_put(s, &was, &a, err);
}

// All steps of the clock since the run.
static int steps_since(struct store *s, int64_t id, int64_t *sum_ms, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_AGE_SINCE];
    char name[40];
    snprintf(name, sizeof name, "age.gap.%020" PRId64, id);
    if (sq_bind(q, err, "t", name) < 0 || sq_step(q, err) < 0)
        return -1;
    *sum_ms = sqlite3_column_int64(q, 0);
    return 0;
}

static bool makes_sense(int64_t born_ms, int64_t now_ms)
{
    return born_ms >= CLOCK_SET_MS && born_ms <= now_ms + AGE_STEP_MS;
}

int store_age_born(struct store *s, int64_t id, int64_t created_ms, int64_t now_ms,
                   int64_t *born_ms, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_AFTER];
    for (int i = 0; i < LOOKS_MOST; i++) {
        int64_t steps_ms;
        if (steps_since(s, id, &steps_ms, err) < 0)
            return -1;
        *born_ms = created_ms + steps_ms;
        if (makes_sense(*born_ms, now_ms))
            return 0;
        int row = sq_bind(q, err, "i", id) < 0 ? -1 : sq_step(q, err);
        if (row < 0)
            return -1;
        if (row == 0)
            break;
        id = sqlite3_column_int64(q, 0);
        created_ms = sqlite3_column_int64(q, 1);
        sq_reset(q);
    }
    *born_ms = INT64_MAX;
    return 0;
}
