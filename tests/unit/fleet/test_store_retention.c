// SPDX-License-Identifier: Apache-2.0
// Months of runs, whole runs and closed findings are deleted a few a day, whatever the limit and
// the clock are.
#include <string.h>

#include "base/cleanup.h"
#include "fleet/store/archive.h"
#include "fleet/store/findings.h"
#include "tests/unit/fleet/engines.h"

static int count_page(void *ctx, const struct summary_page *page, struct err *e)
{
    (void)e;
    *(int *)ctx += page->n_runs;
    return 0;
}

static int runs_left(void)
{
    int n = 0;
    CHECK_INT(fleet_store_window(s, &(struct fleet_window){0}, count_page, &n, &err), 0, "reads");
    return n;
}

static void put_dated(int64_t *at, int64_t measured_ms)
{
    struct made_page p CLEANUP(made_page_fini);
    struct fleet_ack ack = {0};
    struct maker m = maker_at("d1", "da", *at, *at + 1);
    m.received_ms = page_day0 + 6000 * page_day;
    made_page_make(&p, &m);
    p.body.runs[0].measured_ms = measured_ms;
    CHECK(fleet_store_put(s, &p.page, 1, &ack, &err) == 0 && ack.stored == 1, "a run is stored");
    *at += 1;
}

static int64_t retained(int64_t before_ms, int64_t now_ms, bool held)
{
    struct fleet_retention r = {.before_ms = before_ms, .now_ms = now_ms};
    CHECK_INT(fleet_store_retain(s, &r, &err), 0, "deletes: %s", err.text);
    CHECK_INT(r.held, held, "whether there is more to delete");
    return r.deleted;
}

// A keep_days of 1 where 1000 was meant, and a clock that jumps: some months go, and no more for a
// day, also after a restart.
static void test_limit_of_a_day(const char *where)
{
    enum { MONTHS = 7, RUNS = 2, HOUR_MS = 3600 * 1000 };
    static const int64_t days[MONTHS] = {-9000, -8000, -2000, 0, 31, 62, 93}; // before 2020 too
    const int64_t end = page_day0 + 120 * page_day, now = end;
    int64_t at = 0;
    for (int i = 0; i < MONTHS; i++)
        for (int k = 0; k < RUNS; k++)
            put_dated(&at, page_day0 + days[i] * page_day + k * HOUR_MS);
    CHECK_INT(retained(page_day0 - 9100 * page_day, now, false), 0, "nothing is so old");
    CHECK_INT(retained(end, now, true), FLEET_RETAIN_MONTHS * RUNS, "two months of a day");
    CHECK_INT(retained(end, now + HOUR_MS, true), 0, "no more an hour later");
    put_dated(&at, page_day0 - 8000 * page_day - HOUR_MS);
    CHECK_INT(retained(end, now + HOUR_MS, true), 1, "but what comes late of the same months");
    fleet_store_close(s);
    s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(s != NULL, "opens again: %s", err.text);
    CHECK_INT(retained(end, now + page_day - 1, true), 0, "nor after a restart");
    CHECK_INT(retained(end, now - 400 * page_day, true), 0, "nor when the clock goes back");
    CHECK_INT(retained(end, now - 399 * page_day - 1, true), 0, "a day begins with that");
    CHECK_INT(retained(end, now - 399 * page_day, true), FLEET_RETAIN_MONTHS * RUNS, "a day later");
    CHECK_INT(runs_left(), 3 * RUNS, "what is left");
    CHECK_INT(retained(page_day0 + 62 * page_day, now - 398 * page_day, false), RUNS,
              "the limit ends within what a day may delete");
    CHECK_INT(runs_left(), 2 * RUNS, "what is younger");
    retained(end, now - 397 * page_day, false);
    CHECK_INT(runs_left(), 0, "the others on the next day");
}

static void archive_dated(int64_t *at, int64_t stored_ms)
{
    static const char text[] = "{\"run\":{}}";
    struct fleet_whole w = {.node = "w1", .seq = *at + 1, .why = ""};
    struct maker m = maker_at("w1", "a4c1", *at, *at + 1);
    CHECK(made_page_put(s, &m, &err).stored == 1 &&
              fleet_whole_fill(&w, text, sizeof text - 1, &err) == 0 &&
              fleet_store_archive_put(s, &w, 1, stored_ms, &err) == 0,
          "a whole run is stored: %s", err.text);
    buf_free(&w.frame);
    *at += 1;
}

static int64_t archive_retained(int64_t before_ms, int64_t now_ms, bool held)
{
    struct fleet_retention r = {.before_ms = before_ms, .now_ms = now_ms};
    CHECK_INT(fleet_store_archive_retain(s, &r, &err), 0, "deletes: %s", err.text);
    CHECK_INT(r.held, held, "whether there is more to delete");
    return r.deleted;
}

// An archive_keep_days of 1 where 1000 was meant.
static void test_limit_of_a_day_in_the_archive(const char *where)
{
    enum { HOUR_MS = 3600 * 1000 };
    static const int64_t days[] = {0, 1, 31, 62, 93}; // of January, February, March, April
    const int64_t end = page_day0 + 200 * page_day, now = end;
    int64_t at = 0;
    fleet_store_archives(s, FLEET_ARCHIVE_ALL);
    for (size_t i = 0; i < COUNT_OF(days); i++)
        archive_dated(&at, page_day0 + days[i] * page_day + HOUR_MS);
    CHECK_INT(archive_retained(page_day0, now, false), 0, "nothing is so old");
    CHECK_INT(archive_retained(page_day0 + page_day, now, false), 1, "a day of a month, as it is");
    CHECK_INT(retained(page_day0, now, false), 0, "months of runs have a day of their own");
    CHECK_INT(archive_retained(end, now + HOUR_MS, true), 1, "the rest of the month");
    fleet_store_close(s);
    s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(s != NULL, "opens again: %s", err.text);
    CHECK_INT(archive_retained(end, now + page_day - 1, true), 0, "no more after a restart");
    CHECK_INT(archive_retained(end, now + page_day, true), FLEET_RETAIN_MONTHS,
              "two months of the next day");
    CHECK_INT(archive_retained(end, now + 2 * page_day, false), 1, "and the last one");
}

static int close_at(const char *node, int64_t now_ms)
{
    struct fleet_tally t;
    const struct kept_sight seen = {
        .what = KEPT_ALIEN,
        .grade = KEPT_SURE,
        .node = node,
        .class = "",
        .metric = "",
        .text = "",
        .evidence = "{}",
        .proof = 1,
    };
    struct kept_judgement j = {.seen = &seen, .n_seen = 1, .now_ms = now_ms};
    for (int i = 0; i <= KEPT_MISSES; i++, j.n_seen = 0)
        CHECK_INT(fleet_store_judge(s, &j, &t, &err), 0, "a judgement: %s", err.text);
    return t.counts.states[KEPT_CLOSED];
}

static int64_t findings_retained(int64_t before_ms, int64_t now_ms, bool held)
{
    struct fleet_retention r = {.before_ms = before_ms, .now_ms = now_ms};
    CHECK_INT(fleet_store_findings_retain(s, &r, &err), 0, "deletes: %s", err.text);
    CHECK_INT(r.held, held, "whether there is more to delete");
    return r.deleted;
}

// A clock of the collector and of the nodes that jumps ahead by years.
static void test_limit_of_a_day_of_findings(const char *where)
{
    static const int64_t days[] = {0, 1, 31, 62, 93, 124}; // of January to May
    static const char *const nodes[] = {"f0", "f1", "f2", "f3", "f4", "f5"};
    const int64_t end = page_day0 + 2000 * page_day, now = end;
    int closed = 0;
    for (size_t i = 0; i < COUNT_OF(days); i++)
        closed = close_at(nodes[i], page_day0 + days[i] * page_day);
    CHECK_INT(closed, COUNT_OF(days), "all are closed, and a judgement deletes none");
    CHECK_INT(findings_retained(page_day0, now, false), 0, "nothing is so old");
    CHECK_INT(findings_retained(end, now, true), 3, "two months of a day");
    fleet_store_close(s);
    s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(s != NULL, "opens again: %s", err.text);
    CHECK_INT(findings_retained(end, now + page_day - 1, true), 0, "no more after a restart");
    CHECK_INT(findings_retained(page_day0 + 50 * page_day, page_day0 + 200 * page_day, false), 0,
              "the clock is right again");
    closed = close_at("f6", end);
    closed = close_at("f6", page_day0 + 200 * page_day);
    CHECK_INT(findings_retained(end, page_day0 + 201 * page_day, true), 2, "a day later two more");
    CHECK_INT(findings_retained(end, page_day0 + 202 * page_day, false), 1,
              "and the last, but not that with the largest number");
    struct kept_judgement j = {.now_ms = page_day0 + 203 * page_day};
    struct fleet_tally t;
    CHECK(fleet_store_judge(s, &j, &t, &err) == 0 && t.counts.states[KEPT_CLOSED] == 1,
          "that one stays");
}

int main(void)
{
    engines_run(test_limit_of_a_day);
    engines_run(test_limit_of_a_day_in_the_archive);
    engines_run(test_limit_of_a_day_of_findings);
    return tap_done();
}
