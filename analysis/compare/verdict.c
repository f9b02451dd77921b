// SPDX-License-Identifier: Apache-2.0
// From cells and groups to one verdict: parts are looked for (analysis/stats/slices.c) and judged
// by their own cells, what is left is judged as the rest, and the worst of these decides.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/align.h"
#include "analysis/compare/compare.h"
#include "analysis/compare/parts.h"
#include "analysis/stats/slices.h"
#include "base/cleanup.h"
#include "base/figures.h"
#include "base/str.h"

enum { NAMED_MAX = 3, CLUSTERS_MIN = 4 }; // parts in a sentence; rows that show their scatter
static const double BEYOND = 1e6;         // per cent that no machine changes by
static const double LONE_CELL = 3;        // times the threshold that one cell alone must differ by
static const double PART_LEVEL = 0.1;     // of the level of groups: no part may be chance

// ---- Names --------------------------------------------------------------------------------------

// The words for one value, for a group of ranks, and for a range, by what the axis counts.
struct words {
    enum compare_by by;
    const char *one, *group; // of one value as the subject; of its node's ranks
    const char *beside_one;  // after another subject
};
static const struct words words[] = {
    {COMPARE_RANK, "rank %s", "ranks of node %s", " with rank %s"},
    {COMPARE_SIZE, "size %s", NULL, " at %s"},
    {COMPARE_TARGET, "memory of node %s", NULL, " on memory of node %s"},
    {COMPARE_INITIATOR, "CPUs of node %s", NULL, " from CPUs of node %s"},
    {COMPARE_SOURCE, "copies from node %s", NULL, " from node %s"},
    {COMPARE_THREADS, "%s threads", NULL, " with %s threads"},
    {COMPARE_PAIR, "pair %s", NULL, " of pair %s"},
    {COMPARE_MESSAGE, "message %s", NULL, " at message %s"},
    {COMPARE_OPERATION, "%s", NULL, " of %s"},
    {COMPARE_LINE, "line %s by speed", NULL, " on line %s by speed"},
    {COMPARE_ACCESS, "%s memory", NULL, " on %s memory"},
    {COMPARE_LOAD, "load %s %%", NULL, " at load %s %%"},
    {COMPARE_PATH, "path %s", NULL, " on path %s"},
};

static const struct words *words_of(const struct axis *a)
{
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (grouping_axis_is(words[i].by, a))
            return &words[i];
    return &words[0];
}

// One of our own formats with the value's name.
static void verdict_put(char *out, size_t room, const char *format, const char *value)
{
    const char *at = strstr(format, "%s");
    snprintf(out, room, "%.*s%s%s", (int)(at - format), format, value,
             strcmp(at + 2, " %%") == 0 ? " %" : at + 2);
}

static void name_value(enum compare_by by, int64_t value, char *out, size_t room)
{
    compare_group_label(&(struct compare_group){.by = by, .value = value}, out, room);
}

static void name_set(const struct grouping *g, const struct axis *a, const int *aligned,
                     struct part_set set, bool beside, char *out, size_t room)
{
    const struct words *w = words_of(a);
    char value[40], one[64];
    *out = 0;
    if (set.kind == PART_ALL)
        return;
    if (set.kind == PART_GROUP) {
        snprintf(out, room, "%sranks of node %lld", beside ? " with " : "",
                 (long long)g->c->groups[g->first[COMPARE_NODE] + set.at].value);
        return;
    }
    name_value(w->by, a->values[aligned[set.at]], value, sizeof value);
    verdict_put(one, sizeof one, beside && set.kind == PART_ONE ? w->beside_one : w->one, value);
    if (w->by == COMPARE_THREADS && strcmp(value, "1") == 0)
        one[strlen(one) - 1] = '\0'; // 1 thread
    if (set.kind == PART_ONE)
        snprintf(out, room, "%s", one);
    else
        snprintf(out, room, "%s%s %s%s", beside ? " " : "",
                 set.kind == PART_FROM ? "from" : "up to", w->by == COMPARE_SIZE ? value : one,
                 set.kind == PART_FROM ? " on" : "");
}

// A block of pairs of ranks.
static void name_nodes(const struct grouping *g, int first, int second, struct compare_part *out)
{
    const struct compare_group *nodes = &g->c->groups[g->first[COMPARE_NODE]];
    if (first == second)
        snprintf(out->name, sizeof out->name, "pairs on node %lld", (long long)nodes[first].value);
    else
        snprintf(out->name, sizeof out->name, "pairs of nodes %lld and %lld",
                 (long long)nodes[first].value, (long long)nodes[second].value);
}

static void name_part(const struct grouping *g, const struct part *p, struct compare_part *out)
{
    const struct matrix *m = g->s->a->matrix;
    const struct comparison *c = g->c;
    bool all_rows = p->rows.kind == PART_ALL, all_cols = p->cols.kind == PART_ALL;
    char rows[64], cols[64];
    out->by = COMPARE_PART;
    if (p->class >= 0) {
        out->by = COMPARE_LOCALITY;
        out->value = p->class;
        snprintf(out->name, sizeof out->name, "%s memory", p->class ? "remote" : "local");
        if (grouping_between_ranks(g) || grouping_axis_is(COMPARE_PAIR, &m->row))
            snprintf(out->name, sizeof out->name, "pairs %s",
                     p->class ? "between nodes" : "of one node");
        return;
    }
    if (grouping_between_ranks(g) && p->rows.kind == PART_GROUP && p->cols.kind == PART_GROUP) {
        name_nodes(g, p->rows.at, p->cols.at, out);
        return;
    }
    name_set(g, &m->row, c->row_a, p->rows, false, rows, sizeof rows);
    name_set(g, &m->col, c->col_a, p->cols, !all_rows, cols, sizeof cols);
    snprintf(out->name, sizeof out->name, "%s%s", rows, cols);
    const struct part_set *only = all_cols ? &p->rows : all_rows ? &p->cols : NULL;
    const struct axis *a = all_cols ? &m->row : &m->col;
    if (only && only->kind == PART_ONE) {
        out->by = words_of(a)->by;
        out->value = a->values[(all_cols ? c->row_a : c->col_a)[only->at]];
    } else if (only && only->kind == PART_GROUP) {
        out->by = COMPARE_NODE;
        out->value = c->groups[g->first[COMPARE_NODE] + only->at].value;
    }
}

// ---- The table ----------------------------------------------------------------------------------

struct search_room {
    double *value, *var, *df;
    int *col_group;
    signed char *class;
};

static void search_room_fini(struct search_room *r)
{
    free(r->value);
    free(r->var);
    free(r->df);
    free(r->col_group);
    free(r->class);
}

static bool ordered(const struct axis *a)
{
    return grouping_axis_is(COMPARE_SIZE, a) || grouping_axis_is(COMPARE_MESSAGE, a) ||
           grouping_axis_is(COMPARE_THREADS, a) || grouping_axis_is(COMPARE_LOAD, a);
}

static bool symmetric(const struct grouping *g)
{
    bool same = grouping_between_ranks(g) && g->c->rows == g->c->cols;
    for (int j = 0; same && j < g->c->cols; j++)
        same = g->row_of_col[j] == j;
    return same;
}

static void verdict_fill(const struct grouping *g, struct search_room *r, bool mirrored)
{
    const struct comparison *c = g->c;
    for (int k = 0; k < c->rows * c->cols; k++) {
        int i = k / c->cols, j = k % c->cols;
        bool here = c->cells[k].exists;
        int from = mirrored && !here && i != j ? j * c->cols + i : k;
        bool exists = here || from != k;
        r->value[k] = exists ? g->s->apart[from].log : NAN;
        r->var[k] = g->s->apart[from].var;
        r->df[k] = g->s->apart[from].df;
        r->class[k] = (signed char)grouping_locality(g, i, j);
    }
    for (int j = 0; j < c->cols; j++)
        r->col_group[j] = g->row_of_col[j] >= 0 ? g->row_group[g->row_of_col[j]] : -1;
    for (int j = 0; j < c->cols; j++)
        r->col_group[j] -= r->col_group[j] >= 0 ? g->first[COMPARE_NODE] : 0;
}

static int look_for_parts(const struct grouping *g, const struct compare_options *o,
                          struct parts *found, struct err *err)
{
    const struct comparison *c = g->c;
    const struct matrix *m = g->s->a->matrix;
    size_t n = (size_t)c->rows * (size_t)c->cols;
    bool mirrored = symmetric(g);
    struct search_room r CLEANUP(search_room_fini) = {
        calloc(n, sizeof *r.value), calloc(n, sizeof *r.var), calloc(n, sizeof *r.df),
        calloc((size_t)c->cols, sizeof *r.col_group), calloc(n, sizeof *r.class)};
    CLEANUP_MEM int *row_group = calloc((size_t)c->rows, sizeof *row_group);
    if (!r.value || !r.var || !r.df || !r.col_group || !r.class || !row_group)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    verdict_fill(g, &r, mirrored);
    for (int i = 0; i < c->rows; i++)
        row_group[i] = g->row_group[i] < 0 ? -1 : g->row_group[i] - g->first[COMPARE_NODE];
    double least = fmax(o->threshold_percent / 2, o->noise_percent);
    const struct parts_options how = {.least = log1p(least / 100),
                                      .same = log1p(0.009 * o->threshold_percent),
                                      .lone = log1p(LONE_CELL * o->threshold_percent / 100),
                                      .level = PART_LEVEL * o->level};
    const struct parts_table t = {.rows = c->rows,
                                  .cols = c->cols,
                                  .value = r.value,
                                  .var = r.var,
                                  .df = r.df,
                                  .row_group = row_group,
                                  .col_group = mirrored ? r.col_group : NULL,
                                  .n_row_groups = g->n[COMPARE_NODE],
                                  .n_col_groups = mirrored ? g->n[COMPARE_NODE] : 0,
                                  .rows_ordered = ordered(&m->row),
                                  .cols_ordered = ordered(&m->col),
                                  .symmetric = mirrored,
                                  .class = g->n[COMPARE_LOCALITY] ? r.class : NULL};
    return parts_find(found, &t, &how, err);
}

// ---- Parts and the rest -------------------------------------------------------------------------

// Sums of the cells of a row, or of a column; between ranks, of a rank.
struct cluster {
    double sum;
    int n;
};

// Variance of the mean of all these clusters' cells, from what their own means scatter by. A cell
// that is in two clusters counts both.
static void use_clusters(struct sums *s, const struct cluster *list, int n)
{
    double mean = s->d / s->n, var = 0;
    int used = 0;
    for (int i = 0; i < n; i++) {
        double off = list[i].sum - list[i].n * mean;
        var += off * off;
        used += list[i].n > 0;
    }
    if (used < CLUSTERS_MIN)
        return;
    var = var / s->n / s->n * used / (used - 1);
    if (var > s->clustered) {
        s->clustered = var;
        s->clustered_df = used - 1;
    }
}

static void add_to_clusters(const struct grouping *g, int k, struct cluster *rows,
                            struct cluster *cols)
{
    int i = k / g->c->cols, j = k % g->c->cols, other = g->row_of_col[j];
    double d = g->s->apart[k].log;
    if (isnan(d))
        return;
    rows[i].sum += d;
    rows[i].n++;
    // A pair belongs to two ranks.
    struct cluster *second = other >= 0 ? &rows[other] : &cols[j];
    second->sum += d;
    second->n++;
}

// The mean of the cells with a label (NULL: of all). A part of few cells has been found by their
// own errors, which are worth more than the scatter of two or three values; of the rest, and of
// all, whole rows may have moved by chance.
static int mean_of(const struct grouping *g, const int *label, int wanted, struct difference *out,
                   struct err *err)
{
    struct difference d = {0};
    struct sums sums = {.few = wanted >= 0};
    CLEANUP_MEM struct cluster *rows = calloc((size_t)g->c->rows, sizeof *rows);
    CLEANUP_MEM struct cluster *cols = calloc((size_t)g->c->cols, sizeof *cols);
    if (!rows || !cols)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    for (int k = 0; k < g->c->rows * g->c->cols; k++) {
        if (!g->c->cells[k].exists || (label && label[k] != wanted))
            continue;
        sums_add(&sums, &g->c->cells[k], &g->s->apart[k]);
        add_to_clusters(g, k, rows, cols);
        d.slower += g->c->cells[k].verdict == VERDICT_SLOWER;
        d.faster += g->c->cells[k].verdict == VERDICT_FASTER;
    }
    if (wanted < 0 && sums.n) {
        use_clusters(&sums, rows, g->c->rows);
        use_clusters(&sums, cols, g->c->cols);
    }
    sums_finish(&d, &sums);
    *out = d;
    return 0;
}

// What a group says must not contradict the verdict: it stands if a part or the rest says it too.
static void quieten_groups(struct comparison *c)
{
    bool said[VERDICTS] = {false};
    said[c->rest.verdict] = true;
    for (int i = 0; i < c->n_parts; i++)
        said[c->parts[i].d.verdict] = true;
    for (int i = 0; i < c->n_groups; i++) {
        struct difference *d = &c->groups[i].d;
        bool loud = d->verdict == VERDICT_SLOWER || d->verdict == VERDICT_FASTER;
        if (loud && !said[d->verdict])
            d->verdict = VERDICT_INCONCLUSIVE;
    }
}

// Slower before faster, and much before little.
static int by_badness(const void *a, const void *b)
{
    static const int order[VERDICTS] = {
        [VERDICT_SLOWER] = 0, [VERDICT_FASTER] = 1, [VERDICT_INCONCLUSIVE] = 2, [VERDICT_SAME] = 3};
    const struct compare_part *x = a, *y = b;
    if (order[x->d.verdict] != order[y->d.verdict])
        return order[x->d.verdict] - order[y->d.verdict];
    return (fabs(x->d.percent) < fabs(y->d.percent)) - (fabs(x->d.percent) > fabs(y->d.percent));
}

// A shift of the whole is no part: it is what the rest does.
static bool is_whole(const struct part *p)
{
    return p->class < 0 && p->rows.kind == PART_ALL && p->cols.kind == PART_ALL;
}

static void give_whole_to_rest(const struct comparison *c, const struct parts *found, int *label)
{
    for (int i = 0; i < found->n; i++)
        for (int k = 0; is_whole(&found->list[i]) && k < c->rows * c->cols; k++)
            label[k] = label[k] == i ? -1 : label[k];
}

static int set_parts(struct grouping *g, const struct compare_options *o, const struct parts *found,
                     const int *label, struct err *err)
{
    struct comparison *c = g->c;
    c->more_parts = found->more;
    for (int i = 0; i < found->n; i++) {
        struct compare_part p = {0};
        if (is_whole(&found->list[i]))
            continue;
        if (mean_of(g, label, i, &p.d, err) < 0)
            return -1;
        if (!p.d.cells)
            continue; // smaller parts have all of its cells
        p.d.p = fmax(p.d.p, found->list[i].p);
        difference_judge(&p.d, c->more_is_better, o);
        name_part(g, &found->list[i], &p);
        c->parts[c->n_parts++] = p;
    }
    return 0;
}

// Overall, and what is left of it without the parts.
static int set_rest(struct grouping *g, const struct compare_options *o, const int *label,
                    struct err *err)
{
    struct comparison *c = g->c;
    struct difference *all = &c->groups[0].d;
    double p = all->p;
    if (mean_of(g, NULL, -1, all, err) < 0 || mean_of(g, label, -1, &c->rest, err) < 0)
        return -1;
    all->p = fmax(p, all->p);
    difference_judge(all, c->more_is_better, o);
    if (c->rest.cells)
        difference_judge(&c->rest, c->more_is_better, o);
    if (!c->n_parts)
        c->rest = *all;
    return 0;
}

// Cells so few that their mean cannot be judged: same if each of them is.
static bool each_same(const struct comparison *c)
{
    bool any = false;
    for (int k = 0; k < c->rows * c->cols; k++) {
        if (c->cells[k].cells && c->cells[k].verdict != VERDICT_SAME)
            return false;
        any |= c->cells[k].cells;
    }
    return any;
}

static enum verdict conclude(const struct comparison *c)
{
    bool seen[VERDICTS] = {false};
    for (int i = 0; i < c->n_parts; i++)
        seen[c->parts[i].d.verdict] = true;
    if (c->rest.cells && !c->rest.known && !c->n_parts && each_same(c))
        seen[VERDICT_SAME] = true;
    else if (c->rest.cells || !c->n_parts)
        seen[c->rest.verdict] = true;
    return seen[VERDICT_SLOWER]         ? VERDICT_SLOWER
           : seen[VERDICT_INCONCLUSIVE] ? VERDICT_INCONCLUSIVE
           : seen[VERDICT_FASTER]       ? VERDICT_FASTER
                                        : VERDICT_SAME;
}

static void call_identical(struct difference *d)
{
    if (!d->cells)
        return;
    d->percent = d->lo = d->hi = 0;
    d->p = 1;
    d->known = true;
    d->verdict = VERDICT_SAME;
}

// Every value is in both: no error of any kind can have made a difference of nothing.
static void call_all_identical(struct comparison *c)
{
    for (int k = 0; k < c->rows * c->cols; k++)
        call_identical(&c->cells[k]);
    for (int i = 0; i < c->n_groups; i++)
        call_identical(&c->groups[i].d);
    call_identical(&c->rest);
}

static void set_detectable(struct comparison *c, const struct compare_options *o)
{
    c->detectable = NAN;
    if (!c->identical)
        c->detectable = difference_detectable(&c->groups[0].d, c->more_is_better, c->n_groups, o);
    if (!isinf(c->detectable))
        return;
    c->detectable = NAN;
    compare_note(c, "the values scatter so much that all cells together would have to differ by a "
                    "factor of ten or more: repeat the runs with more visits");
}

int compare_conclude(struct grouping *g, const struct compare_options *o, struct err *err)
{
    struct comparison *c = g->c;
    struct parts found CLEANUP(parts_fini) = {0};
    if (look_for_parts(g, o, &found, err) < 0)
        return -1;
    give_whole_to_rest(c, &found, found.label);
    if (set_parts(g, o, &found, found.label, err) < 0 || set_rest(g, o, found.label, err) < 0)
        return -1;
    set_detectable(c, o);
    if (c->identical)
        call_all_identical(c);
    quieten_groups(c);
    qsort(c->parts, (size_t)c->n_parts, sizeof *c->parts, by_badness);
    c->verdict = conclude(c);
    return 0;
}

// ---- Text ---------------------------------------------------------------------------------------

static void verdict_add_text(char *out, size_t room, const char *text)
{
    size_t n = strlen(out);
    snprintf(out + n, room - n, "%s", text);
}

static void add_difference(char *out, size_t room, const char *name, const struct difference *d)
{
    char text[200];
    if (isnan(d->percent))
        snprintf(text, sizeof text, "%s: no value in both", name);
    else if (!(fabs(d->percent) < BEYOND))
        snprintf(text, sizeof text, "%s: beyond comparison", name);
    else if (isfinite(d->lo) && isfinite(d->hi))
        snprintf(text, sizeof text, "%s %+.1f %% [%+.1f, %+.1f]", name, percent_written(d->percent),
                 percent_written(d->lo), percent_written(d->hi));
    else
        snprintf(text, sizeof text, "%s %+.1f %%", name, percent_written(d->percent));
    verdict_add_text(out, room, text);
}

// Parts from `from` to `to`, the first few by name; how: with their numbers, or the names alone.
static void add_parts(const struct comparison *c, int from, int to, bool numbers, char *out,
                      size_t room)
{
    char more[48];
    for (int i = from; i < to && i < from + NAMED_MAX; i++) {
        verdict_add_text(out, room, i > from ? ", " : "");
        if (numbers)
            add_difference(out, room, c->parts[i].name, &c->parts[i].d);
        else
            verdict_add_text(out, room, c->parts[i].name);
    }
    if (to - from <= NAMED_MAX)
        return;
    snprintf(more, sizeof more, " and %s%d more", c->more_parts ? "at least " : "",
             to - from - NAMED_MAX);
    verdict_add_text(out, room, more);
}

// What differs and by how much; then the rest; then what did not move with a part that holds it.
void comparison_text(const struct comparison *c, char *out, size_t room)
{
    char text[96];
    int told = 0;
    *out = 0;
    if (c->identical) {
        verdict_add_text(out, room, "all values are identical");
        return;
    }
    while (told < c->n_parts && c->parts[told].d.verdict != VERDICT_SAME)
        told++;
    add_parts(c, 0, told, true, out, room);
    if (!told && (c->rest.cells || !c->n_parts)) {
        add_difference(out, room, "all", &c->rest);
    } else if (c->rest.cells && fabs(c->rest.percent) < BEYOND) {
        snprintf(text, sizeof text, "; the rest %s (%+.1f %%)", verdict_names[c->rest.verdict],
                 percent_written(c->rest.percent));
        verdict_add_text(out, room, text);
    }
    if (told < c->n_parts) {
        verdict_add_text(out, room, *out ? "; the same: " : "the same: ");
        add_parts(c, told, c->n_parts, false, out, room);
    }
}

// ---- Two runs -----------------------------------------------------------------------------------

static struct conclusion_part part_of(const struct matrix *m, const struct compare_part *p)
{
    struct conclusion_part out = {.part = *p};
    snprintf(out.matrix, sizeof out.matrix, "%s", m->name);
    snprintf(out.unit, sizeof out.unit, "%s", m->unit);
    return out;
}

// Of all matrices the worst verdict counts, and of these the largest difference.
static double badness(enum verdict v, double percent)
{
    static const double of[VERDICTS] = {
        [VERDICT_SAME] = 0, [VERDICT_FASTER] = 1, [VERDICT_INCONCLUSIVE] = 2, [VERDICT_SLOWER] = 3};
    return of[v] * 1e9 + (isnan(percent) ? 0 : fmin(fabs(percent), 1e8));
}

void conclusion_add(struct conclusion *k, const struct comparison *c, const struct matrix *m)
{
    const struct compare_part all = {.by = COMPARE_OVERALL, .name = "all", .d = c->groups[0].d};
    const struct compare_part rest = {.by = COMPARE_OVERALL, .name = "the rest", .d = c->rest};
    bool by_part = c->n_parts && c->parts[0].d.verdict == VERDICT_SLOWER;
    bool by_rest = c->n_parts && c->rest.verdict == VERDICT_SLOWER;
    const struct compare_part *worst = by_part ? &c->parts[0] : by_rest ? &rest : &all;
    for (int i = 0; i < c->n_groups; i++)
        k->within_noise |= c->groups[i].d.within_noise;
    for (int i = 0; i < c->n_parts; i++)
        k->within_noise |= c->parts[i].d.within_noise;
    k->slower += c->verdict == VERDICT_SLOWER;
    if (k->matrices++ &&
        badness(c->verdict, worst->d.percent) <= badness(k->verdict, k->worst.part.d.percent))
        return;
    k->verdict = c->verdict;
    k->worst = part_of(m, worst);
    k->overall = part_of(m, &all);
    comparison_text(c, k->text, sizeof k->text);
}

void conclusion_text(const struct conclusion *k, char *out, size_t room)
{
    int others = k->slower - (k->verdict == VERDICT_SLOWER);
    snprintf(out, room, "%s %s", k->overall.matrix, k->text);
    if (others > 0) {
        size_t n = strlen(out);
        snprintf(out + n, room - n, "; %d other matri%s slower", others,
                 others == 1 ? "x is" : "ces are");
    }
}
