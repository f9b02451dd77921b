// SPDX-License-Identifier: Apache-2.0
// Runs: the queue is this table, so a restart loses nothing.
#include "core/store/runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "core/store/db.h"
#include "core/store/history.h"
#include "core/store/metrics.h"
#include "core/store/queue.h"
#include "core/store/transaction.h"
#include "core/store/unreadable.h"
#include "model/budget.h"
#include "model/spec_request.h"

static int spec_text(const struct spec *spec, struct buf *out, struct err *err)
{
    struct jsonw w = jsonw_to(out);
    spec_write_json(spec, &w, NULL);
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the spec");
}

// 1: there was one with this key and spec, 0: none, -1.
static int find_key(struct store *s, const char *key, const char *spec, int64_t *id,
                    struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_BY_KEY];
    if (sq_bind(q, err, "t", key) < 0)
        return -1;
    int row = sq_step(q, err);
    if (row <= 0)
        return row;
    const char *kept = sq_text(q, 1);
    if (sq_row_whole(q, err) < 0)
        return -1;
    if (strcmp(kept, spec) != 0)
        return err_set(err, ERR_CONFLICT, "Idempotency-Key",
                       "this key was used for run %lld with other parameters; use a new key",
                       (long long)sqlite3_column_int64(q, 0));
    *id = sqlite3_column_int64(q, 0);
    return 1;
}

int store_run_find(struct store *s, const struct spec *spec, const char *key, int64_t *id,
                   struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    if (spec_text(spec, &text, err) < 0)
        return -1;
    return find_key(s, key, buf_text(&text), id, err);
}

int store_insert(struct store *s, const struct spec *spec, const char *node, const char *key,
                 const struct store_number *as, int64_t *id, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    sqlite3_stmt *q = s->queries[Q_INSERT];
    if (spec_text(spec, &text, err) < 0 ||
        sq_bind(q, err, "ttittz", benchmarks[spec->benchmark].name, node,
                as ? as->created_ms : clock_wall_ms(), key, buf_text(&text),
                as ? as->id : INT64_C(0)) < 0 ||
        sq_done(q, err) < 0)
        return -1;
    *id = sqlite3_last_insert_rowid(s->db);
    if (!as)
        s->new_id = *id;
    return 0;
}

int store_run_insert(struct store *s, const struct spec *spec, const char *node, const char *key,
                     int64_t *id, bool *again, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    if (spec_text(spec, &text, err) < 0)
        return -1;
    int64_t found = 0;
    int known = key ? find_key(s, key, buf_text(&text), &found, err) : 0;
    if (known < 0)
        return -1;
    if (!known && (store_begin(s, err) < 0 ||
                   store_end(s, store_insert(s, spec, node, key, NULL, &found, err), err) < 0))
        return -1;
    if (!known)
        store_queue_keep(s, found);
    *id = found;
    *again = known;
    return 0;
}

static int note_unreadable(struct run *r, enum run_part part, const struct err *why,
                           struct err *err)
{
    if (why->code == ERR_NO_MEMORY)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a run");
    snprintf(r->unreadable[part], sizeof r->unreadable[part], "%s%s%s", why->member,
             *why->member ? " " : "", why->text);
    return 0;
}

// What another version wrote must not keep the other runs from being listed.
static int runs_read_spec(struct run *r, const char *text, struct err *err)
{
    struct err why = {0};
    CLEANUP_JSON struct json *o = json_parse(text, strlen(text), &why);
    if (o && spec_from_run(&r->spec, o, &why) == 0)
        return 0;
    r->spec = (struct spec){0};
    return note_unreadable(r, RUN_SPEC, &why, err);
}

static int read_phases(struct run *r, const char *text, struct err *err)
{
    struct err why = {0};
    CLEANUP_JSON struct json *o = *text ? json_parse(text, strlen(text), &why) : NULL;
    for (int i = 0; i < PHASES; i++)
        r->phase_ms[i] = json_get_number(o, phase_names[i], 0);
    return o || !*text ? 0 : note_unreadable(r, RUN_PHASES, &why, err);
}

static int copy_text(sqlite3_stmt *q, int column, char **out, struct err *err)
{
    if (sqlite3_column_type(q, column) == SQLITE_NULL)
        return 0;
    *out = strdup(sq_text(q, column));
    return *out ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a run");
}

// A text of JSON_COLUMN, whose encoding SQLite does not look at. It is served as it is, and must be
// JSON, or the whole answer would be none.
static bool text_is_json(const char *text)
{
    return *text && str_utf8_valid(text, strlen(text));
}

static int copy_json(sqlite3_stmt *q, int column, struct run *r, enum run_part part, char **out,
                     struct err *err)
{
    if (copy_text(q, column, out, err) < 0)
        return -1;
    if (!*out || text_is_json(*out))
        return 0;
    free(*out);
    *out = NULL;
    return note_unreadable(r, part, &(struct err){.text = "it is not valid JSON"}, err);
}

#define COPY(field, column) snprintf(field, sizeof(field), "%s", sq_text(q, column))

// Columns in the order of RUN_COLUMNS (core/store/statements.h).
static int runs_read_run(sqlite3_stmt *q, struct run *r, struct err *err)
{
    *r = (struct run){.id = sqlite3_column_int64(q, 0), .seq = sqlite3_column_int64(q, 1)};
    r->state = (enum run_state)run_state_find(sq_text(q, 2));
    COPY(r->node, 3);
    r->created_ms = sqlite3_column_int64(q, 4);
    r->started_ms = sqlite3_column_int64(q, 5);
    r->finished_ms = sqlite3_column_int64(q, 6);
    COPY(r->method, 7);
    r->n_ranks = sqlite3_column_int64(q, 8);
    r->n_cells = sqlite3_column_int64(q, 9);
    COPY(r->class_hash, 10);
    COPY(r->config_hash, 11);
    r->error = err_find(sq_text(q, 12));
    COPY(r->error_member, 13);
    COPY(r->error_text, 14);
    const char *spec = sq_text(q, 15);
    if (sq_row_whole(q, err) < 0)
        return -1;
    if (runs_read_spec(r, spec, err) < 0 || copy_json(q, 16, r, RUN_PLAN, &r->plan_json, err) < 0 ||
        copy_json(q, 17, r, RUN_CONDITIONS, &r->conditions_json, err) < 0)
        return -1;
    if (!*r->unreadable[RUN_SPEC])
        budget_apply_stored(r->plan_json, &r->spec);
    const char *phases = sq_text(q, 18);
    if (sq_row_whole(q, err) < 0)
        return -1;
    if (read_phases(r, phases, err) < 0)
        return -1;
    r->measured_ms = sqlite3_column_int64(q, 19);
    r->imported = strcmp(sq_text(q, 20), "imported") == 0;
    COPY(r->label, 21);
    COPY(r->topology_hash, 22);
    COPY(r->benchmark, 23);
    return sq_row_whole(q, err);
}

static int not_found(int64_t id, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "", "there is no run %" PRId64, id);
}

int store_run_get(struct store *s, int64_t id, struct run *out, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_GET];
    if (sq_bind(q, err, "i", id) < 0)
        return -1;
    int row = sq_step(q, err);
    if (row == 0)
        return not_found(id, err);
    struct run got CLEANUP(run_fini) = {0};
    if (row < 0 || runs_read_run(q, &got, err) < 0)
        return -1;
    *out = got;
    got = (struct run){0};
    return 0;
}

// 1: a number, 0: no row, -1.
static int runs_number(sqlite3_stmt *q, int64_t *out, struct err *err)
{
    int row = sq_step(q, err);
    if (row > 0)
        *out = sqlite3_column_int64(q, 0);
    sq_reset(q);
    return row;
}

int store_run_next_queued(struct store *s, int64_t after, int64_t *id, struct err *err)
{
    if (sq_bind(s->queries[Q_NEXT], err, "i", after) < 0)
        return -1;
    return runs_number(s->queries[Q_NEXT], id, err);
}

int store_queue_length(struct store *s, int64_t *n, struct err *err)
{
    return runs_number(s->queries[Q_QUEUE_LENGTH], n, err) < 0 ? -1 : 0;
}

int store_facts_put(struct store *s, const char *hash, const char *kind, const char *json,
                    struct err *err)
{
    sqlite3_stmt *q = s->queries[Q_FINGERPRINT_PUT];
    return sq_bind(q, err, "ttt", hash, kind, json) < 0 ? -1 : sq_done(q, err);
}

static int put_facts(struct store *s, const struct facts *f, const char *kind, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    facts_write_json(f, &w, NULL);
    if (!buf_ok(&text))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for what the machine is");
    return store_facts_put(s, f->hash, kind, buf_text(&text), err);
}

int store_topology_put(struct store *s, const char *hash, const char *xml, struct err *err)
{
    sqlite3_stmt *q = s->queries[Q_TOPOLOGY_PUT];
    return sq_bind(q, err, "tt", hash, xml) < 0 ? -1 : sq_done(q, err);
}

static int runs_put_started(struct store *s, int64_t id, const char *plan, const char *conditions,
                            const struct fingerprint *f, const char *xml, struct err *err)
{
    char hash[65] = "";
    if (put_facts(s, &f->machine_class, "class", err) < 0 ||
        put_facts(s, &f->config, "config", err) < 0)
        return -1;
    if (xml) {
        text_hash(xml, hash);
        if (store_topology_put(s, hash, xml, err) < 0)
            return -1;
    }
    const int64_t now_ms = clock_wall_ms();
    sqlite3_stmt *q = s->queries[Q_STARTED];
    if (sq_bind(q, err, "iittttt", id, now_ms, plan, conditions, f->machine_class.hash,
                f->config.hash, xml ? hash : NULL) < 0 ||
        sq_done(q, err) < 0)
        return -1;
    if (sqlite3_changes(s->db) != 1)
        return err_set(err, ERR_CONFLICT, "", "run %" PRId64 " is not waiting", id);
    s->started.id = id;
    s->started.wall_ms = now_ms;
    s->started.mono_ms = clock_mono_ms();
    return 0;
}

// The end of a run is its start and what it took: a clock that is set meanwhile makes it no longer.
static int64_t finished_ms(const struct store *s, int64_t id)
{
    return id == s->started.id ? s->started.wall_ms + clock_mono_ms() - s->started.mono_ms
                               : clock_wall_ms();
}

int store_run_started(struct store *s, int64_t id, const char *plan_json,
                      const char *conditions_json, const struct fingerprint *f,
                      const char *topology_xml, struct err *err)
{
    if (store_begin(s, err) < 0)
        return -1;
    int rc = runs_put_started(s, id, plan_json, conditions_json, f, topology_xml, err);
    if (store_end(s, rc, err) < 0)
        return -1;
    store_queue_drop(s, id);
    return 0;
}

static int64_t runs_cells_of(const struct run_result *r)
{
    int64_t n = 0;
    for (int i = 0; i < r->n_matrices; i++)
        n += (int64_t)r->matrices[i].row.n * r->matrices[i].col.n;
    return n;
}

int store_run_state(struct store *s, int64_t id, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_STATE];
    if (sq_bind(q, err, "i", id) < 0)
        return -1;
    int row = sq_step(q, err);
    if (row <= 0)
        return row == 0 ? not_found(id, err) : -1;
    const char *state = sq_text(q, 0);
    return sq_row_whole(q, err) < 0 ? -1 : run_state_find(state);
}

static int put_final(struct store *s, int64_t id, const struct run_result *r, int64_t seq,
                     struct err *err)
{
    CLEANUP_BUF struct buf phases = BUF_INIT;
    struct jsonw w = jsonw_to(&phases);
    if (r->phase_ms)
        phases_write_json(r->phase_ms, &w, NULL);
    if (!buf_ok(&phases))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the phases of a run");
    sqlite3_stmt *q = s->queries[Q_FINISHED];
    if (sq_bind(q, err, "itiittttiittt", id, run_state_names[r->state], seq,
                r->finished_ms ? r->finished_ms : finished_ms(s, id),
                r->error ? err_info(r->error)->slug : NULL, r->error_member, r->error_text,
                r->method, (int64_t)r->n_ranks, runs_cells_of(r), r->conditions_json,
                r->phase_ms ? buf_text(&phases) : NULL, r->plan_json) < 0)
        return -1;
    return sq_done(q, err);
}

int store_finish(struct store *s, int64_t id, const struct run_result *r, struct err *err)
{
    int64_t seq;
    int state = store_run_state(s, id, err);
    if (state < 0)
        return -1;
    if (run_state_final((enum run_state)state) || !run_state_final(r->state))
        return err_set(err, ERR_CONFLICT, "", "run %" PRId64 " has finished already", id);
    if (runs_number(s->queries[Q_NEXT_SEQ], &seq, err) != 1 || put_final(s, id, r, seq, err) < 0)
        return -1;
    s->new_seq = seq;
    if (store_result_put(s, id, r, err) < 0)
        return -1;
    return r->metrics.version ? store_metrics_put(s, id, &r->metrics, err) : 0;
}

int store_run_finished(struct store *s, int64_t id, const struct run_result *r, struct err *err)
{
    if (store_begin(s, err) < 0)
        return -1;
    if (store_end(s, store_finish(s, id, r, err), err) < 0)
        return -1;
    store_queue_drop(s, id);
    return 0;
}

int store_run_restore(struct store *s, const struct run_restore *r, struct err *err)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    CLEANUP_BUF struct buf spec = BUF_INIT;
    struct jsonw w = jsonw_to(&spec);
    if (store_run_state(s, r->id, err) >= 0)
        return 0;
    spec_write_json(r->spec, &w, NULL);
    if (!buf_ok(&spec))
        return err_set(err, ERR_NO_MEMORY, "", "no memory to restore a run");
    int rc = sqlite3_prepare_v2(s->db,
                                "INSERT INTO run (id,state,benchmark,node,created_ms,spec) "
                                "VALUES (?1,'queued',?2,?3,?4,?5)",
                                -1, &q, NULL);
    if (rc != SQLITE_OK)
        return sq_fail(err, s->db, rc, "restore a run");
    if (sq_bind(q, err, "ittit", r->id, benchmarks[r->spec->benchmark].name, r->node, r->created_ms,
                buf_text(&spec)) < 0 ||
        sq_done(q, err) < 0 ||
        store_run_started(s, r->id, r->plan_json, r->conditions_json, r->fingerprint,
                          r->topology_xml, err) < 0)
        return -1;
    char text[96];
    snprintf(text, sizeof text, "UPDATE run SET started_ms = %" PRId64 " WHERE id = %" PRId64,
             r->started_ms, r->id);
    return sq_exec(s->db, text, err);
}

// The end of a run that another process began is now, but not before its start, which a clock that
// was ahead then has dated.
static int ended_now_ms(struct store *s, int64_t id, int64_t *ms, struct err *err)
{
    char sql[80];
    int64_t started_ms, now_ms = clock_wall_ms();
    snprintf(sql, sizeof sql, "SELECT coalesce(started_ms, 0) FROM run WHERE id = %" PRId64, id);
    if (sq_number(s->db, sql, &started_ms, err) < 0)
        return -1;
    *ms = now_ms > started_ms ? now_ms : started_ms;
    return 0;
}

static int interrupt_all(struct store *s, const char *text, int64_t *n, struct err *err)
{
    struct run_result r = {.state = RUN_INTERRUPTED, .error = ERR_UNAVAILABLE, .error_text = text};
    int64_t id;
    int found;
    while ((found = runs_number(s->queries[Q_RUNNING], &id, err)) > 0) {
        if (ended_now_ms(s, id, &r.finished_ms, err) < 0 || store_finish(s, id, &r, err) < 0)
            return -1;
        ++*n;
    }
    return found;
}

int store_run_interrupt_all(struct store *s, const char *text, int64_t *n, struct err *err)
{
    int64_t count = 0;
    if (store_begin(s, err) < 0 || store_end(s, interrupt_all(s, text, &count, err), err) < 0)
        return -1;
    *n = count;
    return 0;
}

// The limit has the highest number: SQLite takes values for all parameters below it, used or not.
// `steady`: the clock was never set back, so that a stretch of time is a stretch of ids; then no
// combination of filters reads more rows than it gives, except that all runs of a label are looked
// at (SQLite would look at all of a state, benchmark or node instead).
static void list_sql(const struct run_filter *f, const char *columns, bool steady, struct buf *sql)
{
    const struct store_condition conditions[] = {
        {f->state >= 0, "state = ?1"},
        {f->benchmark, "benchmark = ?2"},
        {f->since_ms, steady ? "id >= (SELECT id FROM run WHERE created_ms >= ?3 "
                               "ORDER BY created_ms, id LIMIT 1)"
                             : "created_ms >= ?3"},
        {f->until_ms, steady ? "id <= (SELECT id FROM run WHERE created_ms < ?4 "
                               "ORDER BY created_ms DESC, id DESC LIMIT 1)"
                             : "created_ms < ?4"},
        {f->before_id, "id < ?5"},
        {f->node, "node = ?6"},
        {f->label, "label = ?7 AND label <> ''"},
    };
    buf_fmt(sql, "SELECT %s FROM run ", columns);
    if (f->label)
        buf_str(sql, "INDEXED BY run_label ");
    store_where(sql, conditions, COUNT_OF(conditions));
    buf_str(sql, "ORDER BY id DESC LIMIT ?8");
}

static int list_prepare(struct store *s, const struct run_filter *f, const char *columns,
                        sqlite3_stmt **q, struct err *err)
{
    CLEANUP_BUF struct buf sql = BUF_INIT;
    int64_t steps = 0;
    if (runs_number(s->queries[Q_CLOCK_STEPS], &steps, err) < 0)
        return -1;
    list_sql(f, columns, steps == 0, &sql);
    if (!buf_ok(&sql))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a statement");
    int rc = sqlite3_prepare_v2(s->db, buf_text(&sql), -1, q, NULL);
    if (rc != SQLITE_OK)
        return sq_fail(err, s->db, rc, "list of runs");
    const char *state = f->state < 0 ? NULL : run_state_names[f->state];
    return sq_bind(*q, err, "ttiiitti", state, f->benchmark, f->since_ms, f->until_ms, f->before_id,
                   f->node, f->label, (int64_t)f->limit + 1);
}

int store_run_list(struct store *s, const struct run_filter *f,
                   void (*fn)(void *ctx, const struct run *r), void *ctx, bool *more,
                   struct err *err)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    if (list_prepare(s, f, RUN_COLUMNS, &q, err) < 0)
        return -1;
    int row, n = 0;
    while ((row = sq_step(q, err)) > 0 && n++ < f->limit) {
        struct run r CLEANUP(run_fini) = {0};
        if (runs_read_run(q, &r, err) < 0)
            return -1;
        fn(ctx, &r);
    }
    if (row < 0)
        return -1;
    *more = row > 0;
    return 0;
}

int store_run_list_ids(struct store *s, const struct run_filter *f, int64_t *ids, int *n,
                       bool *more, struct err *err)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    int row, count = 0;
    if (list_prepare(s, f, "id", &q, err) < 0)
        return -1;
    while ((row = sq_step(q, err)) > 0 && count < f->limit)
        ids[count++] = sqlite3_column_int64(q, 0);
    if (row < 0)
        return -1;
    *n = count;
    *more = row > 0;
    return 0;
}

int store_run_list_ranks(struct store *s, const struct run_filter *f, int64_t *ranks,
                         struct err *err)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    if (list_prepare(s, f, "n_ranks", &q, err) < 0)
        return -1;
    int row;
    int64_t sum = 0;
    while ((row = sq_step(q, err)) > 0)
        sum += sqlite3_column_int64(q, 0);
    *ranks = sum;
    return row;
}

int store_run_changes(struct store *s, int64_t after_seq, struct store_change *list, int most,
                      int *n, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_CHANGES];
    int row, count = 0;
    if (sq_bind(q, err, "ii", after_seq, (int64_t)most) < 0)
        return -1;
    while ((row = sq_step(q, err)) > 0 && count < most)
        list[count++] = (struct store_change){sqlite3_column_int64(q, 0),
                                              sqlite3_column_int64(q, 1), sqlite3_column_int(q, 2)};
    *n = count;
    return row < 0 ? -1 : 0;
}

static int runs_text_of(sqlite3_stmt *q, char **out, const char *missing, struct err *err)
{
    int row = sq_step(q, err);
    char *copy = row > 0 ? strdup(sq_text(q, 0)) : row == 0 && missing ? strdup(missing) : NULL;
    bool whole = row <= 0 || sq_row_whole(q, err) == 0;
    sq_reset(q);
    if (row < 0 || !whole) {
        free(copy);
        return -1;
    }
    if (!copy)
        return row == 0 ? err_set(err, ERR_NOT_FOUND, "", "not stored")
                        : err_set(err, ERR_NO_MEMORY, "", "no memory for a text");
    *out = copy;
    return 0;
}

int store_log_get(struct store *s, int64_t id, char **text, struct err *err)
{
    if (store_run_state(s, id, err) < 0 || sq_bind(s->queries[Q_LOG_GET], err, "i", id) < 0)
        return -1;
    return runs_text_of(s->queries[Q_LOG_GET], text, "", err);
}

int store_fingerprint_json(struct store *s, const char *hash, char **json, struct err *err)
{
    CLEANUP_MEM char *text = NULL;
    if (sq_bind(s->queries[Q_FINGERPRINT_GET], err, "t", hash) < 0 ||
        runs_text_of(s->queries[Q_FINGERPRINT_GET], &text, NULL, err) < 0)
        return -1;
    if (!text_is_json(text)) {
        err_set(err, ERR_INVALID, "", "they are not valid JSON");
        return store_unreadable(err, "the stored facts %.12s cannot be read", hash);
    }
    *json = steal_ptr(&text);
    return 0;
}

int store_topology_xml(struct store *s, int64_t id, char **xml, struct err *err)
{
    if (sq_bind(s->queries[Q_TOPOLOGY_GET], err, "i", id) < 0)
        return -1;
    return runs_text_of(s->queries[Q_TOPOLOGY_GET], xml, NULL, err);
}

int store_topology_by_hash(struct store *s, const char *hash, char **xml, struct err *err)
{
    if (sq_bind(s->queries[Q_TOPOLOGY_BY_HASH], err, "t", hash) < 0)
        return -1;
    return runs_text_of(s->queries[Q_TOPOLOGY_BY_HASH], xml, NULL, err);
}

int store_noted(struct store *s, struct err *err)
{
    int64_t seq;
    if (runs_number(s->queries[Q_SEQ], &seq, err) != 1)
        return -1;
    s->new_seq = seq;
    return 0;
}

int store_run_label(struct store *s, int64_t id, const char *label, struct err *err)
{
    if (store_run_state(s, id, err) < 0 || store_begin(s, err) < 0)
        return -1;
    sqlite3_stmt *q = s->queries[Q_LABEL];
    int rc = sq_bind(q, err, "it", id, label) < 0 || sq_done(q, err) < 0 ? -1 : store_noted(s, err);
    return store_end(s, rc, err);
}

static int feed_read(struct store *s, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_FEED];
    int row = sq_step(q, err);
    if (row <= 0)
        return row < 0 ? -1 : err_set(err, ERR_DAMAGED, "", "the database has no identity");
    snprintf(s->feed.history_id, sizeof s->feed.history_id, "%s", sq_text(q, 0));
    s->feed.last = sqlite3_column_int64(q, 1);
    return sq_row_whole(q, err);
}

// A process that only reads sees what another has written meanwhile.
int store_feed(struct store *s, struct store_feed *out, struct err *err)
{
    int64_t version = s->reader || !s->db ? 0 : store_version(s);
    if (!version || version != s->feed.version) {
        s->feed.version = 0;
        if (feed_read(s, err) < 0)
            return -1;
        s->feed.version = version;
    }
    *out = (struct store_feed){.last = s->feed.last};
    memcpy(out->history_id, s->feed.history_id, sizeof out->history_id);
    return 0;
}

int64_t store_last_seq(const struct store *s)
{
    return s->reader ? INT64_MAX : s->last_seq;
}
