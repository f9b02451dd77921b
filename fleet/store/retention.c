// SPDX-License-Identifier: Apache-2.0
// Which months of runs, of whole runs in the archive, and of closed findings are deleted. A day's
// months are chosen once, and are stored before the first run is deleted: after a kill, or where
// another process held a lock, the same months are deleted and no others.
#include "base/cleanup.h"
#include "fleet/store/archive.h"
#include "fleet/store/findings.h"
#include "fleet/store/months.h"
#include "fleet/store/parts.h"

enum { RETAIN_DAY_MS = 86400 * 1000 };

// What is deleted by months. `began` and `before` are names in the table meta. Statements of rows
// have `state` as $1 and a time as $2; runs have none, because the engine deletes them.
struct retained {
    const char *began, *before; // when the day began; what is older is deleted in it
    int64_t state;
    const char *oldest, *count, *deletion;
};

// Those that are closed and were not seen since. The finding with the largest number stays, or
// another one would get that number.
#define FINDING_OVER                                                                               \
    "state = CAST($1 AS bigint) AND proof = 0 AND id < (SELECT max(id) FROM finding) AND "
#define WHOLE_KEPT "state = CAST($1 AS bigint) AND "

static const struct retained retained_runs = {.began = "retained", .before = "retained_before"};
static const struct retained retained_wholes = {
    .began = "archive_retained",
    .before = "archive_retained_before",
    .state = 1,
    .oldest = "SELECT due_ms FROM archive WHERE " WHOLE_KEPT
              "due_ms >= CAST($2 AS bigint) ORDER BY due_ms LIMIT 1",
    .count = "SELECT count(*) FROM archive WHERE " WHOLE_KEPT "due_ms < CAST($2 AS bigint)",
    .deletion = "DELETE FROM archive WHERE " WHOLE_KEPT "due_ms < CAST($2 AS bigint)"};
static const struct retained retained_findings = {
    .began = "findings_retained",
    .before = "findings_retained_before",
    .state = KEPT_CLOSED,
    .oldest = "SELECT closed_ms FROM finding WHERE " FINDING_OVER
              "closed_ms >= CAST($2 AS bigint) ORDER BY closed_ms LIMIT 1",
    .count = "SELECT count(*) FROM finding WHERE " FINDING_OVER "closed_ms < CAST($2 AS bigint)",
    .deletion = "DELETE FROM finding WHERE " FINDING_OVER "closed_ms < CAST($2 AS bigint)"};

// *oldest_ms is left alone where there is none from from_ms on.
static int retained_oldest(struct fleet_store *s, const struct retained *what, int64_t from_ms,
                           int64_t *oldest_ms, struct err *err)
{
    const struct fleet_cell in[] = {CELL_I(what->state), CELL_I(from_ms)};
    return what->oldest ? s->engine->query(s->db, what->oldest, in, COUNT_OF(in), fleet_number,
                                           oldest_ms, err)
                        : s->engine->oldest(s->db, from_ms, s->book.nodes.n, oldest_ms, err);
}

static int day_store(struct fleet_store *s, const struct retained *what, int64_t began_ms,
                     int64_t before_ms, struct err *err)
{
    static const char sql[] = "INSERT INTO meta (name, value) VALUES ($1, CAST($2 AS bigint)), "
                              "($3, CAST($4 AS bigint)) "
                              "ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    const struct fleet_cell in[] = {CELL_T(what->began), CELL_I(began_ms), CELL_T(what->before),
                                    CELL_I(before_ms)};
    return fleet_exec(s, sql, in, COUNT_OF(in), err);
}

// Moves *end_ms behind the next months that have something before `before_ms`.
static int day_months(struct fleet_store *s, const struct retained *what, int64_t before_ms,
                      int64_t *end_ms, struct err *err)
{
    *end_ms = 0;
    for (int i = 0; i < FLEET_RETAIN_MONTHS; i++) {
        int64_t oldest = INT64_MAX;
        if (retained_oldest(s, what, *end_ms, &oldest, err) < 0)
            return -1;
        if (oldest >= before_ms)
            break;
        *end_ms = month_begin_ms(month_of(oldest) + 1);
    }
    return 0;
}

// *end_ms: what is older than this is deleted; 0: nothing.
static int day_choose(struct fleet_store *s, const struct retained *what,
                      const struct fleet_retention *r, int64_t *end_ms, struct err *err)
{
    int64_t began = 0;
    *end_ms = 0;
    if (fleet_meta(s, what->began, &began, err) < 0 || fleet_meta(s, what->before, end_ms, err) < 0)
        return -1;
    if (began > r->now_ms)
        return day_store(s, what, r->now_ms, *end_ms, err);
    if (began && r->now_ms - began < RETAIN_DAY_MS)
        return 0;
    if (day_months(s, what, r->before_ms, end_ms, err) < 0)
        return -1;
    return *end_ms ? day_store(s, what, r->now_ms, *end_ms, err) : 0;
}

static int retain_begin(struct fleet_store *s, const struct fleet_retention *r, int64_t *end_ms,
                        struct err *err)
{
    return fleet_begin(s, err) < 0
               ? -1
               : fleet_end(s, day_choose(s, &retained_runs, r, end_ms, err), err);
}

// What the deletion leaves to be done, and whether there is more to delete.
static int retain_settle(struct fleet_store *s, struct fleet_retention *r, int64_t end_ms,
                         struct err *err)
{
    int64_t oldest = INT64_MAX;
    if (retained_oldest(s, &retained_runs, 0, &oldest, err) < 0)
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

// ---- Whole runs and closed findings

static int rows_delete(struct fleet_store *s, const struct retained *what,
                       struct fleet_retention *r, int64_t end_ms, struct err *err)
{
    const struct fleet_cell in[] = {CELL_I(what->state),
                                    CELL_I(end_ms < r->before_ms ? end_ms : r->before_ms)};
    int64_t oldest = INT64_MAX;
    if (s->engine->query(s->db, what->count, in, COUNT_OF(in), fleet_number, &r->deleted, err) <
            0 ||
        (r->deleted && fleet_exec(s, what->deletion, in, COUNT_OF(in), err) < 0) ||
        retained_oldest(s, what, 0, &oldest, err) < 0)
        return -1;
    s->changed |= r->deleted > 0;
    r->held = oldest < r->before_ms;
    return 0;
}

static int rows_retain(struct fleet_store *s, const struct retained *what,
                       struct fleet_retention *r, struct err *err)
{
    int64_t end_ms;
    r->deleted = 0;
    r->held = false;
    if (fleet_begin(s, err) < 0)
        return -1;
    int chosen = day_choose(s, what, r, &end_ms, err);
    int rc = fleet_end(s, chosen < 0 ? -1 : rows_delete(s, what, r, end_ms, err), err);
    r->deleted = rc < 0 ? 0 : r->deleted;
    return rc;
}

int fleet_store_archive_retain(struct fleet_store *s, struct fleet_retention *r, struct err *err)
{
    for (int i = 0; i < s->book.nodes.n; i++)
        s->book.node[i].archived = 0; // counted anew
    return rows_retain(s, &retained_wholes, r, err);
}

int fleet_store_findings_retain(struct fleet_store *s, struct fleet_retention *r, struct err *err)
{
    return rows_retain(s, &retained_findings, r, err);
}
