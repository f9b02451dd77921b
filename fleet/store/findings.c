// SPDX-License-Identifier: Apache-2.0
// All rows are read for a judgement, without their evidence: 100,000 take 20 MB for a moment. What
// did not change is not written.
#include "fleet/store/findings.h"

#include <math.h>

#include "base/cleanup.h"
#include "fleet/store/parts.h"

enum { PIECE_ROWS = 500 }; // of a list, read at once

static struct fleet_cell real_cell(double v)
{
    return isnan(v) ? (struct fleet_cell){.type = CELL_NULL, .t = ""}
                    : (struct fleet_cell){CELL_REAL, 0, v, ""};
}

static double cell_number(const struct fleet_cell *c)
{
    return c->type == CELL_NULL ? (double)NAN : c->type == CELL_INT ? (double)c->i : c->d;
}

// ---- A judgement

static int kept_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    int what = kept_what_find(row[2].t);
    if (what < 0 || row[5].i <= KEPT_NONE || row[5].i >= KEPT_STATES || row[6].i < 0 ||
        row[6].i >= KEPT_GRADES)
        return err_set(err, ERR_DAMAGED, "finding", "finding %lld is none of ours",
                       (long long)row[0].i);
    const struct kept_finding one = {.id = row[0].i,
                                     .what = (enum kept_what)what,
                                     .state = (enum kept_state)row[5].i,
                                     .grade = (int)row[6].i,
                                     .times = (int)row[7].i,
                                     .misses = (int)row[8].i,
                                     .found_ms = row[9].i,
                                     .seen_ms = row[10].i,
                                     .opened_ms = row[11].i,
                                     .closed_ms = row[12].i,
                                     .marked_ms = row[13].i,
                                     .proof = row[14].i};
    return kept_list_add(ctx, &one, row[1].t, kept_of_class(one.what) ? row[4].t : row[3].t, err);
}

static int kept_read(struct fleet_store *s, struct kept_list *l, struct err *err)
{
    return s->engine->query(s->db,
                            "SELECT id, identity, what, node, class, state, grade, times, misses, "
                            "found_ms, seen_ms, opened_ms, closed_ms, marked_ms, proof "
                            "FROM finding ORDER BY id",
                            NULL, 0, kept_row, l, err);
}

static int write_fresh(struct fleet_store *s, const struct kept_finding *f, const char *identity,
                       struct err *err)
{
    const struct kept_sight *o = f->sight;
    const struct fleet_cell row[] = {
        CELL_I(f->id),         CELL_T(identity),    CELL_T(kept_whats[f->what].name),
        CELL_T(o->node),       CELL_T(o->class),    CELL_T(o->metric),
        CELL_T(o->text),       CELL_I(f->state),    CELL_I(f->grade),
        real_cell(o->percent), real_cell(o->lo),    real_cell(o->hi),
        CELL_I(f->times),      CELL_I(f->found_ms), CELL_I(f->seen_ms),
        CELL_I(f->opened_ms),  CELL_I(o->since_ms), CELL_I(f->proof),
        CELL_T(o->evidence)};
    return fleet_exec(s,
                      "INSERT INTO finding (id, identity, what, node, class, metric, text, state, "
                      "grade, percent, lo, hi, times, misses, found_ms, seen_ms, opened_ms, "
                      "closed_ms, marked_ms, since_ms, proof, \"by\", note, evidence) VALUES "
                      "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, $14, $15, $16, "
                      "0, 0, $17, $18, '', '', $19)",
                      row, COUNT_OF(row), err);
}

static int write_seen(struct fleet_store *s, const struct kept_finding *f, struct err *err)
{
    const struct kept_sight *o = f->sight;
    const struct fleet_cell row[] = {
        CELL_T(o->metric),     CELL_T(o->text),      CELL_I(f->state),     CELL_I(f->grade),
        real_cell(o->percent), real_cell(o->lo),     real_cell(o->hi),     CELL_I(f->times),
        CELL_I(f->seen_ms),    CELL_I(f->opened_ms), CELL_I(f->closed_ms), CELL_I(o->since_ms),
        CELL_I(f->proof),      CELL_T(o->evidence),  CELL_I(f->marked_ms), CELL_I(KEPT_AHEAD_MS),
        CELL_I(f->id)};
    return fleet_exec(s,
                      "UPDATE finding SET metric = $1, text = $2, state = $3, grade = $4, "
                      "percent = $5, lo = $6, hi = $7, times = $8, misses = 0, seen_ms = $9, "
                      "opened_ms = $10, closed_ms = $11, since_ms = $12, proof = $13, "
                      "evidence = $14, marked_ms = $15, drained_ms = CASE WHEN drained_ms > $9 + "
                      "CAST($16 AS bigint) THEN $9 ELSE drained_ms END WHERE id = $17",
                      row, COUNT_OF(row), err);
}

static int write_missing(struct fleet_store *s, const struct kept_finding *f, struct err *err)
{
    const struct fleet_cell row[] = {CELL_I(f->state), CELL_I(f->misses), CELL_I(f->closed_ms),
                                     CELL_I(f->proof), CELL_I(f->id)};
    return fleet_exec(s,
                      "UPDATE finding SET state = $1, misses = $2, closed_ms = $3, proof = $4 "
                      "WHERE id = $5",
                      row, COUNT_OF(row), err);
}

static int write_finding(struct fleet_store *s, const struct kept_finding *f, const char *identity,
                         struct err *err)
{
    switch (f->change) {
    case KEPT_NEW:
        return write_fresh(s, f, identity, err);
    case KEPT_AGAIN:
        return write_seen(s, f, err);
    case KEPT_MISSING:
        return write_missing(s, f, err);
    case KEPT_DELETED:
        return fleet_exec(s, "DELETE FROM finding WHERE id = $1", &CELL_I(f->id), 1, err);
    default:
        return 0;
    }
}

static int kept_merge(struct fleet_store *s, struct kept_list *l, const struct kept_judgement *j,
                      struct err *err)
{
    if (kept_read(s, l, err) < 0 || kept_judge(l, j, err) < 0)
        return -1;
    for (int i = 0; i < l->identities.n; i++) {
        s->changed |= l->list[i].change != KEPT_SAME;
        if (write_finding(s, &l->list[i], l->identities.list[i], err) < 0)
            return -1;
    }
    return 0;
}

static void judged_count(const struct kept_list *l, struct fleet_tally *out)
{
    *out =
        (struct fleet_tally){.counts = kept_count(l), .opened = l->opened, .left_out = l->left_out};
}

int fleet_store_judge(struct fleet_store *s, const struct kept_judgement *j,
                      struct fleet_tally *out, struct err *err)
{
    struct kept_list l CLEANUP(kept_list_fini) = {0};
    if (fleet_begin(s, err) < 0 || fleet_end(s, kept_merge(s, &l, j, err), err) < 0)
        return -1;
    judged_count(&l, out);
    return 0;
}

int fleet_store_counts(struct fleet_store *s, struct fleet_tally *out, struct err *err)
{
    struct kept_list l CLEANUP(kept_list_fini) = {0};
    if (fleet_begin(s, err) < 0 || fleet_end(s, kept_read(s, &l, err), err) < 0)
        return -1;
    judged_count(&l, out);
    return 0;
}

// ---- A mark

static int mark_one(struct fleet_store *s, struct kept_list *l, const struct fleet_mark *m,
                    struct err *err)
{
    struct kept_finding *f = NULL;
    if (kept_read(s, l, err) < 0)
        return -1;
    for (int i = 0; i < l->identities.n && !f; i++)
        if (l->list[i].id == m->id)
            f = &l->list[i];
    if (!f)
        return err_set(err, ERR_NOT_FOUND, "id", "there is no finding %lld", (long long)m->id);
    if (kept_mark(f, m->event, m->now_ms, err) < 0)
        return -1;
    s->changed = true;
    const struct fleet_cell note =
        m->note ? CELL_T(m->note) : (struct fleet_cell){.type = CELL_NULL, .t = ""};
    const struct fleet_cell row[] = {CELL_I(f->state),     CELL_I(f->times), CELL_I(f->opened_ms),
                                     CELL_I(f->marked_ms), CELL_T(m->by),    note,
                                     CELL_I(f->id)};
    return fleet_exec(s,
                      "UPDATE finding SET state = $1, times = $2, opened_ms = $3, marked_ms = $4, "
                      "\"by\" = $5, note = coalesce($6, note) WHERE id = $7",
                      row, COUNT_OF(row), err);
}

int fleet_store_mark(struct fleet_store *s, const struct fleet_mark *m, struct fleet_tally *out,
                     struct err *err)
{
    struct kept_list l CLEANUP(kept_list_fini) = {0};
    if (fleet_begin(s, err) < 0 || fleet_end(s, mark_one(s, &l, m, err), err) < 0)
        return -1;
    judged_count(&l, out);
    return 0;
}

int fleet_store_drained(struct fleet_store *s, int64_t id, int64_t now_ms, struct err *err)
{
    const struct fleet_cell row[] = {CELL_I(now_ms), CELL_I(id)};
    if (fleet_begin(s, err) < 0)
        return -1;
    s->changed = true;
    return fleet_end(
        s,
        fleet_exec(s, "UPDATE finding SET drained_ms = $1 WHERE id = $2", row, COUNT_OF(row), err),
        err);
}

// ---- Lists

struct kept_reader {
    const struct fleet_kept_query *q;
    int (*fn)(void *ctx, const struct fleet_kept *k, struct err *err);
    void *ctx;
    int64_t last; // id
    int rows;     // of the piece
    bool done;
};

static int list_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct kept_reader *r = ctx;
    int what = kept_what_find(row[1].t);
    r->rows++;
    r->last = row[0].i;
    if (r->done || what < 0 || row[2].i < 0 || row[2].i >= KEPT_STATES ||
        !(r->q->states & 1U << row[2].i))
        return 0;
    const struct fleet_kept k = {.id = row[0].i,
                                 .what = (enum kept_what)what,
                                 .state = (enum kept_state)row[2].i,
                                 .grade = (int)row[3].i,
                                 .node = row[4].t,
                                 .class = row[5].t,
                                 .metric = row[6].t,
                                 .text = row[7].t,
                                 .percent = cell_number(&row[8]),
                                 .lo = cell_number(&row[9]),
                                 .hi = cell_number(&row[10]),
                                 .times = (int)row[11].i,
                                 .found_ms = row[12].i,
                                 .seen_ms = row[13].i,
                                 .opened_ms = row[14].i,
                                 .closed_ms = row[15].i,
                                 .marked_ms = row[16].i,
                                 .since_ms = row[17].i,
                                 .by = row[18].t,
                                 .note = row[19].t,
                                 .evidence = row[20].t,
                                 .drained_ms = row[21].i};
    int rc = r->fn(r->ctx, &k, err);
    r->done = rc > 0;
    return rc < 0 ? -1 : 0;
}

static int list_pieces(struct fleet_store *s, struct kept_reader *r, struct err *err)
{
    static const char sql[] =
        "SELECT id, what, state, grade, node, class, metric, text, percent, lo, hi, times, "
        "found_ms, seen_ms, opened_ms, closed_ms, marked_ms, since_ms, \"by\", note, evidence, "
        "drained_ms FROM finding WHERE id < CAST($1 AS bigint) AND "
        "(CAST($2 AS bigint) = 0 OR id = CAST($2 AS bigint)) AND "
        "(CAST($3 AS text) = '' OR what = CAST($3 AS text)) AND "
        "(CAST($4 AS text) = '' OR node = CAST($4 AS text)) ORDER BY id DESC LIMIT $5";
    const struct fleet_kept_query *q = r->q;
    r->last = q->before ? q->before : INT64_MAX;
    do {
        const struct fleet_cell in[] = {CELL_I(r->last), CELL_I(q->id),
                                        CELL_T(q->what ? q->what : ""),
                                        CELL_T(q->node ? q->node : ""), CELL_I(PIECE_ROWS)};
        r->rows = 0;
        if (s->engine->query(s->db, sql, in, COUNT_OF(in), list_row, r, err) < 0)
            return -1;
    } while (!r->done && r->rows == PIECE_ROWS);
    return 0;
}

int fleet_store_findings(struct fleet_store *s, const struct fleet_kept_query *q,
                         int (*fn)(void *ctx, const struct fleet_kept *k, struct err *err),
                         void *ctx, struct err *err)
{
    struct kept_reader r = {.q = q, .fn = fn, .ctx = ctx};
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s, list_pieces(s, &r, err), err);
}
