// SPDX-License-Identifier: Apache-2.0
// How many runs a node may send: so many at once, beyond them a rate, whether it is contacted or
// sends its pages itself.
#include "tests/unit/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "fleet/collect/parts.h"
#include "fleet/collect/poller.h"

// SPARE: what the rate adds while a test runs, or what the page before took too much, in pages.
enum { EVERY_S = 60, MANY = 10 * RUNS_AT_ONCE / PAGE_RUNS, SPARE = 4 };
static const int64_t day_ms = 86400 * 1000;

static struct fleetd_config config = {.every_s = EVERY_S, .push_every_s = EVERY_S};
static struct poller poller;
static struct err err;

// Pages of a node that has always more, until the next one is not requested at once.
static int pages_at_once(struct polled *n, int runs, int notes)
{
    const struct ingest_report page = {.kind = INGEST_STORED,
                                       .of = INGEST_PAGE,
                                       .outcome = FLEET_STORED,
                                       .more = true,
                                       .stored = runs,
                                       .notes = notes};
    int pages = 0;
    do
        node_stored(n, &page);
    while (++pages < MANY && n->due_ms <= clock_mono_ms());
    return pages;
}

static void check_pages(int got, int runs, const char *what)
{
    int pages = runs / PAGE_RUNS;
    CHECK(got >= pages - SPARE && got <= pages + SPARE, "%s: %d pages, not %d", what, pages, got);
}

static void test_contacted(void)
{
    struct polled *n = polled_new(&poller, "n1", 0), *empty = polled_new(&poller, "n2", 0);
    struct polled *noted = polled_new(&poller, "n3", 0);
    CHECK(n && empty && noted, "three nodes");
    check_pages(pages_at_once(n, PAGE_RUNS, 0), RUNS_AT_ONCE, "at once");
    CHECK(n->due_ms > clock_mono_ms(), "the next page is requested an interval later");
    check_pages(pages_at_once(n, PAGE_RUNS, 0), 0, "no more at once");
    n->allowance_ms -= day_ms;
    check_pages(pages_at_once(n, PAGE_RUNS, 0), RUNS_PER_DAY, "a day later");
    n->allowance_ms -= 365 * day_ms;
    check_pages(pages_at_once(n, PAGE_RUNS, 0), RUNS_AT_ONCE, "a year later no more than at first");
    check_pages(pages_at_once(empty, 0, 0), RUNS_AT_ONCE, "pages without runs count too");
    check_pages(pages_at_once(noted, PAGE_RUNS, PAGE_RUNS), RUNS_AT_ONCE / 2,
                "notes count as runs");
    polled_free(n);
    polled_free(empty);
    polled_free(noted);
}

// A page that is stored counts, although the node sent it itself.
static void test_pushed_page(const char *member_of, const struct ingest_report *page)
{
    struct polled *n = polled_new(&poller, "n1", 0);
    struct buf body = BUF_INIT;
    n->pushes = true;
    poller.nodes = &n;
    poller.n = 1;
    push_reported(n, page);
    CHECK(poller_push(&poller, "n1", &body, &err) < 0 && err.code == ERR_TOO_MANY,
          "%s of pages that a node sends count: %s", member_of, err.text);
    poller.n = 0;
    polled_free(n);
}

static void test_pushed(void)
{
    enum { MORE = RUNS_AT_ONCE + PAGE_RUNS }; // the rate adds some meanwhile
    const struct ingest_report runs = {.kind = INGEST_STORED, .stored = MORE};
    const struct ingest_report notes = {.kind = INGEST_STORED, .notes = MORE};
    test_pushed_page("runs", &runs);
    test_pushed_page("notes", &notes);
}

// Nothing is stored here. So a push that is within the limit fails for another reason.
static void test_pushes(void)
{
    struct polled *n = polled_new(&poller, "n1", 0);
    struct buf body = BUF_INIT;
    int pushes = 0;
    n->pushes = true;
    poller.nodes = &n;
    poller.n = 1;
    while (poller_push(&poller, "n1", &body, &err) < 0 && err.code == ERR_UNAVAILABLE &&
           pushes < RUNS_AT_ONCE)
        pushes++;
    CHECK(pushes > 0 && pushes < RUNS_AT_ONCE, "%d pages are taken, without a run in them", pushes);
    CHECK(err.code == ERR_TOO_MANY && strstr(err.text, "43200 a day"), "then: %s", err.text);
    for (int i = 0; i < RUNS_AT_ONCE; i++)
        poller_push(&poller, "n1", &body, &err);
    CHECK(err.code == ERR_TOO_MANY, "and again: %s", err.text);
    CHECK(poller_push_wait_s(&poller, "n1") >= 1 && poller_push_wait_s(&poller, "n1") <= 20,
          "a push of 10 runs in 20 s: %d s", poller_push_wait_s(&poller, "n1"));
    n->allowance = -30;
    CHECK(poller_push_wait_s(&poller, "n1") == 61, "30 runs in a minute: %d s",
          poller_push_wait_s(&poller, "n1"));
    n->allowance_ms -= 61 * 1000;
    poller_push(&poller, "n1", &body, &err);
    CHECK(err.code == ERR_UNAVAILABLE, "a minute after many refusals: %s", err.text);
    poller.n = 0;
    polled_free(n);
}

static void ignore_report(void *ctx, const struct ingest_report *r)
{
    (void)ctx;
    (void)r;
}

static void ignore_end(void *ctx, const struct ingest_head *suspect)
{
    (void)ctx;
    (void)suspect;
}

static void ignore_search(void *ctx, uint32_t events)
{
    (void)ctx;
    (void)events;
}

// In place of the process that stores.
static int wait_for_end(void)
{
    char byte;
    while (read(INGEST_FD, &byte, sizeof byte) > 0)
        continue;
    return 0;
}

int main(int argc, char **argv)
{
    const struct ingest_store store = {.where = "none"};
    const struct ingest_user user = {ignore_report, ignore_end, NULL};
    if (argc > 1 && strcmp(argv[1], "--ingest") == 0)
        return wait_for_end();
    poller.c = &config;
    poller.loop = loop_new(&err);
    poller.timer = poller.loop ? loop_timer_new(poller.loop, ignore_search, &poller, &err) : NULL;
    poller.ingest = poller.timer ? ingest_new(poller.loop, &store, &user, &err) : NULL;
    CHECK(poller.ingest, "a poller: %s", err.text);
    if (!poller.ingest)
        return tap_done();
    test_contacted();
    test_pushed();
    test_pushes();
    ingest_free(poller.ingest);
    loop_timer_free(poller.timer);
    loop_free(poller.loop);
    return tap_done();
}
