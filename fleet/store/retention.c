// SPDX-License-Identifier: Apache-2.0
// Which months of runs are deleted. A day's months are chosen once, and are stored before the first
// run is deleted: after a kill, or where another process held a lock, the same months are deleted
// and no others.
#include "fleet/store/store.h"

#include "fleet/store/months.h"
#include "fleet/store/parts.h"

enum { RETAIN_DAY_MS = 86400 * 1000 };

// retained: when the day began; retained_before: what is older is deleted in it
static const char sql_day[] =
    "INSERT INTO meta (name, value) VALUES ('retained', CAST($1 AS bigint)), "
    "('retained_before', CAST($2 AS bigint)) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value";

static int day_store(struct fleet_store *s, int64_t began_ms, int64_t before_ms, struct err *err)
{
    const struct fleet_cell in[] = {CELL_I(began_ms), CELL_I(before_ms)};
    return fleet_exec(s, sql_day, in, 2, err);
}

// Moves *end_ms behind the next months that have runs before `before_ms`.
static int day_months(struct fleet_store *s, int64_t before_ms, int64_t *end_ms, struct err *err)
{
    *end_ms = 0;
    for (int i = 0; i < FLEET_RETAIN_MONTHS; i++) {
        int64_t oldest = INT64_MAX;
        if (s->engine->oldest(s->db, *end_ms, s->book.nodes.n, &oldest, err) < 0)
            return -1;
        if (oldest >= before_ms)
            break;
        *end_ms = month_begin_ms(month_of(oldest) + 1);
    }
    return 0;
}

// *end_ms: what is older than this is deleted; 0: nothing.
static int day_choose(struct fleet_store *s, const struct fleet_retention *r, int64_t *end_ms,
                      struct err *err)
{
    int64_t began = 0;
    *end_ms = 0;
    if (fleet_meta(s, "retained", &began, err) < 0 ||
        fleet_meta(s, "retained_before", end_ms, err) < 0)
        return -1;
    if (began > r->now_ms)
        return day_store(s, r->now_ms, *end_ms, err);
    if (began && r->now_ms - began < RETAIN_DAY_MS)
        return 0;
    if (day_months(s, r->before_ms, end_ms, err) < 0)
        return -1;
    return *end_ms ? day_store(s, r->now_ms, *end_ms, err) : 0;
}

static int retain_begin(struct fleet_store *s, const struct fleet_retention *r, int64_t *end_ms,
                        struct err *err)
{
    return fleet_begin(s, err) < 0 ? -1 : fleet_end(s, day_choose(s, r, end_ms, err), err);
}

// What the deletion leaves to be done, and whether there is more to delete.
static int retain_settle(struct fleet_store *s, struct fleet_retention *r, int64_t end_ms,
                         struct err *err)
{
    int64_t oldest = INT64_MAX;
    if (s->engine->oldest(s->db, 0, s->book.nodes.n, &oldest, err) < 0)
        return -1;
    r->held = oldest < r->before_ms;
    return r->deleted ? fleet_exec(s, "DELETE FROM span WHERE last_month < $1",
                                   &CELL_I(month_of(end_ms)), 1, err)
                      : 0;
}

int fleet_store_retain(struct fleet_store *s, struct fleet_retention *r, struct err *err)
{
    int64_t end_ms;
    r->before_ms = month_begin_ms(month_of(r->before_ms));
    r->deleted = 0;
    r->held = false;
    if (retain_begin(s, r, &end_ms, err) < 0)
        return -1;
    end_ms = end_ms < r->before_ms ? end_ms : r->before_ms;
    int result =
        end_ms > 0 ? s->engine->retain(s->db, end_ms, s->book.nodes.n, &r->deleted, err) : 0;
    if (fleet_begin(s, result < 0 ? NULL : err) < 0)
        return -1;
    s->n_put = -r->deleted; // also of what was deleted before an error
    int settled = result < 0 ? 0 : retain_settle(s, r, end_ms, err);
    s->book.here = s->book.here && !r->deleted; // else it is read again, without them
    return fleet_end(s, settled, result < 0 ? NULL : err) < 0 || result < 0 ? -1 : 0;
}
