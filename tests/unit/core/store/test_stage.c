// SPDX-License-Identifier: Apache-2.0
// The result of a large run that was measured here is stored in pieces. Until the last one the run
// is running and has no cells; a kill in the middle leaves nothing behind.
#include "core/store/stage.h"

#include <math.h>

#include "core/store/db.h"
#include "core/store/remove.h"
#include "core/store/store.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

enum { ROWS = 200, COLS = 40, CELLS = ROWS * COLS };

static char dir[64];
static struct matrix matrix;
static struct rank_info ranks[ROWS];

static int64_t number(struct store *s, const char *sql)
{
    struct err err;
    int64_t n = -1;
    sq_number(s->db, sql, &n, &err);
    return n;
}

static int64_t begin_run(struct store *s)
{
    struct err err = {0};
    struct spec spec;
    struct fingerprint f = {0};
    int64_t id = 0;
    bool again;
    facts_seal(&f.machine_class);
    facts_seal(&f.config);
    spec_init(&spec, BENCHMARK_LATENCY);
    CHECK(store_run_insert(s, &spec, "node1", NULL, &id, &again, &err) == 0 &&
              store_run_started(s, id, "{\"ranks\":[]}", "[]", &f, "<topology/>", &err) == 0,
          "a run has started: %s", err.text);
    return id;
}

static enum run_state state_of(struct store *s, int64_t id)
{
    struct err err;
    struct run r = {0};
    enum run_state state = store_run_get(s, id, &r, &err) == 0 ? r.state : RUN_QUEUED;
    run_fini(&r);
    return state;
}

static struct run_result result_of(void)
{
    return (struct run_result){.state = RUN_SUCCEEDED,
                               .method = "prp4-v1",
                               .matrices = &matrix,
                               .n_matrices = 1,
                               .ranks = ranks,
                               .n_ranks = ROWS,
                               .log = "hello\n"};
}

// The rest of it; the number of pieces, -1.
static int store_rest(struct store *s, struct store_stage *st, struct err *err)
{
    int n = 1, more;
    while ((more = store_stage_step(s, st, err)) > 0)
        n++;
    return more < 0 ? -1 : n;
}

static void check_whole(struct store *s, int64_t id)
{
    struct err err = {0};
    struct matrix *list = NULL;
    int n = 0;
    CHECK(state_of(s, id) == RUN_SUCCEEDED, "the run has succeeded");
    CHECK(store_matrices_get(s, id, &list, &n, &err) == 0 && n == 1 &&
              matrix_at(&list[0], ROWS - 1, COLS - 1)->v[CELL_MEDIAN] ==
                  matrix_at(&matrix, ROWS - 1, COLS - 1)->v[CELL_MEDIAN],
          "with its last cell: %s", err.text);
    store_matrices_free(list, n);
    CHECK(number(s, "SELECT count(*) FROM counter WHERE name LIKE 'leftover:%'") == 0,
          "nothing is left over");
}

static void test_in_pieces(struct store *s)
{
    struct err err = {0};
    struct store_stage st, other;
    int64_t id = begin_run(s);
    struct run_result r = result_of();
    CHECK(store_stage_begin_result(s, &st, id, &r, &err) == 0 &&
              store_stage_step(s, &st, &err) == 1,
          "the first piece: %s", err.text);
    CHECK(state_of(s, id) == RUN_RUNNING && number(s, "SELECT count(*) FROM matrix") == 0,
          "the run is still running and has no matrix");
    CHECK(number(s, "SELECT count(*) FROM cell") > 0, "some cells are stored");
    CHECK(store_stage_begin_result(s, &other, id, &r, &err) < 0 && err.code == ERR_UNAVAILABLE,
          "one at a time");
    CHECK(store_leftover_step(s, 100, &err) == 0 && number(s, "SELECT count(*) FROM cell") > 0,
          "what is being stored is not removed");
    CHECK(store_rest(s, &st, &err) > 2, "more pieces: %s", err.text);
    store_stage_end(s, &st);
    check_whole(s, id);
    CHECK(number(s, "SELECT count(*) FROM cell") == CELLS, "each cell once");
}

static void test_again(struct store *s)
{
    struct err err = {0};
    struct store_stage st;
    int64_t id = begin_run(s);
    struct run_result r = result_of();
    store_stage_begin_result(s, &st, id, &r, &err);
    store_stage_step(s, &st, &err);
    store_stage_end(s, &st);
    CHECK(store_stage_begin_result(s, &st, id, &r, &err) == 0 && store_rest(s, &st, &err) > 0,
          "a second try stores all of it: %s", err.text);
    store_stage_end(s, &st);
    check_whole(s, id);
}

static void test_killed(struct store **s)
{
    struct err err = {0};
    struct store_stage st;
    int64_t n = 0, id = begin_run(*s), before = number(*s, "SELECT count(*) FROM cell");
    struct run_result r = result_of();
    store_stage_begin_result(*s, &st, id, &r, &err);
    store_stage_step(*s, &st, &err);
    store_stage_end(*s, &st);
    store_close(*s);
    *s = store_open(dir, &err);
    CHECK(*s && store_run_interrupt_all(*s, "the daemon was killed", &n, &err) == 0 && n == 1 &&
              state_of(*s, id) == RUN_INTERRUPTED,
          "the run is interrupted: %s", err.text);
    while (store_leftover_step(*s, 4, &err) > 0)
        continue;
    CHECK(number(*s, "SELECT count(*) FROM cell") == before &&
              number(*s, "SELECT count(*) FROM counter WHERE name LIKE 'leftover:%'") == 0,
          "and what was stored of it has gone");
}

int main(void)
{
    struct err err = {0};
    dir_make(dir);
    struct store *s = store_open(dir, &err);
    CHECK(s && matrix_init(&matrix, "concurrent", "latency", "ns", ROWS, COLS, &err) == 0,
          "a store and a matrix: %s", err.text);
    for (int i = 0; i < ROWS; i++)
        ranks[i] = (struct rank_info){.rank = i, .mem_share = NAN, .huge_share = NAN};
    for (int i = 0; i < CELLS; i++)
        matrix.cells[i].v[CELL_MEDIAN] = 10 + i;
    test_in_pieces(s);
    test_again(s);
    test_killed(&s);
    store_close(s);
    matrix_fini(&matrix);
    dir_remove(dir);
    return tap_done();
}
