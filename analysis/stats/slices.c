// SPDX-License-Identifier: Apache-2.0
// One walk visits every candidate: a set of rows is summed up by columns, then every set of columns
// is a sum over these. It remembers the best of each kind of candidate, and a sample of the kind's
// z, whose spread says how large z is without any cause.
#include "analysis/stats/slices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/median.h"
#include "base/cleanup.h"

enum {
    UNKNOWN_CELLS_MIN = 4,             // a part of single values has at least as many
    KIN_MIN = 8,                       // candidates of a kind that show what is typical of them
    SAMPLE_MAX = 2048,                 // of them, at most: their median is known to 3 % then
    NEIGHBOURS_MIN = 8,                // differences between neighbours that give a variance
    DF_MAX = 100,                      // Student's t is normal by then
    KIN = PART_KINDS * PART_KINDS + 1, // crossings of kinds, and classes
    CLASSES = 2,
};

// Values that are all equal are not infinitely sure.
static const double SIGMA_FLOOR = 0.0005;

struct sum {
    double value, var, var_df;
    int n, unknown;
};

static void sum_add(struct sum *s, const struct sum *x, double sign)
{
    s->value += sign * x->value;
    s->var += sign * x->var;
    s->var_df += sign * x->var_df;
    s->n += (int)sign * x->n;
    s->unknown += (int)sign * x->unknown;
}

// Candidates of a kind: how many there are, a sample of their z, and the best.
struct kin {
    int64_t n;
    int sampled, every; // each `every`th is in the sample
    double *z;          // owned
    double scale;       // how much larger z is by chance than theory says; at least 1
    struct part best;
    double best_z, best_t, best_df;
};

struct search {
    const struct parts_table *t;
    const struct parts_options *o;
    struct parts *found;
    double *var, *df;               // with neighbours' for what is not known; owned
    bool *unknown;                  // owned
    struct sum *by_col;             // of the set of rows at hand; owned
    struct sum *rows;               // by column, of each group of rows or of the rows so far; owned
    int *row_members, *col_members; // of each group; owned
    struct kin kin[KIN];
};

static void search_fini(struct search *s)
{
    free(s->var);
    free(s->df);
    free(s->unknown);
    free(s->by_col);
    free(s->rows);
    free(s->row_members);
    free(s->col_members);
    for (int i = 0; i < KIN; i++)
        free(s->kin[i].z);
}

void parts_fini(struct parts *p)
{
    free(p->label);
    *p = (struct parts){0};
}

// ---- What single values vary by -----------------------------------------------------------------

// Robust standard deviation of the differences between neighbours, `step` cells apart: a part has
// few edges, so they hardly see it.
static double neighbours_sigma(const struct parts_table *t, bool along_row, double *room)
{
    int n = 0, step = along_row ? 1 : t->cols;
    for (int i = 0; i < t->rows - !along_row; i++)
        for (int j = 0; j < t->cols - along_row; j++) {
            int k = i * t->cols + j;
            double d = fabs(t->value[k + step] - t->value[k]);
            if (!isnan(d))
                room[n++] = d;
        }
    return n < NEIGHBOURS_MIN ? NAN : 1.4826 / sqrt(2) * middle_of(room, n);
}

// What the values of a column scatter by around its median: sizes are not measured equally well.
static double column_sigma(const struct parts_table *t, int col, double *room)
{
    int n = 0;
    for (int i = 0; i < t->rows; i++)
        if (!isnan(t->value[i * t->cols + col]))
            room[n++] = t->value[i * t->cols + col];
    double middle = middle_of(room, n);
    for (int i = 0; i < n; i++)
        room[i] = fabs(room[i] - middle);
    return n < KIN_MIN ? NAN : 1.4826 * middle_of(room, n);
}

static int fill_unknown(struct search *s, struct err *err)
{
    const struct parts_table *t = s->t;
    size_t n = (size_t)t->rows * (size_t)t->cols;
    bool any = false;
    for (size_t k = 0; k < n; k++) {
        s->unknown[k] = !isnan(t->value[k]) && isnan(t->var[k]);
        any |= s->unknown[k];
    }
    if (!any)
        return 0;
    CLEANUP_MEM double *room = calloc(n, sizeof *room);
    if (!room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to look for parts");
    double sigma = fmin(neighbours_sigma(t, true, room), neighbours_sigma(t, false, room));
    for (int j = 0; j < t->cols; j++) {
        double own = fmax(SIGMA_FLOOR, fmax(sigma, column_sigma(t, j, room))); // passes over NaN
        for (int i = 0; i < t->rows; i++)
            if (s->unknown[i * t->cols + j]) {
                s->var[i * t->cols + j] = isnan(sigma) ? NAN : own * own;
                s->df[i * t->cols + j] = DF_MAX;
            }
    }
    return 0;
}

// ---- Candidates ---------------------------------------------------------------------------------

static struct kin *kin_of(struct search *s, const struct part *p)
{
    return &s->kin[p->class >= 0 ? KIN - 1 : p->rows.kind * PART_KINDS + p->cols.kind];
}

static bool same_set(struct part_set a, struct part_set b)
{
    return a.kind == b.kind && a.at == b.at;
}

static bool known_part(const struct search *s, const struct part *p)
{
    for (int i = 0; i < s->found->n; i++) {
        const struct part *q = &s->found->list[i];
        if (same_set(p->rows, q->rows) && same_set(p->cols, q->cols) && p->class == q->class)
            return true;
    }
    return false;
}

// A full sample drops every second of its members.
static void learn(struct kin *k, double z)
{
    if (k->sampled == SAMPLE_MAX) {
        for (int i = 0; i < SAMPLE_MAX / 2; i++)
            k->z[i] = k->z[2 * i];
        k->sampled = SAMPLE_MAX / 2;
        k->every *= 2;
    }
    k->z[k->sampled++] = z;
}

// The normal quantile that is as rare as Student's t (Wallace, 1959): it ranks candidates of any
// degrees of freedom, where p itself is too small for a double.
static double normal_of(double t, double df)
{
    double z = (8 * df + 1) / (8 * df + 3) * sqrt(df * log1p(t * t / df));
    return t < 0 ? -z : z;
}

static bool is_range(enum part_kind kind)
{
    return kind == PART_FROM || kind == PART_UPTO;
}

// A shift of the whole is looked at whatever its size: parts must stand out from it.
static bool matters(const struct search *s, const struct part *p, const struct sum *sum,
                    double mean)
{
    bool lone = p->rows.kind == PART_ONE && p->cols.kind == PART_ONE;
    double far = fabs(mean), near = s->o->same - far;
    if (p->class < 0 && p->rows.kind == PART_ALL && p->cols.kind == PART_ALL)
        return true;
    return far >= (lone ? s->o->lone : s->o->least) &&
           (near <= 0 || 1.96 * 1.96 * sum->var >= near * near * sum->n * sum->n);
}

static void slices_consider(struct search *s, struct part p, const struct sum *sum)
{
    struct kin *k = kin_of(s, &p);
    if (!sum->n || (sum->unknown && sum->n < UNKNOWN_CELLS_MIN) || !(sum->var > 0))
        return;
    double mean = sum->value / sum->n;
    bool wanted = matters(s, &p, sum, mean);
    bool sampled = !is_range(p.rows.kind) && !is_range(p.cols.kind) && k->n % k->every == 0;
    k->n++;
    if (!wanted && !sampled)
        return;
    double t = sum->value / sqrt(sum->var);
    double df = fmin(DF_MAX, sum->var * sum->var / sum->var_df), z = normal_of(t, df);
    if (sampled)
        learn(k, z);
    if (!wanted || fabs(z) <= fabs(k->best_z) || known_part(s, &p))
        return;
    k->best = p;
    k->best_z = z;
    k->best_t = t;
    k->best_df = df;
}

static struct sum minus_half(struct sum x, struct sum y)
{
    return (struct sum){x.value - y.value / 2, x.var - y.var / 2, x.var_df - y.var_df / 2,
                        x.n - y.n / 2, x.unknown - y.unknown / 2};
}

// A part that is on both axes the same set of ranks has each of its pairs twice.
static void cross(struct search *s, struct part_set rows, struct part_set cols, struct sum sum)
{
    const struct parts_table *t = s->t;
    if (t->symmetric && rows.kind == PART_ALL && cols.kind != PART_ALL)
        return; // as the row of that name
    if (t->symmetric &&
        ((rows.kind == PART_ONE && cols.kind == PART_ONE) ||
         (rows.kind == PART_GROUP && cols.kind == PART_GROUP)) &&
        cols.at < rows.at)
        return;
    if (t->symmetric && rows.kind == cols.kind && rows.at == cols.at)
        sum = minus_half(sum, sum);
    slices_consider(s, (struct part){rows, cols, -1, 0, 0}, &sum);
}

static void cross_groups(struct search *s, struct part_set rows)
{
    const struct parts_table *t = s->t;
    for (int g = 0; t->col_group && g < t->n_col_groups; g++) {
        struct sum sum = {0};
        if (s->col_members[g] < 2 || s->col_members[g] == t->cols)
            continue; // is one column, or all
        for (int j = 0; j < t->cols; j++)
            if (t->col_group[j] == g)
                sum_add(&sum, &s->by_col[j], 1);
        cross(s, rows, (struct part_set){PART_GROUP, g}, sum);
    }
}

// Every set of columns for a set of rows, whose sums by column are in by_col. "From the first on"
// is all, "from the last on" is one.
static void cross_columns(struct search *s, struct part_set rows)
{
    const struct parts_table *t = s->t;
    struct sum all = {0}, so_far = {0}, twice = {0};
    for (int j = 0; j < t->cols; j++) {
        sum_add(&all, &s->by_col[j], 1);
        if (t->symmetric && rows.kind == PART_GROUP && t->col_group[j] == rows.at)
            sum_add(&twice, &s->by_col[j], 1);
    }
    cross(s, rows, (struct part_set){PART_ALL, 0}, minus_half(all, twice));
    for (int j = 0; t->cols > 1 && j < t->cols; j++) {
        cross(s, rows, (struct part_set){PART_ONE, j}, s->by_col[j]);
        if (!t->cols_ordered)
            continue;
        struct sum rest = all;
        sum_add(&rest, &so_far, -1);
        if (j > 0 && j < t->cols - 1)
            cross(s, rows, (struct part_set){PART_FROM, j}, rest);
        sum_add(&so_far, &s->by_col[j], 1);
        if (j > 0 && j < t->cols - 1)
            cross(s, rows, (struct part_set){PART_UPTO, j}, so_far);
    }
    cross_groups(s, rows);
}

static struct sum sum_of(const struct search *s, int k)
{
    double v = s->t->value[k], var = s->var[k];
    if (isnan(v) || isnan(var))
        return (struct sum){0};
    int label = s->found->label[k];
    double level = label < 0 ? 0 : s->found->list[label].level;
    return (struct sum){v - level, var, var * var / s->df[k], 1, s->unknown[k]};
}

static void slices_add_row(const struct search *s, struct sum *by_col, int row)
{
    for (int j = 0; j < s->t->cols; j++) {
        const struct sum one = sum_of(s, row * s->t->cols + j);
        sum_add(&by_col[j], &one, 1);
    }
}

static void use_sums(struct search *s, const struct sum *sums)
{
    memcpy(s->by_col, sums, (size_t)s->t->cols * sizeof *sums);
}

static void walk_rows(struct search *s)
{
    const struct parts_table *t = s->t;
    size_t bytes = (size_t)t->cols * sizeof *s->rows;
    memset(s->rows, 0, bytes);
    for (int i = 0; i < t->rows; i++) {
        memset(s->by_col, 0, bytes);
        slices_add_row(s, s->by_col, i);
        for (int j = 0; j < t->cols; j++)
            sum_add(&s->rows[j], &s->by_col[j], 1);
        if (t->rows > 1)
            cross_columns(s, (struct part_set){PART_ONE, i});
        if (!t->rows_ordered || i == 0 || i == t->rows - 1)
            continue;
        use_sums(s, s->rows);
        cross_columns(s, (struct part_set){PART_UPTO, i});
    }
    use_sums(s, s->rows);
    cross_columns(s, (struct part_set){PART_ALL, 0});
}

static void walk_rows_back(struct search *s)
{
    const struct parts_table *t = s->t;
    memset(s->rows, 0, (size_t)t->cols * sizeof *s->rows);
    for (int i = t->rows - 1; t->rows_ordered && i > 0; i--) {
        slices_add_row(s, s->rows, i);
        use_sums(s, s->rows);
        if (i < t->rows - 1)
            cross_columns(s, (struct part_set){PART_FROM, i});
    }
}

static void walk_groups(struct search *s)
{
    const struct parts_table *t = s->t;
    memset(s->rows, 0, (size_t)t->cols * (size_t)(t->n_row_groups + 1) * sizeof *s->rows);
    for (int i = 0; t->row_group && i < t->rows; i++)
        if (t->row_group[i] >= 0)
            slices_add_row(s, s->rows + (size_t)t->row_group[i] * (size_t)t->cols, i);
    for (int g = 0; t->row_group && g < t->n_row_groups; g++) {
        if (s->row_members[g] < 2 || s->row_members[g] == t->rows)
            continue;
        use_sums(s, s->rows + (size_t)g * (size_t)t->cols);
        cross_columns(s, (struct part_set){PART_GROUP, g});
    }
}

static void walk_classes(struct search *s)
{
    const struct parts_table *t = s->t;
    struct sum sums[CLASSES] = {0};
    for (int k = 0; t->class && k < t->rows * t->cols; k++)
        if (t->class[k] >= 0 && !(t->symmetric && k / t->cols > k % t->cols)) {
            const struct sum one = sum_of(s, k);
            sum_add(&sums[t->class[k]], &one, 1);
        }
    for (int c = 0; t->class && c < CLASSES; c++)
        if (sums[0].n && sums[1].n)
            slices_consider(s, (struct part){.class = c}, &sums[c]);
}

static void walk(struct search *s)
{
    for (int i = 0; i < KIN; i++) {
        s->kin[i].n = s->kin[i].sampled = 0;
        s->kin[i].every = 1;
        s->kin[i].best_z = 0;
    }
    walk_rows(s);
    walk_rows_back(s);
    walk_groups(s);
    walk_classes(s);
}

// ---- The best -----------------------------------------------------------------------------------

static bool in_set(struct part_set set, int at, const int *group)
{
    switch (set.kind) {
    case PART_ONE:
        return at == set.at;
    case PART_GROUP:
        return group[at] == set.at;
    case PART_FROM:
        return at >= set.at;
    case PART_UPTO:
        return at <= set.at;
    default:
        return true;
    }
}

static bool covers(const struct parts_table *t, const struct part *p, int i, int j)
{
    if (p->class >= 0)
        return t->class[i * t->cols + j] == p->class;
    return in_set(p->rows, i, t->row_group) && in_set(p->cols, j, t->col_group);
}

static bool holds(const struct parts_table *t, const struct part *p, int k)
{
    int i = k / t->cols, j = k % t->cols;
    return !isnan(t->value[k]) && (covers(t, p, i, j) || (t->symmetric && covers(t, p, j, i)));
}

// From the shortest interval that holds half of them: where as many as half of the candidates are
// of a part, it lies among the others.
static double own_scale(struct kin *k)
{
    int half = (k->sampled - 1) / 2;
    double shortest = INFINITY;
    if (k->sampled < KIN_MIN)
        return 1;
    middle_of(k->z, k->sampled); // sorts
    for (int i = 0; i + half < k->sampled; i++)
        shortest = fmin(shortest, k->z[i + half] - k->z[i]);
    return fmax(1, shortest / 1.349 * (1 + 16.0 / k->sampled));
}

static double slices_scale_at(const struct search *s, enum part_kind rows, enum part_kind cols)
{
    return s->kin[rows * PART_KINDS + cols].scale;
}

// The kinds that show what chance does to one of this kind: ranges overlap and nodes are few, so
// they are as the single rows or columns that they consist of, and as the whole ones.
static int stand_ins(enum part_kind kind, enum part_kind out[3])
{
    int n = 0;
    out[n++] = is_range(kind) ? PART_ONE : kind;
    if (kind == PART_ALL || kind == PART_ONE)
        return n;
    out[n++] = PART_ALL;
    if (kind == PART_GROUP)
        out[n++] = PART_ONE;
    return n;
}

static double scale_of(const struct search *s, int kind)
{
    enum part_kind rows[3], cols[3];
    if (kind == KIN - 1) // classes are of all rows and columns
        return fmax(slices_scale_at(s, PART_ONE, PART_ALL), slices_scale_at(s, PART_ALL, PART_ONE));
    int n = stand_ins((enum part_kind)(kind / PART_KINDS), rows);
    int m = stand_ins((enum part_kind)(kind % PART_KINDS), cols);
    double scale = 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            scale = fmax(scale, slices_scale_at(s, rows[i], cols[j]));
    return scale;
}

// Does the part as a whole differ, or a few of its cells? If all of them do, most are nearer to
// their mean than to nothing: how many is known from the noise. Half of the way from an even split
// to that is requested.
static bool slices_fits(const struct search *s, const struct part *p)
{
    struct sum all = {0};
    int near = 0;
    for (int k = 0; k < s->t->rows * s->t->cols; k++)
        if (holds(s->t, p, k)) {
            const struct sum one = sum_of(s, k);
            sum_add(&all, &one, 1);
        }
    double mean = all.value / all.n, sigma = sqrt(all.var / all.n);
    for (int k = 0; k < s->t->rows * s->t->cols; k++)
        if (holds(s->t, p, k)) {
            const struct sum one = sum_of(s, k);
            near += one.n && (mean > 0 ? one.value > mean / 2 : one.value < mean / 2);
        }
    double expected = 1 - erfc(fabs(mean) / 2 / sigma / sqrt(2)) / 2;
    double slack = sqrt(expected * (1 - expected) / all.n);
    return near >= all.n * ((0.5 + expected) / 2 - slack);
}

// The most that any kind's best explains, of those that are no chance. NULL: none.
static const struct part *best_part(struct search *s)
{
    struct part *best = NULL;
    double most = 0;
    int kinds = 0;
    for (int i = 0; i < KIN; i++) {
        kinds += s->kin[i].n > 0;
        s->kin[i].scale = own_scale(&s->kin[i]);
    }
    for (int i = 0; i < KIN; i++) {
        struct kin *k = &s->kin[i];
        double z = fabs(k->best_z), sure = 0;
        if (z > 0)
            sure = fabs(normal_of(k->best_t / scale_of(s, i), k->best_df));
        k->best.p = fmin(1, erfc(sure / sqrt(2)) * (double)k->n * kinds);
        if (!(z > most) || k->best.p > s->o->level || !slices_fits(s, &k->best))
            continue;
        most = z;
        best = &k->best;
    }
    return best;
}

static int size_of(const struct parts_table *t, const struct part *p)
{
    int n = 0;
    for (int k = 0; k < t->rows * t->cols; k++)
        n += holds(t, p, k);
    return n;
}

static double level_of(const struct search *s, int label, double *room)
{
    int n = 0;
    for (int k = 0; k < s->t->rows * s->t->cols; k++)
        if (s->found->label[k] == label)
            room[n++] = s->t->value[k];
    return n ? middle_of(room, n) : 0;
}

// A cell belongs to the smallest part that holds it.
static void add_part(struct search *s, const struct part *p, double *room)
{
    struct parts *f = s->found;
    int sizes[PARTS_MAX], own = size_of(s->t, p), at = f->n++;
    f->list[at] = *p;
    for (int i = 0; i < at; i++)
        sizes[i] = size_of(s->t, &f->list[i]);
    for (int k = 0; k < s->t->rows * s->t->cols; k++)
        if (holds(s->t, p, k) && (f->label[k] < 0 || own < sizes[f->label[k]]))
            f->label[k] = at;
    for (int i = 0; i < f->n; i++)
        f->list[i].level = level_of(s, i, room);
}

static int search_init(struct search *s, struct err *err)
{
    const struct parts_table *t = s->t;
    size_t n = (size_t)t->rows * (size_t)t->cols;
    s->var = calloc(n, sizeof *s->var);
    s->df = calloc(n, sizeof *s->df);
    s->unknown = calloc(n, sizeof *s->unknown);
    s->by_col = calloc((size_t)t->cols, sizeof *s->by_col);
    s->rows = calloc((size_t)t->cols * (size_t)(t->n_row_groups + 1), sizeof *s->rows);
    s->row_members = calloc((size_t)t->n_row_groups + 1, sizeof *s->row_members);
    s->col_members = calloc((size_t)t->n_col_groups + 1, sizeof *s->col_members);
    bool room = true;
    for (int i = 0; i < KIN; i++) {
        s->kin[i].z = calloc(SAMPLE_MAX, sizeof *s->kin[i].z);
        room = room && s->kin[i].z;
    }
    if (!s->var || !s->df || !s->unknown || !s->by_col || !s->rows || !s->row_members ||
        !s->col_members || !room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to look for parts");
    memcpy(s->var, t->var, n * sizeof *s->var);
    memcpy(s->df, t->df, n * sizeof *s->df);
    for (int i = 0; t->row_group && i < t->rows; i++)
        s->row_members[t->row_group[i] < 0 ? t->n_row_groups : t->row_group[i]]++;
    for (int j = 0; t->col_group && j < t->cols; j++)
        s->col_members[t->col_group[j] < 0 ? t->n_col_groups : t->col_group[j]]++;
    return fill_unknown(s, err);
}

int parts_find(struct parts *out, const struct parts_table *t, const struct parts_options *o,
               struct err *err)
{
    size_t n = (size_t)t->rows * (size_t)t->cols;
    struct parts found CLEANUP(parts_fini) = {.label = calloc(n, sizeof *found.label)};
    struct search s CLEANUP(search_fini) = {.t = t, .o = o, .found = &found};
    CLEANUP_MEM double *room = calloc(n, sizeof *room);
    if (!found.label || !room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to look for parts");
    for (size_t k = 0; k < n; k++)
        found.label[k] = -1;
    if (search_init(&s, err) < 0)
        return -1;
    for (;;) {
        walk(&s);
        const struct part *best = best_part(&s);
        found.more = best && found.n == PARTS_MAX;
        if (!best || found.more)
            break;
        add_part(&s, best, room);
    }
    *out = found;
    found = (struct parts){0};
    return 0;
}
