// SPDX-License-Identifier: Apache-2.0
// Runs from request to result, with a fake bench: good and bad ones, and what a restart finds.
#include "tests/unit/core/run/bed.h"

static void test_good(struct bed *b)
{
    struct err err;
    struct run r = {0};
    struct matrix *m;
    struct rank_info *ranks;
    char *log;
    int n, n_ranks;
    facts_readings = 0;
    run_once(b, "good", &r);
    CHECK_INT(facts_readings, 2, "the facts are read for the request and for the start");
    CHECK(r.state == RUN_SUCCEEDED, "good: %s %s", run_state_names[r.state], r.error_text);
    CHECK(r.n_ranks == 2 && r.n_cells == 6 && r.phase_ms[PHASE_MEASURE] == 4, "its numbers");
    CHECK_STR(r.method, "prp4-v2", "its method");
    CHECK(strstr(r.conditions_json, "the load is 3"), "findings are conditions");
    CHECK(strstr(r.plan_json, "\"ranks\""), "the plan is kept");
    CHECK(b->in_order && b->states == 3 && b->progresses > 0, "queued, running, progress, over");
    CHECK(store_matrices_get(b->store, r.id, &m, &n, &err) == 0 && n == 1 &&
              matrix_at(&m[0], 1, 2)->v[CELL_MEDIAN] == 31 && m[0].col.values[2] == 4 << 20,
          "the matrix as it was sent");
    CHECK(store_ranks_get(b->store, r.id, &ranks, &n_ranks, &err) == 0 && n_ranks == 2, "ranks");
    CHECK(runner_log_get(b->runner, r.id, &log, &err) == 0 && strstr(log, "rank 1 of 2"), "log");
    store_matrices_free(m, n);
    free(ranks);
    free(log);
    run_fini(&r);
    check_nothing_left("good");
}

static const struct {
    const char *behaviour;
    enum err_code code;
    const char *text; // part of the reason
} bad[] = {
    {"text", ERR_INTERNAL, "should not"},
    {"no-hello", ERR_INTERNAL, "first record is not hello"},
    {"second-hello", ERR_INTERNAL, "second hello"},
    {"bad-nonce", ERR_INTERNAL, "nonce"},
    {"wrong-version", ERR_INTERNAL, "different versions; after an update restart numaprobed"},
    {"wrong-benchmark", ERR_INTERNAL, "bandwidth"},
    {"wrong-ranks", ERR_INTERNAL, "3 ranks"},
    {"unasked-matrix", ERR_INTERNAL, "not requested"},
    {"matrix-twice", ERR_INTERNAL, "second matrix"},
    {"wrong-shape", ERR_INTERNAL, "2 x 4"},
    {"wrong-unit", ERR_INTERNAL, "not latency in ns"},
    {"cell-twice", ERR_INTERNAL, "twice"},
    {"out-of-range", ERR_INTERNAL, "outside"},
    {"negative", ERR_INTERNAL, "index"},
    {"nan", ERR_INTERNAL, "NaN or Infinity"},
    {"huge", ERR_INTERNAL, "must be a number from 0 to 1e+12"},
    {"missing-cell", ERR_INTERNAL, "without a value"},
    {"wrong-count", ERR_INTERNAL, "counted 7 cells, 6 arrived"},
    {"fewer-pairs 5", ERR_INTERNAL, "where none may be left out"},
    {"rank-twice", ERR_INTERNAL, "rank 0 twice"},
    {"wrong-rank", ERR_INTERNAL, "rank 2 of 2"},
    {"missing-rank", ERR_INTERNAL, "1 of 2 ranks"},
    {"no-end", ERR_INTERNAL, "before its end"},
    {"after-end", ERR_INTERNAL, "after the end"},
    {"bad-end", ERR_NO_MEMORY_NODE, "not that much memory"},
    {"early-end", ERR_NO_MEMORY_NODE, "not that much memory"},
    {"other-options", ERR_INTERNAL,
     "--pairs-most (see --help): numa_bench and numaprobed are of diff"},
    {"exit", ERR_SYSTEM, "status 7"},
    {"signal 9", ERR_SYSTEM, "status"},
    {"garbage", ERR_INTERNAL, "should not"},
    {"endless-line", ERR_INTERNAL, "65536 bytes"},
};

static void test_bad(struct bed *b)
{
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct err err;
        struct run r = {0};
        struct matrix *m = NULL;
        int n = 0;
        run_once(b, bad[i].behaviour, &r);
        CHECK(r.state == RUN_FAILED && r.error == bad[i].code && strstr(r.error_text, bad[i].text),
              "%s: %s, %s", bad[i].behaviour, run_state_names[r.state], r.error_text);
        CHECK(store_matrices_get(b->store, r.id, &m, &n, &err) == 0 && n == 0 && r.n_cells == 0,
              "%s: nothing is stored as a result", bad[i].behaviour);
        store_matrices_free(m, n);
        run_fini(&r);
        check_nothing_left(bad[i].behaviour);
    }
}

static void test_placement(struct bed *b)
{
    struct run r = {0};
    run_once(b, "placement", &r);
    CHECK(r.state == RUN_SUCCEEDED && strstr(r.conditions_json, "ran on CPU 1 instead of 0") &&
              strstr(r.conditions_json, "on node 1 instead of 0"),
          "wrong placement is said loudly: %s", r.conditions_json);
    run_fini(&r);
    run_once(b, "half", &r);
    CHECK(strstr(r.conditions_json, "only 50.0 % of its memory on node 0"), "a share too");
    run_fini(&r);
}

static void test_noise(struct bed *b)
{
    struct err err;
    struct run r = {0};
    char *log = NULL;
    run_once(b, "noise", &r);
    CHECK(r.state == RUN_SUCCEEDED && runner_log_get(b->runner, r.id, &log, &err) == 0, "noise");
    CHECK(log && strstr(log, "ab\x1b[31mred\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9 end"),
          "log is text: %s", log);
    free(log);
    run_fini(&r);
}

static void test_requests(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    struct plan p = {0};
    CLEANUP_BUF struct buf line = BUF_INIT;
    struct admission now;
    int64_t id, first;
    bool again;
    quick_spec(&s);
    CHECK(runner_dry_run(b->runner, &s, NULL, &p, &line, &now, &err) == 0 && p.n_ranks == 2 &&
              strstr(buf_text(&line), "--bind=0:0,") && strstr(buf_text(&line), "--size=1-4"),
          "dry run: %s", buf_text(&line));
    plan_fini(&p);
    no_room = true;
    CHECK(runner_submit(b->runner, &s, NULL, NULL, &id, &again, &err) < 0 &&
              err.code == ERR_NO_MEMORY_NODE,
          "no room, no run");
    no_room = false;
    snprintf(s.cpus, sizeof s.cpus, "99");
    CHECK(runner_submit(b->runner, &s, NULL, NULL, &id, &again, &err) < 0 &&
              err.code == ERR_INVALID,
          "a plan that cannot be");
    behave("hang");
    first = submit(b);
    b->stop_at_progress = true;
    wait_final(b); // stops at the first progress
    b->stop_at_progress = false;
    struct run r = {0};
    CHECK(runner_run_get(b->runner, first, &r, &err) == 0 && r.state == RUN_RUNNING &&
              strcmp(r.progress.phase, "measure") == 0,
          "live progress");
    run_fini(&r);
    quick_spec(&s);
    CHECK(runner_submit(b->runner, &s, "k", NULL, &id, &again, &err) == 0 && !again, "one waits");
    int64_t same;
    CHECK(runner_submit(b->runner, &s, "k", NULL, &same, &again, &err) == 0 && again && same == id,
          "the same key, the same run");
    CHECK(runner_cancel(b->runner, id, &err) == 0 && runner_run_get(b->runner, id, &r, &err) == 0 &&
              r.state == RUN_CANCELED,
          "what waits is canceled at once");
    run_fini(&r);
    int n = 0;
    while (n <= RUNNER_QUEUE_MAX &&
           runner_submit(b->runner, &s, NULL, NULL, &id, &again, &err) == 0)
        n++;
    CHECK(n == RUNNER_QUEUE_MAX && err.code == ERR_QUEUE_FULL, "the queue has an end");
}

static void move_bench(const char *from, const char *to)
{
    char was[96], is[96];
    snprintf(was, sizeof was, "%s/%s", dir, from);
    snprintf(is, sizeof is, "%s/%s", dir, to);
    CHECK_INT(rename(was, is), 0, "%s becomes %s", from, to);
}

// The bench comes back while the queue waits for a look at the programs. A dry run waits for the
// same look, and takes what it has found.
static void dry_run_while_looking(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    struct plan p = {0};
    struct admission a;
    CLEANUP_BUF struct buf command = BUF_INIT;
    struct loop_timer *round = loop_timer_new(b->loop, give_up, b, &err);
    loop_timer_set(round, 0);
    loop_run(b->loop, &err);
    loop_timer_free(round);
    move_bench("hidden", "fake_bench");
    quick_spec(&s);
    runner_dry_run(b->runner, &s, NULL, &p, &command, &a, &err);
    plan_fini(&p);
}

// bed_close in the middle of the run that hangs, with the queue full: what a stopped daemon leaves.
static void test_restart(struct bed *b)
{
    struct err err;
    struct run r = {0};
    int64_t running = b->wait_for, n = 0, id = 0;
    bed_close(b);
    CHECK_INT(entries(run_dir), 0, "stopping in the middle leaves no directory");
    behave("good");
    move_bench("fake_bench", "hidden");
    if (!bed_open(b))
        return;
    runner_watch_add(b->runner, 0, on_event, b, &err);
    CHECK(runner_run_get(b->runner, running, &r, &err) == 0 && r.state == RUN_INTERRUPTED,
          "the run that went on is interrupted: %s", r.error_text);
    run_fini(&r);
    CHECK(store_queue_length(b->store, &n, &err) == 0 && n == RUNNER_QUEUE_MAX,
          "the queue is there");
    store_run_next_queued(b->store, 0, &id, &err);
    b->wait_for = id + RUNNER_QUEUE_MAX - 1;
    dry_run_while_looking(b);
    for (int i = 0; i < 5 && !b->got_final; i++) // one limit is for one run, these are 32
        wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_SUCCEEDED,
          "and is worked off to the last");
    run_fini(&r);
}

static void test_orphan(struct bed *b)
{
    struct run r = {0};
    run_once(b, "orphan", &r);
    CHECK(r.state == RUN_SUCCEEDED, "orphan: %s", r.error_text);
    run_fini(&r);
    check_nothing_left("orphan");
}

// The disk is full when the result is there: it waits, and is stored when there is room.
static void test_disk_full(struct bed *b)
{
    struct err err = {0};
    struct run r = {0};
    behave("slow 0.02");
    int64_t id = submit(b);
    b->stop_at_progress = true;
    wait_final(b);
    b->stop_at_progress = false;
    sq_exec(b->store->db, "PRAGMA query_only=1", &err); // refuses to write, as a full disk does
    // A round more when all are gone: the runner must have seen it.
    for (bool left = true; left;) {
        left = proc_kill_below(0) > 0;
        struct loop_timer *t = loop_timer_new(b->loop, give_up, b, &err);
        loop_timer_set(t, 20);
        loop_run(b->loop, &err);
        loop_timer_free(t);
    }
    CHECK(runner_run_get(b->runner, id, &r, &err) == 0 && r.state == RUN_RUNNING && !b->got_final,
          "it stays running until it is stored");
    run_fini(&r);
    CHECK(runner_cancel(b->runner, id, &err) < 0 && err.code == ERR_CONFLICT &&
              strstr(err.text, "has ended, and its result is being stored"),
          "nothing is left to cancel: %s", err.text);
    sq_exec(b->store->db, "PRAGMA query_only=0", &err);
    CHECK(runner_run_get(b->runner, id, &r, &err) == 0 && r.state == RUN_SUCCEEDED && b->got_final,
          "and the next request stores it: %s", run_state_names[r.state]);
    run_fini(&r);
}

// The disk is full before it starts: it waits, says why, and starts when there is room.
static void test_disk_full_before(struct bed *b)
{
    struct err err = {0};
    struct run r = {0};
    behave("good");
    int64_t id = submit(b);
    sq_exec(b->store->db, "PRAGMA query_only=1", &err);
    for (bool waits = false; !waits;) {
        struct loop_timer *t = loop_timer_new(b->loop, give_up, b, &err);
        loop_timer_set(t, 20);
        loop_run(b->loop, &err);
        loop_timer_free(t);
        run_fini(&r);
        waits = runner_run_get(b->runner, id, &r, &err) < 0 || *r.waiting;
    }
    CHECK(r.state == RUN_QUEUED && strstr(r.waiting, "readonly") && !r.wait_until_ms,
          "it is in the queue, and why is told: %s", r.waiting);
    run_fini(&r);
    sq_exec(b->store->db, "PRAGMA query_only=0", &err);
    wait_final(b);
    CHECK(runner_run_get(b->runner, id, &r, &err) == 0 && r.state == RUN_SUCCEEDED && !*r.waiting,
          "and then it starts: %s", run_state_names[r.state]);
    run_fini(&r);
}

struct elsewhere {
    struct bed *bed;
    int64_t id; // whose metrics were requested last
};

static bool take_elsewhere(void *ctx, int64_t id)
{
    struct elsewhere *e = ctx;
    e->id = id;
    loop_stop(e->bed->loop);
    return true;
}

// A run is deleted while its metrics are made elsewhere: those of others do not wait for that.
static void test_deleted_meanwhile(struct bed *b)
{
    struct err err = {0}, why;
    struct run r[2] = {0};
    struct elsewhere e = {.bed = b};
    for (int i = 0; i < 2; i++)
        run_once(b, "good", &r[i]);
    struct loop_timer *limit = loop_timer_new(b->loop, give_up, b, &err);
    sq_exec(b->store->db, "UPDATE run SET metrics_version = 0 WHERE state = 'succeeded'", &err);
    runner_metrics_by(b->runner, take_elsewhere, &e);
    runner_fill_metrics(b->runner);
    loop_run(b->loop, &err);
    int64_t deleted = e.id;
    CHECK(deleted && store_run_delete(b->store, deleted, &err) == 0, "deleted: %s", err.text);
    err_set(&why, ERR_NOT_FOUND, "", "there is no run");
    runner_metrics_made(b->runner, deleted, NULL, &why);
    loop_timer_set(limit, 15000); // half of what one that failed waits
    loop_run(b->loop, &err);
    CHECK(e.id != deleted, "metrics of the next run are requested at once");
    runner_metrics_by(b->runner, NULL, NULL);
    loop_timer_free(limit);
    for (int i = 0; i < 2; i++)
        run_fini(&r[i]);
}

int main(int argc, char **argv)
{
    static void (*const tests[])(struct bed * b) = {test_good,
                                                    test_bad,
                                                    test_placement,
                                                    test_noise,
                                                    test_orphan,
                                                    test_disk_full,
                                                    test_disk_full_before,
                                                    test_deleted_meanwhile,
                                                    test_requests,
                                                    test_restart,
                                                    NULL};
    return run_tests(argc, argv, tests);
}
