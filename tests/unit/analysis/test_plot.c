// SPDX-License-Identifier: Apache-2.0
// Pictures of made-up and published runs. With a folder as its argument the program writes them
// there instead, to be looked at: test_analysis_plot DIR.
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

static void sample_fini(struct sample *s)
{
    for (int i = 0; i < s->n; i++)
        matrix_fini(&s->list[i]);
    buf_free(&s->svg);
    *s = (struct sample){0};
}

static void places(struct sample *s, int ranks, int nodes)
{
    for (int i = 0; i < ranks; i++)
        s->ranks[i] = (struct rank_info){.rank = i,
                                         .cpu = i,
                                         .cpu_node = (int64_t)i * nodes / ranks,
                                         .mem_node = (int64_t)i * nodes / ranks};
    s->plot.ranks = s->ranks;
    s->plot.n_ranks = ranks;
}

static void begin(struct sample *s, enum benchmark_id benchmark)
{
    *s = (struct sample){.run = {.id = 17, .state = RUN_SUCCEEDED, .created_ms = 1795255200000}};
    s->run.spec.benchmark = benchmark;
    snprintf(s->run.node, sizeof s->run.node, "nid001234");
    snprintf(s->run.method, sizeof s->run.method, "prp4-v1");
    s->plot.run = &s->run;
}

static struct matrix *add(struct sample *s, const struct shape *shape, int rows, int cols)
{
    struct matrix *m = &s->list[s->n];
    if (shape_make(m, shape, rows, cols, NULL) < 0)
        abort();
    s->n++;
    return m;
}

static void set(struct matrix *m, int row, int col, double v, double half_percent)
{
    double *cell = matrix_at(m, row, col)->v;
    cell[CELL_MEDIAN] = v;
    cell[CELL_LO] = v * (1 - half_percent / 100);
    cell[CELL_HI] = v * (1 + half_percent / 100);
}

// The same "noise" everywhere: -1…1, from the place alone.
static double wobble(int a, int b)
{
    unsigned x = (unsigned)a, y = (unsigned)b;
    return (double)((x * 7919 + y * 104729 + x * y * 31) % 2001) / 1000 - 1;
}

static const char *draw(struct sample *s, const char *name)
{
    struct err err = {0};
    buf_free(&s->svg);
    if (plot_choose(&s->plot, s->list, s->n, name, &err) < 0 ||
        plot_write_svg(&s->plot, &s->svg, &err) < 0)
        printf("# %s\n", err.text);
    return buf_text(&s->svg);
}

static void add_caches(struct sample *s)
{
    struct topo_cache caches[] = {{.level = 3, .bytes = 32 << 20},
                                  {.level = 1, .bytes = 32 << 10},
                                  {.level = 2, .bytes = 512 << 10},
                                  {.level = 3, .bytes = 32 << 20}};
    const struct topology t = {.n_caches = COUNT_OF(caches), .caches = caches};
    plot_marks_from(&s->plot, &t);
}

static const struct shape latency_shape = {"concurrent", "latency", "ns", "rank", "working_set"};

static void make_latency(struct sample *s, int ranks, int nodes, int64_t first, int sizes)
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

static bool make_published(struct sample *s, const char *mode)
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

static void make_idle(struct sample *s, int nodes)
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

static void make_pairs(struct sample *s, int ranks, int nodes)
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

static void make_pingpong(struct sample *s, int pairs)
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

static void make_threads(struct sample *s)
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

static void make_loaded(struct sample *s, int rows)
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
static void make_mixes(struct sample *s, int rows)
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

static void make_access(struct sample *s, int ranks)
{
    static const struct shape shape = {"access", "access_time", "ns", "rank", "access"};
    begin(s, BENCHMARK_FIRSTTOUCH);
    struct matrix *m = add(s, &shape, ranks, AXIS_ACCESSES);
    places(s, ranks, 4);
    for (int r = 0; r < ranks; r++)
        for (int c = 0; c < AXIS_ACCESSES; c++)
            set(m, r, c, 5.2 * (1 + 0.6 * c) + 0.2 * wobble(r, c), 2);
}

static void make_nodes(struct sample *s)
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

static void disturb(struct matrix *m, int row, int col, double kept, double left_out)
{
    double *cell = matrix_at(m, row, col)->v;
    cell[CELL_N] = kept;
    cell[CELL_DISTURBED] = left_out;
}

// Cells that were disturbed, and intervals that reach far beyond the values.
static void make_noisy(struct sample *s, int ranks)
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
static void make_two_kinds(struct sample *s, int ranks)
{
    make_latency(s, ranks, 8, 1 << 20, 15);
    s->plot.n_ranks = 0;
    for (int r = 0; r < ranks; r++)
        for (int c = 8; c < 15 && r % 8 != 7; c++)
            set(&s->list[0], r, c, matrix_at(&s->list[0], r, c)->v[CELL_MEDIAN] * 1.4, 1);
}

// Two ranks that lie apart: one everywhere in memory, one at two sizes; and one for a moment only.
static void make_odd_ranks(struct sample *s, int ranks, int nodes)
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

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

// One tag, from after its '<' to after its '>': quotes pair up and hold no '<'. NULL: it does not.
static const char *pass_tag(const char *p, int *depth)
{
    bool closing = *p == '/', quoted = false;
    for (; *p && (quoted || *p != '>'); p++) {
        quoted ^= *p == '"';
        if (*p == '<')
            return NULL;
    }
    if (!*p)
        return NULL;
    *depth += closing ? -1 : p[-1] == '/' ? 0 : 1;
    return *depth < 0 ? NULL : p + 1;
}

static bool is_xml(const char *text)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    int depth = 0;
    for (const char *p = text; *p;) {
        bool known = *p != '&';
        for (size_t i = 0; i < COUNT_OF(entities); i++)
            known |= strncmp(p, entities[i], strlen(entities[i])) == 0;
        if (!known || ((unsigned char)*p < 0x20 && *p != '\n'))
            return false;
        p = *p == '<' ? pass_tag(p + 1, &depth) : p + 1;
        if (!p)
            return false;
    }
    return depth == 0 && str_utf8_valid(text, strlen(text));
}

struct word {
    double left, right, y;
};

static double attribute_of(const char *tag, const char *name)
{
    const char *end = strchr(tag, '>'), *at = strstr(tag, name);
    return at && at < end ? strtod(at + strlen(name), NULL) : NAN;
}

// Where a text stands, by the width that its characters have at least; turned ones are left out.
static int read_words(const char *svg, struct word *list, int room)
{
    int n = 0;
    for (const char *at = svg; n < room && (at = strstr(at, "<text x=")); at++) {
        const char *end = strchr(at, '>'), *text = end + 1;
        int characters = 0;
        bool small = strstr(at, "\"small\"") && strstr(at, "\"small\"") < end;
        for (; *text != '<'; text += *text == '&' ? (int)strcspn(text, ";") + 1 : 1)
            characters += ((unsigned char)*text & 0xc0) != 0x80;
        double x = attribute_of(at, " x=\""), wide = characters * (small ? 4.8 : 5.3);
        const char *anchor = strstr(at, "text-anchor=\"");
        double before = !anchor || anchor > end ? 0 : anchor[13] == 'e' ? 1 : 0.5;
        list[n++] =
            (struct word){x - before * wide, x + (1 - before) * wide, attribute_of(at, " y=\"")};
    }
    return n;
}

// No text leaves the picture, and none covers another.
static void check_words(const char *what, const char *svg)
{
    enum { WORDS = 900 };
    static struct word list[WORDS];
    double width = 0, height = 0;
    int n = read_words(svg, list, WORDS), outside = 0, covered = 0;
    sscanf(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %lf %lf\"", &width,
           &height);
    for (int i = 0; i < n; i++) {
        outside +=
            list[i].left < 0 || list[i].right > width || list[i].y < 10 || list[i].y > height;
        for (int k = 0; k < i; k++)
            covered += fabs(list[i].y - list[k].y) < 8 && list[i].left < list[k].right &&
                       list[k].left < list[i].right;
    }
    CHECK(n > 2 && outside == 0 && covered == 0, "%s: %d texts, %d outside, %d on others", what, n,
          outside, covered);
}

static void check_text(const char *what, const char *svg)
{
    check_words(what, svg);
    CHECK(is_xml(svg) && count(svg, "<svg ") == 1, "%s: well-formed", what);
    CHECK(!strstr(svg, "nan") && !strstr(svg, "inf"), "%s: no coordinate that is no number", what);
    CHECK(strlen(svg) <= PLOT_BYTES_MAX, "%s: %zu bytes", what, strlen(svg));
}

static const char *draw_text(struct sample *s, bool unicode, bool colour);

static void test_curve(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_latency(&s, 8, 4, 16 << 10, 12);
    const char *svg = draw(&s, NULL);
    check_text("8 ranks", svg);
    CHECK(count(svg, "<circle ") == 8 * 12, "8 ranks: a dot a value");
    CHECK(count(svg, "<path class=\"line ") == 8, "8 ranks: a line a rank");
    CHECK(strstr(svg, ">rank 7, node 3</text>"), "8 ranks: its name and node beside it");
    CHECK(strstr(svg, ">L1 32K</text>") && strstr(svg, ">L2 512K</text>") &&
              count(svg, ">L3 32M</text>") == 1 && count(svg, "class=\"mark\"") == 3,
          "8 ranks: each cache marked once");
    CHECK(strstr(svg, "median latency (ns), less is better") && strstr(svg, "run 17") &&
              strstr(svg, "2026-11-21 10:00 UTC") && strstr(svg, "prp4-v1"),
          "8 ranks: what, which run, when, how");
    CLEANUP_MEM char *first = strdup(svg);
    CHECK_STR(draw(&s, "concurrent"), first, "the same matrix by its name, the same bytes");
}

static void test_bands(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_latency(&s, 128, 8, 16 << 10, 14);
    const char *svg = draw(&s, NULL);
    check_text("128 ranks", svg);
    CHECK(count(svg, "<path class=\"band ") == 8 && count(svg, "<path class=\"line ") == 8,
          "128 ranks: a band and a median a node");
    CHECK(strstr(svg, ">node 7: 16 ranks</text>"), "128 ranks: the node's name");
    sample_fini(&s);
    make_latency(&s, 1024, 16, 1 << 10, 48);
    svg = draw(&s, NULL);
    check_text("1024 ranks x 48 sizes", svg);
    CHECK(count(svg, "<path class=\"band ") == 1 && strstr(svg, ">all 1024 ranks</text>"),
          "16 nodes are too many colours: one band");
}

static void test_doubtful(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_noisy(&s, 1);
    const char *svg = draw(&s, NULL);
    check_text("noise", svg);
    CHECK(count(svg, "class=\"ring c0\"") == 3 && count(svg, ", disturbed</title>") == 3 &&
              strstr(svg, "hollow: disturbed (3 of 14 cells)"),
          "disturbed values are hollow, and say so");
    CHECK(count(svg, "class=\"bar c0\"") == 1 && strstr(svg, "an arrow where it reaches"),
          "intervals that leave the axis end there");
    CHECK(strstr(svg, "class=\"bar ") < strstr(svg, "class=\"line "), "and lie below the line");
    CHECK(strstr(draw_text(&s, false, false), "; 3 of 14 cells are disturbed"), "so does text");
    sample_fini(&s);
    make_idle(&s, 4);
    disturb(&s.list[0], 2, 1, 4, 5);
    disturb(&s.list[0], 0, 0, 1, 1);
    disturb(&s.list[0], 1, 1, 9, 1);
    svg = draw(&s, NULL);
    check_text("a disturbed node", svg);
    CHECK(strstr(svg, "hollow: disturbed (2 of 16 cells)") &&
              count(svg, ", disturbed</title>") == 2,
          "a fifth of the samples makes a cell doubtful, or a single one left");
    CHECK(count(svg, "<g class=\"hollow\"") == 1, "it has only its frame");
    CHECK(count(svg, "<title>node of the CPU 2, node of the memory 1: ") == 1,
          "each cell tells its value");
    CHECK(strstr(draw_text(&s, false, false), "; 2 cells are disturbed"), "so does text");
}

static void test_ranks_apart(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_two_kinds(&s, 128);
    const char *svg = draw(&s, NULL);
    check_text("two kinds of ranks", svg);
    CHECK(strstr(svg, ">fast: 16 ranks</text>") && strstr(svg, ">slow: 112 ranks</text>"),
          "without nodes: a band of the fast and one of the slow");
    CHECK(strstr(svg, "fast: ranks 7,15,23,") && strstr(svg, "slow: ranks 0-6,8-14,"),
          "and which they are");
    sample_fini(&s);
    make_odd_ranks(&s, 128, 8);
    svg = draw(&s, NULL);
    check_text("ranks that lie apart", svg);
    CHECK(count(svg, "<path class=\"line odd ") == 3 &&
              strstr(svg, ">rank 96, node 6 +57 %</text>"),
          "three ranks lie apart from their nodes, each with its name");
    sample_fini(&s);
    make_odd_ranks(&s, 1024, 16);
    for (int r = 100; r < 110; r++)
        for (int c = 0; c < 14; c++)
            set(&s.list[0], r, c, 400, 1);
    svg = draw(&s, NULL);
    check_text("1024 ranks, 13 of them apart", svg);
    CHECK(count(svg, "<path class=\"line odd ") == PLOT_ODD_MAX && strstr(svg, "; 9 more do."),
          "four have a line, the others are counted");
}

static void test_one_value(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_latency(&s, 1, 1, 64 << 20, 1);
    const char *svg = draw(&s, NULL);
    check_text("one value", svg);
    CHECK(count(svg, "<circle ") == 1 && strstr(svg, ">64M</text>"),
          "one value: one dot, its size");
    matrix_at(&s.list[0], 0, 0)->v[CELL_MEDIAN] = NAN;
    svg = draw(&s, NULL);
    check_text("no value", svg);
    CHECK(count(svg, "<circle ") == 0 && strstr(svg, "1 of 1 cells have no value"),
          "no value: says so");
}

static void test_gap(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_latency(&s, 2, 1, 1 << 20, 6);
    cell_clear(matrix_at(&s.list[0], 1, 3));
    const char *svg = draw(&s, NULL), *second;
    CHECK(count(svg, "<circle ") == 11, "a missing value has no dot");
    second = strstr(strstr(svg, "<path class=\"line ") + 1, "<path class=\"line ");
    CHECK(second && count(second, "M") >= 2, "and the line is not drawn across it");
    CHECK(strstr(svg, "1 of 12 cells have no value"), "and the reader is told");
    sample_fini(&s);
    make_idle(&s, 4);
    cell_clear(matrix_at(&s.list[0], 2, 1));
    svg = draw(&s, NULL);
    check_text("heat map with a gap", svg);
    CHECK(strstr(svg, "<path class=\"gap\" d=\"M1 2h1v1h-1z\"/>"), "a missing cell is grey");
    CHECK(strstr(svg, "grey: 1 of 16 cells have no value"), "and the reader is told");
}

static void test_hostile(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_idle(&s, 2);
    snprintf(s.run.node, sizeof s.run.node, "</title><script>\"'&\x01\x1b[2J\xff\xc3(");
    const char *svg = draw(&s, NULL);
    check_text("hostile names", svg);
    CHECK(!strstr(svg, "<script"), "a node's name cannot become markup");
    CHECK(strstr(svg, "&lt;/title&gt;&lt;script&gt;&quot;&#39;&amp;"), "it stays readable");
    snprintf(s.run.label, sizeof s.run.label, "before <BIOS> & after");
    s.run.imported = true;
    s.run.measured_ms = s.run.created_ms - 86400000;
    svg = draw(&s, NULL);
    check_text("a label", svg);
    CHECK(strstr(svg, " · 2026-11-20 10:00 UTC · ") &&
              strstr(svg, " · before &lt;BIOS&gt; &amp; after · imported"),
          "label, origin, and when it was measured");
}

static void test_heat(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_idle(&s, 8);
    const char *svg = draw(&s, NULL);
    check_text("8 x 8", svg);
    CHECK(count(svg, "class=\"light\"") + count(svg, "class=\"dark\"") == 64,
          "8 x 8: each value is written");
    CHECK(strstr(svg, "Latency from node to node: idle") && strstr(svg, ">node of the CPU</text>"),
          "8 x 8: each rank stands for a node");
    sample_fini(&s);
    make_nodes(&s);
    svg = draw(&s, NULL);
    CHECK(strstr(svg, "median bandwidth (GB/s), more is better") && strstr(svg, ">182.3</text>"),
          "bandwidth: GB/s, and which end is good");
    sample_fini(&s);
    make_pairs(&s, 64, 8);
    svg = draw(&s, NULL);
    check_text("64 x 64", svg);
    CHECK(count(svg, "class=\"light\"") == 0 && strstr(svg, "a pair is measured once"),
          "64 x 64: no room for values");
    CHECK(count(svg, "class=\"border\"") == 14, "64 x 64: the nodes are parted");
}

// Rows and columns of `low`, but one cell of `high`.
static const char *draw_two(struct sample *s, int n, double low, double high)
{
    static const struct shape shape = {"idle", "latency", "ns", "rank", "target"};
    begin(s, BENCHMARK_MATRIX);
    struct matrix *m = add(s, &shape, n, n);
    places(s, n, n);
    for (int r = 0; r < n; r++)
        for (int c = 0; c < n; c++)
            set(m, r, c, r || c ? low : high, 0.1);
    return draw(s, NULL);
}

static void test_even_heat(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    const char *svg = draw_two(&s, 1, 150, 150);
    check_text("1 x 1", svg);
    CHECK(!strstr(svg, ">145</text>") && !strstr(svg, "within"), "one value has no scale");
    sample_fini(&s);
    svg = draw_two(&s, 3, 150, 154);
    CHECK(count(svg, "<path fill=") == 1 && strstr(svg, "all values lie within 3 %"),
          "values within 3 %% have one colour, and the picture says so");
    CHECK(strstr(draw_text(&s, false, false), "\nall values lie within 3 %\n"), "so does text");
    sample_fini(&s);
    svg = draw_two(&s, 3, 150, 157);
    CHECK(strstr(svg, "d=\"M0 0h1v1h-1z\"/>") && !strstr(svg, "within"),
          "values 4 %% apart have two colours");
}

static void test_large_heat(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_pairs(&s, 512, 8);
    check_text("512 x 512", draw(&s, NULL));
    CHECK(strstr(buf_text(&s.svg), "a tile is the median of 2 x 2 cells"), "it says so");
    sample_fini(&s);
    make_pairs(&s, 256, 2);
    for (int i = 0; i < 256 * 256; i++)
        set(&s.list[0], i / 256, i % 256, 100 + 50 * wobble(i / 256, i), 1);
    check_text("256 x 256 without two equal neighbours", draw(&s, NULL));
}

static void test_noise(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_idle(&s, 8);
    for (int i = 0; i < 64; i++)
        set(&s.list[0], i / 8, i % 8, 100 + 0.1 * wobble(i / 8, i % 8), 1);
    char *tiles = strdup(draw(&s, NULL)), *end = strstr(tiles, "</g>");
    *end = '\0'; // the colour bar follows
    CHECK(count(tiles, "<path fill=\"#") <= 3, "a per mille of noise has one colour or so");
    free(tiles);
}

static void test_loaded(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_loaded(&s, 2);
    const char *svg = draw(&s, NULL);
    check_text("loaded", svg);
    CHECK(strstr(svg, "Latency under load") && strstr(svg, "median bandwidth (GB/s)") &&
              strstr(svg, "median latency (ns)"),
          "loaded: latency over bandwidth");
    CHECK(count(svg, "class=\"knee ") == 2 && count(svg, "class=\"guide ") == 4,
          "loaded: a knee a rank, its idle latency and its peak");
    CHECK(strstr(svg, ">rank 0, node 0: idle 98.0 ns; knee ") &&
              strstr(svg, "; peak 116.4 GB/s at "),
          "loaded: which says the line below");
    svg = draw(&s, "bandwidth");
    CHECK(strstr(svg, "Bandwidth by load: bandwidth") && !strstr(svg, "knee "),
          "its bandwidth alone: over the load");
    sample_fini(&s);
    make_loaded(&s, 1);
    for (int c = 0; c < 11; c++)
        set(&s.list[0], 0, c, 100, 1);
    CHECK(count(draw(&s, NULL), "class=\"knee ") == 0, "a flat curve has no knee");
}

static void test_mixes(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_mixes(&s, 2);
    const char *svg = draw(&s, NULL);
    check_text("mixes", svg);
    CHECK(count(svg, "<path class=\"line ") == 4, "a line a path and mix");
    CHECK(strstr(svg, ">1:1, path 0-&gt;1</text>") && strstr(svg, ">reads, path 0-&gt;0</text>"),
          "with their names");
    CHECK(strstr(svg, "1:1, path 0-&gt;1, load 90: "), "and with its own levels of load");
    svg = draw(&s, "latency_1r1w");
    CHECK(count(svg, "<path class=\"line ") == 2 && strstr(svg, "Latency under load: 1:1"),
          "one mix by its name");
    sample_fini(&s);
    make_mixes(&s, 9);
    svg = draw(&s, NULL);
    CHECK(count(svg, "<path class=\"line ") == 2 && strstr(svg, ">1:1, all 9 paths</text>"),
          "many paths: the median of each mix");
    sample_fini(&s);
    make_mixes(&s, 1);
    CHECK(strstr(draw(&s, NULL), ">1:1</text>"), "one path: the mix alone names the line");
}

static void test_others(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_pingpong(&s, 3);
    check_text("ping-pong", draw(&s, NULL));
    CHECK(strstr(buf_text(&s.svg), ">pair 0-3</text>") && strstr(buf_text(&s.svg), ">0</text>"),
          "ping-pong: pairs, and the empty message");
    sample_fini(&s);
    make_threads(&s);
    check_text("threads", draw(&s, NULL));
    CHECK(count(buf_text(&s.svg), "<path class=\"line ") == 4, "threads: a line a target");
    sample_fini(&s);
    make_access(&s, 16);
    check_text("access", draw(&s, NULL));
    CHECK(strstr(buf_text(&s.svg), ">crossed</text>"), "access: its names");
}

static const char *draw_text(struct sample *s, bool unicode, bool colour)
{
    const struct plot_text how = {80, 14, unicode, colour};
    struct err err = {0};
    buf_free(&s->svg);
    if (plot_choose(&s->plot, s->list, s->n, NULL, &err) < 0 ||
        plot_write_text(&s->plot, &how, &s->svg, &err) < 0)
        printf("# %s\n", err.text);
    return buf_text(&s->svg);
}

static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80 || (*text < 0x20 && *text != '\n'))
            return false;
    return true;
}

static void test_text(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_latency(&s, 8, 4, 16 << 10, 18);
    CHECK(is_ascii(draw_text(&s, false, false)) && strstr(buf_text(&s.svg), "*") &&
              strstr(buf_text(&s.svg), "16K") && count(buf_text(&s.svg), "\n") == 2 + 14 + 3,
          "lines in ASCII");
    const char *braille = draw_text(&s, true, false);
    CHECK(str_utf8_valid(braille, strlen(braille)) && !strstr(braille, "\033") &&
              strstr(braille, "⠊") && strstr(braille, "┤"),
          "lines in Braille");
    CHECK(strstr(draw_text(&s, true, true), "\033[34m"), "lines in colour");
    sample_fini(&s);
    make_idle(&s, 4);
    cell_clear(matrix_at(&s.list[0], 2, 1));
    CHECK(is_ascii(draw_text(&s, false, false)) && strstr(buf_text(&s.svg), "\n2 %%??..%%\n"),
          "a heat map in ASCII, with a gap");
    CHECK(strstr(draw_text(&s, true, false), "\n2 ▓▓??··▓▓\n"), "in shades");
    CHECK(strstr(draw_text(&s, false, true), "\033[48;5;"), "in colour");
    sample_fini(&s);
    make_pairs(&s, 128, 2);
    CHECK(strstr(draw_text(&s, false, false), "a tile is the median of 4 x 4 cells"),
          "a large one is made smaller");
}

// What no bench measures, but a stranger's file may hold.
static void test_extremes(void)
{
    static const double odd[] = {1e300, -1e300, 0, 1e-300, INFINITY, -INFINITY, 5e-324, -1};
    for (int kind = 0; kind < 4; kind++) {
        struct sample s CLEANUP(sample_fini) = {0};
        kind == 0   ? make_latency(&s, 4, 2, 1 << 10, 8)
        : kind == 1 ? make_idle(&s, 6)
        : kind == 2 ? make_loaded(&s, 2)
                    : make_latency(&s, 40, 2, 1 << 10, 8);
        for (int m = 0; m < s.n; m++)
            for (int i = 0; i < s.list[m].row.n * s.list[m].col.n; i++)
                for (int f = 0; f < CELL_FIELDS; f++)
                    s.list[m].cells[i].v[f] = odd[(i * 5 + f + m) % (int)COUNT_OF(odd)];
        s.list[0].col.values[0] = INT64_MIN;
        s.list[0].col.values[1] = INT64_MAX;
        CHECK(is_xml(draw(&s, NULL)) && !strstr(buf_text(&s.svg), "nan"), "odd numbers, %d", kind);
        CHECK(strlen(draw_text(&s, true, false)) > 100, "odd numbers in characters, %d", kind);
    }
}

static void test_choice(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    struct err err = {0};
    make_loaded(&s, 1);
    CHECK(plot_choose(&s.plot, s.list, s.n, "x", &err) < 0 && err.code == ERR_NOT_FOUND &&
              strstr(err.text, "latency, bandwidth"),
          "no such matrix: says which there are");
    CHECK(plot_choose(&s.plot, s.list, 0, NULL, &err) < 0 && err.code == ERR_NOT_FOUND,
          "a run without matrices");
}

// --- To look at ----------------------------------------------------------------------------------

static void save(struct sample *s, const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.svg", folder, name);
    const char *svg = draw(s, NULL);
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(svg, f);
        fclose(f);
    }
    sample_fini(s);
}

static int gallery(const char *folder)
{
    struct sample s = {0};
    if (make_published(&s, "serial"))
        save(&s, folder, "published-serial");
    if (make_published(&s, "concurrent"))
        save(&s, folder, "published-concurrent");
    make_latency(&s, 8, 4, 16 << 10, 18);
    save(&s, folder, "ranks-8");
    make_latency(&s, 128, 8, 16 << 10, 18);
    save(&s, folder, "ranks-128");
    make_latency(&s, 1024, 16, 1 << 10, 24);
    save(&s, folder, "ranks-1024");
    make_latency(&s, 1, 1, 64 << 20, 1);
    save(&s, folder, "one-value");
    make_idle(&s, 8);
    save(&s, folder, "idle-8");
    make_pairs(&s, 12, 2);
    save(&s, folder, "pairs-12");
    make_pairs(&s, 64, 8);
    save(&s, folder, "pairs-64");
    make_pairs(&s, 512, 8);
    save(&s, folder, "pairs-512");
    make_pingpong(&s, 3);
    save(&s, folder, "pingpong");
    make_threads(&s);
    save(&s, folder, "threads");
    make_loaded(&s, 2);
    save(&s, folder, "loaded");
    make_access(&s, 16);
    save(&s, folder, "access-16");
    make_access(&s, 128);
    save(&s, folder, "access-128");
    make_noisy(&s, 1);
    save(&s, folder, "noisy-1");
    make_noisy(&s, 8);
    save(&s, folder, "noisy-8");
    make_two_kinds(&s, 128);
    save(&s, folder, "two-kinds-128");
    make_odd_ranks(&s, 128, 8);
    save(&s, folder, "odd-128");
    make_odd_ranks(&s, 1024, 16);
    save(&s, folder, "odd-1024");
    make_loaded(&s, 1);
    save(&s, folder, "loaded-1");
    make_mixes(&s, 2);
    save(&s, folder, "mixes");
    make_idle(&s, 4);
    disturb(&s.list[0], 2, 1, 4, 5);
    save(&s, folder, "idle-4-disturbed");
    make_idle(&s, 1);
    save(&s, folder, "idle-1");
    make_nodes(&s);
    save(&s, folder, "nodes");
    return 0;
}

// test_plot text: all of them out of characters.
static int text_gallery(bool unicode)
{
    struct sample s = {0};
    for (int i = 0; i < 8; i++) {
        if (i == 0 && !make_published(&s, "concurrent"))
            continue;
        i == 1   ? make_latency(&s, 128, 4, 16 << 10, 18)
        : i == 2 ? make_idle(&s, 8)
        : i == 3 ? make_pairs(&s, 64, 8)
        : i == 4 ? make_pingpong(&s, 3)
        : i == 5 ? make_threads(&s)
        : i == 6 ? make_loaded(&s, 2)
        : i == 7 ? make_access(&s, 16)
                 : (void)0;
        puts(draw_text(&s, unicode, false));
        sample_fini(&s);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "text") == 0 || strcmp(argv[1], "ascii") == 0))
        return text_gallery(strcmp(argv[1], "text") == 0);
    if (argc == 2)
        return gallery(argv[1]);
    test_curve();
    test_bands();
    test_doubtful();
    test_ranks_apart();
    test_one_value();
    test_gap();
    test_hostile();
    test_heat();
    test_even_heat();
    test_large_heat();
    test_noise();
    test_loaded();
    test_mixes();
    test_others();
    test_text();
    test_extremes();
    test_choice();
    return tap_done();
}
