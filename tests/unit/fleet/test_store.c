// SPDX-License-Identifier: Apache-2.0
// Pages of nodes: which of them a store takes, and what it gives back, on each engine.
#include "tests/unit/tap.h"

#include "analysis/peers/fleet.h"
#include "fleet/store/parts.h"
#include "tests/unit/fleet/engines.h"

static const char *outcome(const struct fleet_ack *ack)
{
    return ack->outcome < FLEET_OUTCOMES ? fleet_outcomes[ack->outcome].name : err.text;
}

#define CHECK_ACK(ack, want, place, what)                                                          \
    do {                                                                                           \
        struct fleet_ack ack_ = (ack);                                                             \
        CHECK_STR(outcome(&ack_), want, "%s", what);                                               \
        CHECK_INT(ack_.next, place, "%s: the place", what);                                        \
    } while (0)

static int64_t runs(void)
{
    struct fleet_store_size z = {0};
    return fleet_store_size(s, &z, &err) < 0 ? -1 : z.runs;
}

static const char ha[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                  hb[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
                  hc[] = "cccccccccccccccccccccccccccccccc",
                  hd[] = "dddddddddddddddddddddddddddddddd";

static void test_pages(void)
{
    int64_t version = fleet_store_version(s, &err);
    CHECK_ACK(put("n1", ha, 0, 3), "stored", 3, "a first page");
    CHECK_INT(runs(), 3, "its runs are there");
    CHECK(fleet_store_version(s, &err) > version, "the version rises");
    version = fleet_store_version(s, &err);
    CHECK_ACK(put("n1", ha, 0, 3), "behind", 3, "the same page again");
    CHECK_ACK(put("n1", ha, 5, 7), "behind", 3, "a page further on");
    CHECK_ACK(put("n1", ha, 3, 3), "stored", 3, "an empty page");
    CHECK_INT(fleet_store_version(s, &err), version, "none of them changes the version");
    CHECK_ACK(put("n1", ha, 3, 12), "stored", 12, "the next page");
    CHECK_INT(runs(), 12, "each run once");
    CHECK_ACK(put("n2", hb, 9, 12), "behind", 0, "an unknown node begins at 0");
    CHECK_ACK(put("n2", hb, 0, 5), "stored", 5, "another node");
}

static void test_batch(void)
{
    enum { PAGES = 4 };
    struct made_page p[PAGES];
    struct fleet_page list[PAGES];
    struct fleet_ack acks[PAGES];
    const struct maker makers[PAGES] = {maker_at("b1", "b100", 0, 2), maker_at("b1", "b100", 2, 4),
                                        maker_at("b2", "b200", 0, 2), maker_at("b1", "b100", 2, 4)};
    int64_t before = runs();
    for (int i = 0; i < PAGES; i++) {
        made_page_make(&p[i], &makers[i]);
        list[i] = p[i].page;
    }
    CHECK_INT(fleet_store_put(s, list, PAGES, acks, &err), 0, "pages of several nodes");
    CHECK(acks[0].outcome == FLEET_STORED && acks[1].outcome == FLEET_STORED &&
              acks[2].outcome == FLEET_STORED && acks[3].outcome == FLEET_BEHIND,
          "of one node in order, and none twice");
    CHECK_INT(runs() - before, 6, "six runs");
    for (int i = 0; i < PAGES; i++)
        made_page_fini(&p[i]);
}

static void test_reinstalled(void)
{
    CHECK_ACK(put("r1", hc, 0, 4), "stored", 4, "a node");
    CHECK_ACK(put("r1", hd, 4, 6), "reinstalled", 0, "a new history is read from its start");
    CHECK_ACK(put("r1", hd, 0, 2), "reinstalled", 2, "and stored");
    CHECK_ACK(put("r1", hd, 2, 3), "stored", 3, "then it continues");
    CHECK_ACK(put("r1", hc, 4, 5), "reinstalled", 5, "the old one comes back where it stood");
    CHECK_ACK(put("r1", hd, 0, 2), "reinstalled", 3, "and the new one where that stood");
}

static void test_twins(void)
{
    static const char ht[] = "7777", hu[] = "8888";
    struct fleet_ack ack;
    CHECK_ACK(put("t1", ht, 0, 4), "stored", 4, "a node");
    ack = put("t2", ht, 0, 4);
    CHECK_ACK(ack, "twin", 4, "a clone of it");
    CHECK_STR(ack.other, "t1", "the other's name is said");
    ack = put("t1", ht, 4, 5);
    CHECK_ACK(ack, "twin", 4, "neither is stored");
    CHECK_STR(ack.other, "t2", "the clone's name is said");
    CHECK_ACK(put("t2", hu, 0, 2), "stored", 2, "the clone gets a history of its own");
    CHECK_ACK(put("t1", ht, 4, 5), "stored", 5, "then the first one continues");
    CHECK_ACK(put("t3", ht, 5, 6), "twin", 5, "a second clone");
    CHECK_INT(fleet_store_gone(s, (const char *[]){"t1", "unknown"}, 2, &err), 0,
              "the first one is gone");
    CHECK_ACK(put("t3", ht, 5, 6), "stored", 6, "its clone continues");
    CHECK_INT(fleet_store_gone(s, (const char *[]){"t3"}, 1, &err), 0, "and is gone");
    ack = put("t4", ht, 6, 8);
    CHECK_ACK(ack, "renamed", 8, "a new name continues it");
    CHECK_STR(ack.other, "t3", "the name before is said");
    CHECK_ACK(put("t4", ht, 8, 9), "stored", 9, "and continues");
}

static void test_names(void)
{
    struct maker m = maker_at("a1", "a100", 0, 3);
    int64_t before = runs();
    m.node = "other";
    struct fleet_ack ack = made_page_put(s, &m, &err);
    CHECK_ACK(ack, "alien", 0, "a page of another node");
    CHECK_STR(ack.other, "other", "what it calls itself is said");
    CHECK_INT(runs(), before, "nothing is stored");
    m.node = "a1.cluster.example";
    CHECK_ACK(made_page_put(s, &m, &err), "stored", 3, "the name with its domain");
    m = maker_at("a1", "a100", 3, 5);
    m.run_node = "a2";
    before = runs();
    ack = made_page_put(s, &m, &err);
    CHECK_ACK(ack, "stored", 5, "a page with a run of another node");
    CHECK(ack.others == 1 && ack.stored == 1 && runs() == before + 1, "that run is left out");
    m = maker_at("a3", "", 0, 1);
    CHECK_ACK(made_page_put(s, &m, &err), "nameless", 0, "a page without a history");
}

static void test_garbled(void)
{
    struct made_page p CLEANUP(made_page_fini);
    struct fleet_ack ack = {0};
    int64_t before = runs();
    struct maker m = maker_at("g1", "9100", 0, 4);
    made_page_make(&p, &m);
    const struct {
        int64_t after, page_after, seq, next;
        bool more;
        const char *what;
    } cases[] = {{2, 0, 1, 4, false, "another place than requested"},
                 {0, 0, 3, 4, false, "runs that are not in order"},
                 {0, 0, 1, 3, false, "a run behind the place"},
                 {0, 0, 0, 4, false, "a run before the place"},
                 {9, 9, 1, 4, false, "a place that goes back"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        p.page.after = cases[i].after;
        p.body.after = cases[i].page_after;
        p.body.runs[0].seq = cases[i].seq;
        p.body.next = cases[i].next;
        CHECK(fleet_store_put(s, &p.page, 1, &ack, &err) == 0 && ack.outcome == FLEET_GARBLED, "%s",
              cases[i].what);
    }
    CHECK_INT(runs(), before, "nothing is stored");
    CHECK_ACK(put("g2", "9200", 0, 4), "stored", 4, "a node");
    m = maker_at("g2", "9200", 4, 4);
    made_page_fini(&p);
    made_page_make(&p, &m);
    p.body.last = 2;
    CHECK(fleet_store_put(s, &p.page, 1, &ack, &err) == 0 && ack.outcome == FLEET_REWOUND,
          "a history that ends before the place");
    p.body.last = p.body.next = 5;
    p.body.next = 4;
    p.body.more = true;
    CHECK(fleet_store_put(s, &p.page, 1, &ack, &err) == 0 && ack.outcome == FLEET_GARBLED,
          "more, and no step further");
}

static void test_hostile(void)
{
    struct maker m = maker_at("h1", "e100", 0, 6);
    m.label = "'; DROP TABLE run; -- \"\\ \xe2\x82\xac $1 %s";
    m.variant = "a='b' \\N {} \\x00 $2 %n";
    m.odd = 7;
    m.state = "failed";
    CHECK_ACK(made_page_put(s, &m, &err), "stored", 6, "texts that mean something to a database");
    m = maker_at("h1", "e100", 6, 7);
    m.metrics = 399;
    CHECK_ACK(made_page_put(s, &m, &err), "stored", 7, "a run of 399 metrics");
    m = maker_at("h2", "e200", 0, 4);
    m.received_ms = page_day0 - 1000 * page_day;
    CHECK_ACK(made_page_put(s, &m, &err), "stored", 4, "a node whose clock is years ahead");
}

// Values with intervals that no 2 bytes hold, and at the ends of what a float is.
static void test_extremes(void)
{
    static const double value[] = {1.1755e-38, 3.40282e38, 123456, 0.000123457, 1};
    struct metric list[COUNT_OF(value)] = {0};
    struct summary run = {.seq = 1,
                          .id = 1,
                          .node = "x1",
                          .benchmark = "latency",
                          .state = RUN_SUCCEEDED,
                          .n_ranks = INT64_C(1) << 53,
                          .duration_s = 1e9,
                          .disturbed = 1};
    struct summary_page head = {.node = "x1", .history_id = "f100", .next = 1, .last = 1};
    struct summary_page page CLEANUP(summary_page_fini) = {0};
    static struct summary_writer w;
    CLEANUP_BUF struct buf in = BUF_INIT, out = BUF_INIT, again = BUF_INIT;
    struct fleet_ack ack = {0};
    for (size_t i = 0; i < COUNT_OF(value); i++) {
        snprintf(list[i].name, sizeof list[i].name, "m%zu", i);
        list[i].value = value[i];
        list[i].lo = i % 2 ? 0 : value[i];
        list[i].hi = i == 1 ? (double)NAN : value[i] * (1 + (double)i * 25.1234);
    }
    summary_writer_init(&w);
    summary_writer_add(&w, &run, list, COUNT_OF(value));
    summary_writer_end(&w, &head, &in);
    summary_writer_fini(&w);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&in), in.len, &err);
    CHECK(j && summary_page_read(j, &page, &err) == 0, "a page of extremes: %s", err.text);
    struct fleet_page put_page = {.name = "x1", .received_ms = page_day0, .page = &page};
    CHECK(fleet_store_put(s, &put_page, 1, &ack, &err) == 0 && ack.stored == 1, "is stored");
    made_json_page(&out, &page, &err);
    made_json_window(s, &(struct fleet_window){.node = "x1"}, &again);
    const char *a = strstr(buf_text(&out), "\"runs\""), *b = strstr(buf_text(&again), "\"runs\"");
    CHECK(a && b && strncmp(a, b, strcspn(a, "}")) == 0 && strstr(a, "1.1755e-38"),
          "comes back as it was");
    if (a && b && strncmp(a, b, strcspn(a, "}")) != 0)
        printf("# %s# %s", a, b);
}

static int count_page(void *ctx, const struct summary_page *page, struct err *e)
{
    (void)e;
    *(int *)ctx += page->n_runs;
    return 0;
}

static int fail_page(void *ctx, const struct summary_page *page, struct err *e)
{
    (void)ctx;
    (void)page;
    return err_set(e, ERR_TOO_LARGE, "", "enough");
}

static int window_runs(const struct fleet_window *w)
{
    int n = 0;
    return fleet_store_window(s, w, count_page, &n, &err) < 0 ? -1 : n;
}

static void test_window(void)
{
    CLEANUP_NODESET struct nodeset some = {0};
    const struct nodeset none = {0};
    CHECK_INT(nodeset_parse(&some, "w[1-3],n2", NULL, &err), 0, "a set of nodes");
    char class[65], hash[65], start[13];
    struct maker m = maker_at("w1", "1000", 0, 12);
    text_hash("class", class);
    text_hash("new class", hash);
    snprintf(start, sizeof start, "%s", hash);
    made_page_put(s, &m, &err);
    m = maker_at("w1", "1000", 12, 15);
    m.class = "new class";
    made_page_put(s, &m, &err);
    const struct {
        struct fleet_window w;
        int n;
        const char *what;
    } cases[] = {
        {{.node = "w1"}, 15, "all runs of a node"},
        {{.node = "w1", .newest = 5}, 5, "the newest five"},
        {{.node = "w1", .class_hash = hash}, 3, "those of a class"},
        {{.node = "w1", .class_hash = start}, 3, "by the beginning of its hash"},
        {{.node = "w1", .class_hash = class, .newest = 5}, 5, "the newest five of a class"},
        {{.node = "w1", .benchmark = "latency"}, 15, "those of a benchmark"},
        {{.node = "w1", .benchmark = "matrix"}, 0, "of another one"},
        {{.node = "w1", .since_ms = page_day0 + 10 * page_day}, 6, "those since a day"},
        {{.node = "w1", .until_ms = page_day0 + 10 * page_day}, 9, "those before it"},
        {{.node = "w1", .seq = 7}, 1, "one by its number"},
        {{.node = "w1", .seq = 16}, 0, "a number that is not there"},
        {{.nodes = &some}, 20, "those of a set of nodes"},
        {{.nodes = &none}, 0, "of an empty set"},
        {{.node = "w1", .values_only = true}, 15, "without intervals"},
        {{.node = "w9"}, 0, "of a node that is not there"},
        {{.class_hash = hash}, 3, "a class in the fleet"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        CHECK_INT(window_runs(&cases[i].w), cases[i].n, "%s", cases[i].what);
    CHECK(fleet_store_window(s, &cases[0].w, fail_page, NULL, &err) < 0 &&
              err.code == ERR_TOO_LARGE,
          "a reader ends with its own error");
    CHECK(fleet_store_window(s, &(struct fleet_window){.class_hash = ""}, fail_page, NULL, &err) <
                  0 &&
              err.code == ERR_INVALID,
          "of several classes none is meant: %s", err.text);
    CHECK_INT(window_runs(&cases[0].w), 15, "and the store can be read again");
}

struct few_nodes {
    struct buf json;
    int nodes, most, last;
};

static int take_few(void *ctx, const struct summary_page *page, struct err *e)
{
    struct few_nodes *f = ctx;
    if (f->nodes++ == f->most)
        return 1;
    f->last = (int)page->next;
    return made_json_page(&f->json, page, e);
}

// Pages of three nodes, put together, are what one reading gives.
static void test_window_pages(void)
{
    CLEANUP_BUF struct buf whole = BUF_INIT, parts = BUF_INIT;
    CLEANUP_NODESET struct nodeset where = {0};
    struct fleet_window w = {.newest = 2, .own = true};
    struct few_nodes f = {.most = 3};
    made_json_window(s, &w, &whole);
    w.partial = true;
    do {
        f.nodes = 0;
        CHECK_INT(fleet_store_window(s, &w, take_few, &f, &err), 0, "a page after %d", w.after);
        w.after = f.last;
    } while (f.nodes > f.most);
    parts = f.json;
    CHECK(parts.len > 1000 && strcmp(buf_text(&whole), buf_text(&parts)) == 0,
          "no node is missing or twice between pages");
    buf_add(&said, buf_text(&parts), parts.len);
    nodeset_parse(&where, "w1,n[1-2],nosuch", NULL, &err);
    w = (struct fleet_window){.nodes = &where, .partial = true};
    f = (struct few_nodes){.most = 9};
    CHECK(fleet_store_window(s, &w, take_few, &f, &err) == 0 && f.nodes == 3, "nodes of a set");
    buf_free(&f.json);
}

static void test_own_runs(void)
{
    struct maker m = maker_at("o1", "0f0f", 0, 12);
    m.state = "failed";
    made_page_put(s, &m, &err);
    CHECK_INT(window_runs(&(struct fleet_window){.node = "o1"}), 12, "all runs");
    CHECK_INT(window_runs(&(struct fleet_window){.node = "o1", .own = true}), 8,
              "those that succeeded");
    CHECK_INT(window_runs(&(struct fleet_window){.node = "o1", .own = true, .newest = 3}), 3,
              "the newest of them");
}

static int take_last_measured(void *ctx, const struct summary_page *page, struct err *e)
{
    (void)e;
    for (int i = 0; i < page->n_runs; i++)
        buf_fmt(ctx, "%s %lld\n", page->node, (long long)page->runs[i].seq);
    return 0;
}

// A node whose newest runs are others' has been measured before them.
static void test_measured_runs(void)
{
    CLEANUP_BUF struct buf newest = BUF_INIT;
    CLEANUP_NODESET struct nodeset where = {0};
    struct maker m = maker_at("m1", "0f1f", 0, 7);
    m.imported = 5;
    made_page_put(s, &m, &err);
    m = maker_at("m2", "0f2f", 0, 8);
    m.unbegun = 4;
    made_page_put(s, &m, &err);
    nodeset_parse(&where, "m[1-2]", NULL, &err);
    struct fleet_window w = {.nodes = &where, .newest = 1};
    CHECK_INT(fleet_store_window(s, &w, take_last_measured, &newest, &err), 0, "reads");
    CHECK_STR(buf_text(&newest), "m1 7\nm2 8\n", "the newest runs");
    buf_reset(&newest);
    w.measured = true;
    CHECK_INT(fleet_store_window(s, &w, take_last_measured, &newest, &err), 0, "reads");
    CHECK_STR(buf_text(&newest), "m1 5\nm2 4\n", "those that began on the node");
    w.newest = 0;
    CHECK_INT(window_runs(&w), 9, "all of them");
}

static int export_page(void *ctx, const struct summary_page *page, struct err *e)
{
    int *runs = ctx;
    (void)e;
    for (int i = 0; i < page->n_runs; i++)
        buf_fmt(&said, "export %s %lld\n", page->node, (long long)page->runs[i].seq);
    *runs += page->n_runs;
    return 0;
}

// All of it in one call, then in parts: each run comes once, whatever the limit is.
static void test_export(void)
{
    static const int limits[] = {1000000, 100, 7, 1};
    int all = 0;
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct fleet_store_export e = {.until_ms = page_day0 + 4000 * page_day,
                                       .limit = limits[i],
                                       .node = 1,
                                       .deletions = FLEET_STORE_EXPORT_FIRST};
        int runs = 0, calls = 1, more;
        while ((more = fleet_store_export(s, &e, export_page, &runs, &err)) == 1)
            calls++;
        all = i ? all : runs;
        CHECK(more == 0 && runs == all && runs > 50, "%d of %d runs, by %d at least", runs, all,
              limits[i]);
        CHECK(i == 0 ? calls == 1 : calls > 2, "in %d parts", calls);
    }
    struct fleet_store_export some = {.since_ms = page_day0,
                                      .until_ms = page_day0 + page_day,
                                      .limit = 1000000,
                                      .node = 1,
                                      .deletions = FLEET_STORE_EXPORT_FIRST};
    int runs = 0;
    CHECK(fleet_store_export(s, &some, export_page, &runs, &err) == 0 && runs > 0 && runs < all,
          "%d runs of a day", runs);
}

static void test_series(void)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    int lines = 0;
    made_json_series(s, "w1", "latency.n1.n2.median_ns", &out);
    for (const char *c = buf_text(&out); *c; c++)
        lines += *c == '\n';
    CHECK_INT(lines, 15, "a metric of each run of a node");
    buf_reset(&out);
    made_json_series(s, "w1", "no.such", &out);
    made_json_series(s, "w9", "latency.n1.n2.median_ns", &out);
    CHECK_INT(out.len, 0, "unknown names give no point");
}

static int say_setup(void *ctx, const struct fleet_store_setup *p, struct err *e)
{
    (void)e;
    buf_fmt(ctx, "%s %.6s %.6s %lld %lld\n", p->node, p->class_hash, p->config_hash,
            (long long)((p->from_ms - page_day0) / page_day),
            (long long)(p->until_ms ? (p->until_ms - page_day0) / page_day : 0));
    return 0;
}

static void test_setups(void)
{
    static const struct {
        const char *history, *config;
        int64_t after, last;
    } stretches[] = {{"9000", "a", 0, 4}, {"9000", "a", 4, 6}, {"9000", "b", 6, 8},
                     {"9000", "a", 8, 9}, {"9001", "c", 0, 3}, {"9001", "c", 3, 12}};
    CLEANUP_NODESET struct nodeset one = {0};
    CLEANUP_BUF struct buf out = BUF_INIT, all = BUF_INIT;
    char a[65], b[65], c[65], class[65], want[256];
    for (size_t i = 0; i < COUNT_OF(stretches); i++) {
        struct maker m =
            maker_at("u1", stretches[i].history, stretches[i].after, stretches[i].last);
        m.config = stretches[i].config;
        made_page_put(s, &m, &err);
    }
    text_hash("a", a);
    text_hash("b", b);
    text_hash("c", c);
    text_hash("class", class);
    CHECK_INT(nodeset_parse(&one, "u1", NULL, &err), 0, "a set of nodes");
    CHECK_INT(fleet_store_setups(s, &one, say_setup, &out, &err), 0, "set-ups of a node");
    snprintf(want, sizeof want,
             "u1 %.6s %.6s 1 7\nu1 %.6s %.6s 7 9\nu1 %.6s %.6s 9 10\nu1 %.6s %.6s 10 0\n", class, a,
             class, b, class, a, class, c);
    CHECK_STR(buf_text(&out), want,
              "from the first run with each to the first with the next; runs dated before say "
              "nothing");
    CHECK(fleet_store_setups(s, NULL, say_setup, &all, &err) == 0 && all.len > out.len,
          "of all nodes");
    buf_add(&said, all.data, all.len);
}

static int take_page(void *ctx, const struct summary_page *page, struct err *e)
{
    return fleet_add_page(ctx, page, e);
}

static void test_fleet(void)
{
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = page_day0 + 16 * page_day;
    CLEANUP_FLEET struct fleet *f = fleet_new(&o, &err);
    CHECK(fleet_store_window(s, &(struct fleet_window){.newest = 5}, take_page, f, &err) == 0 &&
              f->nodes.n > 10 && f->runs > 50,
          "a window fills a fleet: %d nodes, %ld runs", f->nodes.n, f->runs);
}

// Runs `seq` to seq + n - 1 as the next of the feed, whose place is *at. moved_ms: the first one
// was measured at that time; 0: as usual.
static void put_next(struct maker *m, int64_t *at, int64_t seq, int n, int64_t moved_ms)
{
    struct made_page p CLEANUP(made_page_fini);
    struct fleet_ack ack = {0};
    m->after = seq - 1;
    m->last = seq - 1 + n;
    m->received_ms = page_day0 + 6000 * page_day;
    made_page_make(&p, m);
    p.page.after = p.body.after = *at;
    if (moved_ms)
        p.body.runs[0].measured_ms = moved_ms;
    CHECK(fleet_store_put(s, &p.page, 1, &ack, &err) == 0 && ack.stored == n, "%d runs from %lld",
          n, (long long)seq);
    *at = m->last;
}

// What is newest can be years old, and what comes last can be the oldest.
static void test_newest(void)
{
    char class[65], second[65];
    struct maker m = maker_at("y1", "5e5e", 0, 0);
    int64_t at = 0;
    put_next(&m, &at, 1, 40, 0);
    m.variant = "rare";
    put_next(&m, &at, 2001, 4, 0);
    m.variant = MAKER("").variant;
    m.class = "second class";
    put_next(&m, &at, 4001, 3, 0);
    put_next(&m, &at, 4004, 1, page_day0 - 800 * page_day);
    put_next(&m, &at, 4005, 1, page_day0 - 3000 * page_day);
    text_hash("class", class);
    text_hash("second class", second);
    const struct {
        struct fleet_window w;
        int n;
        const char *what;
    } cases[] = {
        {{.node = "y1", .newest = 1}, 2, "the newest of each kind"},
        {{.node = "y1", .newest = 5}, 9, "five of one kind in two stretches, four of the other"},
        {{.node = "y1", .newest = 43}, 47, "all but those of years before"},
        {{.node = "y1", .newest = 100}, 49, "all"},
        {{.node = "y1", .newest = 5, .class_hash = class}, 9, "of a class that it had"},
        {{.node = "y1", .newest = 4, .class_hash = second}, 4, "of the one that it has"},
        {{.node = "y1", .newest = 5, .since_ms = page_day0 + 300 * page_day}, 7, "since a year"},
        {{.node = "y1", .newest = 5, .until_ms = page_day0 + 300 * page_day}, 5, "before it"},
        {{.node = "y1", .newest = 5, .until_ms = page_day0 - 500 * page_day}, 2, "years before"},
        {{.newest = 5, .class_hash = second}, 5, "a class in the fleet"},
        {{.class_hash = second, .nodes = &(const struct nodeset){0}}, 0, "a class of no node"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CHECK_INT(window_runs(&cases[i].w), cases[i].n, "%s", cases[i].what);
        made_json_window(s, &cases[i].w, &said);
    }
    CHECK(window_runs(&(struct fleet_window){.newest = 5, .class_hash = "no such class"}) < 0 &&
              err.code == ERR_NOT_FOUND && strcmp(err.member, "class") == 0,
          "a class that is not there: %s", err.text);
}

static void test_retention(void)
{
    struct maker m = maker_at("k1", "3000", 0, 100);
    made_page_put(s, &m, &err);
    int64_t before = runs();
    int64_t since = page_day0 + 41 * page_day + 5000; // 2026-09-01
    struct fleet_store_export all = {.until_ms = page_day0 + 4000 * page_day,
                                     .limit = 100,
                                     .node = 1,
                                     .deletions = FLEET_STORE_EXPORT_FIRST},
                              late = all;
    int exported = 0;
    late.since_ms = since;
    CHECK(fleet_store_export(s, &all, export_page, &exported, &err) == 1 &&
              fleet_store_export(s, &late, export_page, &exported, &err) == 1,
          "two exports have begun");
    int64_t deleted = retain_days(s, since + 10 * page_day, &err);
    CHECK_INT(fleet_store_export(s, &late, export_page, &exported, &err), 1,
              "an export of what is kept continues");
    CHECK(fleet_store_export(s, &all, export_page, &exported, &err) < 0 &&
              err.code == ERR_CONFLICT && strstr(err.text, "before 2026-09-01T00:00:00"),
          "one of what was deleted ends: %s", err.text);
    CHECK(deleted > 0 && runs() == before - deleted, "months are deleted (%lld runs)",
          (long long)deleted);
    CHECK_INT(window_runs(&(struct fleet_window){.node = "k1"}), 60, "whole months of a node");
    CHECK_INT(retain_days(s, since, &err), 0, "once");
    CHECK_INT(window_runs(&(struct fleet_window){.node = "y1", .newest = 100}), 7,
              "what is younger is found");
    CHECK_ACK(put("k1", "3000", 0, 100), "behind", 100, "what was deleted does not come back");
}

static void test_crowd(void)
{
    enum { STEP = 100 };
    struct fleet_ack ack = {0};
    int64_t at = 0, before = 0;
    for (; at < FLEET_STORE_NEW_MAX + STEP && ack.outcome == FLEET_STORED; at += STEP) {
        struct maker m = maker_at("c1", "4000", at, at + STEP);
        m.varied = true;
        m.metrics = 1;
        before = runs();
        ack = made_page_put(s, &m, &err);
    }
    CHECK(ack.outcome == FLEET_CROWDED && at > FLEET_STORE_NEW_MAX - STEP && runs() == before,
          "a node with too many kinds of runs is refused (%lld)", (long long)at);
    CHECK_ACK(put("c2", "4100", 0, 1), "stored", 1, "another one is not");
    struct fleet_store_size full = {0}, later = {0};
    fleet_store_size(s, &full, &err);
    for (int i = 0; i < 3; i++) { // it comes again, and each time with something else
        struct maker m = maker_at("c1", "4000", ack.next, ack.next + 1 + i);
        m.varied = true;
        m.metrics = 2 + i;
        m.label = "keep";
        CHECK_ACK(made_page_put(s, &m, &err), "crowded", ack.next, "again");
        char history[8];
        snprintf(history, sizeof history, "42%02d", i);
        CHECK_ACK(put("c1", history, 0, 1), "crowded", 0, "a new history too");
    }
    fleet_store_size(s, &later, &err);
    CHECK(later.kinds == full.kinds && later.machines == full.machines &&
              later.layouts == full.layouts && later.feeds == full.feeds,
          "what is refused adds nothing");
    struct maker known = maker_at("c1", "4000", ack.next, ack.next + 1);
    known.metrics = 1;
    known.variant = "size=1";
    CHECK_ACK(made_page_put(s, &known, &err), "stored", ack.next + 1, "what is known is stored");
}

// Few kinds and few classes, and each of those with each of these.
static void test_spans(void)
{
    enum { STEP = 100 };
    struct fleet_ack ack = {0};
    int64_t at = 0;
    char class[24];
    for (; at < FLEET_STORE_NEW_MAX + 2 * STEP && ack.outcome == FLEET_STORED; at += STEP) {
        struct maker m = maker_at("c5", "4400", at, at + STEP);
        snprintf(class, sizeof class, "class %lld", (long long)at);
        m.class = class;
        m.varied = true;
        m.kinds = STEP;
        m.metrics = 1;
        ack = made_page_put(s, &m, &err);
    }
    CHECK(ack.outcome == FLEET_CROWDED && at > FLEET_STORE_NEW_MAX,
          "a node has so many kinds of runs of so many classes (%lld)", (long long)at);
    struct maker m = maker_at("c5", "4400", ack.next, ack.next + 1);
    m.class = "class 0";
    m.variant = "size=1";
    m.metrics = 1;
    CHECK_ACK(made_page_put(s, &m, &err), "stored", ack.next + 1, "what is known is stored");
}

static void test_histories(void)
{
    enum { AT_ONCE = 256 };
    static struct made_page made[AT_ONCE];
    static struct fleet_page pages[AT_ONCE];
    static struct fleet_ack acks[AT_ONCE];
    char history[8];
    int taken = 0;
    for (int n = 0; n < FLEET_STORE_NEW_MAX + AT_ONCE; n += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            snprintf(history, sizeof history, "5%06x", n + i);
            struct maker m = maker_at("c3", history, 0, 0);
            made_page_make(&made[i], &m);
            pages[i] = made[i].page;
        }
        CHECK_INT(fleet_store_put(s, pages, AT_ONCE, acks, &err), 0, "ever new histories");
        for (int i = 0; i < AT_ONCE; i++) {
            taken += acks[i].outcome != FLEET_CROWDED;
            made_page_fini(&made[i]);
        }
    }
    CHECK_INT(taken, FLEET_STORE_NEW_MAX, "a node has so many histories");
    CHECK_ACK(put("c4", "4300", 0, 1), "stored", 1, "another one has its own");
}

static void say_all(void)
{
    made_json_feeds(s, &said);
    made_json_window(s, &(struct fleet_window){.newest = 7}, &said);
    made_json_window(s, &(struct fleet_window){.node = "h1"}, &said);
    made_json_series(s, "k1", "latency.n0.n3.median_ns", &said);
    made_json_window(s, &(struct fleet_window){.node = "x1", .values_only = true}, &said);
    struct fleet_store_size z;
    fleet_store_size(s, &z, &err);
    buf_fmt(&said, "%lld %lld %lld %lld %lld %lld version %lld\n", (long long)z.runs,
            (long long)z.nodes, (long long)z.feeds, (long long)z.kinds, (long long)z.machines,
            (long long)z.layouts, (long long)fleet_store_version(s, &err));
}

// A second process that reads, and the same after a restart.
static void test_reader(const char *where)
{
    CLEANUP_BUF struct buf first = said;
    struct fleet_store *writer = s;
    said = BUF_INIT;
    s = fleet_store_open(where, FLEET_STORE_READ, &err);
    CHECK(s != NULL, "a reader opens it: %s", err.text);
    say_all();
    CHECK(strstr(buf_text(&first), buf_text(&said)) != NULL, "and sees the same");
    struct maker m = maker_at("late", "5000", 0, 2);
    struct fleet_ack ack = {0};
    CHECK_INT(window_runs(&(struct fleet_window){.node = "late"}), 0, "a node is not there");
    struct fleet_store *reader = s;
    s = writer;
    ack = made_page_put(s, &m, &err);
    CHECK_ACK(ack, "stored", 2, "it comes");
    s = reader;
    CHECK_INT(window_runs(&(struct fleet_window){.node = "late"}), 2, "and the reader sees it");
    CHECK(made_page_put(s, &m, &err).outcome == FLEET_OUTCOMES && err.code == ERR_STORAGE,
          "a reader cannot write: %s", err.text);
    fleet_store_close(s);
    struct fleet_store *second = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(!second && err.code == ERR_CONFLICT, "a second writer is refused: %s", err.text);
    fleet_store_close(second);
    buf_reset(&said);
    s = writer;
    say_all();
    CLEANUP_BUF struct buf before = said;
    said = BUF_INIT;
    fleet_store_close(s);
    s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(s != NULL, "it opens again: %s", err.text);
    say_all();
    CHECK_STR(buf_text(&said), buf_text(&before), "with all that was there");
    CHECK_ACK(put("late", "5000", 0, 2), "behind", 2, "and continues where it was");
    CHECK_ACK(put("t1", "7777", 0, 2), "twin", 9, "also with who has which history");
    buf_add(&first, buf_text(&said), said.len);
    buf_free(&said);
    said = first;
    first = BUF_INIT;
}

struct in_order {
    int nodes, runs, last;
    bool broken;
};

static int see_order(void *ctx, const struct summary_page *page, struct err *e)
{
    struct in_order *o = ctx;
    (void)e;
    o->broken |= page->next <= o->last;
    o->last = (int)page->next;
    o->nodes++;
    o->runs += page->n_runs;
    for (int i = 1; i < page->n_runs; i++)
        o->broken |= page->runs[i - 1].seq != page->runs[i].seq + 1;
    return 0;
}

// After nodes of one run come some whose rows are 12 MB, which PostgreSQL's reader does not keep at
// once. Rows are multiplied in the database: pages of so many would take a minute.
static void test_large_nodes_after_small_ones(const char *where)
{
    enum { SMALL = 200, LARGE = 40, MORE = 899 };
    static const char sql[] =
        "INSERT INTO run (arrival, measured, received, finished, seq, run, seconds, node, feed, "
        "kind, machine, state, flags, disturbed, label, v, w) SELECT arrival + k * 1000000, "
        "measured + k * interval '1 minute', received, finished, seq + k, run + k, seconds, "
        "run.node, run.feed, kind, run.machine, state, flags, disturbed, label, v, w "
        "FROM run JOIN node ON node.id = run.node CROSS JOIN generate_series(1, $1) AS k "
        "WHERE node.name LIKE 'large%'";
    struct in_order o = {0};
    char name[16], history[16];
    if (strncmp(where, "postgresql:", strlen("postgresql:")) != 0)
        return;
    for (int i = 0; i < SMALL + LARGE; i++) {
        snprintf(name, sizeof name, "%s%d", i < SMALL ? "small" : "large", i);
        snprintf(history, sizeof history, "abcd%d", i);
        put(name, history, 0, 1);
    }
    CHECK(fleet_begin(s, &err) == 0 &&
              fleet_end(s, fleet_exec(s, sql, &CELL_I(MORE), 1, &err), &err) == 0,
          "rows are multiplied");
    CLEANUP_NODESET struct nodeset all = {0};
    nodeset_parse(&all, "small[0-199],large[200-239]", NULL, &err);
    const struct fleet_window w = {.nodes = &all, .values_only = true};
    CHECK(fleet_store_window(s, &w, see_order, &o, &err) == 0 && !o.broken, "in order");
    CHECK_INT(o.nodes, SMALL + LARGE, "each node once");
    CHECK_INT(o.runs, SMALL + LARGE * (MORE + 1), "with all runs");
}

static void run_scenarios(const char *where)
{
    test_pages();
    test_batch();
    test_reinstalled();
    test_twins();
    test_names();
    test_garbled();
    test_hostile();
    test_extremes();
    test_window();
    test_own_runs();
    test_measured_runs();
    test_measured_runs();
    test_window_pages();
    test_export();
    test_series();
    test_setups();
    test_newest();
    test_fleet();
    test_retention();
    test_crowd();
    test_histories();
    test_spans();
    say_all();
    test_reader(where);
    test_large_nodes_after_small_ones(where);
}

int main(void)
{
    engines_run(run_scenarios);
    CHECK(fleet_store_open("mysql://x/y", FLEET_STORE_READ, &err) == NULL &&
              err.code == ERR_INVALID,
          "an engine that does not exist: %s", err.text);
    return tap_done();
}
