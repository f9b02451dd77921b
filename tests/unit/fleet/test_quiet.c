// SPDX-License-Identifier: Apache-2.0
// How many alarms a fleet gives on days on which nothing is wrong, and that the finding about a
// node closes when the node is repaired, with all its runs in one history.
#include "analysis/peers/drift.h"
#include "analysis/peers/peers.h"
#include "tests/unit/fleet/quiet.h"
#include "tests/unit/tap.h"

static const struct quiet usual = {
    .nodes = 24, .spread = 0.01, .run = 0.005, .common = 0.003, .seed = 5100};

// Where nothing is wrong, the false discovery rate is the share of judgements with a finding: that
// many alarms a day at most. tests/perf/quiet_days.c has more kinds of fleets.
static void test_quiet_days(void)
{
    enum { FLEETS = 10, DAYS = 100, LARGE = 200, LARGE_FLEETS = 3 };
    double most = PEERS_DEFAULTS.suspect * FLEETS * DAYS;
    struct quiet w = usual;
    int n = quiet_fleets(w, FLEETS, DAYS);
    CHECK(n <= most, "%d alarms, of %g that the false discovery rate allows", n, most);
    w.run = 0.02;
    w.seed = 5500;
    n = quiet_fleets(w, FLEETS, DAYS);
    CHECK(n <= most, "runs that differ more than nodes: %d alarms of %g", n, most);
    w.nodes = LARGE;
    w.seed = 5200;
    n = quiet_fleets(w, LARGE_FLEETS, DAYS);
    most = PEERS_DEFAULTS.suspect * LARGE_FLEETS * DAYS;
    CHECK(n <= most, "in a large class too: %d alarms of %g", n, most);
}

static const struct kept_finding *quiet_find(const struct quiet_run *r, const char *begins)
{
    for (int i = 0; i < r->kept.identities.n; i++)
        if (strncmp(r->kept.identities.list[i], begins, strlen(begins)) == 0)
            return &r->kept.list[i];
    return NULL;
}

static enum kept_state quiet_state(const struct quiet_run *r, const char *begins)
{
    const struct kept_finding *f = quiet_find(r, begins);
    return f ? f->state : KEPT_NONE;
}

static void test_repair(void)
{
    enum { BAD = 30, REPAIRED = 50, DAYS = 90 };
    static struct quiet_run r;
    struct quiet w = usual;
    w.seed = 5301;
    w.bad_from = BAD;
    w.bad_until = REPAIRED;
    w.slow = 0.1;
    quiet_begin(&r, &w);
    while (r.day < BAD)
        quiet_day(&r);
    CHECK(!quiet_find(&r, "outlier n000 "), "nothing is wrong yet");
    while (r.day < BAD + NEWEST_RUNS)
        quiet_day(&r);
    CHECK(quiet_state(&r, "outlier n000 ") == KEPT_OPEN, "a slow node is found");
    const struct kept_finding *f = quiet_find(&r, "outlier n000 ");
    int64_t id = f ? f->id : 0;
    while (r.day < REPAIRED)
        quiet_day(&r);
    CHECK(quiet_state(&r, "outlier n000 ") == KEPT_OPEN, "as long as it is slow");
    while (r.day < REPAIRED + NEWEST_RUNS + KEPT_MISSES)
        quiet_day(&r);
    CHECK(quiet_state(&r, "outlier n000 ") == KEPT_CLOSED, "its repair closes the finding");
    CHECK(quiet_state(&r, "slower n000 ") != KEPT_OPEN, "and that it is slower than before");
    while (r.day < DAYS)
        quiet_day(&r);
    f = quiet_find(&r, "outlier n000 ");
    CHECK(f && f->id == id && f->state == KEPT_CLOSED && f->times == 1,
          "for good: what was slow is the past of a healthy node");
    f = quiet_find(&r, "slower n000 ");
    CHECK(!f || (f->state == KEPT_CLOSED && f->times <= 1), "and so is its own past");
    quiet_end(&r);
}

// A class of fewer nodes than have peers: each is judged by its own past.
// A node without peers is repaired after some days, or after so many that its own past is as slow.
static void test_repair_in_a_small_class(void)
{
    enum { BAD = 40 };
    static const int days[] = {7, 12, 100};
    static struct quiet_run r;
    for (size_t i = 0; i < COUNT_OF(days); i++) {
        struct quiet w = usual;
        w.nodes = PEERS_MIN - 3;
        w.seed = 5302;
        w.bad_from = BAD;
        w.bad_until = BAD + days[i];
        w.slow = 0.1;
        quiet_begin(&r, &w);
        int opened = 0, closed = 0;
        while (r.day < w.bad_until) {
            quiet_day(&r);
            opened = opened || quiet_state(&r, "slower n000 ") != KEPT_OPEN ? opened : r.day;
            closed += opened && quiet_state(&r, "slower n000 ") != KEPT_OPEN;
        }
        CHECK(opened > BAD && opened <= w.bad_until && !closed,
              "a node that got slower is found on day %d, and stays found", opened);
        while (r.day < w.bad_until + 2 * NEWEST_RUNS)
            quiet_day(&r);
        CHECK(quiet_state(&r, "slower n000 ") == KEPT_CLOSED,
              "its repair after %d days closes the finding", days[i]);
        quiet_end(&r);
    }
}

static void outlier_stays(struct quiet w, int until, int days, const char *why)
{
    static struct quiet_run r;
    w.slow = 0.1;
    quiet_begin(&r, &w);
    while (r.day < until)
        quiet_day(&r);
    CHECK(quiet_state(&r, "outlier n000 ") == KEPT_OPEN, "a slow node is found");
    while (r.day < days)
        quiet_day(&r);
    CHECK(quiet_state(&r, "outlier n000 ") == KEPT_OPEN, "%s", why);
    quiet_end(&r);
}

// A class of which all but a few nodes are not measured any more says nothing of those.
static void test_what_ends(void)
{
    enum { BAD = 30, END = 40, DAYS = 70 };
    struct quiet peers = usual, metric = usual;
    peers.seed = 5303;
    peers.bad_from = metric.bad_from = BAD;
    peers.bad_until = DAYS;
    peers.end = END;
    peers.left = PEERS_MIN - 1;
    outlier_stays(peers, END, DAYS, "without peers that are measured it stays one");
    metric.seed = 5305;
    metric.bad_until = metric.lacks = END;
    outlier_stays(metric, END, DAYS - 10,
                  "other metrics do not say that this one is as it should be");
}

// Alone in its new class, a node has no peers.
static void test_other_hardware(void)
{
    enum { BAD = 30, MOVED = 40 };
    static struct quiet_run r;
    struct quiet w = usual;
    w.seed = 5304;
    w.bad_from = BAD;
    w.bad_until = MOVED;
    w.slow = 0.1;
    w.moved = MOVED;
    quiet_begin(&r, &w);
    while (r.day < MOVED + RUNS_MIN - 1)
        quiet_day(&r);
    CHECK(quiet_state(&r, "outlier n000 AAA ") == KEPT_OPEN, "a run of a new class closes nothing");
    while (r.day < MOVED + RUNS_MIN + KEPT_MISSES)
        quiet_day(&r);
    CHECK(quiet_state(&r, "outlier n000 AAA ") == KEPT_CLOSED,
          "a node of another class is not slower than its former one any more");
    quiet_end(&r);
}

static void test_class_drifts(void)
{
    enum { SLOWER = 30, DAYS = 65 };
    static struct quiet_run r;
    struct quiet w = usual;
    int opened = 0;
    w.seed = 5402;
    w.drift_from = SLOWER;
    w.drift = 0.03;
    quiet_begin(&r, &w);
    while (r.day < SLOWER)
        quiet_day(&r);
    CHECK(!quiet_find(&r, "drift "), "a class that does not drift");
    while (r.day < DAYS) {
        quiet_day(&r);
        if (!opened && quiet_state(&r, "drift ") == KEPT_OPEN)
            opened = r.day;
    }
    CHECK(opened > SLOWER && opened <= SLOWER + DRIFT_DAYS, "is found to drift within %d days: %d",
          DRIFT_DAYS, opened - SLOWER);
    const struct kept_finding *f = quiet_find(&r, "drift  AAA ");
    CHECK(f && f->state == KEPT_CLOSED && f->times == 1,
          "one finding of the class, until that is its past");
    CHECK_INT(r.alarms[KEPT_DRIFT], 1, "one alarm");
    CHECK(r.alarms[KEPT_SLOWER] <= 1, "and no node is slower than its peers by it");
    quiet_end(&r);
}

int main(void)
{
    test_quiet_days();
    test_repair();
    test_repair_in_a_small_class();
    test_what_ends();
    test_other_hardware();
    test_class_drifts();
    return tap_done();
}
