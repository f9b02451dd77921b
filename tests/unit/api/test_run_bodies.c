// SPDX-License-Identifier: Apache-2.0
// What is kept of runs is never older than the database.
#include "core/store/damage.h"
#include "tests/unit/tap.h"

#include "api/services/run_bodies.h"
#include "base/cleanup.h"
#include "core/store/baselines.h"
#include "core/store/retention.h"
#include "tests/unit/core/dir.h"

static struct store *store;
static struct run_bodies *bodies;

static void put(int64_t id, const char *text, size_t n)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        buf_str(&body, text);
    run_bodies_put(bodies, id, &body);
}

static bool kept(int64_t id, const char *text)
{
    struct shared_body *body = run_bodies_get(bodies, id);
    bool same = body && body->n == strlen(text) && memcmp(body->data, text, body->n) == 0;
    bool has = run_bodies_has(bodies, id);
    shared_body_unref(body);
    return has && same;
}

static int64_t finished_run(void)
{
    struct err err = {0};
    struct spec spec;
    int64_t id = 0;
    bool again;
    const struct run_result r = {.state = RUN_CANCELED, .error = ERR_CONFLICT};
    spec_init(&spec, BENCHMARK_LATENCY);
    CHECK(store_run_insert(store, &spec, "n", NULL, &id, &again, &err) == 0 &&
              store_run_finished(store, id, &r, &err) == 0,
          "a run: %s", err.text);
    return id;
}

static void test_writes(void)
{
    struct err err = {0};
    const int64_t a = finished_run(), b = finished_run();
    const struct baseline baseline = {.name = "base", .n = 1, .runs = {a}};
    CHECK(!run_bodies_has(bodies, a), "nothing is kept at first");
    put(a, "one", 1);
    CHECK(kept(a, "one") && !run_bodies_has(bodies, b), "kept, and another is not");
    CHECK(store_writable(store, &err) && store_run_label(store, b, "x", &err) == 0, "a label");
    CHECK(!run_bodies_has(bodies, a), "a label of any run forgets");
    put(a, "two", 1);
    CHECK(store_baseline_put(store, &baseline, &err) == 0 && !kept(a, "two"), "a baseline forgets");
    put(b, "three", 1);
    CHECK(store_run_delete(store, b, &err) == 0 && !run_bodies_has(bodies, b), "deleting forgets");
    put(a, "four", 1);
    finished_run();
    CHECK(!run_bodies_has(bodies, a), "a new run forgets");
    put(a, "five", 1);
    CHECK(store_set_aside(store, "a test", &err) == 0 && !run_bodies_has(bodies, a),
          "a fresh database forgets: %s", err.text);
}

static void test_references(void)
{
    const int64_t id = finished_run();
    run_bodies_has(bodies, id);
    put(id, "whole", 1);
    struct shared_body *one = run_bodies_get(bodies, id), *two = run_bodies_get(bodies, id);
    CHECK(one && one == two, "two answers have the same bytes");
    finished_run();
    CHECK(!run_bodies_has(bodies, id) && strcmp(one->data, "whole") == 0,
          "what is being sent outlives what is kept");
    shared_body_unref(one);
    shared_body_unref(two);
}

static void test_late_put(void)
{
    struct err err = {0};
    const int64_t id = finished_run();
    CHECK(!run_bodies_has(bodies, id) && store_run_label(store, id, "y", &err) == 0, "a write");
    put(id, "old", 1);
    CHECK(!run_bodies_has(bodies, id), "what was read before a write is not kept after it");
}

static void test_room(void)
{
    put(1, "a", 1);
    run_bodies_has(bodies, 1);
    put(1, "a", 1);
    put(1 + RUN_BODIES_MAX, "b", 1);
    CHECK(!run_bodies_has(bodies, 1) && kept(1 + RUN_BODIES_MAX, "b"), "a place has one run");
    put(2, "c", RUN_BODIES_BYTES);
    CHECK(!run_bodies_has(bodies, 2) && run_bodies_has(bodies, 1 + RUN_BODIES_MAX),
          "what is too large is not kept, and puts nothing out");
    const size_t quarter = RUN_BODIES_BYTES / 4 - 2; // in a buffer of a quarter
    for (int64_t id = 10; id < 14; id++)
        put(id, "d", quarter);
    int n = 0;
    for (int64_t id = 0; id < RUN_BODIES_MAX; id++)
        n += run_bodies_has(bodies, id);
    CHECK(n >= 1 && n <= 4, "together they fit: %d of a quarter each", n);
    put(13, "d", quarter);
    put(13, "d", quarter);
    CHECK(run_bodies_has(bodies, 13), "the same again takes no more room");
}

int main(void)
{
    char dir[64];
    struct err err = {0};
    dir_make(dir);
    store = store_open(dir, &err);
    bodies = store ? run_bodies_new(store, &err) : NULL;
    CHECK(bodies, "a store: %s", err.text);
    if (!bodies)
        return tap_done();
    test_writes();
    test_references();
    test_late_put();
    test_room();
    run_bodies_free(bodies);
    run_bodies_free(NULL);
    store_close(store);
    dir_remove(dir);
    return tap_done();
}
