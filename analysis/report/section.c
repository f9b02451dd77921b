// SPDX-License-Identifier: Apache-2.0
// What the sections use: findings as JSON and Markdown in one go, nodes of ranks, values of cells.
#include "analysis/report/section.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analysis/stats/median.h"
#include "model/shape.h"
#include "model/target.h"

const struct matrix *report_matrix(const struct report_source *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->matrices[i].name, name) == 0)
            return &s->matrices[i];
    return NULL;
}

void report_head(struct report_out *o, const char *title)
{
    buf_fmt(&o->markdown, "## %s\n\n", title);
    jsonw_array(&o->w, "findings");
}

struct jsonw *report_finding(struct report_out *o, const char *kind)
{
    jsonw_object(&o->w, NULL);
    jsonw_text(&o->w, "kind", kind);
    return &o->w;
}

void report_sentence(struct report_out *o, const char *key, const char *fmt, va_list ap)
{
    struct buf text = BUF_INIT;
    buf_vfmt(&text, fmt, ap);
    buf_needs(&o->json, &text);
    buf_needs(&o->markdown, &text);
    jsonw_text(&o->w, key, buf_text(&text));
    buf_fmt(&o->markdown, "- %s\n", buf_text(&text));
    buf_free(&text);
}

void report_say(struct report_out *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report_sentence(o, "text", fmt, ap);
    va_end(ap);
    jsonw_end(&o->w);
}

void report_tail(struct report_out *o)
{
    jsonw_end(&o->w);
    buf_char(&o->markdown, '\n');
}

int64_t report_cpu_node(const struct report_source *s, int64_t rank)
{
    for (int i = 0; s->ranks && i < s->n_ranks; i++)
        if (s->ranks[i].rank == rank)
            return s->ranks[i].cpu_node;
    return -1;
}

struct report_nodes report_nodes_of(const struct report_source *s, const struct axis *a)
{
    struct report_nodes found = {0};
    for (int i = 0; i < a->n; i++) {
        bool rank = strcmp(a->name, "rank") == 0;
        int64_t node = rank ? report_cpu_node(s, a->values[i]) : a->values[i];
        bool seen = node < 0 || found.n == 64;
        for (int k = 0; k < found.n; k++)
            seen = seen || found.node[k] == node;
        if (!seen)
            found.node[found.n++] = node;
    }
    return found;
}

struct report_value report_value_of(const struct matrix *m, const bool *row_in, int col)
{
    double values[REPORT_CELLS_MAX];
    int n = 0;
    struct report_value found = {NAN, NAN, NAN};
    for (int i = 0; col >= 0 && i < m->row.n && n < REPORT_CELLS_MAX; i++) {
        const double *v = matrix_at(m, i, col)->v;
        if (!row_in[i] || isnan(v[CELL_MEDIAN]))
            continue;
        values[n++] = v[CELL_MEDIAN];
        found.lo = fmin(found.lo, v[CELL_LO]); // fmin and fmax pass over NaN
        found.hi = fmax(found.hi, v[CELL_HI]);
    }
    found.v = middle_of(values, n);
    return found;
}

bool report_apart(struct report_value a, struct report_value b, double share)
{
    bool up = b.v >= a.v * (1 + share) && b.lo > a.hi;
    return up || (a.v >= b.v * (1 + share) && a.lo > b.hi);
}

void report_target(struct jsonw *w, int64_t target)
{
    char label[TARGET_LABEL_ROOM];
    target_label(target, label, sizeof label);
    if (target_is_interleaved(target))
        jsonw_text(w, "target", label);
    else
        jsonw_i64(w, "target", target);
}

bool report_coverage(struct report_out *o, const struct matrix *m)
{
    int64_t all = shape_cells(m), measured = shape_cells_with_value(m);
    if (measured == all)
        return false;
    struct jsonw *w = report_finding(o, "coverage");
    jsonw_text(w, "matrix", m->name);
    jsonw_i64(w, "measured", measured);
    jsonw_i64(w, "pairs", all);
    report_say(o, "%s: %" PRId64 " of %" PRId64 " pairs were measured; the others have no value.",
               m->name, measured, all);
    return true;
}
