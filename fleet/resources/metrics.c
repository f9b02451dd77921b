// SPDX-License-Identifier: Apache-2.0
// GET /metrics and GET /v1/fleet/sd, for Prometheus. What the collector knows by itself is written
// for each scrape; what the history says comes from services/class_metrics.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/interned.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/exposition.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "core/os/process_use.h"
#include "fleet/resources/resources.h"
#include "fleet/services/class_metrics.h"
#include "fleet/services/polling.h"
#include "fleet/services/services.h"
#include "http/server/status_counts.h"

enum {
    READ_US = 500000,      // of ten thousand nodes: never in the loop
    IMAGE_BYTES = 8 << 20, // at most: metrics and the classes of 65,536 nodes
};

static void take_class_metrics(void *context, const struct job_made *made, struct err *err)
{
    (void)context;
    if (!err->code && class_metrics_keep(made->data, made->n, made->version, err) == 0)
        return;
    // What the collector itself knows is served, above all when the store is away.
    class_metrics_missed();
    *err = (struct err){0};
}

static void class_metrics_work(const struct request *q, int age_s, struct work *w)
{
    static const struct job_kind job = {
        .number = CLASS_METRICS_JOB, .for_all = true, .take = take_class_metrics};
    const struct http_service *service = q->service;
    w->kind = &job;
    if (q->prepared || class_metrics_fresh(service->jobs->version(service->context), age_s))
        return;
    w->us = READ_US;
    w->bytes = IMAGE_BYTES;
}

void fleetd_metrics_work(const struct request *q, struct work *w, struct err *why)
{
    (void)why;
    class_metrics_work(q, CLASS_METRICS_AGE_S, w);
}

void fleetd_node_work(const struct request *q, struct work *w, struct err *why)
{
    (void)why;
    class_metrics_work(q, CLASS_NODES_AGE_S, w);
}

// ---- GET /metrics -------------------------------------------------------------------------------

static int by_age(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Ages of the newest pages of nodes that push, or of those that are contacted. What comes through
// another collector has none.
static int ages_of(const struct poller *p, bool push, int64_t *ages)
{
    int n, known = 0;
    int64_t now_ms = clock_wall_ms();
    struct polled *const *nodes = poller_nodes(p, &n);
    if (poller_stands_by(p))
        return 0;
    for (int i = 0; i < n; i++)
        if (polling_awaits(nodes[i]) && nodes[i]->pushes == push && nodes[i]->seen_ms)
            ages[known++] = now_ms > nodes[i]->seen_ms ? now_ms - nodes[i]->seen_ms : 0;
    return known;
}

static void write_quantiles(struct exposition *e, int64_t *ages, int n)
{
    static const struct {
        const char *label;
        double share;
    } quantiles[] = {{"0.5", 0.5}, {"0.9", 0.9}, {"0.99", 0.99}, {"1", 1}};
    qsort(ages, (size_t)n, sizeof *ages, by_age);
    for (size_t i = 0; i < COUNT_OF(quantiles) && n; i++)
        exposition_labelled(e, "quantile", quantiles[i].label,
                            (double)ages[(int)(quantiles[i].share * (n - 1) + 0.5)] / 1e3);
}

// The two kinds are apart, because each has an interval of its own.
static int write_ages(const struct fleet_services *s, struct exposition *e, struct err *err)
{
    int n;
    poller_nodes(s->poller, &n);
    CLEANUP_MEM int64_t *ages = calloc((size_t)n + 1, sizeof *ages);
    if (!ages)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the ages of %d nodes", n);
    exposition_begin(e, "numaprobe_fleet_staleness_seconds", "summary",
                     "Time since the last page of a node was stored, over the nodes that are "
                     "contacted");
    write_quantiles(e, ages, ages_of(s->poller, false, ages));
    exposition_begin(e, "numaprobe_fleet_push_staleness_seconds", "summary",
                     "Time since the last page of a node was stored, over the nodes that push");
    write_quantiles(e, ages, ages_of(s->poller, true, ages));
    exposition_single(e, "numaprobe_fleet_feed_lag_seconds", "gauge",
                      "For how long the node that waits longest should have been contacted",
                      (double)polling_lag_ms(s->poller) / 1e3);
    exposition_begin(e, "numaprobe_fleet_clock_offset_seconds", "gauge",
                     "How far the collector's clock is ahead of that of most nodes; 0 unless these "
                     "agree on another time");
    exposition_sample(e, NULL, 0, (double)poller_clock_off(s->poller) / 1e3);
    return 0;
}

static void write_node_counts(const struct poller *p, struct exposition *e)
{
    struct polling_counts c;
    polling_count(p, &c);
    exposition_begin(e, "numaprobe_fleet_nodes", "gauge", "Nodes by state");
    for (int i = 0; i < NODE_STATES; i++)
        exposition_labelled(e, "state", node_states[i].name, c.states[i]);
    exposition_begin(e, "numaprobe_fleet_outcomes", "gauge",
                     "Nodes whose last page was not stored as it was, by reason");
    for (int i = FLEET_STORED + 1; i < FLEET_OUTCOMES; i++)
        exposition_labelled(e, "outcome", fleet_outcomes[i].name, c.outcomes[i]);
}

static void write_collecting(const struct fleet_services *s, struct exposition *e)
{
    struct poller_totals t;
    poller_totals(s->poller, &t);
    exposition_single(e, "numaprobe_fleet_ingest_runs", "counter", "Runs stored since the start",
                      (double)t.stored);
    exposition_single(e, "numaprobe_fleet_backlog_bytes", "gauge",
                      "Received from nodes and not stored yet", (double)poller_backlog(s->poller));
    exposition_single(e, "numaprobe_fleet_requests", "counter", "Requests to nodes since the start",
                      (double)t.requests);
    exposition_begin(e, "numaprobe_fleet_poll_errors", "counter",
                     "Requests to nodes that failed since the start, by reason");
    for (int i = 0; i < FETCH_ERRORS; i++)
        exposition_labelled(e, "reason", i == FETCH_OK ? "status" : fetch_error_info(i)->slug,
                            (double)t.errors[i]);
    exposition_single(e, "numaprobe_fleet_interval_seconds", "gauge",
                      "Time between two requests to a node", (double)s->config->every_s);
    exposition_single(e, "numaprobe_fleet_push_interval_seconds", "gauge",
                      "Time in which a node that pushes must have pushed",
                      (double)s->config->push_every_s);
    exposition_begin(e, "numaprobe_fleet_ready", "gauge",
                     "1 while the store is open, here or in another collector, and while the "
                     "sources of nodes can be read");
    exposition_labelled(e, "part", "store",
                        t.store_state == STORE_READY || t.store_state == STORE_STANDBY);
    exposition_labelled(e, "part", "sources", !*naming_problem(s->naming));
}

static void write_store_size(const struct judging *j, struct exposition *e)
{
    const struct fleet_store_size z = judging_summary(j).store;
    if (!z.bytes)
        return;
    exposition_single(e, "numaprobe_fleet_store_bytes", "gauge",
                      "What the store takes, when the fleet was judged last", (double)z.bytes);
    exposition_single(e, "numaprobe_fleet_store_runs", "gauge",
                      "Runs in the store, when the fleet was judged last", (double)z.runs);
}

static void write_kept_counts(const struct judging *j, struct exposition *e)
{
    const struct judging_summary s = judging_summary(j);
    const struct kept_counts *c = &s.judged.counts;
    if (!s.counted)
        return;
    exposition_begin(e, "numaprobe_fleet_kept_findings", "gauge",
                     "Findings that are kept by state");
    for (int i = KEPT_FORMING; i < KEPT_STATES; i++)
        exposition_labelled(e, "state", kept_states[i].name, c->states[i]);
    exposition_begin(e, "numaprobe_fleet_open_findings", "gauge",
                     "Findings that are kept and open, by kind");
    for (int i = 0; i < KEPT_WHATS; i++) {
        int n = 0;
        for (int grade = 0; grade < KEPT_GRADES; grade++)
            n += c->open[i][grade];
        exposition_labelled(e, "what", kept_whats[i].name, n);
    }
}

static void write_collector(struct exposition *e)
{
    exposition_begin(e, "numaprobe_build_info", "gauge", "1; the version is in the label");
    exposition_labelled(e, "version", NUMAPROBE_VERSION, 1);
    exposition_begin(e, "numaprobe_http_responses", "counter",
                     "HTTP responses since the start, by status");
    for (int status = 100; status <= STATUS_MAX; status++) {
        char code[16];
        snprintf(code, sizeof code, "%d", status);
        if (counts_of(status) || status == 200)
            exposition_labelled(e, "code", code, (double)counts_of(status));
    }
}

int fleetd_metrics(struct request *q, struct reply *r, struct err *err)
{
    const struct fleet_services *s = fleet_of(q);
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct exposition e =
        exposition_to(&body, request_accepts(q, exposition_types, EXPOSITION_TYPES) > 0);
    write_node_counts(s->poller, &e);
    if (write_ages(s, &e, err) < 0)
        return -1;
    write_collecting(s, &e);
    write_store_size(s->judging, &e);
    write_kept_counts(s->judging, &e);
    buf_str(&body, class_metrics_text());
    write_collector(&e);
    process_use_write(&e);
    exposition_end(&e);
    return reply_text(r, exposition_content_type(&e), &body, err);
}

// ---- GET /v1/fleet/sd ---------------------------------------------------------------------------

// A node as a target: "http://10.0.0.1:7780/x" is 10.0.0.1:7780 with the scheme http.
struct target {
    const char *host; // borrowed
    int n;            // bytes of it
    int next;         // target of the same group; -1: none
};

// Targets with the same labels, so that ten thousand take 0.2 MB.
enum target_label { TARGET_SCHEME, TARGET_CLASS, TARGET_PARTITION, TARGET_LABELS };
static const char *const target_labels[TARGET_LABELS] = {"__scheme__", "class", "partition"};

struct target_group {
    const char *labels[TARGET_LABELS]; // borrowed
    int first, last;                   // of its targets
};

struct targets {
    struct target *list;         // owned
    struct target_group *groups; // owned
    int n;
    struct interned keys;      // of the groups
    struct target_group *last; // that a target was added to; NULL: none yet
};

static void targets_fini(struct targets *t)
{
    free(t->list);
    free(t->groups);
    interned_fini(&t->keys);
}

static int by_labels(const void *a, const void *b)
{
    const struct target_group *x = a, *y = b;
    int order = 0;
    for (int i = 0; i < TARGET_LABELS && !order; i++)
        order = strcmp(x->labels[i], y->labels[i]);
    return order;
}

// The group of these labels, which is a new one if there is none yet; mostly that of the target
// before. NULL: no memory.
static struct target_group *target_group_of(struct targets *t, const struct target_group *like,
                                            struct err *err)
{
    char key[sizeof((struct polled *)NULL)->partitions + sizeof((struct polled *)NULL)->class_hint +
             16];
    int before = t->keys.n;
    if (t->last && by_labels(t->last, like) == 0)
        return t->last;
    snprintf(key, sizeof key, "%s\n%s\n%s", like->labels[TARGET_SCHEME], like->labels[TARGET_CLASS],
             like->labels[TARGET_PARTITION]);
    int at = interned_add(&t->keys, key, err);
    if (at == before)
        t->groups[at] = *like;
    return at < 0 ? NULL : (t->last = &t->groups[at]);
}

// In the order of the nodes, and of `classes`, which is searched from where it was left.
static int targets_add(struct targets *t, const struct polled *n, struct class_search *classes,
                       struct err *err)
{
    const char *base = n->base[n->at_base], *host = strstr(base, "://");
    const char *class = class_metrics_next(classes, n->name).class;
    if (n->state == NODE_GONE || node_asleep(n) || !host)
        return 0;
    host += strlen("://");
    const struct target_group like = {{str_starts(base, "https:") ? "https" : "http",
                                       class ? class : n->class_hint, n->partitions},
                                      t->n,
                                      t->n};
    struct target_group *group = target_group_of(t, &like, err);
    if (!group)
        return -1;
    if (group->first != t->n)
        t->list[group->last].next = t->n;
    group->last = t->n;
    t->list[t->n++] = (struct target){host, (int)strcspn(host, "/"), -1};
    return 0;
}

static void write_group(const struct targets *t, const struct target_group *g, struct jsonw *w)
{
    char text[POLLED_BASE];
    jsonw_object(w, NULL);
    jsonw_array(w, "targets");
    for (int i = g->first; i >= 0; i = t->list[i].next) {
        memcpy(text, t->list[i].host, (size_t)t->list[i].n);
        text[t->list[i].n] = '\0';
        jsonw_text(w, NULL, text);
    }
    jsonw_end(w);
    jsonw_object(w, "labels");
    for (int i = 0; i < TARGET_LABELS; i++)
        jsonw_text(w, target_labels[i], g->labels[i]);
    jsonw_end(w);
    jsonw_end(w);
}

int fleetd_sd(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct class_search classes = {0};
    int n;
    struct polled *const *nodes = poller_nodes(fleet_of(q)->poller, &n);
    struct targets t CLEANUP(targets_fini) = {calloc((size_t)n + 1, sizeof *t.list),
                                              calloc((size_t)n + 1, sizeof *t.groups)};
    if (!t.list || !t.groups)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d targets", n);
    for (int i = 0; i < n; i++)
        if (targets_add(&t, nodes[i], &classes, err) < 0)
            return -1;
    qsort(t.groups, (size_t)t.keys.n, sizeof *t.groups, by_labels);
    jsonw_array(&w, NULL);
    for (int i = 0; i < t.keys.n; i++)
        write_group(&t, &t.groups[i], &w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}
