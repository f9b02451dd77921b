// SPDX-License-Identifier: Apache-2.0
#include "model/matrix.h"
#include "model/shape.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static struct matrix example(void)
{
    struct matrix m;
    matrix_init(&m, "concurrent", "latency", "ns", 2, 3, NULL);
    strcpy(m.row.name, "rank");
    strcpy(m.col.name, "working_set");
    strcpy(m.col.unit, "bytes");
    for (int r = 0; r < 2; r++)
        m.row.values[r] = r;
    for (int c = 0; c < 3; c++)
        m.col.values[c] = (int64_t)1 << (20 + c);
    for (int i = 0; i < 6; i++)
        for (int f = 0; f < CELL_FIELDS; f++)
            m.cells[i].v[f] = cell_fields[f].kind == CELL_IS_COUNT   ? i + f
                              : cell_fields[f].kind == CELL_IS_SHARE ? 0.125 * i
                                                                     : 100 + i + f / 1000.0;
    return m;
}

static void limits(void)
{
    struct matrix m;
    struct err err = {0};
    CHECK(matrix_init(&m, "x", "q", "u", 0, 3, &err) < 0 &&
              matrix_init(&m, "x", "q", "u", 3, -1, &err) < 0,
          "no rows or columns is refused");
    CHECK(matrix_init(&m, "x", "q", "u", 1 << 20, 1 << 20, &err) < 0, "too many cells are refused");
    CHECK(matrix_init(&m, "x", "q", "u", 2, 2, &err) == 0 && !shape_complete(&m),
          "a new matrix is not complete");
    for (int i = 0; i < 4; i++)
        m.cells[i].v[CELL_MEDIAN] = 1;
    CHECK(shape_complete(&m), "with every median it is");
    matrix_fini(&m);
    CHECK(!shape_complete(&m), "nothing is not complete");
}

static void json_round_trip(void)
{
    struct matrix m CLEANUP(matrix_fini) = example(), back CLEANUP(matrix_fini) = {0};
    struct err err = {0};
    matrix_at(&m, 1, 2)->v[CELL_OVERLAP] = NAN;
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct jsonw w = jsonw_to(&b);
    matrix_write_json(&m, &w, NULL, true);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&b), b.len, &err);
    CHECK(matrix_from_json(&back, j, &err) == 0, "read back: %s", err.text);
    CHECK(!strcmp(back.name, m.name) && !strcmp(back.col.unit, "bytes") &&
              back.col.values[2] == 4 << 20,
          "heads and axes");
    int same = 1;
    for (int i = 0; i < 6; i++)
        for (int f = 0; f < CELL_FIELDS; f++)
            same &= (isnan(m.cells[i].v[f]) && isnan(back.cells[i].v[f])) ||
                    fabs(m.cells[i].v[f] - back.cells[i].v[f]) < 1e-9;
    CHECK(same, "every field of every cell, unknown ones too");
}

static void refuses(void)
{
    static const char *const bad[] = {
        "{}",
        "{\"rows\":{\"values\":[0]},\"cols\":{\"values\":[1]},\"cells\":[]}",
        "{\"rows\":{\"values\":[0]},\"cols\":{\"values\":[1]},\"cells\":[[]]}",
        "{\"rows\":{\"values\":[0.5]},\"cols\":{\"values\":[1]},\"cells\":[[{\"median\":1}]]}",
        "{\"rows\":{\"values\":[0]},\"cols\":{\"values\":[1]},\"cells\":[[{\"n\":3}]]}x",
        "{\"rows\":{\"values\":[0]},\"cols\":{\"values\":[1]},\"cells\":[[{\"median\":-1}]]}",
        "{\"rows\":{\"values\":[0]},\"cols\":{\"values\":[1]},\"cells\":[[{\"median\":1e-300}]]}",
        "{\"rows\":{\"values\":[0]},\"cols\":{\"values\":[1]},\"cells\":[[{\"median\":\"1\"}]]}",
        "{\"rows\":{\"values\":[0]},\"cols\":{\"values\":[1]},\"cells\":[[{\"overlap\":2}]]}",
    };
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        struct matrix m = {0};
        struct err err = {0};
        CLEANUP_JSON struct json *j = json_parse(bad[k], strlen(bad[k]), &err);
        CHECK(!j || (matrix_from_json(&m, j, &err) < 0 && !m.cells && *err.text), "refused: %s",
              bad[k]);
    }
}

static void tables(void)
{
    struct matrix m CLEANUP(matrix_fini) = example();
    CLEANUP_BUF struct buf b = BUF_INIT;
    matrices_write_csv(&m, 1, &b);
    CHECK(!strncmp(buf_text(&b), "matrix,rank,working_set_bytes,n,disturbed,median_ns,lo_ns", 57),
          "the head names units");
    CHECK(strstr(buf_text(&b), "\nconcurrent,0,1048576,0,1,100.002,"), "a cell is a line");
    int lines = 0;
    for (const char *p = buf_text(&b); *p; p++)
        lines += *p == '\n';
    CHECK(lines == 7, "six cells and a head");
    buf_reset(&b);
    matrix_write_ndjson(&m, &b);
    struct err err = {0};
    CLEANUP_JSON struct json *j = json_parse(buf_text(&b), strcspn(buf_text(&b), "\n"), &err);
    CHECK(json_get_i64(j, "working_set", 0) == 1 << 20 &&
              json_get_number(j, "median", 0) == 100.002,
          "each line is JSON");
}

// The head is right for the lines of all matrices: no MB/s stands below "median_ns".
static void several_matrices(void)
{
    struct matrix list[2] = {example(), example()};
    CLEANUP_BUF struct buf b = BUF_INIT;
    strcpy(list[1].name, "serial");
    matrices_write_csv(list, 2, &b);
    CHECK(strstr(buf_text(&b), "working_set_bytes,n,disturbed,median_ns,") &&
              !strstr(buf_text(&b), ",unit"),
          "one unit and one pair of axes are named in the head");

    buf_reset(&b);
    strcpy(list[1].unit, "MB/s");
    matrices_write_csv(list, 2, &b);
    CHECK(strstr(buf_text(&b), "matrix,rank,working_set_bytes,n,disturbed,median,lo,hi,") &&
              strstr(buf_text(&b), ",confirmed,unit\n"),
          "units that differ are no part of the head: %s", buf_text(&b));
    char *serial = strstr(buf_text(&b), "\nserial,0,1048576,");
    CHECK(serial && !strncmp(strchr(serial + 1, '\n') - 5, ",MB/s", 5) &&
              strstr(buf_text(&b), ",ns\nserial,"),
          "each line ends with its unit");

    buf_reset(&b);
    strcpy(list[1].col.name, "pages");
    *list[1].col.unit = '\0';
    matrices_write_csv(list, 2, &b);
    CHECK(!strncmp(buf_text(&b), "matrix,rank,column,n,", 21),
          "an axis that they do not share has no name of one of them");

    buf_reset(&b);
    strcpy(list[0].col.name, "rank");
    *list[0].col.unit = '\0';
    matrices_write_csv(list, 1, &b);
    CHECK(!strncmp(buf_text(&b), "matrix,row,column,n,", 20), "no two columns have one name");
    buf_reset(&b);
    matrix_write_ndjson(list, &b);
    struct err err = {0};
    CLEANUP_JSON struct json *j = json_parse(buf_text(&b), strcspn(buf_text(&b), "\n"), &err);
    CHECK(j && json_get_i64(j, "row", -1) == 0 && json_get_i64(j, "column", -1) == 1 << 20,
          "no two members have one name: %s", err.text);

    buf_reset(&b);
    matrices_write_csv(list, 0, &b);
    CHECK(!strncmp(buf_text(&b), "matrix,row,column,n,disturbed,median,lo,hi,", 43) &&
              strstr(buf_text(&b), ",confirmed,unit\n") == strchr(buf_text(&b), '\n') - 15,
          "a run without matrices has a head: %s", buf_text(&b));
    for (int i = 0; i < 2; i++)
        matrix_fini(&list[i]);
}

int main(void)
{
    limits();
    json_round_trip();
    refuses();
    tables();
    several_matrices();
    return tap_done();
}
