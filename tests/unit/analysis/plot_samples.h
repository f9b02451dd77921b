// SPDX-License-Identifier: Apache-2.0
// Runs of every kind, made by a formula, as pictures show them.
#pragma once
#include <math.h>
#include <stdlib.h>

#include "analysis/plot/plot.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/shape.h"
#include "tests/unit/analysis/published.h"
#include "tests/unit/tap.h"

enum { RANKS = 1024 };

struct sample {
    struct plot plot;
    struct run run;
    struct matrix list[4];
    int n;
    struct rank_info ranks[RANKS];
    struct buf svg;
};

static inline void sample_fini(struct sample *s)
{
    for (int i = 0; i < s->n; i++)
        matrix_fini(&s->list[i]);
    buf_free(&s->svg);
    *s = (struct sample){0};
}

static inline void places(struct sample *s, int ranks, int nodes)
{
    for (int i = 0; i < ranks; i++)
        s->ranks[i] = (struct rank_info){.rank = i,
                                         .cpu = i,
                                         .cpu_node = (int64_t)i * nodes / ranks,
                                         .mem_node = (int64_t)i * nodes / ranks};
    s->plot.ranks = s->ranks;
    s->plot.n_ranks = ranks;
}

static inline void begin(struct sample *s, enum benchmark_id benchmark)
{
    *s = (struct sample){.run = {.id = 17, .state = RUN_SUCCEEDED, .created_ms = 1795255200000}};
    s->run.spec.benchmark = benchmark;
    snprintf(s->run.node, sizeof s->run.node, "nid001234");
    snprintf(s->run.method, sizeof s->run.method, "prp4-v1");
    s->plot.run = &s->run;
}

static inline struct matrix *add(struct sample *s, const struct shape *shape, int rows, int cols)
{
    struct matrix *m = &s->list[s->n];
    if (shape_make(m, shape, rows, cols, NULL) < 0)
        abort();
    s->n++;
    return m;
}

static inline void set(struct matrix *m, int row, int col, double v, double half_percent)
{
    double *cell = matrix_at(m, row, col)->v;
    cell[CELL_MEDIAN] = v;
    cell[CELL_LO] = v * (1 - half_percent / 100);
    cell[CELL_HI] = v * (1 + half_percent / 100);
}

// The same "noise" everywhere: -1…1, from the place alone.
static inline double wobble(int a, int b)
{
    unsigned x = (unsigned)a, y = (unsigned)b;
    return (double)((x * 7919 + y * 104729 + x * y * 31) % 2001) / 1000 - 1;
}

static inline const char *draw(struct sample *s, const char *name)
{
    struct err err = {0};
    buf_free(&s->svg);
    if (plot_choose(&s->plot, s->list, s->n, name, &err) < 0 ||
        plot_write_svg(&s->plot, &s->svg, &err) < 0)
        printf("# %s\n", err.text);
    return buf_text(&s->svg);
}

static inline void add_caches(struct sample *s)
{
    struct topo_cache caches[] = {{.level = 3, .bytes = 32 << 20},
                                  {.level = 1, .bytes = 32 << 10},
                                  {.level = 2, .bytes = 512 << 10},
                                  {.level = 3, .bytes = 32 << 20}};
    const struct topology t = {.n_caches = COUNT_OF(caches), .caches = caches};
    plot_marks_from(&s->plot, &t);
}

static const struct shape latency_shape = {"concurrent", "latency", "ns", "rank", "working_set"};

static inline void make_latency(struct sample *s, int ranks, int nodes, int64_t first, int sizes)
{
    begin(s, BENCHMARK_LATENCY);
    struct matrix *m = add(s, &latency_shape, ranks, sizes);
    places(s, ranks, nodes);
    add_caches(s);
    for (int c = 0; c < sizes; c++) {
        double kib = (double)(first << c) / 1024;
        double v = 1.2 + 3 / (1 + pow(32 / kib, 4)) + 10 / (1 + pow(512 / kib, 3)) +
                   95 / (1 + pow(40000 / kib, 2));
        m->col.values[c] = first << c;
        for (int r = 0; r < ranks; r++)
            set(m, r, c, v * (1 + 0.03 * wobble(r, c) + (kib > 1e5 ? 0.02 * (r % 5) : 0)), 1.5);
    }
}

static inline bool make_published(struct sample *s, const char *mode)
{
    struct import i = {0};
    begin(s, BENCHMARK_LATENCY);
    if (published_load(&i, mode) < 0)
        return false;
    s->list[s->n++] = i.matrices[0];
    for (int r = 0; r < i.n_ranks; r++)
        s->ranks[r] = i.ranks[r];
    s->plot.ranks = s->ranks;
    s->plot.n_ranks = i.n_ranks;
    i.n_matrices = 0;
    import_fini(&i);
    add_caches(s);
    return true;
}

static inline void make_idle(struct sample *s, int nodes)
{
    static const struct shape shape = {"idle", "latency", "ns", "rank", "target"};
    begin(s, BENCHMARK_MATRIX);
    struct matrix *m = add(s, &shape, nodes, nodes);
    places(s, nodes, nodes);
    for (int r = 0; r < nodes; r++)
        for (int c = 0; c < nodes; c++)
            set(m, r, c,
                (r == c           ? 96
                 : r / 4 == c / 4 ? 112 + 4 * ((r ^ c) & 3)
                                  : 205) +
                    wobble(r, c),
                1);
}

static inline void make_pairs(struct sample *s, int ranks, int nodes)
{
    static const struct shape shape = {"cas", "round_trip", "ns", "rank", "rank"};
    begin(s, BENCHMARK_C2C);
    struct matrix *m = add(s, &shape, ranks, ranks);
    places(s, ranks, nodes);
    for (int r = 0; r < ranks; r++)
        for (int c = r + 1; c < ranks; c++)
            set(m, r, c,
                (r / 8 == c / 8                                 ? 48
                 : s->ranks[r].cpu_node == s->ranks[c].cpu_node ? 190
                                                                : 310) +
                    5 * wobble(r, c),
                1);
}

static inline void make_pingpong(struct sample *s, int pairs)
{
    static const struct shape shape = {"pingpong", "latency", "us", "pair", "message"};
    begin(s, BENCHMARK_PINGPONG);
    struct matrix *m = add(s, &shape, pairs, 24);
    for (int r = 0; r < pairs; r++)
        m->row.values[r] = axis_pair(0, r + 1);
    for (int c = 0; c < m->col.n; c++) {
        m->col.values[c] = c ? (int64_t)1 << (c - 1) : 0;
        for (int r = 0; r < pairs; r++)
            set(m, r, c, (0.3 + 0.2 * r + (double)m->col.values[c] / (9000 - 1500 * r)), 4);
    }
}

static inline void make_threads(struct sample *s)
{
    static const struct shape shape = {"triad", "bandwidth", "MB/s", "threads", "target"};
    begin(s, BENCHMARK_BANDWIDTH);
    struct matrix *m = add(s, &shape, 7, 4);
    for (int c = 0; c < 4; c++) {
        m->col.values[c] = c;
        for (int r = 0; r < m->row.n; r++) {
            m->row.values[r] = 1 << r;
            set(m, r, c, (c ? 38000 - 4000 * c : 92000) * (1 - exp(-(1 << r) / 8.0)), 2);
        }
    }
}

static inline void make_loaded(struct sample *s, int rows)
{
    static const struct shape shapes[] = {{"latency", "latency", "ns", "rank", "load"},
                                          {"bandwidth", "bandwidth", "MB/s", "rank", "load"}};
    begin(s, BENCHMARK_LOADED);
    struct matrix *l = add(s, &shapes[0], rows, 11), *b = add(s, &shapes[1], rows, 11);
    places(s, rows, rows > 2 ? 2 : rows);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 11; c++) {
            double used = 0.97 * (1 - exp(-c / 3.5)) / (1 - exp(-10 / 3.5));
            l->col.values[c] = b->col.values[c] = 10 * c;
            set(b, r, c, 120000 * used * (1 - 0.1 * r), 1);
            set(l, r, c, 98 + 6 * used / (1.02 - used) + 4 * r, 2);
        }
}

// Two mixes of reads and writes, each with levels of its own.
static inline void make_mixes(struct sample *s, int rows)
{
    static const struct shape shapes[] = {
        {"latency_reads", "latency", "ns", "path", "load"},
        {"bandwidth_reads", "bandwidth", "MB/s", "path", "load"},
        {"latency_1r1w", "latency", "ns", "path", "load"},
        {"bandwidth_1r1w", "bandwidth", "MB/s", "path", "load"},
    };
    begin(s, BENCHMARK_LOADED);
    for (int k = 0; k < 4; k++)
        add(s, &shapes[k], rows, 5);
    places(s, 2, 2);
    for (int k = 0; k < 4; k++)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < 5; c++) {
                s->list[k].row.values[r] = axis_pair(0, r);
                s->list[k].col.values[c] = k < 2 ? 25 * c : c ? 60 + 10 * c : 0;
                set(&s->list[k], r, c, k % 2 ? 9000 * c / (k + 1) : 100 + (k + 1) * c * c * c, 1);
            }
}

static inline void make_access(struct sample *s, int ranks)
{
    static const struct shape shape = {"access", "access_time", "ns", "rank", "access"};
    begin(s, BENCHMARK_FIRSTTOUCH);
    struct matrix *m = add(s, &shape, ranks, AXIS_ACCESSES);
    places(s, ranks, 4);
    for (int r = 0; r < ranks; r++)
        for (int c = 0; c < AXIS_ACCESSES; c++)
            set(m, r, c, 5.2 * (1 + 0.6 * c) + 0.2 * wobble(r, c), 2);
}

static inline void make_nodes(struct sample *s)
{
    static const struct shape shape = {"triad", "bandwidth", "MB/s", "initiator", "target"};
    begin(s, BENCHMARK_BANDWIDTH);
    struct matrix *m = add(s, &shape, 2, 3);
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 3; c++) {
            m->row.values[r] = r;
            m->col.values[c] = c;
            set(m, r, c, r == c ? 182300 : c == 2 ? 22100 : 61400, 1);
        }
}

static inline void disturb(struct matrix *m, int row, int col, double kept, double left_out)
{
    double *cell = matrix_at(m, row, col)->v;
    cell[CELL_N] = kept;
    cell[CELL_DISTURBED] = left_out;
}

// Cells that were disturbed, and intervals that reach far beyond the values.
static inline void make_noisy(struct sample *s, int ranks)
{
    make_latency(s, ranks, ranks > 4 ? 4 : 1, 16 << 10, 14);
    for (int r = 0; r < ranks; r++)
        for (int c = 0; c < 14; c++) {
            double *cell = matrix_at(&s->list[0], r, c)->v;
            disturb(&s->list[0], r, c, 10, (r + c) % 5 == 0 ? 6 : 0);
            if (c % 3 == 1) {
                cell[CELL_LO] = cell[CELL_MEDIAN] / 9;
                cell[CELL_HI] = cell[CELL_MEDIAN] * (3 + r);
            }
        }
}

// As on LUMI: of each seven ranks of a cache but one are slow, and no file says where they were.
static inline void make_two_kinds(struct sample *s, int ranks)
{
    make_latency(s, ranks, 8, 1 << 20, 15);
    s->plot.n_ranks = 0;
    for (int r = 0; r < ranks; r++)
        for (int c = 8; c < 15 && r % 8 != 7; c++)
            set(&s->list[0], r, c, matrix_at(&s->list[0], r, c)->v[CELL_MEDIAN] * 1.4, 1);
}

// Two ranks that lie apart: one everywhere in memory, one at two sizes; and one for a moment only.
static inline void make_odd_ranks(struct sample *s, int ranks, int nodes)
{
    make_latency(s, ranks, nodes, 16 << 10, 14);
    struct matrix *m = &s->list[0];
    for (int c = 10; c < 14; c++)
        set(m, ranks * 3 / 4, c, matrix_at(m, ranks * 3 / 4, c)->v[CELL_MEDIAN] * 1.6, 1);
    for (int c = 4; c < 6; c++)
        set(m, 5, c, matrix_at(m, 5, c)->v[CELL_MEDIAN] * 3, 1);
    set(m, 9, 7, 900, 1);
}

// --- Checks ------------------------------------------------------------------------------------

static inline const char *draw_text(struct sample *s, bool unicode, bool colour)
{
    const struct plot_text how = {80, 14, unicode, colour};
    struct err err = {0};
    buf_free(&s->svg);
    if (plot_choose(&s->plot, s->list, s->n, NULL, &err) < 0 ||
        plot_write_text(&s->plot, &how, &s->svg, &err) < 0)
        printf("# %s\n", err.text);
    return buf_text(&s->svg);
}
