// SPDX-License-Identifier: Apache-2.0
// Begins and ends the upkeep. Its tasks are files of their own: damage.c, sweep.c, wall_clock.c,
// backup.c, findings.c. One struct has the state of all, because each looks at what the others do:
// retention rests while damage is examined, and a backup that fails may be the first sign of it.
#include "core/upkeep/upkeep.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/store/damage.h"
#include "core/upkeep/parts.h"

static void log_lock(const struct upkeep *k)
{
    if (!store_dir_is_locked(k->store))
        log_event(LOG_LVL_WARN, "store.lock",
                  "text=\"the state directory cannot be locked, only the file lock in it: as long "
                  "as that file stays, a second daemon is refused\"");
}

static void upkeep_on_event(void *ctx, const struct run_event *e)
{
    if (e->final)
        upkeep_begin_sweep(ctx);
    else if (e->kind == EVENT_STATE)
        upkeep_compare_clocks(ctx, false);
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
    upkeep_watch_clock(k);
    k->next = loop_timer_new(l, upkeep_on_next, k, err);
    k->damage_timer = k->next ? loop_timer_new(l, upkeep_on_damage_timer, k, err) : NULL;
    k->held_over = k->damage_timer ? loop_timer_new(l, upkeep_on_held_over, k, err) : NULL;
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
    store_on_damage(k->store, upkeep_on_damage, k);
    upkeep_remove_copies(k);
    log_lock(k);
    upkeep_log_damage(k);
    if (store_was_unclean(k->store) && !store_damage(k->store)->when_ms)
        upkeep_check(k, STORE_CHECK,
                     "the last daemon did not close the database; all of it is checked");
    upkeep_begin_sweep(k);
}

void upkeep_tidy(struct upkeep *k)
{
    upkeep_begin_sweep(k);
}

void upkeep_set_limits(struct upkeep *k, const struct store_limits *limits)
{
    k->limits = *limits;
    upkeep_begin_sweep(k);
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
