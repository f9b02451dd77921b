// SPDX-License-Identifier: Apache-2.0
// A baseline is a name and the numbers of its runs. Putting one replaces the former of that name in
// one transaction.
#include "core/store/baselines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/store/db.h"
#include "core/store/runs.h"
#include "core/store/transaction.h"
#include "model/token.h"

int baseline_name_check(const char *name, struct err *err)
{
    _Static_assert((int)BASELINE_NAME_MAX == (int)TOKEN_NAME_MAX, "both are names in a route");
    return token_check_name(name, err);
}

// At most one more than `most`, so that the caller sees when there are too many.
static int baselines_read_list(struct store *s, const char *only, struct baseline *list, int most,
                               int *n, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_BASELINES];
    int row;
    *n = 0;
    if (sq_bind(q, err, "t", only) < 0)
        return -1;
    while ((row = sq_step(q, err)) > 0) {
        const char *name = sq_text(q, 0);
        struct baseline *b = *n ? &list[*n - 1] : NULL;
        if (!b || strcmp(b->name, name) != 0) {
            if (*n == most)
                return sq_row_whole(q, err);
            b = &list[(*n)++];
            *b = (struct baseline){.created_ms = sqlite3_column_int64(q, 1)};
            snprintf(b->name, sizeof b->name, "%s", name);
        }
        if (b->n < BASELINE_RUNS_MAX)
            b->runs[b->n++] = sqlite3_column_int64(q, 2);
    }
    return row;
}

int store_baseline_get(struct store *s, const char *name, struct baseline *out, struct err *err)
{
    struct baseline got;
    int n;
    if (baselines_read_list(s, name, &got, 1, &n, err) < 0)
        return -1;
    if (!n)
        return err_set(err, ERR_NOT_FOUND, "baseline",
                       "there is no baseline \"%.63s\" (GET /v1/baselines lists them)", name);
    *out = got;
    return 0;
}

int store_baseline_list(struct store *s, struct baseline **list, int *n, struct err *err)
{
    CLEANUP_MEM struct baseline *got = calloc(BASELINES_MAX, sizeof *got);
    if (!got)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for baselines");
    if (baselines_read_list(s, NULL, got, BASELINES_MAX, n, err) < 0)
        return -1;
    *list = steal_ptr(&got);
    return 0;
}

static int baselines_check_room(struct store *s, const char *name, struct err *err)
{
    CLEANUP_MEM struct baseline *list = NULL;
    int n;
    if (store_baseline_list(s, &list, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return 0;
    return n < BASELINES_MAX ? 0
                             : err_set(err, ERR_CONFLICT, "name",
                                       "there are %d baselines already; delete one first", n);
}

static int baselines_drop(struct store *s, const char *name, struct err *err)
{
    sqlite3_stmt *q = s->queries[Q_BASELINE_DROP];
    return sq_bind(q, err, "t", name) < 0 ? -1 : sq_done(q, err);
}

static int store_baselines_put(struct store *s, const struct baseline *b, struct err *err)
{
    sqlite3_stmt *q = s->queries[Q_BASELINE_PUT], *run = s->queries[Q_BASELINE_RUN_PUT];
    if (baselines_drop(s, b->name, err) < 0 ||
        sq_bind(q, err, "ti", b->name, clock_wall_ms()) < 0 || sq_done(q, err) < 0)
        return -1;
    for (int i = 0; i < b->n; i++)
        if (store_run_state(s, b->runs[i], err) < 0 ||
            sq_bind(run, err, "ti", b->name, b->runs[i]) < 0 || sq_done(run, err) < 0)
            return -1;
    return store_noted(s, err);
}

int store_baseline_put(struct store *s, const struct baseline *b, struct err *err)
{
    if (baselines_check_room(s, b->name, err) < 0 || store_begin(s, err) < 0)
        return -1;
    return store_end(s, store_baselines_put(s, b, err), err);
}

int store_baseline_delete(struct store *s, const char *name, struct err *err)
{
    struct baseline b;
    if (store_baseline_get(s, name, &b, err) < 0 || store_begin(s, err) < 0)
        return -1;
    int rc = baselines_drop(s, name, err) < 0 ? -1 : store_noted(s, err);
    return store_end(s, rc, err);
}

int store_baseline_free_of(struct store *s, int64_t run_id, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_BASELINE_OF_RUN];
    if (sq_bind(q, err, "i", run_id) < 0)
        return -1;
    int row = sq_step(q, err);
    return row <= 0 ? row
                    : err_set(err, ERR_CONFLICT, "",
                              "run %" PRId64 " is in the baseline \"%s\"; delete that first",
                              run_id, sq_text(q, 0));
}
