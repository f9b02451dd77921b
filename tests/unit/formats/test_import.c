// SPDX-License-Identifier: Apache-2.0
#include "formats/import.h"
#include "model/shape.h"

#include <stdlib.h>

#include "tests/unit/tap.h"

static int parse(struct import *i, const char *text, const char *mapping, struct err *err)
{
    return import_parse(i, text, strlen(text), mapping, mapping == NULL ? 0 : strlen(mapping), NULL,
                        err);
}

static const char table[] = "[host] some log line\n"
                            " =====\n"
                            "|  MPI  | CPU | MEMORY | LATENCY (ns) |\n"
                            "|-------|-----|------|-----|------|------|\n"
                            "| Ranks | Cores | NUMA | Address | NUMA | 1MB | 1024M |\n"
                            "|-------|-----|------|-----|------|------|\n"
                            "|  000  | 1  | 0 | 0x527e70 | 1 | 11.53 | 130.76 |\n"
                            "|  001  | 9  | 0 | 0x526920 | 1 | 11.43 | 156.56 |\n"
                            " =====\nall done\n";

static void test_table(void)
{
    struct import i = {0};
    CHECK(parse(&i, table, NULL, NULL) == 0 && i.format == IMPORT_TABLE, "a table with log lines");
    CHECK(i.matrices[0].row.n == 2 && i.matrices[0].col.values[1] == 1 << 30, "its axes");
    CHECK(matrix_at(&i.matrices[0], 1, 1)->v[CELL_MEDIAN] == 156.56, "its values");
    CHECK(i.n_ranks == 2 && i.ranks[1].cpu == 9 && i.ranks[1].mem_node == 1, "its placement");
    import_fini(&i);
}

static void test_csv(void)
{
    struct import i = {0};
    const char *csv = "size (MB),0,1\r\n1,11.5,12.5\r\n2,13,14\r\n";
    CHECK(parse(&i, csv, NULL, NULL) == 0 && i.format == IMPORT_CSV && !i.placed, "wide CSV");
    CHECK(matrix_at(&i.matrices[0], 1, 0)->v[CELL_MEDIAN] == 12.5, "its values");
    import_fini(&i);
    CHECK(parse(&i, csv, "rank,cpu_id,cpu_numa,memory_numa\n1,9,0,0\n0,1,0,0\n", NULL) == 0 &&
              i.ranks[1].cpu == 9,
          "with a mapping");
    import_fini(&i);
}

static void test_json(void)
{
    struct import i = {0}, back = {0};
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    parse(&i, table, NULL, NULL);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "method", "prp4-v1");
    jsonw_array(&w, "matrices");
    matrix_write_json(&i.matrices[0], &w, NULL, true);
    jsonw_end(&w);
    jsonw_end(&w);
    CHECK(parse(&back, buf_text(&out), NULL, NULL) == 0 && back.n_matrices == 1, "our own JSON");
    CHECK(matrix_at(&back.matrices[0], 1, 1)->v[CELL_MEDIAN] == 156.56, "its values");
    CHECK_STR(back.hints.method, "prp4-v1", "its method");
    import_fini(&i);
    import_fini(&back);
    buf_free(&out);
}

static void test_errors(void)
{
    static const struct {
        const char *text, *mapping, *says;
    } cases[] = {
        {"hello\nworld\n", NULL,
         "line 2: the text ends without a table of numa_bench (\"| Ranks | …\"), and it is neither "
         "CSV (\"size (MB),0,1,…\") nor JSON"},
        {"size (MB),0,1\n1,2\n", NULL, "line 2: has 2 fields; the heading has 3"},
        {"size (MB),0,0\n1,2,3\n", NULL, "line 1: rank 0 is there twice"},
        {"size (MB),0\n2,1\n1,1\n", NULL,
         "line 3: size \"1\" must be larger than the one before it"},
        {"size (MB),0\n1,nan\n", NULL,
         "line 2: the value of rank 0 is \"nan\"; it must be a latency in ns above 0, at most 1e9"},
        {"size (MB),0\n1,1e-300\n", NULL,
         "line 2: the value of rank 0 is \"1e-300\", which would be stored as 0; the least is "
         "0.001"},
        {"size (MB),0\n1,0x1p3\n", NULL,
         "line 2: the value of rank 0 is \"0x1p3\"; it must be a latency in ns above 0, at most "
         "1e9"},
        {"size (MB),0\n1,1e999\n", NULL,
         "line 2: the value of rank 0 is \"1e999\"; it must be a latency in ns above 0, at most "
         "1e9"},
        {"size (MB),0\n1,1e300\n", NULL,
         "line 2: the value of rank 0 is \"1e300\"; it must be a latency in ns above 0, at most "
         "1e9"},
        {"size (MB),0\n1,-inf\n", NULL,
         "line 2: the value of rank 0 is \"-inf\"; it must be a latency in ns above 0, at most "
         "1e9"},
        {"size (MB),0\n1,11,5\n", NULL, "line 2: has 3 fields; the heading has 2"},
        {"size (MB),0\n0.3,11\n", NULL, "line 2: \"0.3\" is not a size"},
        {"size (MB),0\n0x10,11\n", NULL, "line 2: \"0x10\" is not a size"},
        {"size (MB),0\n1e300,11\n", NULL, "line 2: \"1e300\" is not a size"},
        {"size,0\n1,11\n", NULL,
         "line 1: the heading begins with \"size\"; it must be size (MB), or (B), (KB), (GB), "
         "(TB), "
         "which are powers of 1024"},
        {"sizes (MB),0\n1,11\n", NULL,
         "line 1: the heading begins with \"sizes (MB)\"; it must be size (MB), or (B), (KB), "
         "(GB), "
         "(TB), which are powers of 1024"},
        {"size (Mbit),0\n1,11\n", NULL,
         "line 1: the heading begins with \"size (Mbit)\"; it must be size (MB), or (B), (KB), "
         "(GB), "
         "(TB), which are powers of 1024"},
        {"size (pages),0\n1,11\n", NULL,
         "line 1: the heading begins with \"size (pages)\"; it must be size (MB), or (B), (KB), "
         "(GB), (TB), which are powers of 1024"},
        {"| Ranks | C | N | A | N | 1MB |\n| 0 | 1 | 0 | here | 0 | 1.0 |\n", NULL,
         "line 2: the address is \"here\"; it must be a number like 0x7f00"},
        {"size (MB),0\n1,5\n", "rank,cpu_id,cpu_numa,memory_numa\n3,0,0,0\n",
         "mapping: line 2: rank 3 of the mapping is not in the data"},
        {"| Ranks | C | N | A | N | 1MB |\n| 0 | 1 | 0 | 0x1 | 0 | 1.0 | 2.0 |\n", NULL,
         "line 2: has 7 columns; the heading has 6"},
        {"{\"matrices\":[{\"name\":\"concurrent\",\"quantity\":\"latency\",\"unit\":\"ns\","
         "\"rows\":{\"name\":\"rank\",\"unit\":\"\",\"values\":[0]},"
         "\"cols\":{\"name\":\"working_set\",\"unit\":\"bytes\",\"values\":[1024]},"
         "\"cells\":[[{\"median\":5}]]}],\"ranks\":\"all\"}",
         NULL, "must be an array of at most 1024 ranks"},
        {"| 0 | 1 | 0 | 0x1 | 0 | 1.0 |\n", NULL,
         "line 1: a row comes before the heading \"| Ranks | Cores | …\""},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct import i = {0};
        struct err err = {0};
        CHECK(parse(&i, cases[k].text, cases[k].mapping, &err) < 0 && i.n_matrices == 0, "refused");
        CHECK_STR(err.text, cases[k].says, "says what and where: %s", err.text);
    }
}

static void test_units(void)
{
    static const struct {
        const char *unit, *size;
        int64_t bytes;
    } cases[] = {
        {"(B)", "4096", 4096},           {"(KB)", "64", 65536},      {"(KiB)", "64", 65536},
        {"(kb)", "64", 65536},           {"(K)", "1", 1024},         {"(MB)", "2", 2 << 20},
        {"(MiB)", "2", 2 << 20},         {"(GB)", "1", 1 << 30},     {"(GiB)", "0.5", 1 << 29},
        {"(TB)", "1", (int64_t)1 << 40}, {"(MB)", "0.03125", 32768}, {"(KB)", "2M", 2 << 20},
        {"(MB)", "0.0009765625", 1024}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct import i = {0};
        struct err err = {0};
        char text[80];
        snprintf(text, sizeof text, "size %s,0\n%s,7.5\n", cases[k].unit, cases[k].size);
        CHECK(parse(&i, text, NULL, &err) == 0 && i.matrices[0].col.values[0] == cases[k].bytes,
              "size %s of %s: %s", cases[k].unit, cases[k].size, err.text);
        import_fini(&i);
    }
}

static void test_mark(void)
{
    struct import i = {0};
    struct err err = {0};
    CHECK(parse(&i, "\xef\xbb\xbfsize (MB),0\n1,5\n",
                "\xef\xbb\xbfrank,cpu_id,cpu_numa,memory_numa\n0,3,0,1\n", &err) == 0 &&
              i.ranks[0].cpu == 3,
          "a byte order mark before the data and the mapping: %s", err.text);
    import_fini(&i);
    CHECK(parse(&i, "size (MB),0\n1,5\n", "0,3,0,1\n7,0,0,0\n", &err) < 0, "a rank too many");
    CHECK_STR(err.member, "mapping", "is of the mapping");
}

// Every prefix of a good table is refused or gives a whole matrix.
static void test_prefixes(void)
{
    int broken = 0;
    for (size_t n = 0; n < sizeof table; n++) {
        struct import i = {0};
        if (import_parse(&i, table, n, NULL, 0, NULL, NULL) == 0)
            broken += !shape_complete(&i.matrices[0]);
        else
            broken += i.n_matrices != 0 || i.ranks != NULL;
        import_fini(&i);
    }
    CHECK(broken == 0, "cut anywhere, nothing is half done");
}

int main(void)
{
    test_table();
    test_csv();
    test_json();
    test_errors();
    test_units();
    test_mark();
    test_prefixes();
    return tap_done();
}
