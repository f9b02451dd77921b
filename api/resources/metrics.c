// SPDX-License-Identifier: Apache-2.0
// GET /metrics: what is stored and what the daemon uses, for Prometheus. Text format 0.0.4, or
// OpenMetrics 1.0 where the scraper accepts it. A scrape reads; it never starts a probe.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "api/resources/check.h"
#include "api/resources/gauges.h"
#include "api/resources/resources.h"
#include "api/services/process.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/store/history.h"
#include "http/server/status_counts.h"

struct writer {
    struct buf *out;
    bool open;       // OpenMetrics
    char family[80]; // with prefix, without _total
    bool counter;
};

// One byte that is not UTF-8 (firmware names CPUs as it likes) would spoil the whole scrape.
static void put_escaped(struct buf *out, const char *text, bool quote)
{
    while (*text) {
        size_t n = str_utf8_char(text);
        if (*text == '\\' || *text == '\n' || (quote && *text == '"'))
            buf_char(out, '\\');
        if (n && *text != '\n')
            buf_add(out, text, n);
        else
            buf_char(out, n ? 'n' : '?');
        text += n ? n : 1;
    }
}

static const char *exposition_unit_of(const char *family)
{
    static const char *const units[] = {"bytes_per_second", "seconds", "bytes", "ratio"};
    size_t n = strlen(family);
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        size_t k = strlen(units[i]);
        if (n > k && family[n - k - 1] == '_' && strcmp(family + n - k, units[i]) == 0)
            return units[i];
    }
    return NULL;
}

static void exposition_begin(struct writer *w, const char *family, const char *type,
                             const char *help)
{
    w->counter = strcmp(type, "counter") == 0;
    snprintf(w->family, sizeof w->family, "%s", family);
    const char *tail = w->counter && !w->open ? "_total" : "";
    const char *unit = exposition_unit_of(family);
    buf_fmt(w->out, "# HELP %s%s ", family, tail);
    put_escaped(w->out, help, w->open);
    buf_fmt(w->out, "\n# TYPE %s%s %s\n", family, tail, type);
    if (w->open && unit)
        buf_fmt(w->out, "# UNIT %s %s\n", family, unit);
}

// Labels as pairs of texts. What is not known is not there.
static void exposition_sample(struct writer *w, const char *const labels[][2], int n, double value)
{
    if (!isfinite(value))
        return;
    buf_fmt(w->out, "%s%s", w->family, w->counter ? "_total" : "");
    for (int i = 0; i < n; i++) {
        buf_char(w->out, i ? ',' : '{');
        buf_str(w->out, labels[i][0]);
        buf_str(w->out, "=\"");
        put_escaped(w->out, labels[i][1], true);
        buf_char(w->out, '"');
    }
    buf_fmt(w->out, "%s %.12g\n", n ? "}" : "", value);
}

static void single(struct writer *w, const char *family, const char *type, const char *help,
                   double value)
{
    if (value < 0)
        return; // not known
    exposition_begin(w, family, type, help);
    exposition_sample(w, NULL, 0, value);
}

static void labelled(struct writer *w, const char *label, const char *text, double value)
{
    const char *const labels[][2] = {{label, text}};
    exposition_sample(w, labels, 1, value);
}

// --- What was measured -------------------------------------------------------------------------

static void write_gauge(struct writer *w, const struct gauge *g)
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

static void write_values(struct writer *w, const struct gauges *g)
{
    for (int i = 0; i < g->n; i++) {
        const struct metric_rule *rule = g->list[i].rule;
        char family[64];
        snprintf(family, sizeof family, "numaprobe_%s", rule->family);
        if (i == 0 || g->list[i - 1].rule != rule)
            exposition_begin(w, family, "gauge", rule->help);
        write_gauge(w, &g->list[i]);
    }
    single(w, "numaprobe_series_omitted", "gauge",
           "Series that are not shown, because those of newer runs reach the limit",
           (double)g->omitted);
}

// Their text is made once for each reading and form.
static void write_gauges(struct writer *w, const struct gauges *g)
{
    static struct {
        int64_t reading;
        struct buf text;
    } kept[2];
    struct buf *text = &kept[w->open].text;
    if (kept[w->open].reading != g->reading || !buf_ok(text)) {
        struct writer into = {.out = text, .open = w->open};
        buf_free(text);
        write_values(&into, g);
        kept[w->open].reading = g->reading;
    }
    buf_needs(w->out, text);
    buf_add(w->out, text->data, text->len);
}

static void of_variant(struct writer *w, const struct gauge_variant *v, double value)
{
    const char *const labels[][2] = {
        {"benchmark", benchmarks[v->benchmark].name}, {"variant", v->variant}, {"mode", v->mode}};
    exposition_sample(w, labels, *v->mode ? 3 : 2, value);
}

static void write_variants(struct writer *w, const struct gauges *g)
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

static int exposition_write_runs(const struct api_services *api, struct writer *w, struct err *err)
{
    int64_t stored[RUN_STATES], waiting, pending;
    if (store_run_states(api->store, stored, err) < 0 ||
        store_queue_length(api->store, &waiting, err) < 0 ||
        store_runs_pending(api->store, METRICS_VERSION, NULL, RUNS_PENDING_MAX, &pending, err) < 0)
        return -1;
    exposition_begin(w, "numaprobe_runs", "gauge", "Stored runs by state");
    for (int s = 0; s < RUN_STATES; s++)
        labelled(w, "state", run_state_names[s], (double)stored[s]);
    exposition_begin(w, "numaprobe_runs_finished", "counter",
                     "Runs that ended since the daemon started, by state");
    for (int s = 0; s < RUN_STATES; s++)
        if (run_state_final((enum run_state)s))
            labelled(w, "state", run_state_names[s],
                     (double)runner_finished(api->runner, (enum run_state)s));
    single(w, "numaprobe_runs_without_metrics", "gauge",
           "Succeeded runs whose metrics are not computed yet", (double)pending);
    single(w, "numaprobe_queue_length", "gauge", "Queued runs", (double)waiting);
    single(w, "numaprobe_busy", "gauge", "1 while a run is running", runner_busy(api->runner));
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

static int write_checks(const struct request *q, struct writer *w, struct err *err)
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
        labelled(w, "baseline", checked[i].name, checked[i].state);
    if (n)
        exposition_begin(w, "numaprobe_check_difference_ratio", "gauge",
                         "Difference to the baseline over all cells; 0.03 is 3 %");
    for (int i = 0; i < n; i++)
        if (checked[i].compared)
            labelled(w, "baseline", checked[i].name, checked[i].overall);
    if (n)
        exposition_begin(w, "numaprobe_check_worst_ratio", "gauge",
                         "Difference of the worst size, rank or node to the baseline");
    for (int i = 0; i < n; i++)
        if (checked[i].compared)
            labelled(w, "baseline", checked[i].name, checked[i].worst);
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
static int write_node(const struct api_services *api, int64_t newest_run, struct writer *w,
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

static void write_daemon(const struct api_services *api, struct writer *w)
{
    exposition_begin(w, "numaprobe_build_info", "gauge", "1; the version is in the label");
    labelled(w, "version", NUMAPROBE_VERSION, 1);
    single(w, "numaprobe_database_size_bytes", "gauge",
           "Size of the database: the file and its write-ahead log", database_bytes(api));
    exposition_begin(w, "numaprobe_http_responses", "counter",
                     "HTTP responses since the start, by status");
    for (int status = 100; status <= STATUS_MAX; status++) {
        char code[16];
        snprintf(code, sizeof code, "%d", status);
        if (counts_of(status) || status == 200)
            labelled(w, "code", code, (double)counts_of(status));
    }
    single(w, "numaprobe_loop_wakeups", "counter", "Times that the daemon's loop woke up",
           (double)loop_wakeups(api->loop));
}

// Names, types and help as every client library has them, to the letter: whoever collects several
// programs' metrics in one place refuses a name that has two of them.
static void write_process(struct writer *w)
{
    struct process_use use;
    process_use(&use);
    single(w, "process_cpu_seconds", "counter", "Total user and system CPU time spent in seconds.",
           use.cpu_s);
    single(w, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.",
           (double)use.resident_bytes);
    single(w, "process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.",
           (double)use.virtual_bytes);
    single(w, "process_open_fds", "gauge", "Number of open file descriptors.",
           (double)use.open_fds);
    single(w, "process_max_fds", "gauge", "Maximum number of open file descriptors.",
           (double)use.max_fds);
    single(w, "process_start_time_seconds", "gauge",
           "Start time of the process since unix epoch in seconds.", use.start_s);
}

int metrics_get(struct request *q, struct reply *r, struct err *err)
{
    const char *accept = request_header(q, "Accept");
    CLEANUP_BUF struct buf body = BUF_INIT;
    bool process = true;
    struct writer w = {.out = &body,
                       .open = accept && strcasestr(accept, "application/openmetrics-text")};
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
        write_process(&w);
    if (w.open)
        buf_str(&body, "# EOF\n");
    return reply_text(r,
                      w.open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8",
                      &body, err);
}
