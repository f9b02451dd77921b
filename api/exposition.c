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

#include "analysis/metrics.h"
#include "api/check_baseline.h"
#include "api/counts.h"
#include "api/process.h"
#include "api/resources.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "core/store_history.h"

// At most 7 benchmarks x 512 metrics of the last run; a machine with 2 nodes has about 120. All
// else: states, benchmarks, baselines (64 x 3) and answers by status, below 300.
enum { SAMPLES_MAX = BENCHMARKS * METRICS_MAX };

struct writer {
    struct buf *out;
    bool open;       // OpenMetrics
    char family[80]; // with prefix, without _total
    bool counter;
};

static void put_escaped(struct buf *out, const char *text, bool quote)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '\n' || (quote && *text == '"'))
            buf_char(out, '\\');
        buf_char(out, *text == '\n' ? 'n' : *text);
    }
}

static const char *unit_of(const char *family)
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

static void begin(struct writer *w, const char *family, const char *type, const char *help)
{
    w->counter = strcmp(type, "counter") == 0;
    snprintf(w->family, sizeof w->family, "%s", family);
    const char *tail = w->counter && !w->open ? "_total" : "";
    const char *unit = unit_of(family);
    buf_fmt(w->out, "# HELP %s%s ", family, tail);
    put_escaped(w->out, help, w->open);
    buf_fmt(w->out, "\n# TYPE %s%s %s\n", family, tail, type);
    if (w->open && unit)
        buf_fmt(w->out, "# UNIT %s %s\n", family, unit);
}

// Labels as pairs of texts.
static void sample(struct writer *w, const char *const labels[][2], int n, double value)
{
    buf_fmt(w->out, "%s%s", w->family, w->counter ? "_total" : "");
    for (int i = 0; i < n; i++) {
        buf_fmt(w->out, "%s%s=\"", i ? "," : "{", labels[i][0]);
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
    begin(w, family, type, help);
    sample(w, NULL, 0, value);
}

static void labelled(struct writer *w, const char *label, const char *text, double value)
{
    const char *const labels[][2] = {{label, text}};
    sample(w, labels, 1, value);
}

// --- The newest run of each benchmark ----------------------------------------------------------

struct gauge {
    const struct metric_rule *rule;
    struct metric_labels labels;
    double value;
    char *variant; // owned
};

struct gauges {
    int n;
    struct gauge list[SAMPLES_MAX];
    int64_t measured_ms[BENCHMARKS]; // 0: there is no run
};

static void gauges_free(struct gauges **g)
{
    for (int i = 0; *g && i < (*g)->n; i++)
        free((*g)->list[i].variant);
    free(*g);
}

static void take(void *ctx, const struct metric *m, const char *variant)
{
    struct gauges *g = ctx;
    struct gauge one = {.value = m->value * metric_base_factor(m->unit)};
    one.rule = metric_rule_find(m->name, &one.labels);
    if (!one.rule || g->n == SAMPLES_MAX)
        return; // the name is of another version
    one.variant = strdup(variant);
    if (one.variant)
        g->list[g->n++] = one;
}

static int collect(const struct api_services *api, struct gauges *g, struct err *err)
{
    for (int b = 0; b < BENCHMARKS; b++) {
        int64_t id;
        int found = store_run_newest(api->store, benchmarks[b].name, api->machine->hostname, &id,
                                     &g->measured_ms[b], err);
        if (found < 0 || (found && store_run_metrics_get(api->store, id, take, g, err) < 0))
            return -1;
    }
    return 0;
}

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
    sample(w, (const char *const(*)[2])labels, n, g->value);
}

// A family's samples must stand together.
static void write_gauges(struct writer *w, const struct gauges *g)
{
    for (const struct metric_rule *rule = metric_rules; rule->pattern; rule++) {
        bool begun = false;
        for (int i = 0; i < g->n; i++) {
            if (g->list[i].rule != rule)
                continue;
            char family[64];
            snprintf(family, sizeof family, "numaprobe_%s", rule->family);
            if (!begun)
                begin(w, family, "gauge", rule->help);
            begun = true;
            write_gauge(w, &g->list[i]);
        }
    }
}

static bool any_run(const struct gauges *g)
{
    for (int b = 0; b < BENCHMARKS; b++)
        if (g->measured_ms[b])
            return true;
    return false;
}

static void write_ages(struct writer *w, const struct gauges *g)
{
    double now = (double)clock_wall_ms() / 1e3;
    if (!any_run(g))
        return;
    begin(w, "numaprobe_run_timestamp_seconds", "gauge",
          "When the newest succeeded run was measured, since 1970");
    for (int b = 0; b < BENCHMARKS; b++)
        if (g->measured_ms[b])
            labelled(w, "benchmark", benchmarks[b].name, (double)g->measured_ms[b] / 1e3);
    begin(w, "numaprobe_run_age_seconds", "gauge", "Age of the newest succeeded run");
    for (int b = 0; b < BENCHMARKS; b++)
        if (g->measured_ms[b])
            labelled(w, "benchmark", benchmarks[b].name,
                     fmax(0, now - (double)g->measured_ms[b] / 1e3));
}

// --- Runs and baselines ------------------------------------------------------------------------

static int write_runs(const struct api_services *api, struct writer *w, struct err *err)
{
    int64_t stored[RUN_STATES], waiting;
    if (store_run_states(api->store, stored, err) < 0 ||
        store_queue_length(api->store, &waiting, err) < 0)
        return -1;
    begin(w, "numaprobe_runs", "gauge", "Stored runs by state");
    for (int s = 0; s < RUN_STATES; s++)
        labelled(w, "state", run_state_names[s], (double)stored[s]);
    begin(w, "numaprobe_runs_finished", "counter",
          "Runs that ended since the daemon started, by state");
    for (int s = 0; s < RUN_STATES; s++)
        if (run_state_final((enum run_state)s))
            labelled(w, "state", run_state_names[s],
                     (double)runner_finished(api->runner, (enum run_state)s));
    single(w, "numaprobe_queue_length", "gauge", "Runs that wait", (double)waiting);
    single(w, "numaprobe_busy", "gauge", "1 while a run goes on", runner_busy(api->runner));
    return 0;
}

struct checked {
    const char *name;
    enum check_state state;
    bool compared;
    double overall, worst;
};

static int check_all(const struct api_services *api, const struct baseline *list, int n,
                     struct checked *out)
{
    for (int i = 0; i < n; i++) {
        struct check_wish wish = CHECK_DEFAULTS;
        const struct check_result *r;
        snprintf(wish.baseline, sizeof wish.baseline, "%s", list[i].name);
        out[i] = (struct checked){.name = list[i].name, .state = CHECK_UNKNOWN};
        if (baseline_check(api, &wish, &r, NULL) == 0)
            out[i] = (struct checked){list[i].name, r->state, r->compared, r->overall.percent / 100,
                                      r->worst.percent / 100};
    }
    return n;
}

static int write_checks(const struct api_services *api, struct writer *w, struct err *err)
{
    CLEANUP_MEM struct baseline *list = NULL;
    struct checked checked[BASELINES_MAX];
    int n;
    if (store_baseline_list(api->store, &list, &n, err) < 0)
        return -1;
    check_all(api, list, n, checked);
    if (n)
        begin(w, "numaprobe_check_state", "gauge",
              "The newest run against a baseline: 0 OK, 1 warning, 2 critical, 3 unknown");
    for (int i = 0; i < n; i++)
        labelled(w, "baseline", checked[i].name, checked[i].state);
    if (n)
        begin(w, "numaprobe_check_difference_ratio", "gauge",
              "Difference to the baseline over all cells; 0.03 is 3 %");
    for (int i = 0; i < n; i++)
        if (checked[i].compared)
            labelled(w, "baseline", checked[i].name, checked[i].overall);
    if (n)
        begin(w, "numaprobe_check_worst_ratio", "gauge",
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

static void write_daemon(const struct api_services *api, struct writer *w)
{
    struct process_use use;
    begin(w, "numaprobe_build_info", "gauge", "1; what runs here is in the labels");
    labelled(w, "version", NUMAPROBE_VERSION, 1);
    single(w, "numaprobe_database_size_bytes", "gauge",
           "Size of the database: the file and its log of writes", database_bytes(api));
    begin(w, "numaprobe_http_responses", "counter", "Answers since the start, by status");
    for (int status = 100; status <= STATUS_MAX; status++) {
        char code[16];
        snprintf(code, sizeof code, "%d", status);
        if (counts_of(status) || status == 200)
            labelled(w, "code", code, (double)counts_of(status));
    }
    single(w, "numaprobe_loop_wakeups", "counter", "Times that the daemon's loop woke up",
           (double)loop_wakeups(api->loop));
    process_use(&use);
    single(w, "process_cpu_seconds", "counter", "Processor time used", use.cpu_s);
    single(w, "process_resident_memory_bytes", "gauge", "Memory in use",
           (double)use.resident_bytes);
    single(w, "process_virtual_memory_bytes", "gauge", "Address space in use",
           (double)use.virtual_bytes);
    single(w, "process_open_fds", "gauge", "Open file descriptors", (double)use.open_fds);
    single(w, "process_max_fds", "gauge", "How many there may be", (double)use.max_fds);
    single(w, "process_start_time_seconds", "gauge", "When the daemon started, since 1970",
           use.start_s);
}

int metrics_get(struct request *q, struct reply *r, struct err *err)
{
    const char *accept = request_header(q, "Accept");
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP(gauges_free) struct gauges *g = calloc(1, sizeof *g);
    struct writer w = {.out = &body,
                       .open = accept && strcasestr(accept, "application/openmetrics-text")};
    if (!g)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for metrics");
    if (collect(q->api, g, err) < 0)
        return -1;
    write_gauges(&w, g);
    write_ages(&w, g);
    if (write_runs(q->api, &w, err) < 0 || write_checks(q->api, &w, err) < 0)
        return -1;
    write_daemon(q->api, &w);
    if (w.open)
        buf_str(&body, "# EOF\n");
    return reply_text(r,
                      w.open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8",
                      &body, err);
}
