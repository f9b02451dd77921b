// SPDX-License-Identifier: Apache-2.0
// A table of axes has what values each may have. The daemon refuses a matrix that its benchmark
// cannot have made.
#include "model/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/spec_values.h"
#include "model/target.h"

int shape_list(const struct spec *s, struct shape list[SHAPES_MAX])
{
    return benchmarks[s->benchmark].shapes(s, list);
}

const struct shape *shape_find(const struct shape *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static int check_listed_pairs(const struct spec *s, int ranks, struct err *err)
{
    int pairs[SPEC_PAIRS_MAX][2], n = 0;
    if (strcmp(s->pairs, "all") == 0 || strcmp(s->pairs, "classes") == 0)
        return 0;
    if (spec_pairs(s->pairs, pairs, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (pairs[i][1] >= ranks)
            return err_set(err, ERR_INVALID, "pairs", "has rank %d, but the run has ranks 0-%d",
                           pairs[i][1], ranks - 1);
    return 0;
}

// A table of every pair of 1,024 ranks would have a million cells: METHOD.md, "Many pairs", counts
// what they take. 512 ranks are 262,144.
int shape_check_ranks(const struct spec *s, int ranks, struct err *err)
{
    struct shape list[SHAPES_MAX];
    int n = shape_list(s, list);
    int most = (int)sqrt(MATRIX_CELLS_MAX);
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].rows, "rank") == 0 && strcmp(list[i].cols, "rank") == 0 &&
            (int64_t)ranks * ranks > MATRIX_CELLS_MAX)
            return err_set(
                err, ERR_INVALID, "ranks",
                "%d ranks have %d pairs, and a table of all pairs has at most %d ranks "
                "(ranks=one-per-l3, a number per node, or cpus): pairs=classes measures a "
                "pair of each kind, pairs=0-1,0-600 those that are named, and the "
                "benchmark scan a choice of all",
                ranks, ranks * (ranks - 1) / 2, most);
    return spec_param(s, "pairs") ? check_listed_pairs(s, ranks, err) : 0;
}

int shape_check_pairs(const struct spec *s, int ranks, int targets, struct err *err)
{
    int64_t least = ranks + targets, all = (int64_t)ranks * targets;
    if (s->benchmark != BENCHMARK_MATRIX || !s->pairs_most || s->pairs_most >= least ||
        s->pairs_most >= all)
        return 0;
    if (all <= least)
        return err_set(err, ERR_INVALID, "pairs_most",
                       "must be 0, because there are %" PRId64 " pairs of a rank and a target in "
                       "all, too few to leave some out; got %" PRId64,
                       all, s->pairs_most);
    return err_set(err, ERR_INVALID, "pairs_most",
                   "must be 0 (all %" PRId64 "), or %" PRId64 " at least, as many as there are "
                   "ranks and targets; got %" PRId64,
                   all, least, s->pairs_most);
}

static bool shape_is(const struct axis *a, const char *name)
{
    return strcmp(a->name, name) == 0;
}

static bool pairs_of_ranks(const struct matrix *m)
{
    return shape_is(&m->row, "rank") && shape_is(&m->col, "rank");
}

bool shape_has_cell(const struct matrix *m, int row, int col)
{
    return !pairs_of_ranks(m) || row < col;
}

bool shape_more_is_better(const struct matrix *m)
{
    static const char *const more[] = {"bandwidth", "rate", "fairness", "share"};
    for (size_t i = 0; i < COUNT_OF(more); i++)
        if (strcmp(m->quantity, more[i]) == 0)
            return true;
    return false;
}

bool shape_complete(const struct matrix *m)
{
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++)
            if (shape_has_cell(m, r, c) && !isfinite(matrix_at(m, r, c)->v[CELL_MEDIAN]))
                return false;
    return m->cells != NULL;
}

int64_t shape_cells(const struct matrix *m)
{
    int64_t n = m->row.n;
    return pairs_of_ranks(m) ? n * (n - 1) / 2 : n * m->col.n;
}

int64_t shape_cells_measured(const struct matrix *m, const struct spec *s)
{
    int64_t n = shape_cells(m);
    bool choice = pairs_of_ranks(m) || (shape_is(&m->row, "rank") && shape_is(&m->col, "target"));
    return choice ? spec_pairs_of(s, n) : n;
}

int64_t shape_cells_with_value(const struct matrix *m)
{
    int64_t n = 0;
    for (int r = 0; m->cells && r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++)
            n += shape_has_cell(m, r, c) && isfinite(matrix_at(m, r, c)->v[CELL_MEDIAN]);
    return n;
}

bool shape_measured(const struct matrix *m, const struct spec *s)
{
    return m->cells && shape_cells_with_value(m) == shape_cells_measured(m, s);
}

// --- Axes --------------------------------------------------------------------------------------

// Stands for the plan of a run that came from elsewhere without one.
static const struct plan no_plan = {.n_ranks = SPEC_RANKS_MAX};
enum { NODES_MAX = 65536, AXIS_MAX = 4096 }; // of targets and pairs, duplicates cost the square

static bool node_ok(int64_t v)
{
    return v >= 0 && v < NODES_MAX;
}

static bool rank_ok(int64_t v, const struct plan *p)
{
    return v >= 0 && v < p->n_ranks;
}

static bool target_ok(int64_t v, const struct plan *p)
{
    if (p == &no_plan)
        return v == -1 || node_ok(v) || target_is_interleaved(v);
    for (int i = 0; i < p->n_targets; i++)
        if (p->targets[i] == v)
            return true;
    return v == -1 && !p->n_targets;
}

static bool initiator_ok(int64_t v, const struct plan *p)
{
    if (p == &no_plan)
        return node_ok(v);
    for (int i = 0; i < p->n_ranks; i++)
        if (p->ranks[i].cpu_node == v)
            return true;
    return false;
}

static bool source_ok(int64_t v, const struct plan *p)
{
    return v >= 0 && target_ok(v, p);
}

static bool threads_ok(int64_t v, const struct plan *p)
{
    return v >= 1 && v <= p->n_ranks;
}

static bool pair_ok(int64_t v, const struct plan *p)
{
    int first, second;
    axis_unpair(v, &first, &second);
    return v == axis_pair(first, second) && first >= 0 && first < second && second < p->n_ranks;
}

static bool path_ok(int64_t v, const struct plan *p)
{
    int from, to;
    axis_unpair(v, &from, &to);
    return v == axis_pair(from, to) && (initiator_ok(from, p) || target_ok(from, p)) &&
           target_ok(to, p);
}

static bool operation_ok(int64_t v, const struct plan *p)
{
    (void)p;
    return v >= 0 && v < AXIS_OPERATIONS;
}

static bool line_ok(int64_t v, const struct plan *p)
{
    (void)p;
    return v >= 1 && v <= SPEC_LINES_MAX;
}

static bool any_ok(int64_t v, const struct plan *p)
{
    (void)p;
    return v >= 0;
}

static bool access_ok(int64_t v, const struct plan *p)
{
    (void)p;
    return v >= 0 && v < AXIS_ACCESSES;
}

static bool aspect_ok(int64_t v, const struct plan *p)
{
    (void)p;
    return v >= 0 && v < AXIS_ASPECTS;
}

static bool load_ok(int64_t v, const struct plan *p)
{
    (void)p;
    return v >= 0 && v <= 100;
}

static const struct axis_kind {
    const char *name, *unit;
    bool (*ok)(int64_t value, const struct plan *p);
    bool rises;
} kinds[] = {
    {"rank", "", rank_ok, true},        {"working_set", "bytes", any_ok, true},
    {"target", "", target_ok, false},   {"initiator", "", initiator_ok, false},
    {"threads", "", threads_ok, true},  {"pair", "", pair_ok, false},
    {"message", "bytes", any_ok, true}, {"access", "", access_ok, true},
    {"load", "%", load_ok, true},       {"pages", "", any_ok, true},
    {"chains", "", any_ok, true},       {"stride", "bytes", any_ok, true},
    {"source", "", source_ok, false},   {"path", "", path_ok, false},
    {"line", "", line_ok, true},        {"aspect", "", aspect_ok, true},
    {"l3", "", rank_ok, true},          {"operation", "", operation_ok, true},
};

static const struct axis_kind *kind_of(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static void set_axis(struct axis *a, const char *name)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    const struct axis_kind *kind = kind_of(name);
    snprintf(a->unit, sizeof a->unit, "%s", kind ? kind->unit : "");
    for (int i = 0; i < a->n; i++)
        a->values[i] = i;
}

int shape_make(struct matrix *m, const struct shape *shape, int rows, int cols, struct err *err)
{
    if (matrix_init(m, shape->name, shape->quantity, shape->unit, rows, cols, err) < 0)
        return -1;
    set_axis(&m->row, shape->rows);
    set_axis(&m->col, shape->cols);
    return 0;
}

static int check_axis(const struct matrix *m, const struct axis *a, const char *wanted,
                      const struct plan *p, struct err *err)
{
    const struct axis_kind *kind = kind_of(wanted);
    if (!kind || !shape_is(a, wanted))
        return err_set(err, ERR_INVALID, "", "matrix %s has an axis \"%s\" instead of %s", m->name,
                       a->name, wanted);
    for (int i = 0; i < a->n; i++) {
        if (!kind->ok(a->values[i], p))
            return err_set(err, ERR_INVALID, "", "matrix %s: %s %" PRId64 " is not of this run",
                           m->name, a->name, a->values[i]);
        if (!i || (kind->rises && a->values[i] > a->values[i - 1]))
            continue;
        for (int k = 0; k < i; k++)
            if (a->values[k] == a->values[i])
                return err_set(err, ERR_INVALID, "", "matrix %s: %s %" PRId64 " twice", m->name,
                               a->name, a->values[i]);
        if (kind->rises)
            return err_set(err, ERR_INVALID, "", "matrix %s: the values of %s do not rise", m->name,
                           a->name);
    }
    return 0;
}

// How many values an axis must have; 0: it depends on what is found at the start.
static int values_wanted(const char *axis, const struct spec *s, const struct plan *p)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n = 0;
    if (strcmp(axis, "working_set") == 0 && !benchmarks[s->benchmark].up_to_size &&
        str_to_sizes(s->size, SPEC_SIZES_MAX, "size", &sizes, &n, NULL) == 0)
        return n;
    if (strcmp(axis, "rank") == 0 && !benchmarks[s->benchmark].loads_by_ranks)
        return p->n_ranks;
    if (strcmp(axis, "target") == 0 || strcmp(axis, "source") == 0)
        return p->n_targets ? p->n_targets : 1;
    if (strcmp(axis, "line") == 0)
        return (int)s->lines;
    if (strcmp(axis, "load") == 0)
        return (int)s->steps + 1;
    return strcmp(axis, "access") == 0 ? AXIS_ACCESSES : 0;
}

static int check_count(const struct matrix *m, const struct axis *a, const struct spec *s,
                       const struct plan *p, struct err *err)
{
    int wanted = values_wanted(a->name, s, p);
    if (!wanted || wanted == a->n)
        return 0;
    return err_set(err, ERR_INVALID, "", "matrix %s is %d x %d, expected %d values of %s", m->name,
                   m->row.n, m->col.n, wanted, a->name);
}

// The shape that the matrix claims to have, if the spec has it.
static int find_shape(const struct matrix *m, const struct spec *s, struct shape *out,
                      struct err *err)
{
    struct shape list[SHAPES_MAX];
    const struct shape *shape = shape_find(list, shape_list(s, list), m->name);
    if (!shape)
        return err_set(err, ERR_INVALID, "", "a matrix \"%s\" that was not requested", m->name);
    if (strcmp(m->quantity, shape->quantity) != 0 || strcmp(m->unit, shape->unit) != 0)
        return err_set(err, ERR_INVALID, "", "matrix %s is of \"%s\" in \"%s\", not %s in %s",
                       m->name, m->quantity, m->unit, shape->quantity, shape->unit);
    *out = *shape;
    return 0;
}

int shape_check(const struct matrix *m, const struct spec *s, const struct plan *p, struct err *err)
{
    struct shape shape;
    if (find_shape(m, s, &shape, err) < 0 || check_axis(m, &m->row, shape.rows, p, err) < 0 ||
        check_axis(m, &m->col, shape.cols, p, err) < 0 || check_count(m, &m->row, s, p, err) < 0)
        return -1;
    return check_count(m, &m->col, s, p, err);
}

int shape_check_alone(const struct matrix *m, const struct spec *s, struct err *err)
{
    struct shape shape;
    if (m->row.n > AXIS_MAX || m->col.n > AXIS_MAX)
        return err_set(err, ERR_INVALID, "matrices", "matrix %s is %d x %d, at most %d x %d",
                       m->name, m->row.n, m->col.n, AXIS_MAX, AXIS_MAX);
    if (find_shape(m, s, &shape, err) < 0 ||
        check_axis(m, &m->row, shape.rows, &no_plan, err) < 0 ||
        check_axis(m, &m->col, shape.cols, &no_plan, err) < 0) {
        if (err && !*err->member)
            snprintf(err->member, sizeof err->member, "matrices");
        return -1;
    }
    return 0;
}
