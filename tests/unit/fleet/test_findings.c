// SPDX-License-Identifier: Apache-2.0
// Findings that are kept: what judgements and people make of them, in memory and on both engines.
#include "fleet/store/findings.h"
#include "tests/unit/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "fleet/collect/judged_wire.h"
#include "tests/unit/fleet/engines.h"

static int64_t now;
static struct fleet_tally judged;

static struct kept_sight sight(enum kept_what what, const char *node, int grade, int64_t proof)
{
    bool fact = kept_whats[what].about == ABOUT_FACTS;
    return (struct kept_sight){.what = what,
                               .grade = grade,
                               .node = what == KEPT_GROUP ? "" : node,
                               .class = fact ? "" : "class1",
                               .metric = fact ? "" : "latency.local.dram.median_ns",
                               .text = "a sentence, with \"quotes\" and ±",
                               .evidence = "{\"p\":1e-7}",
                               .percent = fact ? (double)NAN : 6.25,
                               .lo = 5.5,
                               .hi = 7.125,
                               .since_ms = fact ? 0 : now - 1000,
                               .proof = proof,
                               .oldest = proof};
}

// One judgement, a minute after the one before.
static void judge(const struct kept_sight *seen, int n, const struct kept_unseen *unseen, int m)
{
    now += 60000;
    const struct kept_judgement j = {seen, unseen, n, m, now};
    CHECK_INT(fleet_store_judge(s, &j, &judged, &err), 0, "a judgement is stored: %s", err.text);
}

static void judge_one(struct kept_sight one)
{
    judge(&one, 1, NULL, 0);
}

static void judge_none(int times)
{
    for (int i = 0; i < times; i++)
        judge(NULL, 0, NULL, 0);
}

struct seen_kept {
    int n, times, grade;
    int64_t id, drained_ms, opened_ms;
    enum kept_state state;
    char note[32], by[32];
    double percent;
};

static int keep_row(void *ctx, const struct fleet_kept *k, struct err *e)
{
    struct seen_kept *out = ctx;
    (void)e;
    out->n++;
    out->id = k->id;
    out->drained_ms = k->drained_ms;
    out->opened_ms = k->opened_ms;
    out->state = k->state;
    out->times = k->times;
    out->grade = k->grade;
    out->percent = k->percent;
    snprintf(out->note, sizeof out->note, "%s", k->note);
    snprintf(out->by, sizeof out->by, "%s", k->by);
    return 0;
}

static struct seen_kept kept(const char *what, const char *node)
{
    struct seen_kept out = {0};
    const struct fleet_kept_query q = {.what = what, .node = node, .states = ~0U};
    if (fleet_store_findings(s, &q, keep_row, &out, &err) < 0)
        out.n = -1;
    return out;
}

static const char *state(const char *what, const char *node)
{
    struct seen_kept k = kept(what, node);
    return k.n == 0 ? "none" : k.n > 1 ? "several" : kept_states[k.state].name;
}

static int mark(int64_t id, enum kept_event event, const char *note)
{
    now += 1000;
    const struct fleet_mark m = {id, event, note, "uid:7", now};
    return fleet_store_mark(s, &m, &judged, &err);
}

static void test_what_is_sure(void)
{
    judge_one(sight(KEPT_OUTLIER, "n1", 2, 100));
    CHECK_STR(state("outlier", "n1"), "open", "what is sure opens at once");
    CHECK(judged.opened == 1 && judged.counts.open[KEPT_OUTLIER][2] == 1, "and is one alarm");
    struct kept_sight other = sight(KEPT_OUTLIER, "n1", 1, 200);
    other.metric = "bandwidth.copy.single.gbps";
    judge_one(other);
    CHECK(judged.opened == 0 && kept("outlier", "n1").n == 1,
          "another worst metric of the node is the same finding");
    judge_none(KEPT_MISSES - 1);
    CHECK_STR(state("outlier", "n1"), "open", "it is not closed by a judgement or two");
    CHECK_INT(judged.counts.unsettled, 1, "which the next ones must settle");
    judge_one(sight(KEPT_OUTLIER, "n1", 2, 300));
    judge_none(KEPT_MISSES - 1);
    CHECK_STR(state("outlier", "n1"), "open", "they count in a row");
    judge_none(1);
    CHECK_STR(state("outlier", "n1"), "closed", "then it closes by itself");
    CHECK(judged.counts.unsettled == 0 && kept("outlier", "n1").times == 1, "and is settled");
    judge_one(sight(KEPT_OUTLIER, "n1", 2, 400));
    CHECK(judged.opened == 1 && kept("outlier", "n1").times == 2 && kept("outlier", "n1").n == 1,
          "it is the same one when it comes back");
}

static void test_what_is_suspect(void)
{
    for (int i = 0; i < 5; i++)
        judge_one(sight(KEPT_SLOWER, "n2", 1, 100));
    CHECK_STR(state("slower", "n2"), "forming", "the same runs confirm nothing");
    CHECK_INT(judged.counts.open[KEPT_SLOWER][1], 0, "and are no alarm");
    judge_one(sight(KEPT_SLOWER, "n2", 1, 200));
    CHECK_STR(state("slower", "n2"), "open", "another run does");
    judge_none(KEPT_MISSES);
    judge_one(sight(KEPT_SLOWER, "n2", 1, 300));
    CHECK_STR(state("slower", "n2"), "closed", "one that comes and goes at the limit stays closed");
    judge_none(KEPT_MISSES);
    judge_one(sight(KEPT_SLOWER, "n2", 1, 400));
    CHECK_STR(state("slower", "n2"), "closed", "also when it does so again");
    judge_one(sight(KEPT_SLOWER, "n2", 1, 500));
    CHECK_STR(state("slower", "n2"), "closed", "or with another run of the same day");
    judge_one(sight(KEPT_SLOWER, "n2", 1, 400 + 86400000));
    CHECK(kept("slower", "n2").state == KEPT_OPEN && kept("slower", "n2").times == 2,
          "until a day later it is still there");
    judge_none(KEPT_MISSES);
    judge_one(sight(KEPT_SLOWER, "n2", 1, 600));
    judge_one(sight(KEPT_SLOWER, "n2", 1, 600 + 2 * 86400000));
    CHECK_STR(state("slower", "n2"), "closed", "two days do not open it a third time");
    judge_one(sight(KEPT_SLOWER, "n2", 1, 600 + 3 * 86400000));
    CHECK_STR(state("slower", "n2"), "open", "but three");
    judge_one(sight(KEPT_SLOWER, "n3", 1, 100));
    judge_one(sight(KEPT_DOWN, "n9", 2, 100)); // takes a larger number
    judge_none(KEPT_MISSES);
    CHECK_STR(state("slower", "n3"), "none", "what was never confirmed leaves nothing");
}

static void test_numbers(void)
{
    judge_one(sight(KEPT_SLOWER, "last", 1, 100));
    int64_t id = kept("slower", "last").id;
    judge_none(2 * KEPT_MISSES);
    judge_one(sight(KEPT_CLOCK, "n4", 2, 100));
    CHECK(kept("clock", "n4").id > id, "no finding gets the number of another one");
}

static void test_people(void)
{
    judge_one(sight(KEPT_OUTLIER, "p1", 2, now));
    int64_t id = kept("outlier", "p1").id;
    CHECK_INT(mark(id, KEPT_ACKNOWLEDGE, "DIMM ordered"), 0, "it is acknowledged: %s", err.text);
    struct kept_sight old = sight(KEPT_OUTLIER, "p1", 2, now - 5000);
    judge_one(old);
    struct seen_kept k = kept("outlier", "p1");
    CHECK(k.state == KEPT_ACKNOWLEDGED && judged.opened == 0, "and stays so");
    CHECK(strcmp(k.note, "DIMM ordered") == 0 && strcmp(k.by, "uid:7") == 0, "with its note");
    CHECK_INT(mark(id, KEPT_FIX, NULL), 0, "it is fixed");
    CHECK_STR(kept("outlier", "p1").note, "DIMM ordered", "without a note the note stays");
    judge_one(old);
    CHECK_STR(state("outlier", "p1"), "fixed", "older runs say nothing of the repair");
    struct kept_sight later = sight(KEPT_OUTLIER, "p1", 2, now + 90000);
    now += 100000;
    judge_one(later);
    CHECK_STR(state("outlier", "p1"), "open", "runs that are all newer do");
    k = kept("outlier", "p1");
    CHECK(k.times == 2 && k.opened_ms == now && judged.opened == 1,
          "which is an alarm, and may drain the node once more");
    judge_one(later);
    CHECK(kept("outlier", "p1").times == 2 && judged.opened == 0, "once");
    judge_none(KEPT_MISSES);
    CHECK(mark(id, KEPT_ACKNOWLEDGE, NULL) < 0 && err.code == ERR_CONFLICT,
          "a closed one is not changed: %s", err.text);
    CHECK(mark(id + 1000, KEPT_FIX, NULL) < 0 && err.code == ERR_NOT_FOUND, "nor one that is not");
}

// A mark before it was open takes the place of the opening, which comes when it relapses.
static void test_marked_before_it_opens(void)
{
    judge_one(sight(KEPT_OUTLIER, "m1", 1, now));
    CHECK_STR(state("outlier", "m1"), "forming", "a suspect is not open yet");
    CHECK_INT(mark(kept("outlier", "m1").id, KEPT_FIX, NULL), 0, "it is marked: %s", err.text);
    now += 3600000;
    judge_one(sight(KEPT_OUTLIER, "m1", 2, now));
    CHECK_STR(state("outlier", "m1"), "open", "and comes back");
    CHECK_INT(kept("outlier", "m1").opened_ms, now, "it is open since then");
    CHECK_INT(kept("outlier", "m1").times, 1, "for the first time");
    CHECK_INT(judged.opened, 1, "which is an alarm");
    judge_one(sight(KEPT_OUTLIER, "m2", 1, now));
    int64_t id = kept("outlier", "m2").id;
    CHECK(mark(id, KEPT_ACKNOWLEDGE, NULL) == 0 && mark(id, KEPT_REOPEN, NULL) == 0 &&
              kept("outlier", "m2").opened_ms > 0 && kept("outlier", "m2").times == 1,
          "as is one that a person opens");
    judge_none(KEPT_MISSES);
}

static void test_what_is_not_known(void)
{
    const struct kept_sight seen[] = {sight(KEPT_OUTLIER, "u1", 2, 1), sight(KEPT_DOWN, "u1", 2, 1),
                                      sight(KEPT_GROUP, "", 0, 1), sight(KEPT_TWIN, "u2", 2, 1)};
    const struct kept_unseen unseen[] = {{"u1", "", ABOUT_VERDICT}, {"class1", "", ABOUT_CLASS}};
    struct kept_sight group = sight(KEPT_GROUP, "", 0, 2);
    judge(seen, 4, NULL, 0);
    CHECK_STR(state("group", ""), "forming", "a group is confirmed by other runs too");
    judge_one(group);
    for (int i = 0; i < 2 * KEPT_MISSES; i++)
        judge(NULL, 0, unseen, 2);
    CHECK_STR(state("outlier", "u1"), "open", "a node that was not judged keeps its finding");
    CHECK_STR(state("group", ""), "open", "and a class");
    const struct kept_unseen in[] = {{"u1", "class1", ABOUT_VERDICT}, {"u1", "", ABOUT_FACTS}};
    const struct kept_unseen other = {"u1", "class2", ABOUT_VERDICT};
    for (int i = 0; i < KEPT_MISSES; i++)
        judge(NULL, 0, in, 2);
    CHECK_STR(state("outlier", "u1"), "open", "as does one whose class has too few nodes");
    for (int i = 0; i < KEPT_MISSES; i++)
        judge(NULL, 0, &other, 1);
    CHECK_STR(state("outlier", "u1"), "closed", "one that is of another class does not");
    CHECK_STR(state("down", "u1"), "closed", "what it responds is known");
    CHECK_STR(state("twin", "u2"), "closed", "as is another node");
    CHECK(isnan(kept("down", "u1").percent) && !isnan(kept("outlier", "u1").percent),
          "what has no number has none");
}

static void test_drained(void)
{
    judge_one(sight(KEPT_OUTLIER, "d1", 2, now));
    int64_t id = kept("outlier", "d1").id, opened = now;
    CHECK(kept("outlier", "d1").drained_ms == 0, "a finding drains nothing by itself");
    CHECK_INT(fleet_store_drained(s, id, now + 5, &err), 0,
              "that its node was drained is stored: %s", err.text);
    CHECK_INT(fleet_store_drained(s, id + 99999, now, &err), 0, "of one that is gone it is not");
    now += 10;
    judge_one(sight(KEPT_OUTLIER, "d1", 2, now));
    CHECK(kept("outlier", "d1").drained_ms == opened + 5, "and stays as it is found again");
}

// The clock is a year ahead while a finding is opened, marked as fixed and its node drained.
static void test_clock_was_ahead(void)
{
    static const int64_t year_ms = 365 * INT64_C(86400000);
    judge_one(sight(KEPT_OUTLIER, "c1", 2, now));
    int64_t id = kept("outlier", "c1").id;
    now += year_ms;
    judge_one(sight(KEPT_OUTLIER, "c2", 2, now - year_ms));
    CHECK_INT(mark(id, KEPT_FIX, NULL), 0, "it is fixed: %s", err.text);
    CHECK_INT(fleet_store_drained(s, id, now, &err), 0, "and drained: %s", err.text);
    now -= year_ms;
    const struct kept_sight both[] = {sight(KEPT_OUTLIER, "c1", 2, now),
                                      sight(KEPT_OUTLIER, "c2", 2, now)};
    judge(both, 2, NULL, 0);
    CHECK_STR(state("outlier", "c1"), "fixed", "the mark counts");
    CHECK(kept("outlier", "c1").drained_ms == now && kept("outlier", "c2").opened_ms == now,
          "what is to come counts as now");
    judge_one(sight(KEPT_OUTLIER, "c1", 2, now + 60000));
    CHECK_STR(state("outlier", "c1"), "open", "and newer runs show that it is not fixed");
}

static int say_row(void *ctx, const struct fleet_kept *k, struct err *e)
{
    (void)e;
    buf_fmt(ctx,
            "%" PRId64 " %s %s %d %d '%s' '%s' '%s' %s %a %a %a %" PRId64 " %" PRId64 " %" PRId64
            " %" PRId64 " %" PRId64 " %" PRId64 " '%s' '%s' %s\n",
            k->id, kept_whats[k->what].name, kept_states[k->state].name, k->grade, k->times,
            k->node, k->class, k->metric, k->text, k->percent, k->lo, k->hi, k->found_ms,
            k->seen_ms, k->opened_ms, k->closed_ms, k->marked_ms, k->since_ms, k->by, k->note,
            k->evidence);
    buf_fmt(ctx, "drained %" PRId64 "\n", k->drained_ms);
    return 0;
}

static int count_row(void *ctx, const struct fleet_kept *k, struct err *e)
{
    int *left = ctx;
    (void)k;
    (void)e;
    return --*left == 0;
}

static void test_lists(void)
{
    enum { MANY = 1201 };
    static char names[MANY][8];
    struct kept_sight *seen = calloc(MANY, sizeof *seen);
    struct seen_kept all = {0};
    int left = 3;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "m%04d", i);
        seen[i] = sight(KEPT_ALIEN, names[i], 2, 1);
    }
    judge(seen, MANY, NULL, 0);
    free(seen);
    struct fleet_kept_query q = {.what = "alien", .states = 1U << KEPT_OPEN};
    fleet_store_findings(s, &q, keep_row, &all, &err);
    CHECK_INT(all.n, MANY, "more than are read at once");
    CHECK(fleet_store_findings(s, &q, count_row, &left, &err) == 0 && left == 0,
          "a list ends when the caller has enough");
    q.before = all.id + 2;
    all = (struct seen_kept){0};
    fleet_store_findings(s, &q, keep_row, &all, &err);
    CHECK_INT(all.n, 2, "the page after the next");
    int64_t id = all.id;
    now += (int64_t)(KEPT_CLOSED_DAYS + 1) * 86400000;
    judge_none(KEPT_MISSES);
    const int64_t most = judged.counts.states[KEPT_CLOSED];
    now += (int64_t)(KEPT_CLOSED_DAYS + 1) * 86400000;
    judge_one(sight(KEPT_ALIEN, "m0000", 2, 2));
    CHECK(most > MANY - 2 && judged.counts.states[KEPT_CLOSED] >= most - 1,
          "a judgement deletes none, whatever the clock is");
    struct fleet_retention r = {.before_ms = now - (int64_t)KEPT_CLOSED_DAYS * 86400000,
                                .now_ms = now};
    CHECK(fleet_store_findings_retain(s, &r, &err) == 0 && r.deleted >= MANY - 2,
          "%" PRId64 " are deleted: %s", r.deleted, err.text);
    all = (struct seen_kept){0};
    fleet_store_findings(s, &(struct fleet_kept_query){.id = id, .states = ~0U}, keep_row, &all,
                         &err);
    int n = kept("alien", NULL).n;
    CHECK(all.n == 1 && n <= 2, "old closed ones are deleted (%d, %d)", all.n, n);
}

static void run_scenarios(const char *where)
{
    now = page_day0;
    test_what_is_sure();
    test_what_is_suspect();
    test_numbers();
    test_people();
    test_marked_before_it_opens();
    test_what_is_not_known();
    test_drained();
    test_clock_was_ahead();
    fleet_store_findings(s, &(struct fleet_kept_query){.states = ~0U}, say_row, &said, &err);
    struct fleet_tally before = judged;
    fleet_store_close(s);
    s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK_INT(fleet_store_counts(s, &judged, &err), 0, "findings are counted after a restart");
    CHECK(memcmp(judged.counts.states, before.counts.states, sizeof judged.counts.states) == 0,
          "and are the same");
    test_lists();
}

static void test_wire(void)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct judged_lists l;
    struct kept_sight one = sight(KEPT_OUTLIER, "w1", 2, 5);
    one.n_runs = 2;
    one.runs[1] = 17;
    judged_begin(&b, 1, 1, 77);
    judged_add_unseen(&b, &(struct kept_unseen){"w2", "k3", ABOUT_FACTS});
    judged_add_sight(&b, &one);
    CHECK_INT(judged_read(&l, b.data, b.len, &err), 0, "a judgement is read back");
    CHECK(l.judgement.now_ms == 77 && l.judgement.n_seen == 1 && l.judgement.n_unseen == 1 &&
              strcmp(l.seen[0].evidence, one.evidence) == 0 && l.seen[0].proof == 5 &&
              strcmp(l.unseen[0].name, "w2") == 0 && strcmp(l.unseen[0].class, "k3") == 0 &&
              l.unseen[0].about == ABOUT_FACTS && l.seen[0].n_runs == 2 && l.seen[0].runs[1] == 17,
          "as it was written");
    judged_lists_fini(&l);
    int refused = 0;
    for (size_t n = 0; n < b.len; n++)
        refused += judged_read(&l, b.data, n, &err) < 0;
    CHECK_INT(refused, (int)b.len, "and none that was cut");
    buf_char(&b, 'x');
    CHECK(judged_read(&l, b.data, b.len, &err) < 0, "nor one with more behind it");
}

static void test_states(void)
{
    for (int i = KEPT_NONE; i < KEPT_STATES; i++) {
        CHECK(kept_states[i].name != NULL, "state %d has a name", i);
        CHECK_INT(kept_state_find(kept_states[i].name), i == KEPT_NONE ? -1 : i,
                  "%s is found by its name", kept_states[i].name);
    }
    for (int i = 0; i < KEPT_WHATS; i++)
        CHECK(kept_whats[i].name && kept_whats[i].about && kept_what_find(kept_whats[i].name) == i,
              "kind %d has a name", i);
    CHECK(kept_state_find("asleep") < 0 && kept_what_find("tired") < 0, "others are not found");
}

// Whatever nodes do, so many findings are kept.
static void test_rows(void)
{
    enum { MORE = 5, ALL = KEPT_MAX + MORE };
    CLEANUP_MEM struct kept_sight *seen = calloc(ALL, sizeof *seen);
    CLEANUP_MEM char(*names)[16] = calloc(ALL, sizeof *names);
    struct kept_list l = {0};
    for (int i = 0; seen && names && i < ALL; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        seen[i] = sight(KEPT_DOWN, names[i], 2, 100);
    }
    const struct kept_judgement j = {seen, NULL, ALL, 0, now};
    CHECK_INT(seen && names ? kept_judge(&l, &j, &err) : -1, 0, "a judgement of many: %s",
              err.text);
    CHECK_INT(l.identities.n, KEPT_MAX, "so many findings are kept");
    CHECK_INT(l.left_out, MORE, "the others are counted");
    kept_list_fini(&l);
}

int main(void)
{
    test_states();
    test_rows();
    engines_run(run_scenarios);
    test_wire();
    return tap_done();
}
