// SPDX-License-Identifier: Apache-2.0
// Which nodes are drained: few of a class, never one that others drained, and whatever names,
// metrics and reasons say, a line does one thing to one node.
#include "analysis/peers/drain.h"

#include <limits.h>

#include "base/cleanup.h"
#include "tests/unit/analysis/fleet_pages.h"
#include "tests/unit/tap.h"

enum { MANY = 120, RUNS = 8 };

static const char *reasons[MANY];

// Nodes of one class, measured on so many days; `bad` of them are slower by a fifth.
static struct fleet *made(const char *const *names, int n, int bad, struct fleet_findings *list)
{
    unsigned long long seed = 7;
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = PAGES_NOW;
    struct fleet *f = fleet_new(&o, NULL);
    for (int i = 0; i < n; i++)
        for (int day = 0; day < RUNS; day++) {
            struct page_run r = {.node = names[i],
                                 .class = "AAA",
                                 .config = "SET",
                                 .id = day + 1,
                                 .noise = 0.003,
                                 .measured_ms = PAGES_NOW - (RUNS - day) * PAGES_DAY};
            for (int m = 0; m < PAGE_METRICS; m++)
                r.factor[m] = (i < bad ? 1.2 : 1) * (1 + 0.0001 * i);
            if (page_add(f, &r, &seed) < 0)
                abort();
        }
    if (fleet_findings_find(list, f, NULL) < 0)
        abort();
    for (int i = 0; i < n; i++)
        reasons[i] = "";
    return f;
}

static const char *const *numbered(void)
{
    static char names[MANY][16];
    static const char *list[MANY];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "n%03d", i);
        list[i] = names[i];
    }
    return list;
}

static int verdicts(const struct drain_plan *p, enum drain_verdict v)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        n += p->list[i].verdict == v;
    return n;
}

static struct drain_plan planned(const struct fleet *f, const struct fleet_findings *list)
{
    struct drain_plan p;
    if (drain_plan_make(&p, f, list, reasons, NULL) < 0)
        abort();
    return p;
}

static void test_share(void)
{
    struct fleet_findings list = {0};
    CLEANUP_FLEET struct fleet *f = made(numbered(), MANY, 5, &list);
    struct drain_plan p = planned(f, &list);
    CHECK(p.drains == 2 && verdicts(&p, DRAIN_SHARE) == 3, "2 %% of 120 nodes are 2 (%d of %d)",
          p.drains, p.n);
    int first = p.list[0].node;
    drain_plan_fini(&p);
    reasons[first] = "numaprobe +20.0% l3";
    p = planned(f, &list);
    CHECK(p.drains == 1 && p.ours == 1 && p.list[0].verdict == DRAIN_OURS,
          "one that is drained already counts");
    drain_plan_fini(&p);
    reasons[100] = reasons[101] = "numaprobe slow";
    p = planned(f, &list);
    CHECK(p.drains == 0 && p.ours == 3 && verdicts(&p, DRAIN_RESUME) == 2,
          "also one that is well again, until it is in service");
    drain_plan_fini(&p);
    fleet_findings_fini(&list);
    CLEANUP_FLEET struct fleet *former = made(numbered(), MANY, 5, &list);
    for (int i = 40; i < MANY; i++)
        reasons[i] = NULL;
    p = planned(former, &list);
    CHECK(p.drains == 1 && p.listed == 40, "nodes that Slurm does not list any more do not count");
    drain_plan_fini(&p);
    fleet_findings_fini(&list);
    CLEANUP_FLEET struct fleet *small = made(numbered(), 20, 2, &list);
    p = planned(small, &list);
    CHECK(p.drains == 1 && verdicts(&p, DRAIN_SHARE) == 1, "of a small class it is one node");
    drain_plan_fini(&p);
    fleet_findings_fini(&list);
}

static void test_others(void)
{
    struct fleet_findings list = {0};
    CLEANUP_FLEET struct fleet *f = made(numbered(), MANY, 3, &list);
    CLEANUP_BUF struct buf lines = BUF_INIT;
    reasons[0] = "disk\nscontrol update NodeName=n001 State=DOWN";
    reasons[1] = NULL;
    reasons[50] = "maintenance of numaprobe";
    struct drain_plan p = planned(f, &list);
    CHECK(p.drains == 1 && p.list[p.n - 1].verdict != DRAIN_RESUME,
          "reasons that do not begin with our word are not ours");
    drain_write_lines(&p, f, INT_MAX, &lines);
    CHECK(strstr(buf_text(&lines), "# n000: has another reason already: disk?scontrol update"),
          "a reason stays in its comment: %s", buf_text(&lines));
    CHECK(strstr(buf_text(&lines), "# n001: Slurm does not list it\n"),
          "a node that is not listed");
    drain_plan_fini(&p);
    buf_reset(&lines);
    if (drain_plan_make(&p, f, &list, NULL, NULL) < 0)
        abort();
    drain_write_lines(&p, f, INT_MAX, &lines);
    CHECK(p.drains == 0 && !p.known && verdicts(&p, DRAIN_NOT_KNOWN) == 3 &&
              !strstr(buf_text(&lines), "scontrol"),
          "without Slurm's reasons nothing is suggested");
    drain_plan_fini(&p);
    fleet_findings_fini(&list);
}

// Some weeks later the first `n` nodes have as many runs again, the first `have` with all metrics.
static void measure_again(struct fleet *f, int n, int have, struct fleet_findings *list)
{
    enum { DAYS_AFTER = 60 };
    unsigned long long seed = 5;
    fleet_findings_fini(list);
    f->o.now_ms += DAYS_AFTER * PAGES_DAY;
    for (int i = 0; i < n * RUNS; i++) {
        struct page_run r = {.node = numbered()[i % n],
                             .class = "AAA",
                             .config = "SET",
                             .id = RUNS + 1 + i / n,
                             .noise = 0.003,
                             .lacking = i % n >= have,
                             .measured_ms = f->o.now_ms - (RUNS - i / n) * PAGES_DAY};
        if (page_add(f, &r, &seed) < 0)
            abort();
    }
    if (fleet_findings_find(list, f, NULL) < 0)
        abort();
}

// A node whose peers are not measured any more is not known to be like them.
static void test_peers_that_end(void)
{
    struct fleet_findings list = {0};
    CLEANUP_FLEET struct fleet *f = made(numbered(), 20, 0, &list);
    measure_again(f, PEERS_MIN - 1, PEERS_MIN - 1, &list);
    reasons[2] = "numaprobe slow";
    struct drain_plan p = planned(f, &list);
    CHECK(p.ours == 1 && verdicts(&p, DRAIN_RESUME) == 0,
          "a node whose peers are not measured is not returned to service");
    drain_plan_fini(&p);
    fleet_findings_fini(&list);
}

// Nothing was found, of other metrics than the one for which it was drained: the node does not
// have that one any more, or too few of its peers have it.
static void test_metric_that_ends(void)
{
    for (int have = 0; have < PEERS_MIN; have += PEERS_MIN - 1) {
        struct fleet_findings list = {0};
        CLEANUP_FLEET struct fleet *f = made(numbered(), 20, 0, &list);
        measure_again(f, 20, have, &list);
        reasons[2] = "numaprobe +20.0% latency.local.dram.median_ns";
        reasons[3] = "numaprobe +20.0% latency.n0.n1.median_ns";
        struct drain_plan p = planned(f, &list);
        CHECK(verdicts(&p, DRAIN_RESUME) == 1 && p.list[p.n - 1].node == 3,
              "a node returns to service by the metric for which it was drained: %d with %d",
              verdicts(&p, DRAIN_RESUME), have);
        drain_plan_fini(&p);
        fleet_findings_fini(&list);
    }
}

// Names come from nodes.
static void test_names(void)
{
    static const char *const odd[] = {"all", "n[1-3]", "n1;reboot", "$(reboot)", "DEFAULT"};
    struct fleet_findings list = {0};
    const char *names[MANY];
    memcpy(names, numbered(), sizeof names);
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        names[i] = odd[i];
    CLEANUP_FLEET struct fleet *f = made(names, MANY, (int)COUNT_OF(odd), &list);
    CLEANUP_BUF struct buf lines = BUF_INIT;
    struct drain_plan p = planned(f, &list);
    CHECK(p.drains == 0 && verdicts(&p, DRAIN_NOT_A_NAME) == (int)COUNT_OF(odd),
          "a name that is not one of one node is not drained (%d)", p.n);
    drain_write_lines(&p, f, INT_MAX, &lines);
    CHECK(strstr(buf_text(&lines), "# n1_reboot: ") && !strpbrk(buf_text(&lines), ";$("),
          "nor written: %s", buf_text(&lines));
    drain_plan_fini(&p);
    fleet_findings_fini(&list);
}

static void test_texts(void)
{
    struct fleet_findings list = {0};
    CLEANUP_FLEET struct fleet *f = made(numbered(), MANY, 4, &list);
    CLEANUP_BUF struct buf text = BUF_INIT, reason = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    struct drain_plan p = planned(f, &list);
    struct fleet_finding hostile = *p.list[0].finding;
    hostile.metric = "x';reboot '\n";
    drain_reason(&hostile, &reason);
    CHECK(strpbrk(buf_text(&reason), "';\n") == NULL && strstr(buf_text(&reason), "x__reboot___"),
          "a metric is a word: %s", buf_text(&reason));
    drain_write_lines(&p, f, 1, &text);
    CHECK(strstr(buf_text(&text), "# 2 more are not listed\n"), "a limit of lines: %s",
          buf_text(&text));
    buf_reset(&text);
    drain_write_json(&p, f, 1, &w, NULL);
    CHECK(strstr(buf_text(&text), "\"not_listed\":2}") &&
              strstr(buf_text(&text), "\"action\":\"drain\"") &&
              strstr(buf_text(&text), "\"why\":\"share\"") &&
              strstr(buf_text(&text), "State=DRAIN Reason='numaprobe "),
          "and of a document: %s", buf_text(&text));
    drain_plan_fini(&p);
    fleet_findings_fini(&list);
}

int main(void)
{
    test_share();
    test_others();
    test_peers_that_end();
    test_metric_that_ends();
    test_names();
    test_texts();
    return tap_done();
}
