// SPDX-License-Identifier: Apache-2.0
// A page of summaries as it is written and read, and what a hostile sender may put into one.
#include "model/summary.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static const char hash[] = "62204bddcacce72c9480be2964c36688710c400f0a3ab2f500e220bb6f0e471e";

static const struct metric latency[] = {
    {"latency.local.dram.median_ns", "ns", 148.9124, 148.7, 149.2},
    {"latency.n0.n1.median_ns", "ns", 231.5, NAN, NAN},
};
static const struct metric bandwidth[] = {
    {"bandwidth.triad.peak.gbps", "GB/s", 171.25, 0, 60000},
    {"bandwidth.none", "GB/s", 0, NAN, NAN},
    {"bandwidth.infinite", "GB/s", INFINITY, NAN, NAN},
};

static struct summary example(int64_t seq, const char *benchmark)
{
    struct summary s = {.seq = seq,
                        .id = seq + 1,
                        .metrics_version = 4,
                        .state = RUN_SUCCEEDED,
                        .imported = true,
                        .measured_ms = 1795219200123,
                        .finished_ms = 1795219212000,
                        .duration_s = 11.877,
                        .n_ranks = 8,
                        .disturbed = 0.0213};
    snprintf(s.node, sizeof s.node, "n1");
    snprintf(s.benchmark, sizeof s.benchmark, "%s", benchmark);
    snprintf(s.variant, sizeof s.variant, "size=1-1024 n_ranks=8");
    snprintf(s.method, sizeof s.method, "prp4-v1");
    snprintf(s.label, sizeof s.label,
             "n\xc3\xa4"
             "ch \"dem\" Umbau");
    snprintf(s.class_hash, sizeof s.class_hash, "%s", hash);
    return s;
}

static size_t bytes_written;

static void write_page(struct buf *out)
{
    static struct summary_writer w;
    struct summary_page head = {.after = 3, .next = 9, .last = 12, .more = true};
    struct summary a = example(4, "latency"), b = example(5, "bandwidth"),
                   c = example(9, "latency");
    snprintf(head.node, sizeof head.node, "n1");
    snprintf(head.version, sizeof head.version, "2.0.0");
    snprintf(head.history_id, sizeof head.history_id, "0123456789abcdef0123456789abcdef");
    c.state = RUN_FAILED;
    c.measured_ms = 0;
    c.disturbed = NAN;
    summary_writer_init(&w);
    summary_writer_add(&w, &a, latency, 2);
    summary_writer_add(&w, &b, bandwidth, 3);
    summary_writer_add(&w, &a, latency, 2);
    summary_writer_add(&w, &c, NULL, -1);
    summary_writer_note(&w,
                        &(struct summary_note){.seq = 8, .run_seq = 3, .run = 4, .baseline = true});
    struct summary_note note = {.seq = 9, .run_seq = 4, .run = 5, .node_seq = 7, .label = "kept"};
    snprintf(note.node, sizeof note.node, "n1");
    snprintf(note.node_history, sizeof note.node_history, "%.32s", hash);
    summary_writer_note(&w, &note);
    summary_writer_end(&w, &head, out);
    bytes_written = summary_writer_bytes(&w);
    summary_writer_fini(&w);
}

static void check_head(const struct summary_page *p)
{
    CHECK(strcmp(p->node, "n1") == 0 && strcmp(p->version, "2.0.0") == 0 &&
              strcmp(p->history_id, "0123456789abcdef0123456789abcdef") == 0 && p->after == 3 &&
              p->next == 9 && p->last == 12 && p->more,
          "the page's own members");
    CHECK(p->n_layouts == 2 && p->n_runs == 4, "four runs share two layouts");
    CHECK(p->layouts[0].n == 2 && p->layouts[1].n == 1,
          "a value that is 0 or infinite is not in a layout");
    CHECK_STR(p->layouts[0].list[1].name, "latency.n0.n1.median_ns", "a metric's name");
    CHECK_STR(p->layouts[1].list[0].unit, "GB/s", "and its unit");
}

static void check_runs(const struct summary_page *p)
{
    const struct summary want = example(4, "latency"), *a = &p->runs[0], *b = &p->runs[1];
    CHECK(a->seq == 4 && a->id == 5 && a->metrics_version == 4 && a->state == RUN_SUCCEEDED &&
              a->imported && !a->forced && a->measured_ms == want.measured_ms &&
              a->finished_ms == want.finished_ms && a->duration_s == 11.877 && a->n_ranks == 8 &&
              a->disturbed == 0.0213,
          "numbers, flags and times of a run");
    CHECK(strcmp(a->node, want.node) == 0 && strcmp(a->benchmark, want.benchmark) == 0 &&
              strcmp(a->variant, want.variant) == 0 && strcmp(a->method, want.method) == 0 &&
              strcmp(a->label, want.label) == 0 && strcmp(a->class_hash, hash) == 0 &&
              !*a->config_hash && !*a->topology_hash,
          "texts of a run");
    CHECK(a->layout == 0 && p->runs[2].layout == 0 && b->layout == 1 && p->runs[3].layout == -1,
          "each has its layout, or none");
    CHECK(a->values[0] == 148.912F && isnan(a->lo[1]) && isnan(a->hi[1]),
          "six digits of a value; an interval that is not known");
    CHECK(a->lo[0] <= 148.7F && a->lo[0] > 148.68F && a->hi[0] >= 149.2F && a->hi[0] < 149.22F,
          "an interval is rounded outwards, by at most a ten-thousandth: %.3f, %.3f",
          (double)a->lo[0], (double)a->hi[0]);
    CHECK(b->lo[0] == 0 && b->hi[0] == 171.25F * 101, "a wide interval ends at the limits: %g, %g",
          (double)b->lo[0], (double)b->hi[0]);
    CHECK(isnan(p->runs[3].disturbed) && p->runs[3].measured_ms == 0, "what is not known");
}

static void check_notes(const struct summary_page *p)
{
    const struct summary_note *a = &p->notes[0], *b = &p->notes[1];
    CHECK_INT(p->n_notes, 2, "two notes");
    CHECK(a->seq == 8 && a->run_seq == 3 && a->run == 4 && a->baseline && !*a->label && !*a->node &&
              !*a->node_history && !a->node_seq,
          "one of a node");
    CHECK(b->seq == 9 && !b->baseline && strcmp(b->label, "kept") == 0 &&
              strcmp(b->node, "n1") == 0 && strncmp(b->node_history, hash, 32) == 0 &&
              b->node_history[32] == '\0' && b->node_seq == 7,
          "and one of a collector");
}

static void check_round_trip(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct summary_page p CLEANUP(summary_page_fini) = {0};
    struct err err = {0};
    write_page(&text);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, &err);
    int rc = j ? summary_page_read(j, &p, &err) : -1;
    CHECK(rc == 0, "what is written is read: %s %s", err.member, err.text);
    if (rc < 0)
        return;
    CHECK(bytes_written < text.len && bytes_written > text.len - 200,
          "a writer knows how large its page will be");
    check_head(&p);
    check_runs(&p);
    check_notes(&p);
}

static void check_variant_fits(void)
{
    struct summary a = {0}, b = {0};
    char longer[600];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    summary_set_variant(&a, longer);
    longer[sizeof longer - 2] = 'y';
    summary_set_variant(&b, longer);
    CHECK(strlen(a.variant) == sizeof a.variant - 1 && strcmp(a.variant, b.variant) != 0,
          "long variants that differ in their last byte stay two");
    summary_set_variant(&a, "pages=huge");
    CHECK_STR(a.variant, "pages=huge", "a short one is as it is");
}

// The page with `was`, which it has once, replaced. Returns whether it is read.
static bool reads_with(const char *was, const char *is, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT, changed = BUF_INIT;
    struct summary_page p CLEANUP(summary_page_fini) = {0};
    write_page(&text);
    const char *at = strstr(buf_text(&text), was);
    if (!at) {
        printf("# \"%s\" is not in the page\n", was);
        return false;
    }
    buf_add(&changed, text.data, (size_t)(at - text.data));
    buf_str(&changed, is);
    buf_str(&changed, at + strlen(was));
    *err = (struct err){0};
    CLEANUP_JSON struct json *j = json_parse(buf_text(&changed), changed.len, err);
    int rc = j ? summary_page_read(j, &p, err) : -1;
    if (rc < 0 && (p.memory || p.runs || !err->code || !*err->text))
        return true; // something was left behind, or nothing said
    return rc == 0;
}

static const struct {
    const char *was, *is, *member;
} refused[] = {
    {"\"summary\"", "\"whole\"", "form"},
    {"\"node\":\"n1\",\"version\"", "\"node\":\"a b\",\"version\"", "node"},
    {"\"2.0.0\"", "\"\\u001b[2J\"", "version"},
    {"\"more\":true", "\"more\":1", "more"},
    {"\"next\":9", "\"next\":-1", "next"},
    {"\"next\":9", "\"next\":1e300", "next"},
    {"\"layouts\":[[", "\"layouts\":[7,[", "layouts"},
    {"[\"latency.n0.n1.median_ns\",\"ns\"]", "[\"latency.n0.n1.median_ns\"]", "layouts[0]"},
    {"[\"latency.n0.n1.median_ns\",\"ns\"]", "[\"\",\"ns\"]", "layouts[0].name"},
    {"latency.n0.n1.median_ns", "a\\u009bb", "layouts[0].name"},
    {"latency.n0.n1.median_ns", "=latency", "layouts[0].name"},
    {"latency.n0.n1.median_ns", "latency<b>", "layouts[0].name"},
    {"\"GB/s\"", "\"furlongs/fortnight\"", "layouts[1].unit"},
    {"\"GB/s\"", "\"=1+1\"", "layouts[1].unit"},
    {"\"runs\":[", "\"runs\":[[],", "runs[0]"},
    {"\"seq\":5", "\"seq\":5.5", "runs[1].seq"},
    {"\"seq\":5", "\"seq\":\"5\"", "runs[1].seq"},
    {"\"imported\":true", "\"imported\":null", "runs[0].imported"},
    {"2026-11-21T00:00:00.123Z", "yesterday", "runs[0].measured"},
    {"\"bandwidth\"", "\"Band width\"", "runs[1].benchmark"},
    {"\"bandwidth\"", "\"\"", "runs[1].benchmark"},
    {"size=1-1024", "size\\n", "runs[0].variant"},
    {"size=1-1024", "=HYPERLINK(1)", "runs[0].variant"},
    {"prp4-v1", "PRP4", "runs[0].method"},
    {"62204bdd", "62204bd", "runs[0].class"},
    {"\"config\":\"\"", "\"config\":null", "runs[0].config"},
    {"\"failed\"", "\"done\"", "runs[3].state"},
    {"\"metrics_version\":4", "\"metrics_version\":-4", "runs[0].metrics_version"},
    {"\"duration_s\":11.877", "\"duration_s\":-1", "runs[0].duration_s"},
    {"\"disturbed\":0.0213", "\"disturbed\":1.5", "runs[0].disturbed"},
    {"\"layout\":1", "\"layout\":2", "runs[1].layout"},
    {"\"layout\":1", "\"layout\":0", "runs[1].values"},
    {"\"layout\":1", "\"layout\":-1", "runs[1].values"},
    {"\"values\":[171.25]", "\"values\":{\"a\":171.25}", "runs[1].values"},
    {"\"values\":[171.25]", "\"values\":[171.25,2]", "runs[1].values"},
    {"\"values\":[171.25]", "\"values\":[0]", "runs[1].values"},
    {"\"values\":[171.25]", "\"values\":[1e300]", "runs[1].values"},
    {"\"values\":[171.25]", "\"values\":[null]", "runs[1].values"},
    {"\"widths\":[10000,1000000]", "\"widths\":[10000]", "runs[1].widths"},
    {"\"widths\":[10000,1000000]", "\"widths\":[10001,7]", "runs[1].widths"},
    {"\"widths\":[10000,1000000]", "\"widths\":[7,1000001]", "runs[1].widths"},
    {"\"widths\":[10000,1000000]", "\"widths\":[7,-2]", "runs[1].widths"},
    {"\"widths\":[10000,1000000]", "\"widths\":[0.5,7]", "runs[1].widths"},
    {"\"seq\":8", "\"seq\":0", "notes[0].seq"},
    {"\"run_seq\":3", "\"run_seq\":0.5", "notes[0].run_seq"},
    {"\"baseline\":true", "\"baseline\":1", "notes[0].baseline"},
    {"\"label\":\"kept\"", "\"label\":\"\\u0007\"", "notes[1].label"},
    {"\"label\":\"kept\"", "\"label\":null", "notes[1].label"},
    {"\"node_seq\":7", "\"node_seq\":0", "notes[1].node_seq"},
    {"\"node_history_id\":\"62", "\"node_history_id\":\"x2", "notes[1].node_history_id"},
    {"\"notes\":[", "\"notes\":[1,", "notes[0]"},
};

static void check_hostile(void)
{
    struct err err;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        bool read = reads_with(refused[i].was, refused[i].is, &err);
        CHECK(!read && strcmp(err.member, refused[i].member) == 0, "%s: %s %s", refused[i].is,
              err.member, err.text);
    }
    CHECK(reads_with("\"more\":true", "\"more\":true,\"later\":[{}]", &err) &&
              reads_with("\"seq\":5", "\"later\":{\"a\":1},\"seq\":5", &err),
          "members of a later version are passed over");
    CHECK(reads_with("\"version\":\"2.0.0\",", "", &err), "a head without a member that is newer");
}

static void check_large(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct summary_page p = {0};
    struct err err = {0};
    buf_str(&text, "{\"form\":\"summary\",\"after\":0,\"next\":0,\"last\":0,\"more\":false,"
                   "\"layouts\":[],\"runs\":[{}");
    for (int i = 0; i < SUMMARY_RUNS_MAX; i++)
        buf_str(&text, ",{}");
    buf_str(&text, "]}");
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, &err);
    CHECK(summary_page_read(j, &p, &err) < 0 && err.code == ERR_TOO_LARGE &&
              strcmp(err.member, "runs") == 0,
          "%s %s", err.member, err.text);
    CHECK(summary_page_read(json_get(j, "runs"), &p, &err) < 0 &&
              summary_page_read(NULL, &p, &err) < 0,
          "a page is an object");
}

// What was read is written with the same numbers, again and again.
static void check_copy(void)
{
    static struct summary_writer w;
    CLEANUP_BUF struct buf first = BUF_INIT, again = BUF_INIT;
    write_page(&first);
    for (int times = 0; times < 3; times++) {
        CLEANUP_JSON struct json *j = json_parse(buf_text(&first), first.len, NULL);
        struct summary_page page CLEANUP(summary_page_fini) = {0};
        CHECK(summary_page_read(j, &page, NULL) == 0, "a page is read");
        summary_writer_init(&w);
        for (int i = 0; i < page.n_runs; i++) {
            const struct summary *s = &page.runs[i];
            summary_writer_copy(&w, s, s->layout < 0 ? NULL : &page.layouts[s->layout]);
        }
        for (int i = 0; i < page.n_notes; i++)
            summary_writer_note(&w, &page.notes[i]);
        buf_reset(&again);
        summary_writer_end(&w, &page, &again);
        summary_writer_fini(&w);
        CHECK_STR(buf_text(&again), buf_text(&first), "and written as it was");
    }
}

int main(void)
{
    check_round_trip();
    check_copy();
    check_variant_fits();
    check_hostile();
    check_large();
    return tap_done();
}
