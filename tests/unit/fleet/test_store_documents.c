// SPDX-License-Identifier: Apache-2.0
// What a store keeps beside the pages of nodes, on each engine: documents, whole runs, campaigns.
#include "tests/unit/tap.h"

#include <math.h>

#include "base/str.h"
#include "fleet/store/archive.h"
#include "fleet/store/campaigns.h"
#include "fleet/store/parts.h"
#include "tests/unit/fleet/engines.h"

static int name_wanted(void *ctx, const char *hash, const char *node, struct err *e)
{
    (void)e;
    buf_fmt(ctx, "%.8s %s\n", hash, node);
    return 0;
}

static void test_documents(void)
{
    CLEANUP_BUF struct buf wanted = BUF_INIT, after = BUF_INIT, body = BUF_INIT;
    static struct facts facts;
    facts = (struct facts){0};
    facts_add(&facts, "cpu_model", "%s", "A \"B\" 'C'");
    facts_seal(&facts);
    struct maker m = maker_at("d1", "2000", 0, 2);
    m.class = "cpu_model=A \"B\" 'C'\n"; // what is sealed
    made_page_put(s, &m, &err);
    CHECK_INT(fleet_store_wanted(s, 100, name_wanted, &wanted, &err), 0, "documents are missing");
    CHECK(strncmp(buf_text(&wanted), facts.hash, 8) == 0, "the newest first");
    CHECK_INT(fleet_store_facts_put(s, &facts, &err), 0, "facts are stored");
    CHECK_INT(fleet_store_facts_put(s, &facts, &err), 0, "twice is once");
    fleet_store_wanted(s, 100, name_wanted, &after, &err);
    CHECK(after.len < wanted.len, "and not wanted any more");
    CHECK(fleet_store_document(s, facts.hash, &body, &err) == 0 &&
              strstr(buf_text(&body), "A \\\"B\\\" 'C'"),
          "they come back");
    facts.list[0].value[0] = 'X';
    CHECK(fleet_store_facts_put(s, &facts, &err) < 0 && err.code == ERR_INVALID,
          "facts with another hash are refused");
    CHECK(fleet_store_document(s, "00", &body, &err) < 0 && err.code == ERR_NOT_FOUND,
          "an unknown hash");
    static const char *const own[] = {"e0", "e1", "e2"};
    for (int i = 0; i < 3; i++) {
        struct maker many = maker_at("d2", "2001", i, i + 1);
        many.class = many.config = own[i];
        made_page_put(s, &many, &err);
    }
    CLEANUP_BUF struct buf fair = BUF_INIT;
    fleet_store_wanted(s, 2, name_wanted, &fair, &err);
    CHECK(strstr(buf_text(&fair), " d1\n") != NULL, "each node has its turn");
    CLEANUP_BUF struct buf before = BUF_INIT, facts_only = BUF_INIT;
    fleet_store_wanted(s, 100, name_wanted, &before, &err);
    struct maker place = maker_at("d3", "2002", 0, 1);
    place.class = m.class;
    place.config = m.config;
    for (int i = 0; i < 3; i++) {
        place.topology = own[i];
        place.after = i;
        place.last = i + 1;
        made_page_put(s, &place, &err);
    }
    fleet_store_wanted(s, 100, name_wanted, &facts_only, &err);
    CHECK_INT(facts_only.len, before.len, "topologies take no places");
    buf_str(&said, buf_text(&wanted));
    buf_str(&said, buf_text(&body));
}

static int name_wanted_run(void *ctx, const struct fleet_wanted_run *w, struct err *e)
{
    (void)e;
    buf_fmt(ctx, "%s %lld %lld", w->node, (long long)w->seq, (long long)w->run);
    buf_fmt(ctx, "%s%s\n", strcmp(w->under, w->node) != 0 ? " of " : "",
            strcmp(w->under, w->node) != 0 ? w->under : "");
    return 0;
}

static void say_wanted_runs(int64_t now_ms)
{
    buf_fmt(&said, "wanted:\n");
    if (fleet_store_archive_wanted(s, now_ms, 10, name_wanted_run, &said, &err) < 0)
        buf_str(&said, err.text);
}

static const char *archived(const char *node, int64_t seq, struct buf *out)
{
    buf_reset(out);
    return fleet_store_archive_get(s, node, seq, out, &err) < 0 ? err.text : buf_text(out);
}

static void test_archive(void)
{
    enum { LATER_MS = 3600 * 1000 };
    static const char text[] = "{\"run\":{\"seq\":2}, \"same same same same same same same\":1}";
    CLEANUP_BUF struct buf out = BUF_INIT;
    const int64_t runs_cited[] = {5, 6, 99}, now = page_day0 + 100 * page_day;
    const struct fleet_cited_runs cited[] = {{"w1", runs_cited, COUNT_OF(runs_cited), 0},
                                             {"nobody", runs_cited, COUNT_OF(runs_cited), 0},
                                             {"w0", runs_cited, COUNT_OF(runs_cited), now}};
    struct maker m = maker_at("w1", "a4c1", 0, 2);
    put("w0", "a4c0", 0, 2);
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    m.label = "before the firmware";
    made_page_put(s, &m, &err);
    put("w1", "a4c1", 2, 4);
    say_wanted_runs(now);
    CHECK_STR(archived("w1", 2, &out),
              "run 2 of node w1 is not archived yet: it is requested from the node", "wanted");
    CHECK_INT(fleet_store_archive_want(s, cited, COUNT_OF(cited), &err), 0,
              "runs that a finding cites are wanted: %s", err.text);
    CHECK_INT(fleet_store_archive_want(s, cited, 1, &err), 0, "and again: %s", err.text);
    say_wanted_runs(now);
    struct fleet_whole list[] = {{.node = "w1", .seq = 2, .why = ""},
                                 {.node = "w1", .seq = 3, .why = "status 404", .never = true},
                                 {.node = "w1", .seq = 4, .why = "status 503"},
                                 {.node = "unknown", .seq = 4, .why = ""}};
    CHECK(fleet_whole_fill(&list[0], text, sizeof text - 1, &err) == 0 &&
              fleet_store_archive_put(s, list, COUNT_OF(list), now, &err) == 0,
          "one is here: %s", err.text);
    CHECK_STR(archived("w1", 2, &out), text, "and comes back");
    CHECK_STR(archived("w1", 3, &out), "run 3 of node w1 is not archived: status 404",
              "one is given up");
    CHECK_STR(archived("w0", 1, &out), "run 1 of node w0 is not archived",
              "none was wanted without a reason");
    say_wanted_runs(now);
    say_wanted_runs(now + LATER_MS);
    buf_reset(&out);
    CHECK(fleet_store_archive_wanted(s, now - 365 * page_day, 10, name_wanted_run, &out, &err) ==
                  0 &&
              strstr(buf_text(&out), "w1 4 "),
          "one that failed while the clock was a year ahead is not left for a year: %s",
          buf_text(&out));
    CHECK_INT(fleet_store_archive_put(s, list, 1, now + 1, &err), 0, "once more changes nothing");
    buf_free(&list[0].frame);
    struct fleet_retention r = {.before_ms = now, .now_ms = now};
    CHECK_INT(fleet_store_archive_retain(s, &r, &err), 0, "deletes: %s", err.text);
    CHECK(!r.deleted && !r.held, "what is younger stays");
    r.before_ms++;
    CHECK_INT(fleet_store_archive_retain(s, &r, &err), 0, "deletes: %s", err.text);
    CHECK(r.deleted == 1 && !r.held, "the rest goes");
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
    CHECK(fleet_whole_fill(&list[0], text, FLEET_ARCHIVE_BYTES_MAX + 1, &err) < 0 &&
              err.code == ERR_TOO_LARGE,
          "a limit: %s", err.text);
}

// Requested as often as the node responds so: `never` is not set. Whether it is given up.
static bool refused_times(int times, const char *why, bool refused, int64_t now)
{
    struct fleet_whole w = {.node = "w11", .seq = 1, .why = why, .refused = refused};
    for (int i = 0; i < times && !w.given_up; i++)
        CHECK_INT(fleet_store_archive_put(s, &w, 1, now, &err), 0, "no run: %s", err.text);
    return w.given_up;
}

static int64_t last_given_up(void)
{
    int64_t due_ms = 0;
    static const char sql[] = "SELECT max(due_ms) FROM archive WHERE state = 2";
    CHECK(fleet_begin(s, &err) == 0 &&
              fleet_end(s, s->engine->query(s->db, sql, NULL, 0, fleet_number, &due_ms, &err),
                        &err) == 0,
          "when the last one was given up: %s", err.text);
    return due_ms;
}

// A run that its node has and cannot send is given up after ten refusals, and one of a node that
// does not respond is not.
static void test_archive_of_a_refused_run(void)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    const int64_t now = page_day0 + 100 * page_day;
    struct maker m = maker_at("w11", "a4cc", 0, 1);
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    m.label = "mine";
    made_page_put(s, &m, &err);
    CHECK(!refused_times(30, "no response", false, now), "it may come back");
    CHECK(!refused_times(1, "status 500", true, now), "once is not enough");
    CHECK(!refused_times(1, "status 409", true, now), "nor is another reason");
    CHECK(!refused_times(3, "no response", false, now), "without a response nothing changes");
    CHECK(!refused_times(FLEET_REFUSED_TRIES - 2, "status 409", true, now),
          "what it did not respond to counts for nothing");
    CHECK_STR(archived("w11", 1, &out),
              "run 1 of node w11 is not archived yet: it is requested from the node", "wanted");
    CHECK_INT(err.code, ERR_NOT_FOUND, "it may come");
    CHECK(refused_times(1, "status 409", true, now + 1), "the same for the tenth time");
    CHECK(last_given_up() == now + 1, "it is known when that was");
    CHECK_STR(archived("w11", 1, &out), "run 1 of node w11 is not archived: status 409", "is said");
    CHECK_INT(err.code, ERR_GONE, "another collector need not ask again");
    CHECK(!refused_times(1, "status 409", true, now), "once");
    fleet_store_archive_wanted(s, INT64_MAX / 2, 1000, name_wanted_run, &out, &err);
    CHECK(!strstr(buf_text(&out), "w11"), "it is not requested again");
    put("w11", "a4cc", 1, 2);
    m = maker_at("w11", "a4cc", 2, 3);
    m.label = "another";
    made_page_put(s, &m, &err);
    struct fleet_whole w = {.node = "w11", .seq = 3, .why = "status 409", .refused = true};
    for (int i = 0; i < FLEET_REFUSED_TRIES; i++)
        CHECK(fleet_store_archive_put(s, &w, 1, now, &err) == 0 && !w.given_up, "try %d", i);
    w.why = "status 500";
    CHECK(fleet_store_archive_put(s, &w, 1, now, &err) == 0 && !w.given_up, "another reason");
    CHECK(fleet_store_archive_put(s, &w, 1, now, &err) == 0 && w.given_up, "twice");
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
}

// What is wanted of a node that was renamed has its new name, and stays under the old one.
static void test_archive_of_a_renamed_node(void)
{
    static const char text[] = "{\"run\":{\"seq\":1}}";
    CLEANUP_BUF struct buf out = BUF_INIT;
    const int64_t now = page_day0 + 100 * page_day;
    struct maker m = maker_at("w3", "a4c3", 0, 1);
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    m.label = "before the name";
    made_page_put(s, &m, &err);
    CHECK_INT(fleet_store_gone(s, (const char *[]){"w3"}, 1, &err), 0, "a node is gone");
    CHECK_INT(fleet_store_archive_wanted(s, now, 10, name_wanted_run, &out, &err), 0, "wanted");
    CHECK(!strstr(buf_text(&out), "w3"), "of it nothing is requested: %s", buf_text(&out));
    CHECK_INT(put("w4", "a4c3", 1, 2).outcome, FLEET_RENAMED, "another name has its history");
    CHECK_INT(put("w3", "a4c4", 0, 1).outcome, FLEET_STORED, "another machine gets the name");
    CHECK_INT(fleet_store_archive_wanted(s, now, 10, name_wanted_run, &out, &err), 0, "wanted");
    CHECK(strstr(buf_text(&out), "w4 1 ") && strstr(buf_text(&out), " of w3\n"),
          "its run is requested by the new name: %s", buf_text(&out));
    struct fleet_whole list[] = {{.node = "w4", .under = "w3", .seq = 1, .why = ""}};
    CHECK(fleet_whole_fill(&list[0], text, sizeof text - 1, &err) == 0 &&
              fleet_store_archive_put(s, list, 1, now, &err) == 0,
          "it comes: %s", err.text);
    buf_free(&list[0].frame);
    buf_reset(&out);
    CHECK_INT(fleet_store_archive_wanted(s, now, 10, name_wanted_run, &out, &err), 0, "wanted");
    CHECK(!strstr(buf_text(&out), " of w3\n"), "and is not requested again: %s", buf_text(&out));
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
}

// A page of notes alone, after the number `after` of the node's feed.
static struct fleet_ack note_of(const char *node, const char *history, int64_t after,
                                const struct summary_note *notes, int n)
{
    struct maker m = maker_at(node, history, after, after);
    m.notes = notes;
    m.n_notes = n;
    return made_page_put(s, &m, &err);
}

static struct fleet_ack note(int64_t after, const struct summary_note *notes, int n)
{
    return note_of("w2", "a4c2", after, notes, n);
}

static void say_labels(void)
{
    const struct fleet_window w = {.node = "w2"};
    buf_str(&said, "labels:\n");
    made_json_window(s, &w, &said);
}

static int label_has(void *ctx, const struct summary_page *page, struct err *e)
{
    (void)e;
    for (int i = 0; i < page->n_runs; i++)
        if (page->runs[i].seq == 2)
            snprintf(ctx, RUN_LABEL_MAX + 1, "%s", page->runs[i].label);
    return 0;
}

static const char *label_of_second(void)
{
    static char label[RUN_LABEL_MAX + 1];
    const struct fleet_window w = {.node = "w2"};
    fleet_store_window(s, &w, label_has, label, &err);
    return label;
}

// Labels and baselines that runs get when they are here.
static void test_notes(void)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    const int64_t cited_runs[] = {5}, now = page_day0 + 400 * page_day;
    const struct fleet_cited_runs cited = {"w2", cited_runs, 1, 0};
    const struct summary_note set[] = {{.run_seq = 2, .run = 4, .label = "kept"},
                                       {.run_seq = 3, .run = 5, .label = "m\xc3\xbc"},
                                       {.run_seq = 1, .run = 3, .label = "", .baseline = true}},
                              gone[] = {{.run_seq = 2, .run = 4, .label = ""},
                                        {.run_seq = 3, .run = 5, .label = ""},
                                        {.run_seq = 1, .run = 3, .label = ""}},
                              two[] = {{.run_seq = 2, .run = 4, .label = "one"},
                                       {.run_seq = 2, .run = 4, .label = "two"}},
                              none[] = {{.run_seq = 7, .run = 9, .label = "never stored"}};
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    put("w2", "a4c2", 0, 3);
    CHECK_STR(archived("w2", 2, &out), "run 2 of node w2 is not archived", "no label yet");
    CHECK_INT(note(100, none, 1).outcome, FLEET_BEHIND, "a page from elsewhere changes nothing");
    struct fleet_ack ack = note(3, set, COUNT_OF(set));
    CHECK(ack.outcome == FLEET_STORED && ack.next == 6 && ack.stored == 0, "notes move the place");
    CHECK_STR(label_of_second(), "kept", "the run has its label");
    CHECK_STR(archived("w2", 2, &out),
              "run 2 of node w2 is not archived yet: it is requested from the node", "is wanted");
    CHECK_INT(note(3, gone, COUNT_OF(gone)).outcome, FLEET_BEHIND, "a page twice is stored once");
    say_labels();
    say_wanted_runs(now);
    CHECK_INT(fleet_store_archive_want(s, &cited, 1, &err), 0, "a finding cites run 3");
    CHECK_INT(note(6, gone, COUNT_OF(gone)).next, 9, "the labels go");
    CHECK_STR(label_of_second(), "", "the run has none");
    CHECK_STR(archived("w2", 2, &out), "run 2 of node w2 is not archived", "and is not kept");
    say_labels();
    say_wanted_runs(now);
    CHECK_INT(note(9, two, COUNT_OF(two)).next, 11, "two notes of one run");
    CHECK_STR(label_of_second(), "two", "the last one counts");
    CHECK_INT(note(11, none, 1).next, 12, "a note of a run that is not here is passed over");
    struct maker m = maker_at("w2", "a4c2", 12, 13);
    const struct summary_note same = {.run_seq = 13, .run = 15, .label = "at once"},
                              early = {.run_seq = 14, .run = 14, .label = ""};
    m.notes = &same;
    m.n_notes = 1;
    ack = made_page_put(s, &m, &err);
    CHECK(ack.stored == 1 && ack.next == 14, "a run and its note in one page");
    CHECK_STR(archived("w2", 13, &out),
              "run 13 of node w2 is not archived yet: it is requested from the node", "and kept");
    CHECK_INT(note(14, &early, 1).next, 15, "a note before its run");
    const struct summary_note later = {.run_seq = 99, .run = 99, .label = "", .seq = 1};
    CHECK_INT(note(15, &later, 1).outcome, FLEET_GARBLED, "a note of a run of the future");
    say_labels();
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
    CHECK_INT(note(15, gone, 1).next, 16, "where nothing is archived");
    CHECK_STR(label_of_second(), "", "labels are stored");
}

static int count_wanted_run(void *ctx, const struct fleet_wanted_run *w, struct err *e)
{
    (void)e;
    *(int *)ctx += strcmp(w->node, "w8") == 0;
    return 0;
}

static int wanted_of_w8(void)
{
    int n = 0;
    return fleet_store_archive_wanted(s, INT64_MAX / 2, 2 * FLEET_LABELLED_MAX, count_wanted_run,
                                      &n, &err) < 0
               ? -1
               : n;
}

// A node that labels all of its runs, and later a finding that cites one of the last.
static void test_archive_limit(void)
{
    enum { PAGE = 500, MORE = 10 };
    int unkept = 0;
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    for (int64_t last = 0; last < FLEET_LABELLED_MAX + MORE;) {
        struct maker m = maker_at("w8", "a4c8", last, last + PAGE);
        m.label = "mine";
        m.metrics = 1;
        if (m.last > FLEET_LABELLED_MAX + MORE)
            m.last = FLEET_LABELLED_MAX + MORE;
        struct fleet_ack ack = made_page_put(s, &m, &err);
        unkept += ack.unkept;
        last = ack.outcome == FLEET_STORED ? ack.next : INT64_MAX;
    }
    CHECK_INT(unkept, MORE, "labels archive no more runs than a node may have");
    CHECK_INT(wanted_of_w8(), FLEET_LABELLED_MAX, "and the others are wanted");
    struct maker next = maker_at("w9", "a4c9", 0, 2);
    next.label = "mine";
    CHECK_INT(made_page_put(s, &next, &err).unkept, 0, "another node is not affected");
    enum { LAST = FLEET_LABELLED_MAX + MORE };
    const struct summary_note more = {.run_seq = LAST - 1, .run = LAST + 1, .label = "later"},
                              less = {.run_seq = 2, .run = 4, .label = ""};
    CHECK_INT(note_of("w8", "a4c8", LAST, &more, 1).unkept, 1, "nor do notes archive more");
    CHECK_INT(note_of("w8", "a4c8", LAST + 1, &less, 1).unkept, 0, "a label that goes");
    CHECK_INT(wanted_of_w8(), FLEET_LABELLED_MAX - 1, "gives its place back");
    CHECK_INT(note_of("w8", "a4c8", LAST + 2, &more, 1).unkept, 0, "to a later label");
    CHECK_INT(wanted_of_w8(), FLEET_LABELLED_MAX, "and no more than that");
    const int64_t last = FLEET_LABELLED_MAX + MORE + 2; // the node's number of it
    const struct fleet_cited_runs cited = {"w8", &last, 1, 0};
    CHECK_INT(fleet_store_archive_want(s, &cited, 1, &err), 0, "a finding cites one: %s", err.text);
    CHECK_INT(wanted_of_w8(), FLEET_LABELLED_MAX + 1, "which is wanted all the same");
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
}

static int unkept_note(int64_t run_seq, int64_t after, int64_t received_ms)
{
    const struct summary_note note = {.run_seq = run_seq, .run = run_seq + 2, .label = "later"};
    struct maker m = maker_at("w10", "a4ca", after, after);
    m.notes = &note;
    m.n_notes = 1;
    m.received_ms = received_ms;
    return made_page_put(s, &m, &err).unkept;
}

static int64_t rows_of_w10(void)
{
    int64_t rows = -1;
    return fleet_begin(s, &err) < 0 ||
                   fleet_end(s,
                             s->engine->query(s->db,
                                              "SELECT count(*) FROM archive AS a JOIN node AS n ON "
                                              "n.id = a.node WHERE n.name = 'w10'",
                                              NULL, 0, fleet_number, &rows, &err),
                             &err) < 0
               ? -1
               : rows;
}

// Runs that were given up, and those that are wanted of a history that has ended.
static void test_archive_places_come_back(void)
{
    enum { PAGE = 500, LAST = FLEET_LABELLED_MAX + 10 };
    const int64_t now = page_day0 + 400 * page_day;
    struct fleet_whole gone[] = {{.node = "w10", .seq = 3, .why = "status 404", .never = true},
                                 {.node = "w10", .seq = 4, .why = "status 404", .never = true},
                                 {.node = "w10", .seq = 5, .why = "status 503"}};
    struct maker m = maker_at("w10", "a4ca", 0, 0);
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    m.label = "mine";
    m.metrics = 1;
    for (int64_t last = 0; last < LAST; last = m.last) {
        m.after = last;
        m.last = last + PAGE < LAST ? last + PAGE : LAST;
        CHECK_INT(made_page_put(s, &m, &err).outcome, FLEET_STORED, "runs with labels");
    }
    CHECK_INT(rows_of_w10(), FLEET_LABELLED_MAX, "as many as there may be");
    CHECK_INT(fleet_store_archive_put(s, gone, COUNT_OF(gone), now, &err), 0, "two are given up");
    CHECK_INT(unkept_note(LAST - 1, LAST, now + 29 * page_day), 1, "they keep their places");
    CHECK_INT(unkept_note(LAST - 1, LAST + 1, now + 31 * page_day), 0, "for a month");
    CHECK_INT(unkept_note(LAST - 2, LAST + 2, now + 31 * page_day), 0, "both of them");
    CHECK_INT(unkept_note(LAST - 3, LAST + 3, now + 31 * page_day), 1,
              "and one that is tried again keeps its own");
    CHECK_INT(rows_of_w10(), FLEET_LABELLED_MAX, "no more than before");
    m = maker_at("w10", "a4cb", 0, 3);
    m.label = "new";
    m.received_ms = now + 40 * page_day;
    CHECK_INT(made_page_put(s, &m, &err).unkept, 0, "what is wanted of a history that has ended");
    CHECK_INT(rows_of_w10(), 2 + 3, "goes too, when it is as old");
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
}

static int say_campaign(void *ctx, const struct fleet_campaign *c, struct err *e)
{
    (void)e;
    buf_fmt(ctx, "campaign %lld %s %s %s %s %s %d %lld %lld %lld %d %d %d %d %d %.3f %.3f %s\n",
            (long long)c->id, c->name, c->by, c->request, c->nodes, fleet_campaign_states[c->state],
            c->round, (long long)c->created_ms, (long long)c->round_ms, (long long)c->until_ms,
            c->n, c->running, c->done, c->failed, c->skipped, c->spent_s, c->round_s, c->why);
    return 0;
}

static int say_campaign_node(void *ctx, const struct fleet_campaign_node *n, struct err *e)
{
    (void)e;
    buf_fmt(ctx, "node %s %d %d %lld %lld %lld %.3f %s\n", n->name, n->state, n->round,
            (long long)n->requested_ms, (long long)n->ended_ms, (long long)n->run, n->seconds,
            n->why);
    return 0;
}

static int campaigns_said(const struct fleet_campaign_query *q)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    int lines = 0;
    if (fleet_store_campaigns(s, q, say_campaign, &out, &err) < 0)
        return -1;
    for (const char *c = buf_text(&out); *c; c++)
        lines += *c == '\n';
    return lines;
}

static void test_campaigns(void)
{
    struct fleet_campaign c = {.id = 1,
                               .name = "weekly",
                               .by = "uid:0",
                               .request = "{\"name\": \"weekly\"}",
                               .nodes = "g[1-2]",
                               .round = 1,
                               .created_ms = page_day0,
                               .round_ms = page_day0,
                               .n = 2,
                               .why = ""};
    struct fleet_campaign_node nodes[] = {
        {"g1", 1, 1, page_day0 + 1, 0, 0, (double)NAN, ""},
        {"g2", 4, 1, 0, page_day0 + 2, 0, (double)NAN, "busy: \xc3\xa9, cut \xe2\x80"}};
    int64_t version = fleet_store_version(s, &err);
    CHECK_INT(fleet_store_campaign_put(s, &c, nodes, 2, &err), 0, "a campaign is stored");
    CHECK(fleet_store_version(s, &err) > version, "the version rises");
    c.state = FLEET_CAMPAIGN_DONE;
    c.done = 1;
    c.spent_s = c.round_s = 12.5;
    c.why = "complete";
    nodes[0] = (struct fleet_campaign_node){"g1", 2, 1, page_day0 + 1, page_day0 + 9, 17, 12.5, ""};
    CHECK_INT(fleet_store_campaign_put(s, &c, nodes, 1, &err), 0, "and its changes");
    c.id = 2;
    c.state = FLEET_CAMPAIGN_WAITING;
    CHECK_INT(fleet_store_campaign_put(s, &c, NULL, 0, &err), 0, "a second one");
    CHECK_INT(campaigns_said(&(struct fleet_campaign_query){.limit = 9}), 2, "all of them");
    CHECK_INT(campaigns_said(&(struct fleet_campaign_query){.limit = 1}), 1, "a few");
    CHECK_INT(campaigns_said(&(struct fleet_campaign_query){.limit = 9, .before = 2}), 1, "before");
    CHECK_INT(campaigns_said(&(struct fleet_campaign_query){.limit = 9, .id = 2}), 1, "one");
    CHECK_INT(campaigns_said(&(struct fleet_campaign_query){.limit = 9, .id = 3}), 0, "none");
    CHECK_INT(campaigns_said(&(struct fleet_campaign_query){.limit = 9, .active = true}), 1,
              "those that have not ended");
    c.id = 3;
    c.state = FLEET_CAMPAIGN_CANCELLED;
    c.running = 1;
    const struct fleet_campaign_query in_progress = {.limit = 9, .active = true, .running = true};
    CHECK_INT(fleet_store_campaign_put(s, &c, NULL, 0, &err), 0, "one that was cancelled");
    CHECK_INT(campaigns_said(&in_progress), 2, "with those whose probes have not ended");
}

struct overtaken {
    struct buf said;
    struct fleet_store *writer;
};

// A change that is stored between the campaign and its nodes.
static int say_and_change(void *ctx, const struct fleet_campaign *c, struct err *e)
{
    struct overtaken *o = ctx;
    struct fleet_campaign later = *c;
    const struct fleet_campaign_node node = {"g1", 2, 7, page_day0, page_day0 + 1, 18, 1, ""};
    later.round = 7;
    return fleet_store_campaign_put(o->writer, &later, &node, 1, e) < 0
               ? -1
               : say_campaign(&o->said, c, e);
}

static int say_node(void *ctx, const struct fleet_campaign_node *n, struct err *e)
{
    struct overtaken *o = ctx;
    return say_campaign_node(&o->said, n, e);
}

static void test_campaign_at_one_moment(const char *where)
{
    CLEANUP_BUF struct buf before = BUF_INIT, after = BUF_INIT;
    struct overtaken o = {BUF_INIT, s};
    struct fleet_store *reader = fleet_store_open(where, FLEET_STORE_READ, &err);
    CHECK(reader, "a reader opens it: %s", err.text);
    fleet_store_campaign(reader, 1, say_campaign, say_campaign_node, &before, &err);
    CHECK_INT(fleet_store_campaign(reader, 1, say_and_change, say_node, &o, &err), 0, "%s",
              err.text);
    CHECK_STR(buf_text(&o.said), buf_text(&before), "what is stored meanwhile is not seen");
    fleet_store_campaign(reader, 1, say_campaign, say_campaign_node, &after, &err);
    CHECK(strstr(buf_text(&after), "node g1 2 7 "), "but by the next reading");
    buf_free(&o.said);
    fleet_store_close(reader);
}

static void say_all(struct buf *out)
{
    fleet_store_campaigns(s, &(struct fleet_campaign_query){.limit = 9}, say_campaign, out, &err);
    fleet_store_campaign_nodes(s, 1, say_campaign_node, out, &err);
    CHECK_INT(fleet_store_wanted(s, 100, name_wanted, out, &err), 0, "all is read: %s", err.text);
}

// A second process that reads, and the same after a restart.
static void test_reader(const char *where)
{
    CLEANUP_BUF struct buf before = BUF_INIT, read = BUF_INIT, after = BUF_INIT;
    struct fleet_store *writer = s;
    say_all(&before);
    s = fleet_store_open(where, FLEET_STORE_READ, &err);
    CHECK(s != NULL, "a reader opens it: %s", err.text);
    say_all(&read);
    CHECK_STR(buf_text(&read), buf_text(&before), "and sees the same");
    fleet_store_close(s);
    fleet_store_close(writer);
    s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(s != NULL, "it opens again: %s", err.text);
    say_all(&after);
    CHECK_STR(buf_text(&after), buf_text(&before), "with all that was there");
    buf_add(&said, after.data, after.len);
}

static const char *wanted_of(const char *node)
{
    static char list[200];
    CLEANUP_BUF struct buf all = BUF_INIT;
    size_t n = 0;
    fleet_store_archive_wanted(s, INT64_MAX / 2, 100, name_wanted_run, &all, &err);
    *list = '\0';
    for (const char *line = buf_text(&all); *line; line += strcspn(line, "\n") + 1)
        if (strncmp(line, node, strlen(node)) == 0)
            n += (size_t)snprintf(list + n, sizeof list - n, "%.*s ", (int)strcspn(line + 3, " "),
                                  line + 3);
    return list;
}

static void put_as(const char *node, const char *history, const char *config, int64_t after,
                   int64_t last)
{
    struct maker m = maker_at(node, history, after, last);
    m.config = config;
    m.state = "failed";
    made_page_put(s, &m, &err);
}

// The first and the last run of each set-up.
static void test_setups(void)
{
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    put_as("w5", "a4c5", "old", 0, 2);
    CHECK_STR(wanted_of("w5"), "1 ", "the first run of a node");
    put_as("w5", "a4c5", "old", 2, 6);
    CHECK_STR(wanted_of("w5"), "1 ", "and no other one of the set-up");
    put_as("w5", "a4c5", "new", 6, 8);
    CHECK_STR(wanted_of("w5"), "1 5 7 ", "the last one that succeeded, and the first of the next");
    put_as("w5", "a4c5", "old", 8, 9);
    CHECK_STR(wanted_of("w5"), "1 5 7 8 ", "of one that comes back no run has succeeded yet");
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
    put_as("w5", "a4c5", "third", 9, 10);
    CHECK_STR(wanted_of("w5"), "1 5 7 8 ", "nothing where nothing is archived");
}

// Set-ups that begin with a failed run, and a collector that starts again meanwhile.
static void test_setups_that_begin_badly(const char *where)
{
    static const struct {
        const char *config;
        bool reopen;                                      // before the run
    } runs[] = {{"A", false}, {"A", false}, {"B", false}, // failed, as each third run
                {"B", true},  {"B", true},  {"C", false}, // failed
                {"C", false}, {"C", false}, {"C", false}, // failed
                {"D", true},  {"E", true}};
    for (int i = 0; i < (int)COUNT_OF(runs); i++) {
        if (runs[i].reopen) {
            fleet_store_close(s);
            s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
        }
        fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
        put_as("w7", "a4c7", runs[i].config, i, i + 1);
    }
    CHECK_STR(wanted_of("w7"), "1 2 4 5 7 8 10 11 ",
              "of each set-up the first and the last that succeeded");
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
}

static void open_again(const char *where)
{
    fleet_store_close(s);
    s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
}

static enum setup_good good_of(const char *node)
{
    CHECK_INT(fleet_begin(s, &err) < 0 ? -1 : fleet_end(s, 0, &err), 0, "the book is read: %s",
              err.text);
    return s->book.node[interned_find(&s->book.nodes, node)].good;
}

// That a run with the set-up has succeeded is known at the start, without reading a run.
static void test_setups_are_remembered(const char *where)
{
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    put_as("w9", "a4c9", "A", 0, 2);
    open_again(where);
    CHECK_INT(good_of("w9"), SETUP_GOOD_SEEN, "the run that it began with has succeeded");
    put_as("w9", "a4c9", "B", 2, 3);
    open_again(where);
    CHECK_INT(good_of("w9"), SETUP_GOOD_NONE, "that run has failed");
    put_as("w9", "a4c9", "B", 3, 4);
    open_again(where);
    CHECK_INT(good_of("w9"), SETUP_GOOD_SEEN, "a later one has succeeded");
    CHECK_INT(fleet_exec(s, "UPDATE setup SET good = 0", NULL, 0, &err), 0, "it is not known: %s",
              err.text);
    open_again(where);
    put_as("w9", "a4c9", "B", 4, 5);
    open_again(where);
    CHECK_INT(good_of("w9"), SETUP_GOOD_SEEN, "as in an older store: it is looked up, once");
    CHECK_STR(wanted_of("w9"), "1 2 4 ", "and no run is the first one twice");
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
}

// Pages that are stored together, so that the engine does not have the last run yet.
static void test_setups_at_once(void)
{
    struct made_page made[2];
    struct fleet_page pages[2];
    struct fleet_ack acks[2];
    fleet_store_archives(s, FLEET_ARCHIVE_KEPT);
    for (int i = 0; i < 2; i++) {
        struct maker m = maker_at("w6", "a4c6", 4 * i, 4 * i + 4);
        m.config = i ? "new" : "old";
        made_page_make(&made[i], &m);
        pages[i] = made[i].page;
    }
    CHECK_INT(fleet_store_put(s, pages, 2, acks, &err), 0, "two pages at once: %s", err.text);
    CHECK_STR(wanted_of("w6"), "1 4 5 ", "the last run is one that was just stored");
    const struct summary_note labels[] = {{.run_seq = 4, .run = 6, .label = "mine"},
                                          {.run_seq = 4, .run = 6, .label = ""}};
    note_of("w6", "a4c6", 8, labels, COUNT_OF(labels));
    CHECK_STR(wanted_of("w6"), "1 4 5 ", "a label that goes does not take it away");
    put_as("w6", "a4c66", "third", 0, 7);
    CHECK_STR(wanted_of("w6"), "7 ", "of a history that has ended a node has nothing any more");
    for (int i = 0; i < 2; i++)
        made_page_fini(&made[i]);
    fleet_store_archives(s, FLEET_ARCHIVE_NONE);
}

static void run_scenarios(const char *where)
{
    test_documents();
    test_archive();
    test_archive_of_a_refused_run();
    test_archive_of_a_renamed_node();
    test_setups();
    test_setups_that_begin_badly(where);
    test_setups_are_remembered(where);
    test_setups_at_once();
    test_notes();
    test_archive_limit();
    test_archive_places_come_back();
    test_campaigns();
    test_campaign_at_one_moment(where);
    test_reader(where);
}

int main(void)
{
    engines_run(run_scenarios);
    return tap_done();
}
