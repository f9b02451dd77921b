// SPDX-License-Identifier: Apache-2.0
// What waits for a store that confirms nothing: how much is received, requested and taken before
// that stops. This program is also the processes that store and judge.
#include "tests/unit/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fetch/fetch.h"
#include "fleet/campaigns/campaigns.h"
#include "fleet/collect/judged_wire.h"
#include "fleet/collect/judging.h"
#include "fleet/collect/parts.h"
#include "fleet/collect/poller.h"
#include "nodes/announced.h"
#include "nodes/behind.h"
#include "tests/unit/fleet/wait.h"

enum { PIECE_BYTES = 1 << 16 };

// Nothing listens at port 1: a request fails at once.
static const struct naming_node named[] = {
    {{"behind1", BEHIND_URL "http://127.0.0.1:1", "", "", "", ""}, "", 1},
    {{"behind2", BEHIND_URL "http://127.0.0.1:1", "", "", "", ""}, "", 1},
    {{"contacted", "http://127.0.0.1:1", "", "", "", ""}, "", 1},
    {{"pushes1", ANNOUNCED_URL, "", "", "", ""}, "", 1},
    {{"pushes2", ANNOUNCED_URL, "", "", "", ""}, "", 1},
};
static struct fleetd_config config = {.store = "none",
                                      .url = "http://%h:1",
                                      .every_s = 1,
                                      .push_every_s = 3600,
                                      .at_once = 16,
                                      .node_timeout_s = 60};
static struct loop *loop;
static struct poller *poller;
static int64_t requests; // that were made before
static struct err err;

static bool store_is_ready(void)
{
    return ingest_ready(poller->ingest);
}

static bool node_was_contacted(void)
{
    return poller->totals.requests > 0 && !poller->totals.in_flight;
}

static bool no_run_is_under_way(void)
{
    return !poller->wishes[WISH_WHOLE].in_flight;
}

// What is due was looked at, and no search is to come: the store has to make room first.
static bool search_has_ended(void)
{
    return !poller->search_ms || poller->totals.requests != requests;
}

static int64_t push_from(const char *node)
{
    struct buf body = BUF_INIT;
    int64_t number = poller_push(poller, node, &body, &err);
    buf_free(&body);
    return number;
}

static void test_room(void)
{
    run_until(loop, store_is_ready, &err);
    CHECK_INT(poller_set_nodes(poller, named, COUNT_OF(named), true, &err), 0, "nodes: %s",
              err.text);
    run_until(loop, node_was_contacted, &err);
    CHECK(poller_find(poller, "contacted")->failures > 0, "with room a node is contacted");
    CHECK(push_from("pushes1") > 0, "and a page is taken: %s", err.text);
    CHECK(push_from("pushes1") < 0 && err.code == ERR_CONFLICT, "one of a node: %s", err.text);
}

static int count_lacked(const char *node)
{
    int n = 0;
    while (poller_lacks(poller, node, n))
        n++;
    return n;
}

// A node that lacks ever new facts takes no place of those that other nodes may send.
static void test_lacked(void)
{
    char name[16], hash[16];
    const int others = LACKED_ROOM - LACKED_EACH;
    push_lacks(poller, "quiet", "facts");
    for (int i = 0; i < 2 * LACKED_ROOM; i++) {
        snprintf(hash, sizeof hash, "loud-%d", i);
        push_lacks(poller, "loud", hash);
    }
    CHECK_INT(count_lacked("quiet"), 1, "what another node lacks stays");
    CHECK_INT(count_lacked("loud"), LACKED_EACH, "beside so many of a node");
    bool newest = false;
    for (int i = 0; i < LACKED_EACH; i++)
        newest = newest || strcmp(poller_lacks(poller, "loud", i), hash) == 0;
    CHECK(newest, "the newest ones");
    push_lacks_no_more(poller, hash);
    CHECK_INT(count_lacked("loud"), LACKED_EACH - 1, "one came");
    for (int i = 0; i < others; i++) {
        snprintf(name, sizeof name, "other%d", i);
        push_lacks(poller, name, "facts");
    }
    CHECK_INT(count_lacked("quiet"), 1, "free places are taken first");
    push_lacks(poller, "one-more", "facts");
    CHECK_INT(count_lacked("quiet"), 0, "then that of the oldest");
    push_lacks_no_more(poller, "facts");
    for (int i = 0; i < 2 * LACKED_ROOM; i++) {
        snprintf(hash, sizeof hash, "loud-%d", i);
        push_lacks_no_more(poller, hash);
    }
}

static void want_runs(int first, int n)
{
    struct ingest_report r = {.node = "contacted"};
    for (int i = 0; i < n; i++) {
        r.next = r.run = first + i;
        whole_wanted(poller, &r);
    }
}

// No turn of the loop passes meanwhile: all that are requested are under way.
static void test_whole_runs(void)
{
    requests = poller->totals.requests;
    want_runs(1, WHOLE_AT_ONCE + WISHES_ROOM + 1);
    CHECK_INT(poller->wishes[WISH_WHOLE].in_flight, WHOLE_AT_ONCE,
              "so many whole runs are requested at once");
    CHECK_INT(poller->totals.requests - requests, WHOLE_AT_ONCE, "each once");
    CHECK_INT(poller->wishes[WISH_WHOLE].n, WISHES_ROOM, "and so many wait");
}

static void want_documents(const char *node, int n)
{
    struct ingest_report r = {0};
    snprintf(r.node, sizeof r.node, "%s", node);
    for (int i = 0; i < n; i++) {
        snprintf(r.hash, sizeof r.hash, "%s-%d", node, i);
        document_wanted(poller, &r);
    }
}

static bool nothing_is_wanted(void)
{
    for (int kind = 0; kind < WISH_KINDS; kind++)
        if (poller->wishes[kind].n || poller->wishes[kind].in_flight)
            return false;
    return true;
}

// A collector refuses a client of which many requests wait. What is behind it does not hold up
// what other nodes have.
static void test_behind(void)
{
    const struct wishes *documents = &poller->wishes[WISH_DOCUMENT];
    run_until(loop, nothing_is_wanted, &err);
    want_documents("behind1", BEHIND_AT_ONCE + 1);
    want_documents("behind2", 1);
    CHECK_INT(poller->behind_in_flight, BEHIND_AT_ONCE, "a few are requested of a collector");
    CHECK_INT(documents->n, 2, "the others wait, of whichever node they are");
    want_documents("contacted", DOCUMENTS_AT_ONCE);
    CHECK_INT(documents->in_flight, DOCUMENTS_AT_ONCE, "of nodes as many as may be");
    CHECK_INT(documents->n, 2 + BEHIND_AT_ONCE, "and others wait");
    run_until(loop, nothing_is_wanted, &err);
    CHECK_INT(poller->behind_in_flight, 0, "all were requested");
    requests = poller->totals.requests;
    want_documents("behind1", BEHIND_AT_ONCE);
    CHECK_INT(poller->totals.requests, requests, "and none again so soon");
}

static void fill_backlog(void)
{
    static const char page[FETCH_BODY_MAX];
    const struct ingest_item item = {.kind = INGEST_PAGE, .node = "contacted"};
    while (ingest_backlog(poller->ingest) < INGEST_BACKLOG_MAX) {
        struct buf body = BUF_INIT;
        buf_add(&body, page, sizeof page);
        if (!buf_ok(&body) || ingest_send(poller->ingest, &item, &body, &err) < 0)
            break;
    }
    CHECK_INT(ingest_backlog(poller->ingest), INGEST_BACKLOG_MAX, "as much as may wait: %s",
              err.text);
}

static void test_full(void)
{
    struct polled *n = poller_find_own(poller, "contacted");
    fill_backlog();
    requests = poller->totals.requests;
    run_until(loop, no_run_is_under_way, &err);
    CHECK_INT(poller->wishes[WISH_WHOLE].n, WISHES_ROOM, "then no whole run is requested");
    CHECK(push_from("pushes2") < 0 && err.code == ERR_UNAVAILABLE &&
              strstr(err.text, "too many pages wait"),
          "no page is taken: %s", err.text);
    node_later(n, 0);
    run_until(loop, search_has_ended, &err);
    CHECK_INT(poller->totals.requests, requests, "and no node is contacted");
}

// Whether it is contacted, or late, as one of which nothing is known.
static bool node_is_due_in(const char *name, int64_t most_ms, int64_t least_ms)
{
    int64_t left = poller_find_own(poller, name)->due_ms - clock_mono_ms();
    return left <= most_ms && left >= least_ms;
}

// Nothing is contacted: the store has no room.
static void test_named_anew(void)
{
    enum { SOON_MS = 1000, LONG_MS = 1800 * 1000 };
    const int64_t push_ms = config.push_every_s * 1000;
    struct naming_node all[COUNT_OF(named)];
    struct polled *n = poller_find_own(poller, "contacted");
    memcpy(all, named, sizeof all);
    all[4].said.url = named[2].said.url;
    CHECK(node_is_due_in("pushes2", push_ms, LONG_MS), "a node that pushes has time for it");
    poller_set_nodes(poller, all, COUNT_OF(all), true, &err);
    CHECK(!poller_find_own(poller, "pushes2")->pushes &&
              node_is_due_in("pushes2", SOON_MS, -LONG_MS),
          "its token was revoked, and a file names it: it is contacted at once");
    n->busy = false;
    n->state = NODE_DOWN;
    n->failures = 9;
    n->due_ms = clock_mono_ms() + LONG_MS;
    poller_set_nodes(poller, named, 2, true, &err);
    CHECK(n->state == NODE_GONE, "no source names it any more");
    poller_set_nodes(poller, named, COUNT_OF(named), true, &err);
    CHECK(
        n->state == NODE_NEW && n->failures == 0 && node_is_due_in("contacted", SOON_MS, -LONG_MS),
        "a node that is named again begins as a new one: it does not wait for what it did before");
    CHECK(node_is_due_in("pushes1", push_ms, LONG_MS), "nor is one late that may push again");
}

// Most nodes push: of their clocks nothing is known.
static void test_clock_of_few(void)
{
    enum { CONTACTED = 3, ALL = 10, HOURS_2 = 2 * 3600 * 1000 };
    static char names[ALL][16];
    struct naming_node all[ALL] = {0};
    for (int i = 0; i < ALL; i++) {
        snprintf(names[i], sizeof names[i], "clock%d", i);
        all[i] = (struct naming_node){
            {names[i], i < CONTACTED ? named[2].said.url : ANNOUNCED_URL, "", "", "", ""}, "", 1};
    }
    poller_set_nodes(poller, all, ALL, true, &err);
    for (int i = 0; i < CONTACTED; i++) {
        poller_find_own(poller, names[i])->state = NODE_UP;
        poller_find_own(poller, names[i])->skew_ms = HOURS_2;
    }
    poller_compare_clocks(poller);
    CHECK_INT(poller_clock_off(poller), -HOURS_2,
              "those that state theirs agree that ours is wrong");
    poller_find_own(poller, names[0])->skew_ms = 0;
    poller_compare_clocks(poller);
    CHECK_INT(poller_clock_off(poller), 0, "two are too few");
    poller_set_nodes(poller, named, COUNT_OF(named), true, &err);
}

static void test_marks(struct judging *j)
{
    const struct ingest_mark mark = {.id = 1};
    int taken = 0;
    while (taken <= MARKS_MAX && judging_mark(j, &mark, &err) > 0)
        taken++;
    CHECK_INT(taken, MARKS_MAX, "so many marks wait for the store");
    CHECK(err.code == ERR_UNAVAILABLE && strstr(err.text, "too many changes"), "then: %s",
          err.text);
}

static struct judging *judging;

static bool judging_has_failed(void)
{
    return *judging_summary(judging).problem;
}

static bool ignore_nodes(void *ctx, const struct naming_node *nodes, int n, bool whole)
{
    (void)ctx;
    (void)nodes;
    return n >= 0 && whole;
}

static void test_judging(void)
{
    struct naming *naming = naming_new(loop, &config, ignore_nodes, NULL, &err);
    judging = naming ? judging_new(loop, &config, poller, naming, &err) : NULL;
    CHECK(judging, "a judge: %s", err.text);
    if (judging) {
        test_marks(judging);
        run_until(loop, judging_has_failed, &err);
        CHECK_STR(judging_summary(judging).problem, "a judgement is too large",
                  "what does not end is not kept");
    }
    judging_free(judging);
    naming_free(naming);
}

// None of the nodes is contacted: the store has no room.
static void name_many(void)
{
    static char names[NAMING_NODES_MAX][8];
    static struct naming_node many[NAMING_NODES_MAX];
    for (int i = 0; i < NAMING_NODES_MAX; i++) {
        snprintf(names[i], sizeof names[i], "n%05d", i);
        many[i] = named[2];
        many[i].said.name = names[i];
    }
    CHECK_INT(poller_set_nodes(poller, many, NAMING_NODES_MAX, true, &err), 0, "nodes: %s",
              err.text);
}

static void test_campaigns(struct campaigns *campaigns)
{
    enum { ROOM = CAMPAIGNS_NODES_MAX / NAMING_NODES_MAX };
    int taken = 0;
    name_many();
    for (int64_t number = 1; number > 0 && taken <= ROOM; taken += number > 0) {
        CLEANUP_BUF struct buf text = BUF_INIT;
        buf_fmt(&text, "{\"name\":\"c%d\",\"spec\":{\"benchmark\":\"latency\"}}", taken);
        number = campaigns_submit(campaigns, &text, "uid:7", &err);
    }
    CHECK_INT(taken, ROOM, "so many campaigns of all nodes are taken");
    CHECK(err.code == ERR_TOO_MANY && strcmp(err.member, "nodes") == 0, "then: %s", err.text);
}

// In place of the process that stores: it takes all, and confirms nothing.
static int take_all(void)
{
    static char bytes[PIECE_BYTES];
    const struct ingest_report ready = {.kind = INGEST_READY};
    if (write(INGEST_FD, &ready, sizeof ready) != sizeof ready)
        return 1;
    while (read(INGEST_FD, bytes, sizeof bytes) > 0)
        continue;
    return 0;
}

// In place of the process that judges: some more than a judgement may have.
static int judge_too_much(void)
{
    static const char bytes[PIECE_BYTES];
    int64_t left = (int64_t)sizeof(struct judged_head) + JUDGED_BYTES_MAX + JUDGED_SUMMARY_MAX +
                   JUDGED_DRAIN_MAX + PIECE_BYTES;
    for (ssize_t n; left > 0; left -= n)
        if ((n = write(JUDGING_OUT_FD, bytes, sizeof bytes)) <= 0)
            return 1;
    return 0;
}

static int64_t changes_by_facts(int64_t now_ms)
{
    poller->facts_uncounted = true; // as when the process that stores reports some
    return poller_changes(poller, now_ms);
}

static void test_facts_that_arrive_one_by_one(void)
{
    int64_t now = clock_mono_ms(), before = poller_changes(poller, now), after = before;
    for (int i = 0; i < 2 * FACTS_BURST; i++)
        after = changes_by_facts(now);
    CHECK_INT(after - before, FACTS_BURST, "facts of a small fleet make responses anew at once");
    for (int i = 1; i <= 1000; i++)
        after = changes_by_facts(now + 10LL * i);
    CHECK_INT(after - before, FACTS_BURST + 10, "those of a large one do once a second");
    int64_t last = changes_by_facts(now + 10010);
    CHECK(poller->facts_uncounted, "the last ones are not counted yet");
    CHECK_INT(poller_changes(poller, now + 20000), last + 1, "and are not forgotten");
}

static void wake_no_one(void *ctx)
{
    (void)ctx;
}

// A node pushes again before the response to its first page is closed.
static void test_second_push(void)
{
    struct polled *n = poller->nodes[0];
    struct pushed *pushed = calloc(1, sizeof *pushed), *own = n->push;
    int first, second;
    CHECK(pushed, "a page");
    if (!pushed)
        return;
    n->push = pushed;
    pushed->number = 901;
    CHECK_INT(poller_push_watch(poller, 901, wake_no_one, &first), 0, "its first page is awaited");
    *pushed = (struct pushed){.number = 902};
    CHECK_INT(poller_push_watch(poller, 901, wake_no_one, &first), -1, "and then no longer");
    CHECK_INT(poller_push_watch(poller, 902, wake_no_one, &second), 0, "but the second is");
    poller_push_watch_end(poller, 901);
    CHECK(pushed->wake && pushed->ctx == &second, "the end of the first leaves it");
    poller_push_watch_end(poller, 902);
    CHECK(!pushed->wake, "until its own");
    n->push = own;
    free(pushed);
}

// More than are listed once no source names them. All have pushed a page, and of one it is awaited.
static void test_gone(void)
{
    enum { MANY = 16400 };
    static char names[MANY][16];
    static struct naming_node list[MANY];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "many%05d", i);
        list[i] = (struct naming_node){{names[i], ANNOUNCED_URL, "", "", "", ""}, "", 1};
    }
    CHECK_INT(poller_set_nodes(poller, list, MANY, true, &err), 0, "nodes: %s", err.text);
    struct polled *awaited = NULL;
    for (int i = 0; i < poller->n; i++) {
        struct polled *n = poller->nodes[i];
        if (strncmp(n->name, "many", 4) != 0)
            continue;
        n->push = calloc(1, sizeof *n->push);
        if (n->push)
            *n->push = (struct pushed){.number = i + 1, .settled = true};
        awaited = n;
    }
    CHECK(awaited && awaited->push, "they have pushed");
    if (!awaited || !awaited->push)
        return;
    awaited->push->wake = wake_no_one;
    CHECK_INT(poller_set_nodes(poller, named, COUNT_OF(named), true, &err), 0, "nodes: %s",
              err.text);
    int left = 0;
    for (int i = 0; i < poller->n; i++)
        left += strncmp(poller->nodes[i]->name, "many", 4) == 0;
    CHECK_INT(left, 1, "that which is awaited is still there, and no other");
    awaited->push->wake = NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--ingest") == 0)
        return take_all();
    if (argc > 1 && strcmp(argv[1], "--judge") == 0)
        return judge_too_much();
    loop = loop_new(&err);
    poller = loop ? poller_new(loop, &config, &err) : NULL;
    struct campaigns *campaigns = poller ? campaigns_new(loop, &config, poller, &err) : NULL;
    CHECK(campaigns, "a poller, and campaigns: %s", err.text);
    if (!campaigns)
        return tap_done();
    test_room();
    test_facts_that_arrive_one_by_one();
    test_lacked();
    test_behind();
    test_whole_runs();
    test_full();
    test_named_anew();
    test_clock_of_few();
    test_judging();
    test_campaigns(campaigns);
    test_second_push();
    test_gone();
    campaigns_free(campaigns);
    poller_free(poller);
    loop_free(loop);
    return tap_done();
}
