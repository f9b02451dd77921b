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
    matrix_write_csv_head(&m, &b);
    CHECK(!strncmp(buf_text(&b), "matrix,rank,working_set_bytes,n,disturbed,median_ns,lo_ns", 57),
          "the head names units");
    size_t head = b.len;
    matrix_write_csv(&m, &b);
    CHECK(!strncmp(buf_text(&b) + head, "concurrent,0,1048576,0,1,100.002,", 33),
          "a cell is a line");
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

int main(void)
{
    limits();
    json_round_trip();
    refuses();
    tables();
    return tap_done();
}
