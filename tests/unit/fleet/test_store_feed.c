// SPDX-License-Identifier: Apache-2.0
// The collector's own feed, and another collector's feed as it is stored: the same scenarios on
// each engine, and the same bytes. A page of the lower store is written, read and put into the
// upper one, as it happens between two collectors.
#include "fleet/store/store.h"
#include "tests/unit/tap.h"

#include "fleet/store/parts.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/fleet/cluster.h"
#include "tests/unit/fleet/pages.h"

static const char ha[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                  hb[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
                  hc[] = "cccccccccccccccccccccccccccccccc";
static const char below[] = "https://below:7790", other[] = "https://other:7790";

static struct fleet_store *lower, *upper;
static struct err err;
static struct buf said; // by the scenarios of one engine

static struct fleet_ack put(struct fleet_store *s, const char *name, const char *history,
                            int64_t after, int64_t last)
{
    struct maker m = MAKER(name);
    m.history = history;
    m.after = after;
    m.last = last;
    m.received_ms = page_day0 + 400 * page_day;
    return made_page_put(s, &m, &err);
}

static int64_t runs(struct fleet_store *s)
{
    struct fleet_store_size z = {0};
    return fleet_store_size(s, &z, &err) < 0 ? -1 : z.runs;
}

// ---- A page, from store to store

struct feed_text {
    struct summary_writer w;
    int most; // runs that are taken
};

static int take_run(void *ctx, const struct summary *run, const struct summary_layout *layout,
                    struct err *e)
{
    struct feed_text *t = ctx;
    (void)e;
    if (t->w.n_runs == t->most)
        return 1;
    summary_writer_copy(&t->w, run, layout);
    return 0;
}

static int take_note(void *ctx, const struct summary_note *note, struct err *e)
{
    struct feed_text *t = ctx;
    (void)e;
    summary_writer_note(&t->w, note);
    return 0;
}

// Appends the page as JSON. -1: err.
static int read_page(struct fleet_store *s, const char *history, int64_t after, int limit, int most,
                     struct fleet_arrivals *a, struct buf *out)
{
    static struct feed_text t;
    t.most = most;
    *a = (struct fleet_arrivals){.after = after, .history = history, .limit = limit};
    summary_writer_init(&t.w);
    int result = fleet_store_arrivals(s, a, take_run, take_note, &t, &err);
    struct summary_page head = {.node = "below",
                                .version = "1.0.0",
                                .after = after,
                                .next = a->next,
                                .last = a->last,
                                .more = a->next < a->last,
                                .deleted = a->deleted};
    snprintf(head.history_id, sizeof head.history_id, "%s", a->identity);
    if (result == 0)
        summary_writer_end(&t.w, &head, out);
    summary_writer_fini(&t.w);
    return result;
}

static struct fleet_ack put_text(const char *name, int64_t after, const struct buf *text)
{
    struct summary_page page CLEANUP(summary_page_fini) = {0};
    struct fleet_ack ack = {.outcome = FLEET_OUTCOMES};
    CLEANUP_JSON struct json *j = json_parse(text->data, text->len, &err);
    if (!j || summary_page_read(j, &page, &err) < 0) {
        printf("# %s: %s\n", err.member, err.text);
        return ack;
    }
    const struct fleet_page p = {.name = name,
                                 .after = after,
                                 .received_ms = page_day0 + 401 * page_day,
                                 .page = &page,
                                 .collector = true};
    if (fleet_store_put(upper, &p, 1, &ack, &err) < 0)
        printf("# %s\n", err.text);
    return ack;
}

struct place {
    int64_t next, stored, others, lost;
    const char *name; // that is looked for
};

static int place_of(void *ctx, const struct fleet_collector *c, struct err *e)
{
    struct place *p = ctx;
    (void)e;
    if (strcmp(c->name, p->name) == 0)
        *p = (struct place){c->next, c->stored, c->others, c->lost, p->name};
    return 0;
}

static struct place place(const char *name)
{
    struct place p = {.name = name};
    CHECK_INT(fleet_store_collectors(upper, place_of, &p, &err), 0, "where collectors stand");
    return p;
}

// Follows the lower store to its end; how many runs were stored.
static int follow(const char *name, int limit)
{
    int stored = 0;
    for (int64_t after = place(name).next;;) {
        CLEANUP_BUF struct buf text = BUF_INIT;
        struct fleet_arrivals a;
        if (read_page(lower, NULL, after, limit, limit, &a, &text) < 0)
            return -1;
        struct fleet_ack ack = put_text(name, after, &text);
        if (ack.outcome != FLEET_STORED && ack.outcome != FLEET_REINSTALLED) {
            printf("# %s\n", ack.outcome < FLEET_OUTCOMES ? fleet_outcomes[ack.outcome].name : "-");
            return -1;
        }
        stored += ack.stored;
        if (ack.next == after || ack.next == a.last)
            return stored;
        after = ack.next;
    }
}

static bool same_history(const char *node)
{
    CLEANUP_BUF struct buf a = BUF_INIT, b = BUF_INIT;
    made_json_series(lower, node, "latency.n0.n3.median_ns", &a);
    made_json_series(upper, node, "latency.n0.n3.median_ns", &b);
    if (strcmp(buf_text(&a), buf_text(&b)) != 0)
        printf("# %s# and %s", buf_text(&a), buf_text(&b));
    return a.len && strcmp(buf_text(&a), buf_text(&b)) == 0;
}

// ---- Scenarios

static void test_feed(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct fleet_arrivals a, b;
    CHECK(read_page(lower, NULL, 0, 10, 10, &a, &text) == 0 && a.next == a.last && !a.deleted,
          "a feed without runs");
    put(lower, "n1", ha, 0, 3);
    put(lower, "n2", hb, 0, 4);
    put(lower, "n1", ha, 3, 5);
    buf_reset(&text);
    CHECK_INT(read_page(lower, NULL, 0, 100, 100, &a, &text), 0, "all runs");
    CHECK(a.next == a.last && !a.deleted, "to the end, and nothing is missing");
    buf_add(&said, text.data, 0);
    CHECK(strstr(buf_text(&text), "\"node\":\"n1\"") && strstr(buf_text(&text), hb),
          "with their nodes, and their histories");
    buf_reset(&text);
    CHECK_INT(read_page(lower, a.identity, 0, 100, 2, &b, &text), 0, "a page that is full");
    CHECK(b.next < a.next && !b.deleted, "ends before the end");
    int64_t second = b.next;
    buf_reset(&text);
    CHECK(read_page(lower, a.identity, second, 3, 3, &b, &text) == 0 && b.next == second + 3,
          "and the next one continues: %lld", (long long)b.next);
    CHECK(read_page(lower, hc, 0, 3, 3, &b, &text) < 0 && err.code == ERR_CONFLICT &&
              strcmp(err.member, "history_id") == 0,
          "another history is refused: %s", err.text);
    CHECK(read_page(lower, NULL, a.last + 1, 3, 3, &b, &text) < 0 && err.code == ERR_CONFLICT &&
              strcmp(err.member, "after") == 0,
          "and a place beyond the end: %s", err.text);
}

static void test_follow(void)
{
    CHECK_INT(follow(below, 2), 9, "nine runs come, two a page");
    CHECK_INT(runs(upper), 9, "and are stored");
    CHECK(same_history("n1") && same_history("n2"), "as they were");
    CHECK_INT(follow(below, 100), 0, "then nothing is new");
    put(lower, "n2", hb, 4, 6);
    CHECK_INT(follow(below, 100), 2, "what is new comes");
    CHECK_INT(follow(other, 4), 0, "through a second collector nothing comes again");
    CHECK_INT(runs(upper), 11, "each run once");
    struct place p = place(below);
    CHECK(p.stored == 11 && !p.others && !p.lost, "and that is counted");
}

// What the node sends itself is not stored again, whichever comes first.
static void test_two_ways(void)
{
    struct fleet_ack ack = put(upper, "n1", ha, 0, 3);
    CHECK(ack.outcome == FLEET_STORED && ack.stored == 0 && ack.next == 3,
          "a page of the node itself, whose runs are there: %d", ack.stored);
    ack = put(upper, "n1", ha, 3, 8);
    CHECK(ack.outcome == FLEET_STORED && ack.stored == 3, "three of five are new: %d", ack.stored);
    put(lower, "n1", ha, 5, 10);
    CHECK_INT(follow(below, 100), 2, "of the same five of the collector two");
    ack = put(upper, "n1", ha, 8, 12);
    CHECK(ack.outcome == FLEET_STORED && ack.stored == 2, "and again: %d", ack.stored);
    put(lower, "n1", ha, 10, 12);
    CHECK_INT(follow(below, 1), 0, "nothing");
    CHECK(same_history("n1"), "the history is one");
}

static void test_names_of_others(void)
{
    struct place before = place(below);
    int64_t had = runs(upper);
    put(upper, "clone", hc, 0, 2);
    put(lower, "n3", hc, 0, 4);
    CHECK_INT(follow(below, 100), 0, "a history of another live node is left out");
    CHECK_INT(place(below).others - before.others, 4, "and counted");
    CHECK_INT(runs(upper), had + 2, "nothing of it is stored");
    CHECK_INT(fleet_store_gone(upper, (const char *[]){"clone"}, 1, &err), 0, "that node is gone");
    put(lower, "n3", hc, 4, 5);
    CHECK_INT(follow(below, 100), 1, "then the history continues under the other name");
    put(lower, "n2.cluster.example", "d0", 0, 2);
    CHECK_INT(follow(below, 100), 2, "a name with a domain");
}

static void own(const char *list)
{
    CHECK_INT(fleet_store_owners(upper, list, strlen(list), &err), 0, "whose nodes they are: %s",
              err.text);
}

// What a collector names is another source's: it adds to the history that the node has, and neither
// replaces it nor writes an old one on.
static void test_nodes_of_others(void)
{
    struct place before = place(below);
    put(upper, "o1", "f1", 0, 2);
    put(upper, "o1", "f2", 0, 2);
    own("o1\t\no2\thttps://other:7790\no3\thttps://below:7790\n");
    put(lower, "o1", "f3", 0, 3);
    CHECK_INT(follow(below, 100), 0, "a new history of a node that is contacted is left out");
    CHECK_INT(place(below).others - before.others, 3, "and counted");
    put(lower, "o1", "f1", 0, 4);
    CHECK_INT(follow(below, 100), 0, "so is more of an old one");
    put(lower, "o1", "f2", 0, 3);
    CHECK_INT(follow(below, 100), 1, "a run of the history that it has is stored");
    put(lower, "o2", "f4", 0, 2);
    CHECK_INT(follow(below, 100), 2, "one without a history gets it from any collector");
    put(lower, "o2", "f5", 0, 2);
    CHECK_INT(follow(below, 100), 0, "but no second one");
    put(lower, "o3", "f6", 0, 2);
    put(lower, "o3", "f7", 0, 2);
    CHECK_INT(follow(below, 100), 4, "its own node may be installed anew");
    own("");
    put(lower, "o2", "f8", 0, 1);
    CHECK_INT(follow(below, 100), 1, "as may one that no source names");
    CHECK(fleet_store_owners(upper, "b\t\na\t\n", 6, &err) < 0 &&
              fleet_store_owners(upper, "a\n", 2, &err) < 0,
          "a list in a wrong order, or without a collector");
}

static void test_refused(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct fleet_arrivals a;
    struct summary_page page CLEANUP(summary_page_fini) = {0};
    struct fleet_ack ack = {0};
    int64_t before = runs(upper), at = place(below).next;
    CHECK_INT(read_page(lower, NULL, 0, 3, 3, &a, &text), 0, "a page");
    CLEANUP_JSON struct json *j = json_parse(text.data, text.len, &err);
    CHECK(j && summary_page_read(j, &page, &err) == 0, "is read: %s", err.text);
    struct fleet_page p = {
        .name = below, .received_ms = page_day0 + 401 * page_day, .page = &page, .collector = true};
    CHECK(fleet_store_put(upper, &p, 1, &ack, &err) == 0 && ack.outcome == FLEET_BEHIND &&
              ack.next == at,
          "one from before is not stored");
    p.name = "https://third:7790";
    page.runs[1].node_history[0] = '\0';
    CHECK(fleet_store_put(upper, &p, 1, &ack, &err) == 0 && ack.outcome == FLEET_GARBLED,
          "a run without a history");
    page.runs[1] = page.runs[0];
    page.runs[1].seq++;
    CHECK(fleet_store_put(upper, &p, 1, &ack, &err) == 0 && ack.outcome == FLEET_STORED &&
              ack.stored == 0,
          "a run twice in a page, and here before");
    page.history_id[0] = '\0';
    CHECK(fleet_store_put(upper, &p, 1, &ack, &err) == 0 && ack.outcome == FLEET_NAMELESS,
          "a feed without a name");
    CHECK_INT(runs(upper), before, "none of it is stored");
}

// The store has as many nodes as one may, of which nothing but their names is known.
static void test_nodes_beyond(void)
{
    char name[24];
    bool fresh;
    while (upper->book.nodes.n < FLEET_STORE_NODES_MAX) {
        snprintf(name, sizeof name, "more%d", upper->book.nodes.n);
        if (book_node(&upper->book, name, &fresh, &err) < 0)
            break;
    }
    CHECK_INT(upper->book.nodes.n, FLEET_STORE_NODES_MAX, "nodes: %s", err.text);
    const int64_t before = place(below).next;
    put(lower, "p1", "e9", 0, 2);
    CHECK_INT(follow(below, 100), 0, "runs of one more are not stored");
    CHECK(place(below).next > before, "and not requested again");
}

struct label_at {
    int64_t seq;
    char text[RUN_LABEL_MAX + 1];
};

static int label_found(void *ctx, const struct summary_page *page, struct err *e)
{
    struct label_at *l = ctx;
    (void)e;
    for (int i = 0; i < page->n_runs; i++)
        if (page->runs[i].seq == l->seq)
            snprintf(l->text, sizeof l->text, "%s", page->runs[i].label);
    return 0;
}

static bool is_labelled(struct fleet_store *s, int64_t seq, const char *label)
{
    struct label_at l = {.seq = seq};
    const struct fleet_window w = {.node = "n9"};
    fleet_store_window(s, &w, label_found, &l, &err);
    return strcmp(l.text, label) == 0;
}

static struct fleet_ack put_notes(struct fleet_store *s, int64_t after, int64_t last,
                                  const struct summary_note *notes, int n)
{
    struct maker m = maker_at("n9", "f9", after, last);
    m.notes = notes;
    m.n_notes = n;
    return made_page_put(s, &m, &err);
}

// Notes pass through collectors, and the newest of a run counts, whichever way is faster.
static void test_notes(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct fleet_arrivals a;
    const struct summary_note kept = {.run_seq = 2, .run = 4, .label = "kept"},
                              none = {.run_seq = 2, .run = 4, .label = ""},
                              other_run = {.run_seq = 1, .run = 3, .label = "", .baseline = true};
    CHECK(follow(below, 100) >= 0, "to the end");
    int64_t lost = place(below).lost, at = place(below).next;
    put_notes(lower, 0, 3, NULL, 0);
    put_notes(lower, 3, 3, &kept, 1);
    put_notes(lower, 4, 4, &other_run, 1);
    CHECK_INT(read_page(lower, NULL, at, 100, 100, &a, &text), 0, "a page with notes");
    CHECK(strstr(buf_text(&text), "\"notes\":[{") && strstr(buf_text(&text), "\"kept\"") &&
              !a.deleted,
          "which are not taken for runs that were deleted");
    buf_str(&said, strstr(buf_text(&text), "\"notes\""));
    CHECK_INT(follow(below, 1), 3, "three runs come, one number a page");
    CHECK(is_labelled(upper, 2, "kept") && is_labelled(upper, 1, ""), "and the label");
    CHECK_INT(follow(other, 100), 0, "by another way once more");
    put_notes(upper, 0, 3, NULL, 0);
    CHECK_INT(put_notes(upper, 3, 3, &kept, 1).next, 4, "and from the node itself");
    CHECK_INT(put_notes(upper, 4, 4, &other_run, 1).next, 5, "all of it");
    CHECK_INT(put_notes(upper, 5, 5, &none, 1).next, 6, "which is faster now");
    CHECK(is_labelled(upper, 2, "") && is_labelled(lower, 2, "kept"), "the label is gone above");
    follow("https://late:7790", 100);
    CHECK(is_labelled(upper, 2, ""), "a way that is behind does not bring it back");
    put_notes(lower, 5, 5, &none, 1);
    CHECK_INT(follow(below, 100), 0, "it is gone everywhere");
    CHECK(is_labelled(lower, 2, "") && is_labelled(upper, 2, ""), "in both");
    CHECK_INT(place(below).lost, lost, "nothing counts as lost");
}

// A new store below, which reads its nodes from the start: each run is there already.
static void test_new_below(const char *where)
{
    struct fleet_store *first = lower;
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct fleet_arrivals a;
    int64_t before = runs(upper), at = place(below).next;
    lower = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(lower != NULL, "a new store below: %s", err.text);
    put(lower, "n2", hb, 0, 6);
    put(lower, "n2", hb, 6, 8);
    CHECK_INT(read_page(lower, NULL, 0, 100, 100, &a, &text), 0, "its feed");
    struct fleet_ack ack = put_text(below, at, &text);
    CHECK(ack.outcome != FLEET_STORED && ack.outcome != FLEET_OUTCOMES, "not at the old place: %s",
          fleet_outcomes[ack.outcome].name);
    ack = put_text(below, 0, &text);
    CHECK(ack.outcome == FLEET_REINSTALLED && ack.stored == 2 && ack.next == a.next,
          "from its start, of which two runs are new: %d", ack.stored);
    CHECK_INT(runs(upper), before + 2, "nothing twice");
    fleet_store_close(lower);
    lower = first;
}

static void test_deleted(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct fleet_arrivals a;
    int64_t lost = place(other).lost, gone;
    follow(other, 100);
    for (int i = 0; i < 4; i++)
        put(lower, "n4", "e0", i * 60, (i + 1) * 60);
    gone = retain_days(lower, page_day0 + 200 * page_day, &err);
    CHECK(gone > 150, "runs are deleted below: %lld", (long long)gone);
    CHECK_INT(read_page(lower, NULL, 0, 7, 7, &a, &text), 0, "the feed begins with what is left");
    CHECK(a.deleted > 0 && strstr(buf_text(&text), "\"deleted\":"), "and says how many are not");
    int stored = follow(other, 7);
    int64_t there = runs(lower);
    CHECK(stored > 0 && stored == there, "what is left comes: %d of %lld", stored,
          (long long)there);
    CHECK_INT(place(other).lost - lost, 240 - stored, "the others are counted as lost");
    CHECK_INT(follow(other, 7), 0, "and then nothing");
}

// A writer that begins anew leaves numbers out, and no one takes that for a loss.
static void test_again(const char *where)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct fleet_arrivals a, b;
    CHECK_INT(read_page(lower, NULL, 0, 100, 100, &a, &text), 0, "the end of the feed");
    int64_t last = a.last, lost = place(other).lost;
    fleet_store_close(lower);
    lower = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(lower != NULL, "the store below opens again: %s", err.text);
    put(lower, "n2", hb, 6, 7);
    buf_reset(&text);
    CHECK_INT(read_page(lower, a.identity, last, 100, 100, &b, &text), 0, "its feed continues");
    CHECK(b.next > last + 1000 && b.next == b.last && !b.deleted,
          "with a number that was never given: %lld after %lld", (long long)b.next,
          (long long)last);
    put(lower, "n2", hb, 7, 8);
    CHECK_INT(follow(other, 3), 0, "runs that came through the new store");
    put(lower, "n2", hb, 8, 9);
    CHECK_INT(follow(other, 3), 1, "and one that is new");
    CHECK_INT(place(other).lost, lost, "nothing is lost");
}

static void say_feed(struct fleet_store *s)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct fleet_arrivals a;
    CHECK_INT(read_page(s, NULL, 0, 1000, 1000, &a, &text), 0, "the whole feed");
    const char *from = strstr(buf_text(&text), "\"after\""); // its history is its own
    buf_str(&said, from ? from : "no page");
    made_json_feeds(s, &said);
}

static void run_scenarios(const char *below_path, const char *above_path, const char *fresh_path)
{
    err = (struct err){0};
    lower = fleet_store_open(below_path, FLEET_STORE_WRITE, &err);
    upper = lower ? fleet_store_open(above_path, FLEET_STORE_WRITE, &err) : NULL;
    CHECK(upper != NULL, "two stores: %s", err.text);
    if (upper) {
        test_feed();
        test_follow();
        test_two_ways();
        test_names_of_others();
        test_nodes_of_others();
        test_refused();
        test_new_below(fresh_path);
        say_feed(upper);
        test_deleted();
        test_again(below_path);
        say_feed(lower);
        say_feed(upper);
        test_notes();
        test_nodes_beyond();
    }
    fleet_store_close(lower);
    fleet_store_close(upper);
}

static bool make_databases(struct cluster *c, char uri[3][200])
{
    for (int i = 0; i < 3; i++) {
        char name[] = "feed0";
        name[4] = (char)('0' + i);
        const char *const argv[] = {"createdb", "-h", c->dir, "-U", "fleet", name, NULL};
        if (!cluster_ran(cluster_spawn(c, "createdb", argv)))
            return false;
        snprintf(uri[i], 200, "postgresql:///%s?host=%s&user=fleet", name, c->dir);
    }
    return true;
}

static void run_postgresql(void)
{
    struct cluster c CLEANUP(cluster_stop) = {0};
    CLEANUP_BUF struct buf lite = said;
    char uri[3][200];
    said = BUF_INIT;
    if (!cluster_start(&c)) {
        SKIP("no PostgreSQL on this machine, or the program was built without it");
        return;
    }
    CHECK(make_databases(&c, uri), "three databases");
    run_scenarios(uri[0], uri[1], uri[2]);
    CHECK(lite.len && strcmp(buf_text(&said), buf_text(&lite)) == 0,
          "both engines say the same, byte by byte");
    size_t at = 0;
    while (at < said.len && at < lite.len && said.data[at] == lite.data[at])
        at++;
    if (at < said.len || at < lite.len)
        printf("# at %zu: %.100s# and: %.100s\n", at, buf_text(&said) + at, buf_text(&lite) + at);
}

int main(void)
{
    char dir[64], path[3][128];
    dir_make(dir);
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%s/%d.db", dir, i);
    run_scenarios(path[0], path[1], path[2]);
    run_postgresql();
    buf_free(&said);
    dir_remove(dir);
    return tap_done();
}
