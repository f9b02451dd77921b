// SPDX-License-Identifier: Apache-2.0
// Records come in lines of JSON. Each kind is a function that checks a record against the plan and
// against what came before; the first violation ends the stream with its reason.
#include "core/run/records.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

int records_init(struct records *r, const char *nonce, const struct spec *spec,
                 const struct plan *plan, struct err *err)
{
    *r = (struct records){.nonce = nonce, .spec = spec, .plan = plan};
    r->ranks = calloc((size_t)plan->n_ranks, sizeof *r->ranks);
    r->have_rank = calloc((size_t)plan->n_ranks, sizeof *r->have_rank);
    if (r->ranks && r->have_rank)
        return 0;
    records_fini(r);
    return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", plan->n_ranks);
}

void records_fini(struct records *r)
{
    buf_free(&r->line);
    for (int i = 0; i < r->n_matrices; i++)
        matrix_fini(&r->matrices[i]);
    free(r->ranks);
    free(r->have_rank);
    *r = (struct records){0};
}

#define BAD(...) err_set(err, ERR_INTERNAL, "", __VA_ARGS__)
#define OTHER_VERSION                                                                              \
    "numa_bench and numaprobed are of different versions; after an update restart numaprobed"

static int take_hello(struct records *r, struct record *rec, struct err *err)
{
    const struct hello *h = &rec->hello;
    if (r->have_hello)
        return BAD("a second hello");
    if (h->version != RECORD_VERSION)
        return BAD("record version %" PRId64 ", this daemon reads %d: " OTHER_VERSION, h->version,
                   RECORD_VERSION);
    if (strcmp(h->nonce, r->nonce) != 0)
        return BAD("the nonce is not this run's");
    if (strcmp(h->benchmark, benchmarks[r->spec->benchmark].name) != 0)
        return BAD("it measured \"%s\", not %s", h->benchmark, benchmarks[r->spec->benchmark].name);
    if (h->ranks != r->plan->n_ranks)
        return BAD("%" PRId64 " rank%s said hello, planned were %d", h->ranks, str_plural(h->ranks),
                   r->plan->n_ranks);
    r->hello = *h;
    r->have_hello = true;
    return 0;
}

static struct matrix *records_find_matrix(struct records *r, const char *name)
{
    for (int i = 0; i < r->n_matrices; i++)
        if (strcmp(r->matrices[i].name, name) == 0)
            return &r->matrices[i];
    return NULL;
}

// Only where a budget may leave pairs out, and before anything says how many there are.
static int take_pairs(struct records *r, struct record *rec, struct err *err)
{
    const struct spec *s = r->spec;
    int64_t ranks = r->plan->n_ranks, planned = spec_pairs_of(s, ranks * (ranks - 1) / 2);
    if (r->pairs_most || r->n_matrices)
        return BAD("a number of pairs %s", r->pairs_most ? "twice" : "behind a matrix");
    if (!s->budget_s || !spec_param(s, "concurrent_pairs") || strcmp(s->pairs, "all") != 0)
        return BAD("a number of pairs, where none may be left out");
    if (rec->pairs.most >= planned || rec->pairs.most < spec_fewest_pairs(ranks))
        return BAD("%" PRId64 " of %" PRId64 " pairs", rec->pairs.most, planned);
    r->pairs_most = rec->pairs.most;
    return 0;
}

static int records_take_matrix(struct records *r, struct record *rec, struct err *err)
{
    const struct matrix *m = &rec->matrix;
    if (records_find_matrix(r, m->name))
        return BAD("a second matrix %s", m->name);
    if (shape_check(m, r->spec, r->plan, err) < 0) {
        if (err)
            err->code = ERR_INTERNAL; // the client's request was fine
        return -1;
    }
    r->matrices[r->n_matrices++] = *m;
    rec->matrix = (struct matrix){0}; // taken
    return 0;
}

static int take_cell(struct records *r, struct record *rec, struct err *err)
{
    struct matrix *m = records_find_matrix(r, rec->cell.matrix);
    if (!m)
        return BAD("a cell of matrix \"%s\", which was not announced", rec->cell.matrix);
    if (rec->cell.row >= m->row.n || rec->cell.col >= m->col.n)
        return BAD("cell %" PRId64 ",%" PRId64 " is outside of matrix %s", rec->cell.row,
                   rec->cell.col, m->name);
    struct cell *c = matrix_at(m, (int)rec->cell.row, (int)rec->cell.col);
    if (!shape_has_cell(m, (int)rec->cell.row, (int)rec->cell.col))
        return BAD("cell %" PRId64 ",%" PRId64 " of matrix %s is no pair", rec->cell.row,
                   rec->cell.col, m->name);
    if (isfinite(c->v[CELL_MEDIAN]))
        return BAD("cell %" PRId64 ",%" PRId64 " of matrix %s twice", rec->cell.row, rec->cell.col,
                   m->name);
    *c = rec->cell.cell;
    r->n_cells++;
    return 0;
}

static int take_rank(struct records *r, struct record *rec, struct err *err)
{
    int64_t n = rec->rank.rank;
    if (n >= r->plan->n_ranks)
        return BAD("rank %" PRId64 " of %d", n, r->plan->n_ranks);
    if (r->have_rank[n])
        return BAD("rank %" PRId64 " twice", n);
    r->ranks[n] = rec->rank;
    r->have_rank[n] = true;
    r->n_ranks++;
    return 0;
}

static int take_progress(struct records *r, struct record *rec, struct err *err)
{
    if (rec->progress.done > rec->progress.total)
        return BAD("progress %" PRId64 " of %" PRId64, rec->progress.done, rec->progress.total);
    r->progress = rec->progress;
    r->progressed = true;
    return 0;
}

static int take_condition(struct records *r, struct record *rec, struct err *err)
{
    (void)err;
    if (rec->condition.rank >= r->plan->n_ranks)
        return BAD("a condition of rank %" PRId64 " of %d", rec->condition.rank, r->plan->n_ranks);
    conditions_put(&r->conditions, &rec->condition);
    return 0;
}

static int take_end(struct records *r, struct record *rec, struct err *err)
{
    (void)err;
    r->end = rec->end;
    r->have_end = true;
    return 0;
}

static int take_line(struct records *r, const char *line, size_t n, struct err *err)
{
    static int (*const takers[RECORD_KINDS])(struct records *, struct record *, struct err *) = {
        [RECORD_HELLO] = take_hello,         [RECORD_MATRIX] = records_take_matrix,
        [RECORD_CELL] = take_cell,           [RECORD_RANK] = take_rank,
        [RECORD_CONDITION] = take_condition, [RECORD_END] = take_end,
        [RECORD_PROGRESS] = take_progress,   [RECORD_PAIRS] = take_pairs,
    };
    struct record rec = {0};
    if (r->have_end)
        return BAD("something after the end");
    if (record_parse(&rec, line, n, err) < 0) {
        if (err)
            err->code = ERR_INTERNAL; // the client's request was fine
        return -1;
    }
    // A bench that cannot even begin says why, and that is the one thing it may say before hello.
    bool early_failure = rec.kind == RECORD_END && !rec.end.ok;
    int rc = !r->have_hello && rec.kind != RECORD_HELLO && !early_failure
                 ? BAD("the first record is not hello")
                 : takers[rec.kind](r, &rec, err);
    record_fini(&rec);
    return rc;
}

static int feed(struct records *r, const char *bytes, size_t n, struct err *err)
{
    r->bytes += (int64_t)n;
    if (r->bytes > RECORDS_BYTES_MAX)
        return BAD("more than %d bytes", RECORDS_BYTES_MAX);
    while (n > 0) {
        const char *newline = memchr(bytes, '\n', n);
        size_t part = newline ? (size_t)(newline - bytes) : n;
        if (r->line.len + part > RECORD_LINE_MAX)
            return BAD("a line of more than %d bytes", RECORD_LINE_MAX);
        buf_add(&r->line, bytes, part);
        if (!buf_ok(&r->line))
            return err_set(err, ERR_NO_MEMORY, "", "no memory for a record");
        if (!newline)
            return 0;
        if (take_line(r, buf_text(&r->line), r->line.len, err) < 0)
            return -1;
        buf_reset(&r->line);
        bytes += part + 1;
        n -= part + 1;
    }
    return 0;
}

int records_feed(struct records *r, const char *bytes, size_t n, struct err *err)
{
    return feed(r, bytes, n, err) < 0 ? err_prefix(err, "numa_bench sent what it should not") : 0;
}

int records_check(const struct records *r, struct err *err)
{
    struct shape shapes[SHAPES_MAX];
    struct spec measured = *r->spec;
    measured.pairs_most = r->pairs_most ? r->pairs_most : measured.pairs_most;
    if (!r->have_hello && !r->have_end)
        return BAD("numa_bench did not start: see the log of the run");
    if (!r->have_end)
        return BAD("numa_bench stopped before its end: see the log of the run");
    // The daemon wrote the command line. What it cannot say there comes before hello.
    if (!r->end.ok && !r->have_hello && str_starts(r->end.text, "unknown option"))
        return BAD("%.120s: " OTHER_VERSION, r->end.text);
    if (!r->end.ok) {
        enum err_code code = r->end.code == ERR_NONE ? ERR_INTERNAL : r->end.code;
        return err_set(err, code, r->end.member, "%s",
                       *r->end.text ? r->end.text : "numa_bench failed and did not say why");
    }
    if (r->end.cells != r->n_cells)
        return BAD("numa_bench counted %" PRId64 " cells, %" PRId64 " arrived", r->end.cells,
                   r->n_cells);
    if (r->n_matrices != shape_list(r->spec, shapes))
        return BAD("a matrix is missing");
    for (int i = 0; i < r->n_matrices; i++)
        if (!shape_measured(&r->matrices[i], &measured))
            return BAD("matrix %s has cells without a value", r->matrices[i].name);
    if (r->n_ranks != r->plan->n_ranks)
        return BAD("%d of %d ranks reported where they ran", r->n_ranks, r->plan->n_ranks);
    return 0;
}
