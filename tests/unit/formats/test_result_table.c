// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/cleanup.h"
#include "formats/result_print.h"
#include "formats/result_table.h"
#include "model/shape.h"
#include "tests/unit/tap.h"

// The classic table's own numbers, ranks 0 and 7; the golden text is that table's layout.
static const double classic[2][15] = {{11.53, 12.92, 14.25, 14.93, 18.67, 37.73, 72.45, 108.77,
                                       105.56, 114.71, 154.92, 164.07, 178.93, 171.25, 130.76},
                                      {11.19, 12.95, 14.24, 14.94, 18.69, 35.51, 67.74, 92.91,
                                       98.20, 102.17, 103.98, 109.08, 112.20, 116.15, 129.43}};

#define EDGE                                                                                       \
    " ===========================================================================================" \
    "="                                                                                            \
    "============================================================================================" \
    "\n"
#define RULE                                                                                       \
    "|-------|---------|------|----------------|-------|--------|--------|--------|--------|-----" \
    "---|--------|--------|--------|--------|--------|--------|--------|--------|--------|-------" \
    "-|\n"

static const char golden[] = EDGE
    "|  MPI  |        CPU     |              MEMORY    |                                       "
    "                      LATENCY (ns)                                                        "
    "     |\n" RULE
    "| Ranks | Cores   | NUMA |     Address    | NUMA  | 1MB    | 2MB    | 4MB    | 8MB    | 16M"
    "B   | 32MB   | 64MB   | 128MB  | 256MB  | 512MB  | 1024M  | 2048M  | 4096M  | 8192M  | 1638"
    "4M |\n" RULE
    "|  000  | 1       |   0  | 0x527e70       |   0   | 11.53  | 12.92  | 14.25  | 14.93  | 18.6"
    "7  | 37.73  | 72.45  | 108.77 | 105.56 | 114.71 | 154.92 | 164.07 | 178.93 | 171.25 | 130.7"
    "6 |\n"
    "|  007  | 57      |   3  | 0x5269c0       |   3   | 11.19  | 12.95  | 14.24  | 14.94  | 18.6"
    "9  | 35.51  | 67.74  | 92.91  | 98.20  | 102.17 | 103.98 | 109.08 | 112.20 | 116.15 | 129.4"
    "3 |\n" EDGE;

static void fill(struct matrix *m, int cols)
{
    struct err err = {0};
    if (matrix_init(m, "concurrent", "latency", "ns", 2, cols, &err) < 0)
        return;
    snprintf(m->row.name, sizeof m->row.name, "rank");
    snprintf(m->col.unit, sizeof m->col.unit, "bytes");
    m->row.values[1] = 7;
    for (int c = 0; c < cols; c++) {
        m->col.values[c] = (int64_t)1 << (20 + c);
        for (int r = 0; r < 2; r++)
            matrix_at(m, r, c)->v[CELL_MEDIAN] = classic[r][c];
    }
}

static const struct rank_info places[] = {
    {.rank = 0,
     .cpu = 1,
     .cpu_wanted = 1,
     .mem_wanted = 0,
     .mem_share = 1,
     .pages_checked = 9,
     .address = 0x527e70},
    {.rank = 7,
     .cpu = 57,
     .cpu_node = 3,
     .mem_node = 3,
     .cpu_wanted = 57,
     .mem_wanted = 3,
     .mem_share = 1,
     .pages_checked = 9,
     .address = 0x5269c0},
};

static void test_golden(void)
{
    struct matrix m CLEANUP(matrix_fini) = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    fill(&m, 15);
    result_table_write(&m, places, 2, &out);
    CHECK_STR(buf_text(&out), golden, "the classic table, byte by byte");
}

// Every line between the edges has the same length, whatever is in it.
static bool rectangular(const char *text)
{
    size_t width = 0;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        size_t got = n + (line[0] == ' '); // edges lack the last bar
        if (width && got != width)
            return false;
        width = got;
        line += n + 1;
    }
    return width > 0;
}

static void test_wide_values(void)
{
    struct matrix m CLEANUP(matrix_fini) = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    fill(&m, 3);
    matrix_at(&m, 0, 1)->v[CELL_MEDIAN] = 12345.678;
    m.col.values[2] = (int64_t)1 << 44;
    result_table_write(&m, places, 2, &out);
    CHECK(rectangular(buf_text(&out)), "values from 1000 on and large sizes keep the columns");
    CHECK(strstr(buf_text(&out), "| 12345.68 |") != NULL, "the wide value is whole");
}

static void test_lone_column_and_unknowns(void)
{
    struct matrix m CLEANUP(matrix_fini) = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    fill(&m, 1);
    m.row.values[1] = 1023;
    matrix_at(&m, 1, 0)->v[CELL_MEDIAN] = NAN;
    result_table_write(&m, NULL, 0, &out);
    CHECK(rectangular(buf_text(&out)), "a lone column is as wide as its title");
    CHECK(strstr(buf_text(&out), "| LATENCY (ns) |") != NULL, "and the title stands in it");
    CHECK(strstr(buf_text(&out), "|  1023 | -       |   -  | -              |   -   | -") != NULL,
          "what is not known is a dash");
}

static void test_ratio(void)
{
    struct matrix a CLEANUP(matrix_fini) = {0}, b CLEANUP(matrix_fini) = {0};
    struct matrix ratio CLEANUP(matrix_fini) = {0};
    struct err err = {0};
    fill(&a, 3);
    fill(&b, 3);
    matrix_at(&b, 0, 0)->v[CELL_MEDIAN] = 11.53 / 2;
    matrix_at(&b, 0, 1)->v[CELL_MEDIAN] = 0;
    snprintf(b.name, sizeof b.name, "serial");
    CHECK(result_ratio(&ratio, &a, &b, &err) == 0, "ratio of two matrices with the same axes");
    CHECK(fabs(matrix_at(&ratio, 0, 0)->v[CELL_MEDIAN] - 2) < 1e-9, "is concurrent over serial");
    CHECK(isnan(matrix_at(&ratio, 0, 1)->v[CELL_MEDIAN]), "nothing is divided by zero");
    CHECK_STR(ratio.name, "concurrent/serial", "named after both");
    b.col.values[0] = 5;
    CHECK(result_ratio(&ratio, &a, &b, &err) < 0 && err.code == ERR_INVALID,
          "other axes are refused");
}

static void test_notes(void)
{
    struct matrix m CLEANUP(matrix_fini) = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    fill(&m, 3);
    result_notes_matrix(&m, &out);
    result_notes_ranks(places, 2, &out);
    CHECK_STR(buf_text(&out), "", "nothing to say, nothing said");
    for (int i = 0; i < 6; i++)
        m.cells[i].v[CELL_N] = 10;
    matrix_at(&m, 1, 2)->v[CELL_DISTURBED] = 4;
    matrix_at(&m, 0, 1)->v[CELL_CONVERGED] = 0;
    matrix_at(&m, 0, 0)->v[CELL_OVERLAP] = 0.5;
    result_notes_matrix(&m, &out);
    CHECK_STR(buf_text(&out),
              "concurrent: 4 of 64 samples were disturbed and left out, in 1 of 6 cells; most (4) "
              "on rank 7 at 4M\nconcurrent: 1 of 6 cells did not reach the requested precision in "
              "time (rank 0 at 2M)\nconcurrent: in 1 of 6 cells the ranks worked together for "
              "less than 95 % of the measuring time (rank 0 at 1M)\n",
              "disturbed, not tight, not together");
}

static void test_rank_notes(void)
{
    struct rank_info ranks[12] = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    for (int i = 0; i < 12; i++)
        ranks[i] = (struct rank_info){
            .rank = i, .cpu = i, .cpu_wanted = i, .pages_checked = 1, .mem_share = 0.5};
    ranks[3].cpu = 9;
    result_notes_ranks(ranks, 12, &out);
    CHECK_STR(buf_text(&out),
              "placement: rank 3 ran on another CPU than requested\nplacement: rank 0, 1, 2, 3, 4, "
              "5, 6, 7 and 4 more had memory on another node than requested\n",
              "placement that is not as asked for is named");
}

// Of empty messages alone no bandwidth is known.
static void test_empty_messages(void)
{
    static const struct shape shape = {"pingpong", "latency", "us", "pair", "message"};
    struct matrix m CLEANUP(matrix_fini) = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    CHECK_INT(shape_make(&m, &shape, 1, 2, NULL), 0, "a pair");
    m.row.values[0] = axis_pair(0, 1);
    m.col.values[1] = 1000;
    matrix_at(&m, 0, 0)->v[CELL_MEDIAN] = 0.5;
    matrix_at(&m, 0, 1)->v[CELL_MEDIAN] = 1;
    result_tables_write(&m, 1, NULL, 0, 0, &out);
    CHECK(strstr(buf_text(&out), "\nlatency of 0.50 us and maximum bandwidth of 1.00 GB/s\n"), "%s",
          buf_text(&out));
    buf_reset(&out);
    m.col.n = 1;
    result_tables_write(&m, 1, NULL, 0, 0, &out);
    CHECK(strstr(buf_text(&out), "\nlatency of 0.50 us\n"), "%s", buf_text(&out));
}

// What deviates and was not confirmed may be odd, or not.
static void test_unconfirmed(void)
{
    enum { SCAN_MATRICES = 7 };
    static const struct shape latency = {"latency", "latency", "ns", "rank", "working_set"},
                              core = {"core", "deviation", "%", "rank", "aspect"};
    struct matrix m[SCAN_MATRICES] = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    for (int i = 0; i < SCAN_MATRICES; i++) {
        CHECK_INT(shape_make(&m[i], i ? &core : &latency, 2, 1, NULL), 0, "a matrix");
        for (int row = 0; row < 2; row++) {
            matrix_at(&m[i], row, 0)->v[CELL_MEDIAN] = 100;
            matrix_at(&m[i], row, 0)->v[CELL_CONVERGED] = 1;
        }
    }
    result_tables_write(m, SCAN_MATRICES, NULL, 0, 0, &out);
    CHECK(strstr(buf_text(&out), "\nnothing is odd\n"), "%s", buf_text(&out));
    matrix_at(&m[1], 1, 0)->v[CELL_MEDIAN] = 120;
    matrix_at(&m[1], 1, 0)->v[CELL_N] = 4;
    matrix_at(&m[1], 1, 0)->v[CELL_CONVERGED] = 0;
    buf_reset(&out);
    result_tables_write(m, SCAN_MATRICES, NULL, 0, 0, &out);
    CHECK(!strstr(buf_text(&out), "nothing is odd") &&
              strstr(buf_text(&out),
                     "\n1 deviation was not confirmed: raise --budget, or --visits\n"),
          "%s", buf_text(&out));
    for (int i = 0; i < SCAN_MATRICES; i++)
        matrix_fini(&m[i]);
}

int main(void)
{
    test_golden();
    test_wide_values();
    test_lone_column_and_unknowns();
    test_ratio();
    test_notes();
    test_rank_notes();
    test_empty_messages();
    test_unconfirmed();
    return tap_done();
}
