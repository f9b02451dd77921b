// SPDX-License-Identifier: Apache-2.0
// A statement, a check or a backup finds the database damaged. It is believed at once if any
// process can see it (store_damage_is_plain); otherwise a process reads all of it first. What is
// confirmed is quarantined, and a fresh database begun; what is refuted is opened again, but not
// for ever.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/store/damage.h"
#include "core/store/db.h"
#include "core/upkeep/parts.h"
#include "core/upkeep/upkeep.h"

void upkeep_log_damage(const struct upkeep *k)
{
    const struct store_damage *d = store_damage(k->store);
    if (d->when_ms)
        log_event(LOG_LVL_ERROR, "store.damaged",
                  "why=\"%s\" set_aside=\"%s\" queue_kept=%" PRId64
                  " text=\"a fresh database was begun; docs/STORAGE.md says how to get back what "
                  "the other one holds\"",
                  log_quote(d->why).text, log_quote(d->file).text, d->carried);
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
        upkeep_log_damage(k);
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

void upkeep_on_damage(void *ctx)
{
    damaged(ctx, OPEN, "a statement found the database damaged");
}

static void check_whole_database(struct upkeep *k)
{
    store_doubt(k->store);
    store_child_stop(&k->check);
    k->suspected = false;
    if (upkeep_check(k, STORE_VERIFY,
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

void upkeep_on_damage_timer(void *ctx, uint32_t events)
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

void upkeep_check_before_believing(struct upkeep *k)
{
    if (k->suspected || *k->why)
        return;
    k->suspected = true;
    if (!k->check.pid)
        upkeep_check(k, STORE_CHECK, "a process found the database damaged; all of it is checked");
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
        upkeep_check_before_believing(k);
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

int upkeep_check(struct upkeep *k, enum store_work work, const char *because)
{
    struct err err;
    log_event(LOG_LVL_INFO, "store.check", "text=\"%s\"", log_quote(because).text);
    if (store_child_start(&k->check, k->loop, work, store_path(k->store), NULL, on_checked, k,
                          &err) < 0) {
        k->suspected = false;
        log_error("store.check", &err);
        return -1;
    }
    runner_disturbed(k->runner, "the database was checked meanwhile");
    return 0;
}
