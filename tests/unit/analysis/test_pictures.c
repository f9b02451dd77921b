// SPDX-License-Identifier: Apache-2.0
// Pictures of a history and of two runs. With a folder as its argument the program writes them
// there instead, to be looked at.
#include <math.h>
#include <stdlib.h>

#include "analysis/compare/compare.h"
#include "analysis/plot/difference.h"
#include "analysis/plot/history.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "model/shape.h"
#include "tests/unit/tap.h"

static const int64_t NIGHT = 86400000, FIRST = 1790000000000;
static const struct plot_text TERMINAL = {80, 14, false, false};

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

// ---- Histories ----------------------------------------------------------------------------------

// `n` nightly runs, 5 % slower from run `change` on (0: no change); `facts` is JSON.
static void write_answer(struct buf *out, int n, int change, const char *facts)
{
    struct jsonw w = jsonw_to(out);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "metric", "latency.local.dram.median_ns");
    jsonw_text(&w, "node", "node<7>&\"");
    jsonw_text(&w, "variant", "pages=4k");
    jsonw_text(&w, "unit", "ns");
    jsonw_text(&w, "better", "less");
    jsonw_bool(&w, "more", n > 5000);
    jsonw_i64(&w, "pending", 0);
    jsonw_array(&w, "points");
    for (int i = 0; i < n; i++) {
        double v = 90 * (change && i >= change ? 1.05 : 1) + (i * 7919 % 101 - 50) / 60.0;
        jsonw_object(&w, NULL);
        jsonw_i64(&w, "run", i + 1);
        jsonw_time(&w, "measured", FIRST + i * NIGHT / (n > 1000 ? 24 : 1));
        jsonw_fixed(&w, "value", v, 3);
        jsonw_fixed(&w, "lo", i % 10 ? v - 0.4 : NAN, 3);
        jsonw_fixed(&w, "hi", i % 10 ? v + (i == 21 ? 40 : 0.4) : NAN, 3);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_array(&w, "change_points");
    if (change) {
        jsonw_object(&w, NULL);
        jsonw_i64(&w, "run", change + 1);
        jsonw_fixed(&w, "percent", 5, 2);
        jsonw_fixed(&w, "before", 90, 3);
        jsonw_fixed(&w, "after", 94.5, 3);
        jsonw_i64(&w, "setup_runs", change == 38 ? -1 : 0);
        jsonw_raw(&w, "fact_changes", facts);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
}

static const char one_fact[] =
    "[{\"name\":\"microcode\",\"before\":\"0x1000065\",\"after\":\"0x1000070<b>\"}]";

static void draw_history(struct buf *svg, struct buf *text, int n, int change, const char *facts)
{
    CLEANUP_BUF struct buf answer = BUF_INIT;
    struct history_picture p CLEANUP(history_fini) = {0};
    struct err err = {0};
    buf_reset(svg);
    buf_reset(text);
    write_answer(&answer, n, change, facts);
    CLEANUP_JSON struct json *json = json_parse(buf_text(&answer), answer.len, &err);
    if (!json || history_from_json(&p, json, &err) < 0 || history_write_svg(&p, svg, &err) < 0 ||
        history_write_text(&p, &TERMINAL, text, &err) < 0)
        printf("# %s\n", err.text);
}

static void test_history(void)
{
    CLEANUP_BUF struct buf svg = BUF_INIT;
    CLEANUP_BUF struct buf text = BUF_INIT;
    draw_history(&svg, &text, 60, 38, one_fact);
    const char *s = buf_text(&svg);
    CHECK(count(s, "<circle ") == 60 && count(s, "<title>run ") == 60, "a dot and a title a run");
    CHECK(count(s, "class=\"mark\"") == 1 && count(s, "class=\"band f0\"") == 2,
          "a mark for the change, a band before and after it");
    CHECK(strstr(s, "+5.0 % since 2026-10-") && strstr(s, "(run 39): 90.0 to 94.5 ns</text>"),
          "when, where and by how much");
    CHECK(strstr(s, "microcode: 0x1000065 -&gt; 0x1000070&lt;b&gt;</text>"), "and what changed");
    CHECK(strstr(s, "node&lt;7&gt;&amp;&quot;") && !strstr(s, "<b>"), "names are no markup");
    CHECK(strstr(s, "1 bar reaches beyond the axis") && !strstr(s, "nan"), "a long bar is clipped");
    CHECK(strstr(buf_text(&text), "+5.0 % since 2026-10-") &&
              strstr(buf_text(&text), "the set-up changed 1 run earlier: microcode: 0x1000065 -> "),
          "the same in characters");
    draw_history(&svg, &text, 60, 38, "[]");
    CHECK(strstr(buf_text(&svg), "no recorded fact of the machine changed with it"), "no fact");
    draw_history(&svg, &text, 60, 38, "null");
    CHECK(strstr(buf_text(&svg), "not recorded for both sides"), "facts that are not known");
}

static void draw_document(struct buf *svg, struct buf *drawn, const char *text)
{
    CLEANUP_JSON struct json *json = json_parse(text, strlen(text), NULL);
    struct history_picture p CLEANUP(history_fini) = {0};
    struct err err = {0};
    CHECK(json && history_from_json(&p, json, &err) == 0 && history_write_svg(&p, svg, &err) == 0 &&
              (!drawn || history_write_text(&p, &TERMINAL, drawn, &err) == 0),
          "a picture of a collector's history: %s", err.text);
}

static void test_limits(void)
{
    CLEANUP_BUF struct buf svg = BUF_INIT;
    CLEANUP_BUF struct buf text = BUF_INIT;
    draw_document(
        &svg, &text,
        "{\"metric\":\"m\",\"node\":\"n1\",\"unit\":\"ns\",\"better\":\"less\",\"points\":["
        "{\"run\":1,\"measured\":\"2026-10-01T00:00:00Z\",\"value\":90},"
        "{\"run\":2,\"measured\":\"2026-10-02T00:00:00Z\",\"value\":91}],"
        "\"left_out\":90000,\"other_runs\":3,\"variant\":\"size=1\",\"searched\":1,\"change_"
        "points\":[]}");
    CHECK(strstr(buf_text(&svg), "which the limit left out."), "a limit that left out runs");
    CHECK(strstr(buf_text(&svg), "hanges are searched for in the newest 1."),
          "and that of changes");
    static const char others[] = "3 runs with another variant, method or version of the metrics "
                                 "left out";
    CHECK(strstr(buf_text(&svg), "3 runs with another variant") && strstr(buf_text(&text), others),
          "runs that do not compare with these");
    CHECK(strstr(buf_text(&text), "measured with: size=1\n"), "what they were measured with");
}

// One outlier does not make a line of all other runs, and intervals from 0 on end at the axis.
static void test_outlier(void)
{
    CLEANUP_BUF struct buf svg = BUF_INIT;
    draw_document(
        &svg, NULL,
        "{\"metric\":\"m\",\"node\":\"n1\",\"unit\":\"ns\",\"better\":\"less\",\"points\":["
        "{\"run\":1,\"measured\":\"2026-10-01T00:00:00Z\",\"value\":10,\"lo\":0,\"hi\":11},"
        "{\"run\":2,\"measured\":\"2026-10-02T00:00:00Z\",\"value\":1000000000},"
        "{\"run\":3,\"measured\":\"2026-10-03T00:00:00Z\",\"value\":11}],"
        "\"change_points\":[]}");
    const char *s = buf_text(&svg);
    CHECK(strstr(s, "Y is logarithmic.") && strstr(s, ">10000</text>") && !strstr(s, ">2e8</text>"),
          "the axis of a history with an outlier");
    CHECK(strstr(s, "1 bar reaches beyond the axis") && !strstr(s, "nan") && !strstr(s, "inf"),
          "an end of an interval that has no logarithm");
    buf_reset(&svg);
    draw_document(
        &svg, NULL,
        "{\"metric\":\"m\",\"node\":\"n1\",\"unit\":\"ns\",\"better\":\"less\",\"points\":["
        "{\"run\":1,\"measured\":\"2026-10-01T00:00:00Z\",\"value\":0},"
        "{\"run\":2,\"measured\":\"2026-10-02T00:00:00Z\",\"value\":1000}],"
        "\"change_points\":[]}");
    CHECK(!strstr(buf_text(&svg), "logarithmic"), "nor has 0");
}

// What a collector responds with: a node inside the band of its class, and a class by itself.
static void test_class_history(void)
{
    CLEANUP_BUF struct buf node = BUF_INIT, class = BUF_INIT;
    draw_document(
        &node, NULL,
        "{\"metric\":\"m\",\"node\":\"n1\",\"unit\":\"ns\",\"better\":\"less\",\"points\":["
        "{\"run\":1,\"measured\":\"2026-11-01T10:00:00Z\",\"value\":90,\"lo\":89,\"hi\":91},"
        "{\"run\":2,\"measured\":\"2026-11-02T10:00:00Z\",\"value\":91,\"lo\":90,\"hi\":92}],"
        "\"change_points\":[],\"band\":["
        "{\"day\":\"2026-10-31\",\"median\":10,\"low\":5,\"high\":20},"
        "{\"day\":\"2026-11-01\",\"median\":90,\"low\":85,\"high\":95},"
        "{\"day\":\"2026-11-02\",\"median\":90,\"low\":85,\"high\":95},"
        "{\"day\":\"2026-11-03\",\"median\":90,\"low\":null,\"high\":null}]}");
    CHECK(strstr(buf_text(&node), "median of the class") && strstr(buf_text(&node), "run 2"),
          "a node in its class");
    CHECK(!strstr(buf_text(&node), ">20<"), "other days do not stretch the axis");
    draw_document(&class, NULL,
                  "{\"metric\":\"m\",\"class\":\"62204bdd0123456789\",\"unit\":\"ns\","
                  "\"better\":\"less\",\"days\":["
                  "{\"day\":\"2026-11-01\",\"nodes\":40,\"median\":90,\"q1\":89,\"q3\":91},"
                  "{\"day\":\"2026-11-02\",\"nodes\":1,\"median\":97,\"q1\":97,\"q3\":97}],"
                  "\"change_points\":[{\"at\":\"2026-11-02T00:00:00Z\",\"before\":90,"
                  "\"after\":97,\"percent\":7.8}]}");
    CHECK(strstr(buf_text(&class), "class 62204bdd0123 ") && strstr(buf_text(&class), "2 days"),
          "a class, day by day");
    CHECK(strstr(buf_text(&class), "40 nodes, 2026-11-01") &&
              strstr(buf_text(&class), "1 node, 2026-11-02") &&
              strstr(buf_text(&class), "quartiles"),
          "by its nodes");
    CHECK(strstr(buf_text(&class), "+7.8 % since 2026-11-02 00:00 UTC:") &&
              strstr(buf_text(&class), "a rollout of these days"),
          "with its change");
}

static void test_history_sizes(void)
{
    CLEANUP_BUF struct buf svg = BUF_INIT;
    CLEANUP_BUF struct buf text = BUF_INIT;
    draw_history(&svg, &text, 0, 0, "[]");
    CHECK(strstr(buf_text(&svg), "no run in this time has this metric") &&
              strstr(buf_text(&text), "0 runs\n"),
          "no run: says so");
    draw_history(&svg, &text, 1, 0, "[]");
    CHECK(count(buf_text(&svg), "<circle ") == 1 && !strstr(buf_text(&svg), "band f0") &&
              strstr(buf_text(&svg), "No significant change"),
          "one run: a dot, no band");
    CHECK(strstr(buf_text(&svg), "1 run · 2026-09-21<"), "and one date");
    draw_history(&svg, &text, 10000, 7000, one_fact);
    int dots = count(buf_text(&svg), "<circle ");
    CHECK(dots > 300 && dots <= HISTORY_DOTS_MAX + 2, "10,000 runs: %d dots", dots);
    CHECK(strstr(buf_text(&svg), "10000 runs in ") && strstr(buf_text(&svg), "the limit left out"),
          "and it says what they are");
    CHECK(svg.len < 128 << 10, "in %zu bytes", svg.len);
}

// ---- Two runs -----------------------------------------------------------------------------------

struct pair {
    struct run a, b;
    struct matrix ma, mb;
    struct rank_info ranks[1024];
    struct comparison c;
    struct buf svg, text;
};

static void pair_fini(struct pair *p)
{
    matrix_fini(&p->ma);
    matrix_fini(&p->mb);
    comparison_fini(&p->c);
    buf_free(&p->svg);
    buf_free(&p->text);
}

static void set(struct matrix *m, int row, int col, double v)
{
    double *cell = matrix_at(m, row, col)->v;
    cell[CELL_N] = 40;
    cell[CELL_DISTURBED] = 0;
    cell[CELL_MEDIAN] = v;
    cell[CELL_SD] = v * 0.004;
    cell[CELL_LO] = v * 0.997;
    cell[CELL_HI] = v * 1.003;
}

// Of B the column `slow` takes 18 % more.
static void make_pair(struct pair *p, const struct shape *shape, int rows, int cols, int slow)
{
    *p = (struct pair){.a = {.id = 17, .state = RUN_SUCCEEDED},
                       .b = {.id = 18, .state = RUN_SUCCEEDED}};
    snprintf(p->a.node, sizeof p->a.node, "nid<1>");
    snprintf(p->b.node, sizeof p->b.node, "nid<1>");
    if (shape_make(&p->ma, shape, rows, cols, NULL) < 0 ||
        shape_make(&p->mb, shape, rows, cols, NULL) < 0)
        abort();
    for (int r = 0; r < rows; r++) {
        p->ranks[r] = (struct rank_info){.rank = r, .cpu_node = r, .mem_node = r};
        for (int c = 0; c < cols; c++) {
            bool sizes = strcmp(shape->cols, "working_set") == 0;
            double v = sizes ? 5 * pow(1.4, c) : r == c ? 90 : 130;
            p->ma.col.values[c] = p->mb.col.values[c] = sizes ? (int64_t)1024 << c : c;
            set(&p->ma, r, c, v * (1 + 0.002 * ((r * 7 + c * 3) % 5)));
            set(&p->mb, r, c, v * (c == slow ? 1.18 : 1) * (1 + 0.002 * ((r * 5 + c * 11) % 5)));
        }
    }
}

static const char *draw_pair(struct pair *p, int n_ranks)
{
    struct err err = {0};
    CLEANUP_BUF struct buf facts = BUF_INIT;
    char text[400];
    const struct compare_side a = {.matrix = &p->ma, .ranks = p->ranks, .n_ranks = n_ranks};
    const struct compare_side b = {.matrix = &p->mb, .ranks = p->ranks, .n_ranks = n_ranks};
    buf_str(&facts, "Facts of the machine that differ: microcode: 0x1 -> 0x2<i>");
    if (compare(&p->c, &a, &b, &COMPARE_DEFAULTS, &err) < 0)
        printf("# %s\n", err.text);
    comparison_text(&p->c, text, sizeof text);
    struct difference_picture d = {
        .plot = {.matrix = &p->ma, .ranks = p->ranks, .n_ranks = n_ranks, .run = &p->a},
        .other = &p->b,
        .other_matrix = &p->mb,
        .comparison = &p->c,
        .verdict = p->c.verdict,
        .text = text,
        .facts = &facts};
    if (difference_write_svg(&d, &p->svg, &err) < 0)
        printf("# %s\n", err.text);
    return buf_text(&p->svg);
}

static const struct shape idle = {"idle", "latency", "ns", "rank", "target"};
static const struct shape curve = {"concurrent", "latency", "ns", "rank", "working_set"};

static void test_difference_map(void)
{
    struct pair p CLEANUP(pair_fini) = {0};
    make_pair(&p, &idle, 4, 4, 2);
    const char *s = draw_pair(&p, 4);
    CHECK(strstr(s, ">SLOWER: memory of node 2 +1") && strstr(s, "strong worse"), "the headline");
    CHECK(count(s, ", no significant difference</title>") == 12 &&
              strstr(s, "Hollow: no significant difference (12 of 16 cells)"),
          "twelve cells did not change");
    CHECK(strstr(s, "node of the CPU 0, node of the memory 2: +1"), "each cell has its difference");
    CHECK(strstr(s, "0x1 -&gt; 0x2&lt;i&gt;") && strstr(s, "nid&lt;1&gt;") && !strstr(s, "<i>"),
          "texts are no markup");
    CHECK(!strstr(s, "class=\"line"), "no curves of a table");
}

static void test_difference_curves(void)
{
    struct pair p CLEANUP(pair_fini) = {0};
    make_pair(&p, &curve, 2, 12, 9);
    const char *s = draw_pair(&p, 2);
    CHECK(count(s, "<path class=\"line ") == 4 && strstr(s, ">B: run 18, rank 1, node 1</text>"),
          "few ranks: a line each and run");
    pair_fini(&p);
    make_pair(&p, &curve, 1024, 48, 30);
    s = draw_pair(&p, 1024);
    CHECK(count(s, "<path class=\"line ") == 2 && count(s, "<path class=\"band ") == 2 &&
              strstr(s, ">A: run 17, 1024 ranks</text>"),
          "many ranks: a band a run");
    CHECK(strstr(s, "A tile is the median of 4 x 1 cells") && p.svg.len < PLOT_BYTES_MAX,
          "1024 ranks at 48 sizes in %zu bytes", p.svg.len);
}

// The title of one column is wider than that, and the scale stands beside it.
static void test_narrow_map(void)
{
    static const char title[] = ">working set of a rank (bytes)</text>";
    struct pair p CLEANUP(pair_fini);
    make_pair(&p, &curve, 2, 1, -1);
    set(&p.mb, 0, 0, 1e9);
    const char *s = draw_pair(&p, 2), *at = NULL, *bar = strstr(s, ")scale(16 ");
    for (const char *next = s; (next = strstr(next, title)); next++)
        at = next;
    double middle = 0, left = 0;
    while (at && at > s && *at != '<')
        at--;
    while (bar && bar > s && *bar != '<')
        bar--;
    at = at ? strstr(at, "x=\"") : NULL;
    bar = bar ? strstr(bar, "translate(") : NULL;
    CHECK(at && bar && sscanf(at, "x=\"%lf", &middle) == 1 &&
              sscanf(bar, "translate(%lf", &left) == 1,
          "a title and a scale");
    CHECK(left > middle + 3.4 * (double)strlen("working set of a rank (bytes)"),
          "the scale at %g, the title around %g", left, middle);
    CHECK(strstr(s, ">+2.0e+10</text>"), "a difference that fits its tile");
}

static void test_difference_text(void)
{
    static const double percent[] = {0.2, 18.2, NAN, -6};
    static const bool doubtful[] = {true, false, true, false};
    struct pair p CLEANUP(pair_fini) = {0};
    struct plot plot = {.matrix = &p.ma};
    make_pair(&p, &idle, 2, 2, 1);
    CHECK(difference_write_text(&plot, percent, doubtful, &TERMINAL, &p.text, NULL) == 0 &&
              strstr(buf_text(&p.text), "0     .   +18\n") &&
              strstr(buf_text(&p.text), "1        -6.0\n"),
          "differences in characters");
    pair_fini(&p);
    p = (struct pair){0};
    make_pair(&p, &curve, 2, 2, 1);
    plot.ranks = p.ranks;
    plot.n_ranks = 2;
    CHECK(difference_write_text(&plot, percent, doubtful, &TERMINAL, &p.text, NULL) == 0 &&
              strstr(buf_text(&p.text), "\n 0 (node 0)     .   +18\n") &&
              strstr(buf_text(&p.text), "\n               1K    2K\n"),
          "columns stand below their heads where rows have nodes: %s", buf_text(&p.text));
}

// 8 cells a tile: what chance makes of cells that say nothing is no sign.
static void test_difference_of_many(void)
{
    enum { N = 256 };
    static double percent[N * N];
    static bool doubtful[N * N];
    struct pair p CLEANUP(pair_fini) = {0};
    struct plot plot = {.matrix = &p.ma};
    CHECK(shape_make(&p.ma, &idle, N, N, NULL) == 0, "a large matrix");
    for (int i = 0; i < N * N; i++) {
        percent[i] = i % N < N / 2 ? 0.1 : 9;
        doubtful[i] = i % N < N / 2 || i % 10 == 0;
    }
    CHECK(difference_write_text(&plot, percent, doubtful, &TERMINAL, &p.text, NULL) == 0 &&
              strstr(buf_text(&p.text), " . . . . .") && strstr(buf_text(&p.text), " + + + + +") &&
              strstr(buf_text(&p.text), ".: most have no significant difference; - is better\n"),
          "a sign where most cells differ: %s", buf_text(&p.text));
}

// ---- To look at ---------------------------------------------------------------------------------

static void save(const struct buf *svg, const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.svg", folder, name);
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fwrite(buf_text(svg), 1, svg->len, f);
    fclose(f);
}

static int gallery(const char *folder)
{
    static const int sizes[][2] = {{0, 0}, {1, 0}, {60, 38}, {10000, 7000}};
    CLEANUP_BUF struct buf svg = BUF_INIT;
    CLEANUP_BUF struct buf text = BUF_INIT;
    char name[40];
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        draw_history(&svg, &text, sizes[i][0], sizes[i][1], one_fact);
        snprintf(name, sizeof name, "history-%d", sizes[i][0]);
        save(&svg, folder, name);
        puts(buf_text(&text));
    }
    static const struct {
        const struct shape *shape;
        int rows, cols, slow;
    } pairs[] = {{&idle, 8, 8, 3}, {&curve, 2, 12, 9}, {&curve, 128, 14, 11}, {&curve, 8, 12, -1}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct pair p CLEANUP(pair_fini) = {0};
        make_pair(&p, pairs[i].shape, pairs[i].rows, pairs[i].cols, pairs[i].slow);
        draw_pair(&p, pairs[i].rows);
        snprintf(name, sizeof name, "compare-%zu", i);
        save(&p.svg, folder, name);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return gallery(argv[1]);
    test_history();
    test_class_history();
    test_limits();
    test_outlier();
    test_history_sizes();
    test_difference_map();
    test_difference_curves();
    test_narrow_map();
    test_difference_text();
    test_difference_of_many();
    return tap_done();
}
