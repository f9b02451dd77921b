// SPDX-License-Identifier: Apache-2.0
#include "model/record.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

// Writes, parses, writes again: both lines must be the same.
static int round_trip(const struct record *r, struct record *back)
{
    struct err err = {0};
    CLEANUP_BUF struct buf once = BUF_INIT, twice = BUF_INIT;
    record_write(r, &once);
    if (record_parse(back, buf_text(&once), once.len - 1, &err) < 0) {
        printf("# %s: %s\n", buf_text(&once), err.text);
        return 0;
    }
    record_write(back, &twice);
    return strcmp(buf_text(&once), buf_text(&twice)) == 0;
}

static void kinds(void)
{
    struct record back,
        r = {.kind = RECORD_HELLO, .hello = {1, "abc", "latency", "prp4-v1", "mpi", 2, 64}};
    CHECK(round_trip(&r, &back) && back.hello.ranks == 2, "hello");
    r = (struct record){.kind = RECORD_RANK,
                        .rank = {.rank = 1,
                                 .cpu_wanted = 3,
                                 .cpu = 3,
                                 .mem_wanted = -1,
                                 .mem_share = 1,
                                 .n_nodes = 2,
                                 .nodes = {{0, 10}, {3, 7}},
                                 .address = 0x7f0000001000,
                                 .pages_got = "thp"}};
    CHECK(round_trip(&r, &back) && back.rank.nodes[1].pages == 7 &&
              back.rank.address == r.rank.address,
          "rank");
    r = (struct record){.kind = RECORD_PROGRESS, .progress = {"measure", 3, 10, -1}};
    CHECK(round_trip(&r, &back) && back.progress.eta_ms == -1, "progress");
    r = (struct record){.kind = RECORD_CONDITION,
                        .condition = {CONDITION_STEAL, SEVERITY_ERROR, 7, "4K pages \"got\""}};
    CHECK(round_trip(&r, &back) && !strcmp(back.condition.text, r.condition.text) &&
              back.condition.kind == CONDITION_STEAL && back.condition.rank == 7 &&
              back.condition.severity == SEVERITY_ERROR,
          "condition");
    r = (struct record){.kind = RECORD_PAIRS, .pairs = {64}};
    CHECK(round_trip(&r, &back) && back.pairs.most == 64, "fewer pairs");
    r = (struct record){.kind = RECORD_END,
                        .end = {.ok = true, .cells = 30, .phase_ms = {1, 2, 3, 4, 5}}};
    CHECK(round_trip(&r, &back) && back.end.phase_ms[PHASE_MEASURE] == 4, "end");
    r = (struct record){.kind = RECORD_END,
                        .end = {.code = ERR_NO_MEMORY_NODE, .member = "size", .text = "no"}};
    CHECK(round_trip(&r, &back) && back.end.code == ERR_NO_MEMORY_NODE && !back.end.ok,
          "end of a failure");
    r = (struct record){.kind = RECORD_CELL, .cell = {.matrix = "serial", .row = 1, .col = 2}};
    cell_clear(&r.cell.cell);
    r.cell.cell.v[CELL_MEDIAN] = 98.123;
    CHECK(round_trip(&r, &back) && back.cell.cell.v[CELL_MEDIAN] == 98.123 &&
              isnan(back.cell.cell.v[CELL_SD]),
          "cell");
    r = (struct record){.kind = RECORD_MATRIX};
    matrix_init(&r.matrix, "serial", "latency", "ns", 2, 3, NULL);
    CHECK(round_trip(&r, &back) && back.matrix.col.n == 3, "matrix");
    record_fini(&r);
    record_fini(&back);
}

static void refuses(void)
{
    static const char *const bad[] = {
        "",
        "not json",
        "{}",
        "{\"rec\":\"nonsense\"}",
        "{\"rec\":7}",
        "{\"rec\":\"hello\"}",
        "{\"rec\":\"hello\",\"version\":1,\"nonce\":\"x\",\"benchmark\":\"latency\",\"method\":"
        "\"m\",\"launcher\":\"mpi\",\"ranks\":0,\"line_bytes\":64}",
        "{\"rec\":\"hello\",\"version\":1,\"nonce\":\"0123456789012345678901234567890123456789\","
        "\"benchmark\":\"l\",\"method\":\"m\",\"launcher\":\"mpi\",\"ranks\":1,\"line_bytes\":64}",
        "{\"rec\":\"cell\",\"matrix\":\"a\",\"row\":-1,\"col\":0,\"median\":1}",
        "{\"rec\":\"cell\",\"matrix\":\"a\",\"row\":0,\"col\":0.5,\"median\":1}",
        "{\"rec\":\"cell\",\"matrix\":\"a\",\"row\":0,\"col\":0}",
        "{\"rec\":\"cell\",\"matrix\":\"a\",\"row\":0,\"col\":0,\"median\":null}",
        "{\"rec\":\"cell\",\"matrix\":\"a\",\"row\":0,\"col\":0,\"median\":1e13}",
        "{\"rec\":\"matrix\",\"name\":\"a\",\"rows\":{\"values\":[]},\"cols\":{\"values\":[1]}}",
        "{\"rec\":\"rank\",\"rank\":0}",
        "{\"rec\":\"condition\",\"kind\":\"load\",\"severity\":\"info\",\"rank\":null}",
        "{\"rec\":\"condition\",\"kind\":7,\"severity\":\"info\",\"text\":\"a\"}",
        "{\"rec\":\"condition\",\"kind\":\"load\",\"severity\":\"loud\",\"text\":\"a\"}",
        "{\"rec\":\"condition\",\"kind\":\"load\",\"severity\":\"info\",\"rank\":-1,"
        "\"text\":\"a\"}",
        "{\"rec\":\"end\"}",
        "{\"rec\":\"end\",\"ok\":1}",
        "{\"rec\":\"progress\",\"phase\":\"a phase with a very long "
        "name\",\"done\":0,\"total\":1,\"eta_ms\":0}",
    };
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        struct record r;
        struct err err = {0};
        CHECK(record_parse(&r, bad[k], strlen(bad[k]), &err) < 0 && *err.text, "refused: %.60s",
              bad[k]);
    }
    size_t long_line = RECORD_LINE_MAX + 1;
    CLEANUP_MEM char *line = malloc(long_line);
    memset(line, ' ', long_line);
    struct record r;
    CHECK(record_parse(&r, line, long_line, NULL) < 0, "a line above the limit");
}

int main(void)
{
    kinds();
    refuses();
    return tap_done();
}
