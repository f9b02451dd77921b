// SPDX-License-Identifier: Apache-2.0
// Pages as nodes send them: written, parsed and read as everywhere else. And what a store gives
// back, as JSON, so that two stores can be compared byte by byte.
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fleet/store/store.h"
#include "model/fingerprint.h"
#include "model/metric.h"

enum { PAGE_METRICS = 30 };
static const int64_t page_day0 = 1784678400000; // 2026-07-22
static const int64_t page_day = 86400000;

struct made_page {
    struct fleet_page page;
    struct summary_page body;
    char name[64];
};

// What a node is like; change members before making pages.
struct maker {
    const char *name, *node, *history;     // node: as it calls itself
    const char *class, *config, *topology; // topology NULL: not known
    int metrics;
    int64_t after, last; // runs after+1 to last
    int64_t received_ms;
    const char *run_node; // of the last run
    const char *state;    // of each third run
    const char *label, *variant;
    bool varied;                      // each run is of a kind of its own
    int64_t imported, unbegun;        // runs with higher numbers, if not 0
    int kinds;                        // not 0: of one of so many, in turn
    int odd;                          // metrics of each second run are so many more
    const struct summary_note *notes; // that follow the runs; their numbers in the feed are given
    int n_notes;
};
#define MAKER(n)                                                                                   \
    ((struct maker){.name = (n),                                                                   \
                    .node = (n),                                                                   \
                    .history = "0123456789abcdef0123456789abcdef",                                 \
                    .class = "class",                                                              \
                    .config = "config",                                                            \
                    .metrics = PAGE_METRICS,                                                       \
                    .last = 3,                                                                     \
                    .received_ms = page_day0 + 400 * page_day,                                     \
                    .label = "",                                                                   \
                    .variant = "size=1-1024"})

__attribute__((unused)) static struct maker maker_at(const char *name, const char *history,
                                                     int64_t after, int64_t last)
{
    struct maker m = MAKER(name);
    m.history = history;
    m.after = after;
    m.last = last;
    return m;
}

static void made_page_metrics(struct metric *list, int n, int64_t seq)
{
    for (int i = 0; i < n; i++) {
        struct metric *m = &list[i];
        snprintf(m->name, sizeof m->name, "latency.n%d.n%d.median_ns", i / 8, i % 8);
        snprintf(m->unit, sizeof m->unit, "ns");
        m->value = 80 + 9.123 * i + (double)(seq * 7919 % 1000) / 700;
        m->lo = i % 7 ? m->value * (1 - 1e-4 * (double)(40 + (seq + i) % 30)) : NAN;
        m->hi = i % 7 ? m->value * (1 + 1e-4 * (double)(50 + (seq * 3 + i) % 30)) : NAN;
    }
}

static void made_page_run(struct summary_writer *w, const struct maker *m, int64_t seq)
{
    struct metric list[METRICS_MAX > 400 ? 400 : METRICS_MAX];
    struct summary s = {
        .seq = seq,
        .id = seq + 2,
        .metrics_version = 4,
        .state = seq % 3 == 0 && m->state ? run_state_find(m->state) : (int)RUN_SUCCEEDED,
        .measured_ms = m->unbegun && seq > m->unbegun ? 0 : page_day0 + seq * page_day + 123,
        .finished_ms = page_day0 + seq * page_day + 31623,
        .duration_s = 31.5,
        .n_ranks = 8,
        .imported = m->imported && seq > m->imported,
        .forced = seq % 11 == 0,
        .disturbed = seq % 5 == 0 ? (double)NAN : 0.0213};
    snprintf(s.node, sizeof s.node, "%s", seq == m->last && m->run_node ? m->run_node : m->node);
    snprintf(s.benchmark, sizeof s.benchmark, "latency");
    snprintf(s.method, sizeof s.method, "prp4-v1");
    snprintf(s.label, sizeof s.label, "%s", m->label);
    char own[32];
    snprintf(own, sizeof own, "size=%lld", (long long)(m->kinds ? seq % m->kinds : seq));
    summary_set_variant(&s, m->varied ? own : m->variant);
    text_hash(m->class, s.class_hash);
    text_hash(m->config, s.config_hash);
    if (m->topology)
        text_hash(m->topology, s.topology_hash);
    int n = m->metrics + (seq % 2 ? m->odd : 0);
    made_page_metrics(list, n, seq);
    summary_writer_add(w, &s, list, s.state == RUN_SUCCEEDED ? n : -1);
}

__attribute__((unused)) static void made_page_fini(struct made_page *p)
{
    summary_page_fini(&p->body);
}

__attribute__((unused)) static void made_page_make(struct made_page *p, const struct maker *m)
{
    static struct summary_writer w;
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct err err = {0};
    const int64_t end = m->last + m->n_notes;
    struct summary_page head = {.after = m->after, .next = end, .last = end};
    snprintf(head.node, sizeof head.node, "%s", m->node);
    snprintf(head.version, sizeof head.version, "1.0.0");
    snprintf(head.history_id, sizeof head.history_id, "%s", m->history);
    summary_writer_init(&w);
    for (int64_t seq = m->after + 1; seq <= m->last; seq++)
        made_page_run(&w, m, seq);
    for (int i = 0; i < m->n_notes; i++) {
        struct summary_note note = m->notes[i];
        note.seq = m->last + 1 + i;
        summary_writer_note(&w, &note);
    }
    summary_writer_end(&w, &head, &text);
    summary_writer_fini(&w);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, &err);
    *p = (struct made_page){0};
    if (!j || summary_page_read(j, &p->body, &err) < 0) {
        fprintf(stderr, "a page of the test: %s: %s\n", err.member, err.text);
        abort();
    }
    snprintf(p->name, sizeof p->name, "%s", m->name);
    p->page = (struct fleet_page){
        .name = p->name, .after = m->after, .received_ms = m->received_ms, .skew_ms = 7};
    p->page.page = &p->body;
}

// Puts one page, and frees it.
__attribute__((unused)) static struct fleet_ack made_page_put(struct fleet_store *s,
                                                              const struct maker *m,
                                                              struct err *err)
{
    struct made_page p CLEANUP(made_page_fini);
    struct fleet_ack ack = {.outcome = FLEET_OUTCOMES};
    made_page_make(&p, m);
    if (fleet_store_put(s, &p.page, 1, &ack, err) < 0)
        ack.outcome = FLEET_OUTCOMES;
    return ack;
}

// ---- What a store gives back

static int made_json_page(void *ctx, const struct summary_page *page, struct err *err)
{
    static struct summary_writer w;
    struct metric *list = calloc(METRICS_MAX, sizeof *list);
    (void)err;
    summary_writer_init(&w);
    for (int i = 0; i < page->n_runs; i++) {
        const struct summary *r = &page->runs[i];
        int n = r->layout < 0 ? -1 : page->layouts[r->layout].n;
        for (int k = 0; k < n; k++) {
            const struct summary_metric *m = &page->layouts[r->layout].list[k];
            list[k] = (struct metric){.value = r->values[k], .lo = r->lo[k], .hi = r->hi[k]};
            snprintf(list[k].name, sizeof list[k].name, "%s", m->name);
            snprintf(list[k].unit, sizeof list[k].unit, "%s", m->unit);
        }
        summary_writer_add(&w, r, list, n);
    }
    summary_writer_end(&w, page, ctx);
    summary_writer_fini(&w);
    buf_char(ctx, '\n');
    free(list);
    return 0;
}

__attribute__((unused)) static int made_json_window(struct fleet_store *s,
                                                    const struct fleet_window *w, struct buf *out)
{
    struct err err = {0};
    int result = fleet_store_window(s, w, made_json_page, out, &err);
    if (result < 0)
        printf("# window: %s\n", err.text);
    return result;
}

static int made_json_point(void *ctx, const struct fleet_store_point *p, struct err *err)
{
    (void)err;
    buf_fmt(ctx, "%lld %lld %lld %a %a %a %s %s %s %s %.8s %.8s %d %d %d %.4f\n",
            (long long)p->measured_ms, (long long)p->seq, (long long)p->id, (double)p->value,
            (double)p->lo, (double)p->hi, p->unit, p->benchmark, p->variant, p->method,
            p->class_hash, p->config_hash, p->metrics_version, p->forced, p->imported,
            p->disturbed);
    return 0;
}

__attribute__((unused)) static int made_json_series(struct fleet_store *s, const char *node,
                                                    const char *metric, struct buf *out)
{
    struct err err = {0};
    int result = fleet_store_series(s, &(struct fleet_line){.node = node, .metric = metric},
                                    made_json_point, out, &err);
    if (result < 0)
        printf("# series: %s\n", err.text);
    return result;
}

static int made_json_feed(void *ctx, const struct fleet_feed *f, struct err *err)
{
    (void)err;
    buf_fmt(ctx, "%s %s %s twin=%s %d %lld %lld %lld %lld\n", f->name, f->history, f->version,
            f->twin, f->state, (long long)f->next, (long long)f->first_ms, (long long)f->last_ms,
            (long long)f->skew_ms);
    return 0;
}

__attribute__((unused)) static int made_json_feeds(struct fleet_store *s, struct buf *out)
{
    struct err err = {0};
    int result = fleet_store_feeds(s, true, made_json_feed, out, &err);
    if (result < 0)
        printf("# feeds: %s\n", err.text);
    return result;
}

// All runs before the month, on as many days as that takes. How many; -1.
__attribute__((unused)) static int64_t retain_days(struct fleet_store *of, int64_t before_ms,
                                                   struct err *e)
{
    static int64_t now_ms = page_day0 + 5000 * page_day;
    struct fleet_retention r = {.before_ms = before_ms, .held = true};
    int64_t deleted = 0;
    for (; r.held; deleted += r.deleted) {
        r.now_ms = now_ms += page_day;
        if (fleet_store_retain(of, &r, e) < 0)
            return -1;
    }
    return deleted;
}
