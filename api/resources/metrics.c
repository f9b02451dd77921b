// SPDX-License-Identifier: Apache-2.0
// GET /metrics: what is stored and what the daemon uses, for Prometheus. A scrape reads; it never
// starts a probe.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/resources/check.h"
#include "api/resources/gauges.h"
#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/exposition.h"
#include "core/os/process_use.h"
#include "core/store/history.h"
#include "http/server/status_counts.h"

// --- What was measured -------------------------------------------------------------------------

static void write_gauge(struct exposition *w, const struct gauge *g)
{
    const char *labels[METRIC_LABELS_MAX + 1][2];
    int n = 0;
    for (; n < g->labels.n; n++) {
        labels[n][0] = g->labels.list[n].name;
        labels[n][1] = g->labels.list[n].value;
    }
    labels[n][0] = "variant";
    labels[n++][1] = g->variant;
    exposition_sample(w, (const char *const(*)[2])labels, n, g->value);
}

static void write_values(struct exposition *w, const struct gauges *g)
{
    for (int i = 0; i < g->n; i++) {
        const struct metric_rule *rule = g->list[i].rule;
        char family[64];
        snprintf(family, sizeof family, "numaprobe_%s", rule->family);
        if (i == 0 || g->list[i - 1].rule != rule)
            exposition_begin(w, family, "gauge", rule->help);
        write_gauge(w, &g->list[i]);
    }
    exposition_single(w, "numaprobe_series_omitted", "gauge",
                      "Series that are not shown, because those of newer runs reach the limit",
                      (double)g->omitted);
}

// Their text is made once for each reading and form.
static void write_gauges(struct exposition *w, const struct gauges *g)
{
    static struct {
        int64_t reading;
        struct buf text;
    } kept[2];
    struct buf *text = &kept[w->open].text;
    if (kept[w->open].reading != g->reading || !buf_ok(text)) {
        struct exposition into = {.out = text, .open = w->open};
        buf_free(text);
        write_values(&into, g);
        kept[w->open].reading = g->reading;
    }
    buf_needs(w->out, text);
    buf_add(w->out, text->data, text->len);
}

static void of_variant(struct exposition *w, const struct gauge_variant *v, double value)
{
    const char *const labels[][2] = {
        {"benchmark", benchmarks[v->benchmark].name}, {"variant", v->variant}, {"mode", v->mode}};
    exposition_sample(w, labels, *v->mode ? 3 : 2, value);
}

static void write_variants(struct exposition *w, const struct gauges *g)
{
    int64_t now_ms = clock_wall_ms();
    const struct gauge_variant *v = g->variants, *end = v + g->n_variants;
    if (v == end)
        return;
    exposition_begin(
        w, "numaprobe_run_timestamp_seconds", "gauge",
        "When the newest succeeded run of a benchmark, variant and mode was measured, since 1970");
    for (v = g->variants; v < end; v++)
        of_variant(w, v, (double)v->measured_ms / 1e3);
    exposition_begin(
        w, "numaprobe_run_number", "gauge",
        "Number of that run on its node, as the dashboard's address has it: /#/runs/N");
    for (v = g->variants; v < end; v++)
        of_variant(w, v, (double)v->run_id);
    exposition_begin(w, "numaprobe_run_age_seconds", "gauge",
                     "Age of the newest succeeded run of a benchmark, variant and mode");
    for (v = g->variants; v < end; v++)
        of_variant(w, v, fmax(0, (double)(now_ms - v->measured_ms) / 1e3));
    exposition_begin(
        w, "numaprobe_run_interval_seconds", "gauge",
        "Longest pause between the last runs of a benchmark, variant and mode that is measured "
        "regularly");
    for (v = g->variants; v < end; v++)
        if (v->interval_ms)
            of_variant(w, v, (double)v->interval_ms / 1e3);
}

// --- Runs and baselines ------------------------------------------------------------------------

static int exposition_write_runs(const struct api_services *api, struct exposition *w,
                                 struct err *err)
{
    int64_t stored[RUN_STATES], waiting, pending;
    if (store_run_states(api->store, stored, err) < 0 ||
        store_queue_length(api->store, &waiting, err) < 0 ||
        store_runs_pending(api->store, METRICS_VERSION, NULL, RUNS_PENDING_MAX, &pending, err) < 0)
        return -1;
    exposition_begin(w, "numaprobe_runs", "gauge", "Stored runs by state");
    for (int s = 0; s < RUN_STATES; s++)
        exposition_labelled(w, "state", run_state_names[s], (double)stored[s]);
    exposition_begin(w, "numaprobe_runs_finished", "counter",
                     "Runs that ended since the daemon started, by state");
    for (int s = 0; s < RUN_STATES; s++)
        if (run_state_final((enum run_state)s))
            exposition_labelled(w, "state", run_state_names[s],
                                (double)runner_finished(api->runner, (enum run_state)s));
    exposition_single(w, "numaprobe_runs_without_metrics", "gauge",
                      "Succeeded runs whose metrics are not computed yet", (double)pending);
    exposition_single(w, "numaprobe_queue_length", "gauge", "Queued runs", (double)waiting);
    exposition_single(w, "numaprobe_busy", "gauge", "1 while a run is running",
                      runner_busy(api->runner));
    return 0;
}

struct checked {
    const char *name;
    enum check_state state;
    bool compared;
    double overall, worst;
};

static int check_all(const struct request *q, const struct baseline *list, int n,
                     struct checked *out)
{
    for (int i = 0; i < n; i++) {
        struct check_options options = CHECK_DEFAULTS;
        const struct check_result *r;
        snprintf(options.baseline, sizeof options.baseline, "%s", list[i].name);
        out[i] = (struct checked){.name = list[i].name, .state = CHECK_UNKNOWN};
        if (check_verdict(q, &options, &r, NULL) == 0)
            out[i] = (struct checked){list[i].name, r->state, r->compared, r->overall.percent / 100,
                                      r->worst.percent / 100};
    }
    return n;
}

static int write_checks(const struct request *q, struct exposition *w, struct err *err)
{
    CLEANUP_MEM struct baseline *list = NULL;
    struct checked checked[BASELINES_MAX];
    int n;
    if (store_baseline_list(api_of(q)->store, &list, &n, err) < 0)
        return -1;
    check_all(q, list, n, checked);
    if (n)
        exposition_begin(
            w, "numaprobe_check_state", "gauge",
            "The newest run against a baseline: 0 OK, 1 warning, 2 critical, 3 unknown");
    for (int i = 0; i < n; i++)
        exposition_labelled(w, "baseline", checked[i].name, checked[i].state);
    if (n)
        exposition_begin(w, "numaprobe_check_difference_ratio", "gauge",
                         "Difference to the baseline over all cells; 0.03 is 3 %");
    for (int i = 0; i < n; i++)
        if (checked[i].compared)
            exposition_labelled(w, "baseline", checked[i].name, checked[i].overall);
    if (n)
        exposition_begin(w, "numaprobe_check_worst_ratio", "gauge",
                         "Difference of the worst size, rank or node to the baseline");
    for (int i = 0; i < n; i++)
        if (checked[i].compared)
            exposition_labelled(w, "baseline", checked[i].name, checked[i].worst);
    return 0;
}

// --- The daemon --------------------------------------------------------------------------------

static double database_bytes(const struct api_services *api)
{
    static const char *const tails[] = {"", "-wal"};
    double sum = 0;
    for (unsigned i = 0; i < COUNT_OF(tails); i++) {
        char path[600];
        struct stat file;
        snprintf(path, sizeof path, "%s%s", store_path(api->store), tails[i]);
        if (stat(path, &file) == 0)
            sum += (double)file.st_size;
    }
    return sum;
}

static const char *fact_of(const struct facts *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->list[i].name, name) == 0)
            return f->list[i].value;
    return "";
}

// The settings are those of the newest run that is shown: its numbers were measured with them.
static int write_node(const struct api_services *api, int64_t newest_run, struct exposition *w,
                      struct err *err)
{
    const struct machine *m = api->machine;
    const struct facts *class = &m->fingerprint.machine_class;
    struct run run CLEANUP(run_fini) = {0};
    char cpus[16], nodes[16];
    if (newest_run && store_run_get(api->store, newest_run, &run, err) < 0)
        return -1;
    snprintf(cpus, sizeof cpus, "%d", m->topology.n_cpus);
    snprintf(nodes, sizeof nodes, "%d", m->topology.n_nodes);
    const char *const labels[][2] = {
        {"node", m->hostname},
        {"product", fact_of(class, "product")},
        {"cpu_model", m->topology.cpu_model},
        {"cpus", cpus},
        {"numa_nodes", nodes},
        {"hardware_hash", class->hash},
        {"config_hash", *run.config_hash ? run.config_hash : m->fingerprint.config.hash},
        {"version", NUMAPROBE_VERSION},
    };
    exposition_begin(w, "numaprobe_node_info", "gauge",
                     "1; the machine is in the labels: nodes with the same hardware_hash have the "
                     "same hardware");
    exposition_sample(w, labels, COUNT_OF(labels), 1);
    return 0;
}

static void write_daemon(const struct api_services *api, struct exposition *w)
{
    exposition_begin(w, "numaprobe_build_info", "gauge", "1; the version is in the label");
    exposition_labelled(w, "version", NUMAPROBE_VERSION, 1);
    exposition_single(w, "numaprobe_database_size_bytes", "gauge",
                      "Size of the database: the file and its write-ahead log",
                      database_bytes(api));
    exposition_begin(w, "numaprobe_http_responses", "counter",
                     "HTTP responses since the start, by status");
    for (int status = 100; status <= STATUS_MAX; status++) {
        char code[16];
        snprintf(code, sizeof code, "%d", status);
        if (counts_of(status) || status == 200)
            exposition_labelled(w, "code", code, (double)counts_of(status));
    }
    exposition_single(w, "numaprobe_loop_wakeups", "counter",
                      "Times that the daemon's loop woke up", (double)loop_wakeups(api->loop));
}

int metrics_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    bool process = true;
    struct exposition w =
        exposition_to(&body, request_accepts(q, exposition_types, EXPOSITION_TYPES) > 0);
    if (request_query_bool(q, "process", &process, err) < 0)
        return -1;
    const struct gauges *g = gauges_get(api_of(q), err);
    if (!g)
        return -1;
    write_gauges(&w, g);
    write_variants(&w, g);
    if (exposition_write_runs(api_of(q), &w, err) < 0 || write_checks(q, &w, err) < 0 ||
        write_node(api_of(q), g->newest_run, &w, err) < 0)
        return -1;
    write_daemon(api_of(q), &w);
    if (process)
        process_use_write(&w);
    exposition_end(&w);
    return reply_text(r, exposition_content_type(&w), &body, err);
}
