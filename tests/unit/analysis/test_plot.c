// SPDX-License-Identifier: Apache-2.0
// Pictures of made-up and published runs. plot_gallery writes them, to be looked at.
#include "analysis/plot/parts.h"
#include "tests/unit/analysis/plot_samples.h"

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
              strstr(svg, "Hollow: disturbed (3 of 14 cells)"),
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
    CHECK(strstr(svg, "Hollow: disturbed (2 of 16 cells)") &&
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
    CHECK(strstr(svg, "Fast: ranks 7,15,23,") && strstr(svg, "Slow: ranks 0-6,8-14,"),
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
    CHECK(strstr(svg, "Grey: 1 of 16 cells have no value"), "and the reader is told");
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
    CHECK(count(svg, "class=\"light\"") == 0 && strstr(svg, "A pair is measured once"),
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
    CHECK(strstr(svg, ">150.0</text>"), "its value");
    draw_text(&s, false, false);
    CHECK(strstr(buf_text(&s.svg), "\none value: 150.0 ns\n"), "text has it too: %s",
          buf_text(&s.svg));
    svg = draw(&s, NULL);
    CHECK(!strstr(svg, ">145</text>") && !strstr(svg, "within"), "one value has no scale");
    sample_fini(&s);
    svg = draw_two(&s, 3, 150, 154);
    CHECK(count(svg, "<path fill=") == 1 && strstr(svg, "All values lie within 3 %"),
          "values within 3 %% have one colour, and the picture says so");
    CHECK(strstr(draw_text(&s, false, false), "\nall values lie within 3 %: 150.0 to 154.0 ns\n"),
          "so does text, with the values");
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
    CHECK(strstr(buf_text(&s.svg), "A tile is the median of 2 x 2 cells"), "it says so");
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

static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80 || (*text < 0x20 && *text != '\n'))
            return false;
    return true;
}

// Of the longest line, where all characters are ASCII.
static int longest_line(const char *text)
{
    int most = 0;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        most = (int)n > most ? (int)n : most;
    }
    return most;
}

static void test_text(void)
{
    struct sample s CLEANUP(sample_fini) = {0};
    make_noisy(&s, 1);
    CHECK(longest_line(draw_text(&s, false, false)) <= 80 &&
              strstr(buf_text(&s.svg), "\n         x: ") &&
              strstr(buf_text(&s.svg), "are disturbed\n"),
          "its caption takes two lines: %s", buf_text(&s.svg));
    sample_fini(&s);
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

// Beside an axis is room for six figures.
static void test_ticks(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},       {250000, "250000"}, {1000000, "1e6"}, {1250000, "1.25e6"},
                 {5e10, "5e10"}, {0.0008, "0.0008"}, {1e-6, "1e-6"},   {-0.0, "0"},
                 {-2e8, "-2e8"}};
    char text[32];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tick_text(cases[i].value, text, sizeof text);
        CHECK_STR(text, cases[i].text, "%g", cases[i].value);
    }
    const struct range powers = {0.05, 1e9, true};
    struct ticks t;
    ticks_round(&t, &powers, 6);
    CHECK(t.n > 3 && t.at[0] >= powers.lo && t.at[t.n - 1] <= powers.hi,
          "%d ticks from %g to %g are on their axis", t.n, t.at[0], t.at[t.n - 1]);
}

// A heading of wide letters is not cut at the right.
static void test_wide_heading(void)
{
    struct sample s = {0};
    double width = 0;
    make_latency(&s, 2, 1, 16 << 10, 4);
    memset(s.run.node, 'm', sizeof s.run.node - 1);
    const char *at = strstr(draw(&s, NULL), " width=\"");
    CHECK(at && sscanf(at, " width=\"%lf", &width) == 1 &&
              width > 11.7 * (double)(sizeof s.run.node - 1),
          "a page of %.0f px has the name of its node", width);
    sample_fini(&s);
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

int main(void)
{
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
    test_ticks();
    test_wide_heading();
    test_choice();
    return tap_done();
}
