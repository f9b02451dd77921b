// SPDX-License-Identifier: Apache-2.0
// Chooses the matrix of a picture and its form: curves where curve_fits() says so, otherwise a
// heat map. curve.c, heat.c and text.c draw.
#include "analysis/plot/plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/mix.h"

static int by_bytes(const void *a, const void *b)
{
    const struct plot_mark *x = a, *y = b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool has_mark(const struct plot *p, const char *label)
{
    for (int i = 0; i < p->n_marks; i++)
        if (strcmp(p->marks[i].label, label) == 0)
            return true;
    return false;
}

void plot_marks_from(struct plot *p, const struct topology *t)
{
    p->n_marks = 0;
    for (int i = 0; t && i < t->n_caches && p->n_marks < PLOT_MARKS_MAX; i++) {
        struct plot_mark mark = {.bytes = t->caches[i].bytes};
        char size[24];
        str_from_bytes((uint64_t)mark.bytes, size, sizeof size);
        snprintf(mark.label, sizeof mark.label, "L%d %.16s", t->caches[i].level, size);
        if (mark.bytes > 0 && !has_mark(p, mark.label))
            p->marks[p->n_marks++] = mark;
    }
    qsort(p->marks, (size_t)p->n_marks, sizeof *p->marks, by_bytes);
}

static bool same_cells(const struct matrix *a, const struct matrix *b)
{
    return a->row.n == b->row.n && a->col.n == b->col.n &&
           memcmp(a->row.values, b->row.values, (size_t)a->row.n * sizeof *a->row.values) == 0 &&
           memcmp(a->col.values, b->col.values, (size_t)a->col.n * sizeof *a->col.values) == 0;
}

// The bandwidth at which a loaded latency was measured: of the same mix of reads and writes.
static const struct matrix *bandwidth_for(const struct matrix *m, const struct matrix *list, int n)
{
    const struct load_mix *mix = mix_of_matrix(m->name);
    if (strcmp(m->col.name, "load") != 0 || strcmp(m->quantity, "latency") != 0)
        return NULL;
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].quantity, "bandwidth") == 0 && same_cells(m, &list[i]) &&
            mix_of_matrix(list[i].name) == mix)
            return &list[i];
    return NULL;
}

// The curves of all mixes that are like the first.
static void find_family(struct plot *p, const struct matrix *list, int n)
{
    for (int i = 0; i < n && p->n_family < SPEC_MIXES_MAX; i++) {
        const struct load_mix *mix = mix_of_matrix(list[i].name);
        const struct matrix *bandwidth = bandwidth_for(&list[i], list, n);
        if (mix && bandwidth && list[i].row.n == list[0].row.n && list[i].col.n == list[0].col.n)
            p->family[p->n_family++] = (struct plot_curve){mix->name, &list[i], bandwidth};
    }
}

int plot_choose(struct plot *p, const struct matrix *list, int n, const char *name, struct err *err)
{
    CLEANUP_BUF struct buf names = BUF_INIT;
    for (int i = 0; i < n; i++) {
        if (!name || !*name || strcmp(list[i].name, name) == 0) {
            p->matrix = &list[i];
            p->bandwidth = bandwidth_for(&list[i], list, n);
            p->n_family = 0;
            if ((!name || !*name) && p->bandwidth)
                find_family(p, list, n);
            return 0;
        }
        buf_fmt(&names, "%s%s", i ? ", " : "", list[i].name);
    }
    return n ? err_set(err, ERR_NOT_FOUND, "matrix", "the run has no \"%.40s\"; it has %s", name,
                       buf_text(&names))
             : err_set(err, ERR_NOT_FOUND, "matrix", "the run has no matrix to draw");
}

int plot_write_svg(const struct plot *p, struct buf *out, struct err *err)
{
    if ((curve_fits(p) ? curve_write_svg : heat_write_svg)(p, out, err) < 0)
        return -1;
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
}
