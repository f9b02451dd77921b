// SPDX-License-Identifier: Apache-2.0
// Rounds of campaigns on a simulated clock: random fleets with busy and failing nodes, groups,
// windows and budgets. The promises of probe_plan.h are checked at every moment.
#include "fleet/campaigns/probe_plan.h"
#include "tests/unit/tap.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { NODES_MOST = 300, GROUPS_MOST = 40, MINUTE = 60 * 1000, DAY_MIN = 24 * 60 };
static const int64_t monday = INT64_C(1704067200000); // 2024-01-01, a Monday

static uint64_t seed;
static int dice(int sides)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)sides);
}

static struct probe_clock clock_at(int64_t ms)
{
    int64_t minute = (ms - monday) / MINUTE;
    return (struct probe_clock){ms, (int)(minute / DAY_MIN % 7), (int)(minute % DAY_MIN)};
}

static struct hours hours_of(const char *text)
{
    struct hours h = {0};
    struct err err = {0};
    hours_parse(&h, text, &err);
    return h;
}

struct simulated {
    struct probe_plan plan;
    double seconds[NODES_MOST]; // that a probe takes
    int64_t ends_ms[NODES_MOST], busy_until_ms[NODES_MOST];
    int probed[NODES_MOST];
    int running[GROUPS_MOST], all_running, started;
    int busy_percent, bad_percent;
    bool groups_kept, window_kept, budget_kept, at_once_kept, order_kept;
    double longest_s;
};

static void sim_make(struct simulated *s, const struct probe_rules *rules, int n, int groups)
{
    static struct probe_node nodes[NODES_MOST];
    struct err err;
    *s = (struct simulated){.groups_kept = true,
                            .window_kept = true,
                            .budget_kept = true,
                            .at_once_kept = true,
                            .order_kept = true};
    for (int i = 0; i < n; i++) {
        nodes[i] = (struct probe_node){.class = dice(3), .group = dice(groups)};
        nodes[i].newest_ms = dice(10) ? monday - (int64_t)dice(1000) * MINUTE : 0;
        nodes[i].past_s = nodes[i].newest_ms ? 30.0 * (1 + nodes[i].class) : 0;
        s->seconds[i] = 30.0 * (1 + nodes[i].class) * (0.8 + dice(5) / 10.0);
        s->longest_s = s->seconds[i] > s->longest_s ? s->seconds[i] : s->longest_s;
    }
    CHECK(probe_plan_make(&s->plan, rules, nodes, n, &err) == 0, "a plan of %d nodes", n);
}

static void sim_start(struct simulated *s, int node, const struct probe_clock *now)
{
    struct probe_plan *p = &s->plan;
    if (s->busy_until_ms[node] > now->ms) {
        probe_plan_refused(p, node, now->ms, 5 * MINUTE);
        return;
    }
    probe_plan_start(p, node);
    s->probed[node]++;
    s->started++;
    s->all_running++;
    s->running[p->nodes[node].group]++;
    s->ends_ms[node] = now->ms + (int64_t)(s->seconds[node] * 1e3);
    s->at_once_kept &= s->all_running <= p->rules.at_once;
    s->groups_kept &= !p->rules.each_n || s->running[p->nodes[node].group] <= p->rules.each_n;
    s->window_kept &= hours_wait_min(&p->rules.window, now->day, now->minute) == 0;
}

static int64_t first_end(const struct simulated *s, int *node)
{
    int64_t at = INT64_MAX;
    for (int i = 0; i < s->plan.n; i++)
        if (s->plan.nodes[i].state == PROBE_RUNNING && s->ends_ms[i] < at) {
            at = s->ends_ms[i];
            *node = i;
        }
    return at;
}

static void sim_end(struct simulated *s, int node)
{
    struct probe_plan *p = &s->plan;
    bool bad = dice(100) < s->bad_percent;
    s->all_running--;
    s->running[p->nodes[node].group]--;
    probe_plan_end(p, node, bad ? PROBE_FAILED : PROBE_DONE, s->seconds[node]);
    // What was expected of the probes in progress may have been too little.
    s->budget_kept &=
        p->rules.budget_s <= 0 || p->spent_s <= p->rules.budget_s + p->rules.at_once * s->longest_s;
}

// The first one in the order that may be probed; -1: none. Without what the plan remembers.
static int sim_first(const struct simulated *s, int64_t now_ms)
{
    const struct probe_plan *p = &s->plan;
    for (int at = 0; at < p->n; at++) {
        const struct probe_node *n = &p->nodes[p->order[at]];
        bool room = !p->rules.each_n || s->running[n->group] < p->rules.each_n;
        if (n->state == PROBE_PENDING && n->again_ms <= now_ms && room)
            return p->order[at];
    }
    return -1;
}

static void sim_check_order(struct simulated *s, const struct probe_next *next, int64_t now_ms)
{
    int first = sim_first(s, now_ms);
    if (next->action == PROBE_START)
        s->order_kept &= next->node == first;
    else if (next->why == PROBE_BECAUSE_BUSY)
        s->order_kept &= first < 0;
}

// Runs the round to its end; *now is moved.
static struct probe_next sim_run(struct simulated *s, int64_t *now)
{
    for (int turns = 0; turns < 100 * NODES_MOST; turns++) {
        struct probe_clock c = clock_at(*now);
        struct probe_next next = probe_plan_next(&s->plan, &c);
        int node = -1;
        int64_t end = first_end(s, &node);
        sim_check_order(s, &next, c.ms);
        if (next.action == PROBE_START)
            sim_start(s, next.node, &c);
        else if (next.action == PROBE_ROUND_OVER || next.action == PROBE_STOP)
            return next;
        else if (next.action == PROBE_AWAIT_TIME && next.until_ms < end)
            *now = next.until_ms;
        else if (node >= 0) {
            *now = end;
            sim_end(s, node);
        } else
            break;
    }
    return (struct probe_next){.action = PROBE_AWAIT_END, .node = -1};
}

static struct probe_rules rules_of(int at_once)
{
    return (struct probe_rules){
        .at_once = at_once, .retry_ms = (int64_t)DAY_MIN * MINUTE, .failed_percent = 100};
}

static void test_random(void)
{
    static struct simulated s;
    for (int k = 0; k < 200; k++) {
        seed = (uint64_t)k;
        struct probe_rules rules = rules_of(1 + dice(16));
        int n = 1 + dice(NODES_MOST - 1);
        rules.each_n = dice(3);
        rules.budget_s = dice(2) ? 60.0 * dice(200) : 0;
        rules.window = hours_of(dice(2) ? "Mon-Fri 20:00-06:00, Sun 00:00-24:00" : "");
        rules.failed_percent = dice(2) ? 20 : 100;
        sim_make(&s, &rules, n, 1 + dice(GROUPS_MOST - 1));
        s.bad_percent = dice(40);
        int64_t now = monday + (int64_t)dice(HOURS_WEEK_MIN) * MINUTE;
        for (int i = 0; i < n; i++)
            s.busy_until_ms[i] = dice(4) ? 0 : now + (int64_t)dice(2 * DAY_MIN) * MINUTE;
        struct probe_next end = sim_run(&s, &now);
        int most = 0;
        for (int i = 0; i < n; i++)
            most = s.probed[i] > most ? s.probed[i] : most;
        bool all =
            end.why != PROBE_BECAUSE_COMPLETE ||
            s.plan.count[PROBE_DONE] + s.plan.count[PROBE_FAILED] + s.plan.count[PROBE_SKIPPED] ==
                n;
        CHECK(
            s.at_once_kept && s.groups_kept && s.window_kept && s.budget_kept && s.order_kept &&
                most <= 1 && all && s.all_running == 0 && s.plan.count[PROBE_RUNNING] == 0 &&
                end.action != PROBE_AWAIT_END,
            "seed %d: %d nodes, %d probed: at once %d, groups %d, window %d, budget %d, order %d, "
            "most %d",
            k, n, s.started, s.at_once_kept, s.groups_kept, s.window_kept, s.budget_kept,
            s.order_kept, most);
        probe_plan_fini(&s.plan);
    }
}

static void test_order(void)
{
    struct probe_node nodes[4] = {{.newest_ms = 5}, {.newest_ms = 3}, {0}, {.newest_ms = 3}};
    const int stalest[] = {2, 1, 3, 0};
    struct probe_rules rules = rules_of(4);
    struct probe_clock now = clock_at(monday);
    struct probe_plan p;
    struct err err;
    for (int order = PROBE_STALEST; order <= PROBE_BY_NAME; order++) {
        rules.order = order;
        CHECK(probe_plan_make(&p, &rules, nodes, 4, &err) == 0, "four nodes");
        for (int i = 0; i < 4; i++) {
            struct probe_next next = probe_plan_next(&p, &now);
            CHECK_INT(next.node, order == PROBE_STALEST ? stalest[i] : i, "its place in the order");
            probe_plan_start(&p, next.node);
        }
        CHECK(probe_plan_next(&p, &now).action == PROBE_AWAIT_END, "then the ends are awaited");
        probe_plan_fini(&p);
    }
}

static void test_failures(void)
{
    static struct simulated s;
    struct probe_rules rules = rules_of(2);
    int64_t now = monday;
    rules.failed_percent = 20;
    sim_make(&s, &rules, 100, 1);
    s.bad_percent = 100;
    struct probe_next end = sim_run(&s, &now);
    CHECK(end.action == PROBE_STOP && end.why == PROBE_BECAUSE_FAILURES, "failures stop it");
    CHECK(s.started < PROBE_STOP_LEAST + rules.at_once, "after %d probes", s.started);
    probe_plan_fini(&s.plan);
}

static void test_busy(void)
{
    static struct simulated s;
    struct probe_rules rules = rules_of(8);
    int64_t now = monday;
    sim_make(&s, &rules, 10, 1);
    for (int i = 0; i < 10; i++)
        s.busy_until_ms[i] = i == 3 ? INT64_MAX : i == 4 ? now + 600 * MINUTE : 0;
    struct probe_next end = sim_run(&s, &now);
    CHECK(end.why == PROBE_BECAUSE_COMPLETE && s.plan.count[PROBE_DONE] == 9, "nine are probed");
    CHECK(s.plan.nodes[3].state == PROBE_SKIPPED && now >= monday + rules.retry_ms,
          "one was never free for a day");
    probe_plan_fini(&s.plan);
}

// A node that was refused while the clock was a year ahead does not wait for a year.
static void test_clock_back(void)
{
    struct probe_node nodes[1] = {{.past_s = 60}};
    struct probe_rules rules = rules_of(1);
    struct probe_clock now = clock_at(monday),
                       ahead = clock_at(monday + INT64_C(52) * 7 * DAY_MIN * MINUTE);
    struct probe_plan p;
    struct err err;
    CHECK(probe_plan_make(&p, &rules, nodes, 1, &err) == 0, "a plan");
    CHECK_INT(probe_plan_next(&p, &ahead).node, 0, "a node");
    probe_plan_start(&p, 0);
    CHECK(!probe_plan_refused(&p, 0, ahead.ms, 5 * MINUTE), "that is busy");
    CHECK_INT(probe_plan_next(&p, &now).action, PROBE_START, "is tried when the clock is right");
    probe_plan_start(&p, 0);
    CHECK(!probe_plan_refused(&p, 0, now.ms + rules.retry_ms - 1, 0), "until its time has passed");
    probe_plan_start(&p, 0);
    CHECK(probe_plan_refused(&p, 0, now.ms + rules.retry_ms, 0), "which began anew");
    probe_plan_fini(&p);
}

// A step of the clock neither ends what is left of a node's time nor gives it more.
static void test_clock_set(int64_t step_ms)
{
    struct probe_node nodes[2] = {{.past_s = 60}, {.past_s = 60}};
    struct probe_rules rules = rules_of(1);
    struct probe_clock now = clock_at(monday + MINUTE + step_ms);
    struct probe_plan p;
    struct err err;
    CHECK(probe_plan_make(&p, &rules, nodes, 2, &err) == 0, "a plan");
    probe_plan_start(&p, 0);
    CHECK(!probe_plan_refused(&p, 0, monday, 5 * MINUTE), "that is busy");
    probe_plan_clock_set(&p, step_ms);
    CHECK(!p.nodes[1].refused_ms && !p.nodes[1].again_ms, "the other one was not refused");
    CHECK_INT(probe_plan_next(&p, &now).node, 1, "which is next");
    probe_plan_start(&p, 1);
    probe_plan_end(&p, 1, PROBE_DONE, 60);
    struct probe_next next = probe_plan_next(&p, &now);
    CHECK(next.action == PROBE_AWAIT_TIME && next.until_ms == monday + 5 * MINUTE + step_ms,
          "then what is left of the pause");
    probe_plan_start(&p, 0);
    CHECK(!probe_plan_refused(&p, 0, monday + step_ms + rules.retry_ms - 1, 0), "until its time");
    probe_plan_start(&p, 0);
    CHECK(probe_plan_refused(&p, 0, monday + step_ms + rules.retry_ms, 0), "has passed");
    probe_plan_fini(&p);
}

// Probes that were running when the collector ended count against all limits.
static void test_resumed(void)
{
    struct probe_node nodes[4] = {{.state = PROBE_RUNNING, .past_s = 60}, {.state = PROBE_DONE}};
    struct probe_rules rules = rules_of(4);
    struct probe_clock now = clock_at(monday);
    struct probe_plan p;
    struct err err;
    rules.each_n = 1;
    CHECK(probe_plan_make(&p, &rules, nodes, 4, &err) == 0, "a round in its middle");
    CHECK(probe_plan_next(&p, &now).action == PROBE_AWAIT_END, "its group has no room");
    probe_plan_end(&p, 0, PROBE_DONE, 100);
    CHECK_INT(probe_plan_next(&p, &now).node, 2, "then the next node");
    probe_plan_start(&p, 2);
    CHECK(p.running_s == 100 && p.spent_s == 100, "at what the first one took");
    probe_plan_fini(&p);
}

// All of a cluster are switched off, and are refused in one turn of the collector's loop. To look
// at all nodes before each would take this test longer than it may.
static void test_all_refused(void)
{
    enum { MANY = 1000 * 1000 };
    CLEANUP_MEM struct probe_node *nodes = calloc(MANY, sizeof *nodes);
    struct probe_rules rules = rules_of(4);
    struct probe_clock now = clock_at(monday);
    struct probe_next next;
    struct probe_plan p;
    struct err err;
    int n = 0;
    CHECK(nodes && probe_plan_make(&p, &rules, nodes, MANY, &err) == 0, "a million nodes");
    for (; (next = probe_plan_next(&p, &now)).action == PROBE_START && n < MANY; n++)
        probe_plan_refused(&p, next.node, now.ms, (5 + n % 3) * MINUTE);
    CHECK_INT(n, MANY, "each is tried once");
    CHECK(next.action == PROBE_AWAIT_TIME && next.until_ms == now.ms + 5 * MINUTE,
          "then the first that may be free is awaited");
    probe_plan_fini(&p);
}

static void test_estimate(void)
{
    struct probe_node nodes[100] = {0};
    struct probe_rules rules = rules_of(10);
    struct probe_clock now = clock_at(monday + 12 * 60 * MINUTE); // noon
    struct probe_estimate e;
    struct probe_plan p;
    struct err err;
    for (int i = 0; i < 100; i++)
        nodes[i].past_s = i < 90 ? 120 : 0;
    CHECK(probe_plan_make(&p, &rules, nodes, 100, &err) == 0, "a hundred nodes");
    probe_plan_estimate(&p, &now, &e);
    CHECK(e.nodes == 100 && e.cost_s == 12000 && e.guessed == 0, "a class is known by its nodes");
    CHECK(e.begins_ms == now.ms && e.ends_ms == now.ms + 20 * MINUTE, "ten at a time");
    probe_plan_fini(&p);
    rules.each_n = 2;
    rules.window = hours_of("20:00-20:30");
    CHECK(probe_plan_make(&p, &rules, nodes, 100, &err) == 0, "with a window");
    probe_plan_estimate(&p, &now, &e);
    CHECK(e.begins_ms == monday + 20 * 60 * MINUTE, "it begins when that opens");
    CHECK_INT((e.ends_ms - monday) / MINUTE, 20 * 60 + 3 * DAY_MIN + 10, "and takes four evenings");
    probe_plan_fini(&p);
    rules.budget_s = 1200;
    CHECK(probe_plan_make(&p, &rules, nodes, 100, &err) == 0, "with a budget");
    probe_plan_estimate(&p, &now, &e);
    CHECK(e.nodes == 10 && e.left_out == 90 && e.cost_s == 1200, "ten nodes fit");
    probe_plan_fini(&p);
    for (int i = 0; i < 100; i++)
        nodes[i].past_s = 0;
    CHECK(probe_plan_make(&p, &rules, nodes, 100, &err) == 0, "without history");
    probe_plan_estimate(&p, &now, &e);
    CHECK(e.guessed == e.nodes && e.nodes == 1200 / PROBE_GUESS_S, "durations are guessed");
    probe_plan_fini(&p);
}

int main(void)
{
    test_order();
    test_failures();
    test_busy();
    test_clock_back();
    test_clock_set(DAY_MIN * (int64_t)MINUTE);
    test_clock_set(-DAY_MIN * (int64_t)MINUTE);
    test_resumed();
    test_all_refused();
    test_estimate();
    test_random();
    return tap_done();
}
