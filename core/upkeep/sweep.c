// SPDX-License-Identifier: Apache-2.0
// Retention runs when a run has finished, and at the start; when runs that are too old were kept
// back, also from time to time. While another run measures it does one step for each run that
// ended, so that it keeps up and does not disturb; the rest waits.
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/store/stage.h"
#include "core/upkeep/parts.h"
#include "core/upkeep/upkeep.h"

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
            upkeep_compare_clocks(k, true);
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

void upkeep_on_next(void *ctx, uint32_t events)
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

void upkeep_begin_sweep(struct upkeep *k)
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

void upkeep_on_held_over(void *ctx, uint32_t events)
{
    (void)events;
    upkeep_begin_sweep(ctx);
}
