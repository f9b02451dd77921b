// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet run: the same run on many nodes. Per node: request it, wait for its end, fetch
// its metrics. The table summarizes the nodes; each node keeps its own result.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "analysis/peers/fleet.h"
#include "analysis/stats/stats.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "client/exits.h"
#include "client/fleet/fan.h"
#include "client/fleet/fleet.h"
#include "client/other_version.h"
#include "client/print.h"
#include "model/run.h"
#include "model/spec_request.h"
#include "model/summary.h"

struct fleet_run_flags {
    bool dry_run, cancel_on_interrupt;
    char key[64];
};

static const struct param flag_params[] = {
    {.name = "dry_run",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct fleet_run_flags, dry_run),
     .def = "false",
     .help = "Print the plans of the nodes; start nothing."},
    {.name = "cancel_on_interrupt",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct fleet_run_flags, cancel_on_interrupt),
     .def = "false",
     .help = "Ctrl-C, SIGTERM and SIGHUP cancel the runs that this command has started."},
    {.name = "idempotency_key",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct fleet_run_flags, key),
     .room = sizeof((struct fleet_run_flags *)0)->key,
     .filled = true,
     .def = "",
     .metavar = "KEY",
     .help = "A repeated command with the same key follows the runs that exist, and starts those "
             "that are missing."},
};
const struct param_table fleet_run_options = {flag_params, COUNT_OF(flag_params)};

enum {
    HOLD_S = 25,       // a node holds a request so long; then it is repeated
    BUSY_RETRY_S = 15, // of a node that does not say when to come again
    PAUSE_MS = 1000,   // before a state is requested again, where the node does not hold requests
    OVERTIME_S = 120,  // for the end of a run, beyond its time limit
    QUEUED_MAX_S = 14400, // a run may wait so long for others on its node: the largest time limit
    TABLE_METRICS = 16,   // lines of the table; the other formats have all metrics
};

struct node_run {
    int64_t id, busy_since_ms;
    int64_t requested_ms;     // when its state was last requested
    int64_t deadline_ms;      // its own time limit, and some more; 0: not started
    bool asked;               // it was requested, and there was no response yet
    bool running, no_hold;    // no_hold: the node has no place for a client that waits
    bool canceled;            // it was requested
    struct summary_page page; // of this run alone; owned
    char *plan;               // --dry-run: a line; owned
    struct err *refusal;      // of the request, while the node's version is looked for; owned
    enum other_version_lists lists;
};

struct runs_on_nodes {
    const struct cli *cli;
    const struct fleet_run_flags *flags;
    const struct spec *spec;
    struct buf body; // the spec as JSON
    char key[64];
    int64_t wait_ms; // for a busy node
    struct node_run *runs;
};

static void follow_run(struct fan *f, int node, struct runs_on_nodes *r);

// ---- The end of a node's run --------------------------------------------------------------------

static void take_node_metrics(struct fan *f, int node, const struct json *body, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    struct node_run *run = &r->runs[node];
    struct err err = {0};
    if (summary_page_read(body, &run->page, &err) < 0) {
        err_name_member(&err);
        fan_fail(f, node, err.code, err.text);
        return;
    }
    if (run->page.n_runs == 1 && run->page.runs[0].id == run->id) {
        fan_done(f, node);
        return;
    }
    summary_page_fini(&run->page); // values of another run
    fan_fail(f, node, ERR_CONFLICT, "the node no longer has the run that it made");
}

// The run stays on the node.
static void metrics_refused(struct fan *f, int node, const struct err *why, int retry_s, void *ctx)
{
    (void)retry_s, (void)ctx;
    fan_fail_refused(f, node, why,
                     "the run is stored there, but its numaprobed is too old for fleet commands");
}

static void fetch_metrics(struct fan *f, int node, const struct json *run)
{
    char path[100];
    snprintf(path, sizeof path, "/v1/feed?form=summary&limit=1&after=%lld",
             (long long)json_get_i64(run, "seq", 1) - 1);
    fan_call(
        f, node,
        &(struct fan_request){
            .path = path, .last = true, .reply = take_node_metrics, .refused = metrics_refused});
}

// A node that responds at once, whatever wait= says, is requested once a second, and not for ever:
// a run ends within its own time limit.
static void follow_further(struct fan *f, int node, struct runs_on_nodes *r,
                           const struct json *body, int state)
{
    struct node_run *run = &r->runs[node];
    int64_t now = clock_mono_ms(), limit_s = json_get_i64(json_get(body, "plan"), "timeout_s", 0);
    limit_s = limit_s > 0 && limit_s < QUEUED_MAX_S ? limit_s + OVERTIME_S : QUEUED_MAX_S;
    if (!run->deadline_ms || (state == RUN_RUNNING && !run->running))
        run->deadline_ms = now + 1000 * (state == RUN_RUNNING ? limit_s : QUEUED_MAX_S);
    run->running |= state == RUN_RUNNING;
    if (now > run->deadline_ms)
        fan_fail(f, node, ERR_TIMEOUT, "the run has not ended within its time limit");
    else if (now - run->requested_ms < 1000 * HOLD_S / 2)
        fan_pause(f, node, PAUSE_MS);
    else
        follow_run(f, node, r);
}

static void take_state(struct fan *f, int node, const struct json *body, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    int state = run_state_find(json_get_text(body, "state", ""));
    const char *why = json_get_text(json_get(body, "error"), "text", "no reason given");
    char text[300];
    if (state < 0) {
        fan_fail(f, node, ERR_UNREACHABLE, "the response is no run: is it numaprobed?");
    } else if (!run_state_final((enum run_state)state)) {
        follow_further(f, node, r, body, state);
    } else if (state == RUN_SUCCEEDED) {
        fetch_metrics(f, node, body);
    } else {
        snprintf(text, sizeof text, "the run %s: %.200s", run_state_names[state], why);
        fan_fail(f, node, ERR_CONFLICT, text);
    }
}

// The node has no place for one more client that waits: its state without wait= comes a second
// later.
static void hold_refused(struct fan *f, int node, const struct err *why, int retry_s, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    struct node_run *run = &r->runs[node];
    int64_t now = clock_mono_ms();
    (void)retry_s;
    run->no_hold = true;
    if (!run->deadline_ms)
        run->deadline_ms = now + (int64_t)1000 * QUEUED_MAX_S;
    if ((why->code == ERR_UNAVAILABLE || why->code == ERR_TOO_MANY) && now <= run->deadline_ms)
        fan_pause(f, node, PAUSE_MS);
    else
        fan_fail(f, node, why->code, why->text);
}

static void follow_run(struct fan *f, int node, struct runs_on_nodes *r)
{
    struct node_run *run = &r->runs[node];
    int wait_s = run->no_hold ? 0 : HOLD_S;
    char path[80];
    snprintf(path, sizeof path, "/v1/runs/%lld?wait=%d", (long long)run->id, wait_s);
    run->requested_ms = clock_mono_ms();
    fan_call(f, node,
             &(struct fan_request){
                 .path = path, .wait_s = wait_s, .reply = take_state, .refused = hold_refused});
}

static void ignore_reply(struct fan *f, int node, const struct json *body, void *ctx)
{
    (void)f, (void)node, (void)body, (void)ctx; // whoever waits for the run sees its end
}

static void ignore_refusal(struct fan *f, int node, const struct err *why, int retry_s, void *ctx)
{
    (void)f, (void)node, (void)why, (void)retry_s, (void)ctx; // it has finished just now
}

static void cancel_run(struct fan *f, int node, struct runs_on_nodes *r)
{
    char path[80];
    snprintf(path, sizeof path, "/v1/runs/%lld/cancel", (long long)r->runs[node].id);
    if (!r->flags->cancel_on_interrupt || r->runs[node].canceled)
        return;
    r->runs[node].canceled = true;
    fan_call(f, node,
             &(struct fan_request){
                 .method = "POST", .path = path, .reply = ignore_reply, .refused = ignore_refusal});
}

// ---- Its beginning ------------------------------------------------------------------------------

static void take_started(struct fan *f, int node, const struct json *body, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    const char *name = json_get_text(body, "node", "");
    char text[200];
    r->runs[node].asked = false;
    r->runs[node].id = json_get_i64(body, "id", 0);
    snprintf(text, sizeof text, "another node responds: %.64s", name);
    if (!fan_is_node(f, node, name))
        fan_fail(f, node, ERR_CONFLICT, text);
    else if (r->runs[node].id <= 0)
        fan_fail(f, node, ERR_UNREACHABLE, "the response is no run: is it numaprobed?");
    else if (fan_stopped(f)) // Ctrl-C came while it was requested
        cancel_run(f, node, r);
    if (fan_node(f, node)->state == FAN_TALKING)
        take_state(f, node, body, ctx);
}

// "8 ranks, up to 1G each, takes about 12 s": nodes with the same plan are one line.
static void take_plan(struct fan *f, int node, const struct json *body, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    CLEANUP_BUF struct buf line = BUF_INIT;
    const struct json *plan = json_get(body, "plan");
    char bytes[32];
    int ranks = json_count(json_get(plan, "ranks"));
    str_rough_size(json_get_number(plan, "bytes_per_rank", 0), bytes, sizeof bytes);
    buf_fmt(&line, "%d rank%s, up to %s each, ", ranks, str_plural(ranks), bytes);
    print_estimate(&line, plan);
    for (const struct json *n = json_first(json_get(plan, "notes")); n; n = json_next(n)) {
        buf_str(&line, "; note: ");
        buf_plain(&line, json_text(n) ? json_text(n) : "");
    }
    const struct json *now = json_get(body, "admission");
    for (const struct json *b = json_first(json_get(now, "blockers")); b; b = json_next(b)) {
        buf_str(&line, "; blocked now: ");
        buf_plain(&line, json_get_text(b, "text", ""));
    }
    r->runs[node].plan = buf_steal(&line);
    fan_done(f, node);
}

static bool comes_again(enum err_code code)
{
    return code == ERR_BUSY || code == ERR_QUEUE_FULL || code == ERR_TOO_MANY ||
           code == ERR_UNAVAILABLE;
}

// ---- Refused: by a node of another version?

static void take_healthz(struct fan *f, int node, const struct json *body, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    const struct node_run *run = &r->runs[node];
    CLEANUP_BUF struct buf why = BUF_INIT;
    char text[OTHER_VERSION_ROOM];
    buf_str(&why, run->refusal->text);
    if (other_version_text(run->lists, body, text, sizeof text))
        buf_fmt(&why, "; %s", text);
    fan_fail(f, node, run->refusal->code, buf_text(&why));
}

static void healthz_refused(struct fan *f, int node, const struct err *why, int retry_s, void *ctx)
{
    (void)why, (void)retry_s;
    take_healthz(f, node, NULL, ctx);
}

static void take_benchmarks(struct fan *f, int node, const struct json *body, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    struct node_run *run = &r->runs[node];
    run->lists = other_version_lists(body, r->spec, run->refusal->member);
    if (run->lists == LISTS_IT)
        fan_fail(f, node, run->refusal->code, run->refusal->text);
    else
        fan_call(f, node,
                 &(struct fan_request){.path = "/healthz",
                                       .last = true,
                                       .optional = true,
                                       .reply = take_healthz,
                                       .refused = healthz_refused,
                                       .interrupted = run->refusal->text});
}

static void benchmarks_refused(struct fan *f, int node, const struct err *why, int retry_s,
                               void *ctx)
{
    (void)why, (void)retry_s;
    take_benchmarks(f, node, NULL, ctx);
}

// Our own spec_check_request() is behind us.
static void find_version(struct fan *f, int node, struct runs_on_nodes *r, const struct err *why)
{
    struct node_run *run = &r->runs[node];
    if (why->code != ERR_INVALID || !*why->member ||
        !(run->refusal = malloc(sizeof *run->refusal))) {
        fan_fail(f, node, why->code, why->text);
        return;
    }
    *run->refusal = *why;
    fan_call(f, node,
             &(struct fan_request){.path = "/v1/benchmarks",
                                   .optional = true,
                                   .reply = take_benchmarks,
                                   .refused = benchmarks_refused,
                                   .interrupted = run->refusal->text});
}

static void take_refusal(struct fan *f, int node, const struct err *why, int retry_s, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    int64_t now = clock_mono_ms(), *since = &r->runs[node].busy_since_ms;
    r->runs[node].asked = false;
    int64_t delay_ms = 1000 * (int64_t)(retry_s > 0 ? retry_s : BUSY_RETRY_S);
    *since = *since ? *since : now;
    int64_t left = *since + r->wait_ms - now;
    if (!comes_again(why->code))
        find_version(f, node, r, why);
    else if (left <= 0)
        fan_fail(f, node, why->code, why->text);
    else
        fan_later(f, node, delay_ms < left ? delay_ms : left);
}

static void request_run(struct fan *f, int node, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    bool dry = r->flags->dry_run;
    char header[160];
    if (r->runs[node].id) { // after a pause
        follow_run(f, node, r);
        return;
    }
    snprintf(header, sizeof header, "Idempotency-Key: %s", r->key);
    r->runs[node].asked = !dry;
    fan_call(f, node,
             &(struct fan_request){.method = "POST",
                                   .path = dry ? "/v1/runs?dry_run=true" : "/v1/runs",
                                   .body = buf_text(&r->body),
                                   .header = dry ? NULL : header,
                                   .last = dry,
                                   .reply = dry ? take_plan : take_started,
                                   .refused = take_refusal,
                                   .interrupted = dry ? NULL
                                                      : "interrupted before it responded to the "
                                                        "request for a run: the run may start"});
}

// ---- Ctrl-C -------------------------------------------------------------------------------------

static void print_started(int started, bool cancels, bool waits)
{
    fprintf(stderr, "%s %d run%s started%s\n",
            cancels ? "canceling the"
            : waits ? "waiting for the"
                    : "not waiting for the",
            started, started == 1 ? " that has" : "s that have",
            waits          ? "; Ctrl-C again ends the command"
            : started == 1 ? ", which continues on its node"
                           : ", which continue on their nodes");
}

// Nodes that have the request for a run, or will have it in a moment.
static void print_asked(int asked, bool cancels, bool waits)
{
    fprintf(stderr, "%d node%s not responded to the request for a run yet%s\n", asked,
            asked == 1 ? " has" : "s have",
            cancels ? ": what starts there is canceled"
            : waits ? ": what starts there is waited for; Ctrl-C again ends the command"
                    : ": whether it starts there is not known");
}

// Who is in a hurry waits for no result, but still for what it cancels.
static bool stop_runs(struct fan *f, const char *hurry, void *ctx)
{
    struct runs_on_nodes *r = ctx;
    bool cancels = r->flags->cancel_on_interrupt, waits = cancels || !hurry;
    int started = 0, asked = 0;
    for (int i = 0; i < fan_count(f); i++) {
        bool talks = fan_node(f, i)->state == FAN_TALKING;
        asked += talks && r->runs[i].asked;
        if (talks && r->runs[i].id) {
            started++;
            cancel_run(f, i, r);
        }
    }
    fprintf(stderr, "%s%s", hurry ? hurry : "", hurry ? ": " : "");
    if (started)
        print_started(started, cancels, waits);
    if (asked)
        print_asked(asked, cancels, waits);
    if (!started && !asked)
        fputs("no run has started\n", stderr);
    return waits;
}

// ---- Output -------------------------------------------------------------------------------------

// The metrics of a run that is done; NULL: it is not, or has none.
static const struct summary_layout *node_layout(const struct node_run *run)
{
    const struct summary *s = run->page.n_runs ? run->page.runs : NULL;
    return s && s->layout >= 0 ? &run->page.layouts[s->layout] : NULL;
}

static void write_node_metrics(const struct node_run *run, struct jsonw *w)
{
    const struct summary *s = run->page.runs;
    const struct summary_layout *l = node_layout(run);
    jsonw_array(w, "metrics");
    for (int m = 0; l && m < l->n; m++) {
        const struct summary_metric *k = &l->list[m];
        jsonw_object(w, NULL);
        jsonw_text(w, "metric", k->name);
        jsonw_text(w, "unit", k->unit);
        jsonw_fixed(w, "value", s->values[m], 6);
        jsonw_fixed(w, "lo", s->lo[m], 6);
        jsonw_fixed(w, "hi", s->hi[m], 6);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_node_run(struct fan *f, int node, const struct runs_on_nodes *r, struct jsonw *w)
{
    const struct fan_node *n = fan_node(f, node);
    const struct node_run *run = &r->runs[node];
    jsonw_object(w, NULL);
    jsonw_text(w, "node", n->name);
    jsonw_text(w, "state", n->state == FAN_DONE ? "done" : "failed");
    if (run->id)
        jsonw_i64(w, "run", run->id);
    if (n->state == FAN_FAILED) {
        jsonw_text(w, "error", err_info(n->code)->slug);
        jsonw_text(w, "text", n->why);
    } else if (run->plan) {
        jsonw_text(w, "plan", run->plan);
    } else {
        jsonw_fixed(w, "duration_s", run->page.runs[0].duration_s, 6);
        jsonw_text(w, "method", run->page.runs[0].method);
        jsonw_i64(w, "metrics_version", run->page.runs[0].metrics_version);
        write_node_metrics(run, w);
    }
    jsonw_end(w);
}

static void print_node_run(struct fan *f, int node, const struct runs_on_nodes *r)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    struct jsonw w = jsonw_to(&line);
    write_node_run(f, node, r, &w);
    buf_char(&line, '\n');
    print_buf(&line);
    fflush(stdout);
}

static void on_end(struct fan *f, int node, void *ctx)
{
    const struct runs_on_nodes *r = ctx;
    if (r->cli->output == OUTPUT_NDJSON)
        print_node_run(f, node, r);
}

static void print_all(struct fan *f, const struct runs_on_nodes *r)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "nodes");
    for (int i = 0; i < fan_count(f); i++)
        write_node_run(f, i, r, &w);
    jsonw_end(&w);
    fan_write_failures(f, &w, "failures");
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
}

// One line per node and metric.
static void print_csv(struct fan *f, const struct runs_on_nodes *r)
{
    static const struct column columns[] = {
        {"node", "NODE", false}, {"run", "RUN", true},     {"metric", "METRIC", false},
        {"unit", "UNIT", false}, {"value", "VALUE", true}, {"lo", "FROM", true},
        {"hi", "TO", true},
    };
    CLEANUP_GRID struct grid g;
    grid_init(&g, columns, COUNT_OF(columns));
    for (int i = 0; i < fan_count(f); i++) {
        const struct summary_layout *l = node_layout(&r->runs[i]);
        for (int m = 0; l && m < l->n; m++) {
            const struct summary_metric *k = &l->list[m];
            const struct summary *run = r->runs[i].page.runs;
            grid_cell(&g, "%s", fan_node(f, i)->name);
            grid_cell(&g, "%lld", (long long)r->runs[i].id);
            grid_cell(&g, "%s", k->name);
            grid_cell(&g, "%s", k->unit);
            grid_cell(&g, "%.6g", (double)run->values[m]);
            grid_cell(&g, "%.6g", (double)run->lo[m]);
            grid_cell(&g, "%.6g", (double)run->hi[m]);
        }
    }
    grid_print(&g, r->cli);
}

static void print_csv_plans(struct fan *f, const struct runs_on_nodes *r)
{
    static const struct column columns[] = {{"node", "NODE", false}, {"plan", "PLAN", false}};
    CLEANUP_GRID struct grid g;
    grid_init(&g, columns, COUNT_OF(columns));
    for (int i = 0; i < fan_count(f); i++)
        if (r->runs[i].plan) {
            grid_cell(&g, "%s", fan_node(f, i)->name);
            grid_cell(&g, "%s", r->runs[i].plan);
        }
    grid_print(&g, r->cli);
}

// ---- Nodes of two versions ----------------------------------------------------------------------

static const struct summary *node_summary(const struct node_run *run)
{
    return run->page.n_runs && node_layout(run) ? run->page.runs : NULL;
}

// Metrics of two versions can be other quantities under one name.
static bool alike_measured(const struct summary *a, const struct summary *b)
{
    return a->metrics_version == b->metrics_version && strcmp(a->method, b->method) == 0;
}

// The run whose method and version of the metrics most nodes have; of as many, the later version.
// NULL: no node is done.
static const struct summary *usual_run(struct fan *f, const struct runs_on_nodes *r)
{
    const struct summary *usual = NULL;
    int most = 0;
    for (int i = 0; i < fan_count(f); i++) {
        const struct summary *s = node_summary(&r->runs[i]), *o;
        int n = 0;
        // Counted at the first of each kind: a thousand nodes have two or three.
        for (int k = 0; k < i && s; k++)
            if ((o = node_summary(&r->runs[k])) && alike_measured(o, s))
                s = NULL;
        for (int k = i; k < fan_count(f) && s; k++)
            n += (o = node_summary(&r->runs[k])) && alike_measured(o, s);
        if (n > most || (n && n == most && s->metrics_version > usual->metrics_version)) {
            usual = s;
            most = n;
        }
    }
    return usual;
}

static void print_other_versions(struct fan *f, const struct runs_on_nodes *r)
{
    const struct summary *usual = usual_run(f, r);
    CLEANUP_NODESET struct nodeset set = {0};
    CLEANUP_BUF struct buf names = BUF_INIT;
    for (int i = 0; i < fan_count(f); i++) {
        const struct summary *s = node_summary(&r->runs[i]);
        if (s && !alike_measured(s, usual))
            nodeset_add(&set, fan_node(f, i)->name, NULL);
    }
    nodeset_fold(&set, &names);
    if (set.n)
        fprintf(stderr, "%-22s another method or version of the metrics: %s\n", buf_text(&names),
                r->cli->output == OUTPUT_TABLE ? "not in the table" : "do not compare with others");
}

// A metric over the nodes that have it.
struct over_nodes {
    int n;
    double *values; // sorted; borrowed, room for all nodes
    const char *lowest, *highest;
};

static void collect_metric(struct over_nodes *o, struct fan *f, const struct runs_on_nodes *r,
                           const struct summary *usual, const char *metric)
{
    double low = INFINITY, high = -INFINITY;
    o->n = 0;
    for (int i = 0; i < fan_count(f); i++) {
        const struct summary_layout *l = node_layout(&r->runs[i]);
        if (!l || !alike_measured(r->runs[i].page.runs, usual))
            continue;
        for (int m = 0; m < l->n; m++) {
            double v = r->runs[i].page.runs->values[m];
            if (strcmp(l->list[m].name, metric) != 0)
                continue;
            o->values[o->n++] = v;
            o->lowest = v < low ? fan_node(f, i)->name : o->lowest;
            o->highest = v >= high ? fan_node(f, i)->name : o->highest;
            low = fmin(low, v);
            high = fmax(high, v);
            break; // a node may name it twice
        }
    }
    stats_sort(o->values, o->n);
}

static void add_metric_row(struct grid *g, const struct summary_metric *k,
                           const struct over_nodes *o)
{
    double middle = stats_quantile(o->values, o->n, 0.5);
    double half =
        (stats_quantile(o->values, o->n, 0.75) - stats_quantile(o->values, o->n, 0.25)) / 2;
    grid_cell(g, "%s", k->name);
    grid_cell(g, "%s", k->unit);
    grid_cell(g, "%d", o->n);
    grid_number(g, middle);
    grid_cell(g, "%.1f %%", 100 * half / middle);
    grid_number(g, o->values[0]);
    grid_cell(g, "%s", o->lowest);
    grid_number(g, o->values[o->n - 1]);
    grid_cell(g, "%s", o->highest);
}

// The metrics of the first node that is done, of those measured alike; nodes of another class may
// lack some.
static void print_over_nodes(struct fan *f, const struct runs_on_nodes *r)
{
    static const struct column columns[] = {
        {"metric", "METRIC", false, true},
        {"unit", "UNIT", false},
        {"nodes", "NODES", true},
        {.name = "median", .title = "MEDIAN", .number = true, .rounded = true},
        {"spread", "SPREAD", true},
        {.name = "lowest", .title = "LOWEST", .number = true, .rounded = true},
        {"lowest_node", "ON", false, true},
        {.name = "highest", .title = "HIGHEST", .number = true, .rounded = true},
        {"highest_node", "ON", false, true},
    };
    CLEANUP_GRID struct grid g;
    const struct summary_layout *l = NULL;
    CLEANUP_MEM double *values = calloc((size_t)fan_count(f) + 1, sizeof *values);
    struct over_nodes over = {.values = values};
    const struct summary *usual = usual_run(f, r);
    for (int i = 0; i < fan_count(f) && usual && !l; i++)
        if (node_summary(&r->runs[i]) == usual)
            l = node_layout(&r->runs[i]);
    grid_init(&g, columns, COUNT_OF(columns));
    if (!l || !values)
        return;
    for (int m = 0; m < l->n && m < TABLE_METRICS; m++) {
        collect_metric(&over, f, r, usual, l->list[m].name);
        add_metric_row(&g, &l->list[m], &over);
    }
    grid_print(&g, r->cli);
    if (l->n > TABLE_METRICS)
        printf("%d more metric%s: -o csv has all of them\n", l->n - TABLE_METRICS,
               str_plural(l->n - TABLE_METRICS));
    print_paragraph(r->cli,
                    "SPREAD is half the distance between the quartiles of the nodes, in percent of "
                    "their median.",
                    0);
}

// Nodes with the same plan are one line.
static void print_plans(struct fan *f, const struct runs_on_nodes *r)
{
    for (int i = 0; i < fan_count(f); i++) {
        CLEANUP_NODESET struct nodeset same = {0};
        CLEANUP_BUF struct buf names = BUF_INIT, line = BUF_INIT;
        bool first = r->runs[i].plan != NULL;
        for (int k = 0; k < i && first; k++)
            first = !r->runs[k].plan || strcmp(r->runs[k].plan, r->runs[i].plan) != 0;
        for (int k = i; k < fan_count(f) && first; k++)
            if (r->runs[k].plan && strcmp(r->runs[k].plan, r->runs[i].plan) == 0)
                nodeset_add(&same, fan_node(f, k)->name, NULL);
        nodeset_fold(&same, &names);
        if (!first)
            continue;
        buf_fmt(&line, "%-22s %s", buf_text(&names), r->runs[i].plan);
        print_folded(r->cli, buf_text(&line), "", "    ");
    }
}

// Nodes whose numbers other work has touched: their own admission let the run start.
static void print_disturbed(struct fan *f, const struct runs_on_nodes *r)
{
    const double most = FLEET_DEFAULTS.disturbed_max;
    CLEANUP_NODESET struct nodeset set = {0};
    CLEANUP_BUF struct buf names = BUF_INIT;
    for (int i = 0; i < fan_count(f); i++)
        if (r->runs[i].page.n_runs && r->runs[i].page.runs->disturbed > most)
            nodeset_add(&set, fan_node(f, i)->name, NULL);
    nodeset_fold(&set, &names);
    if (set.n)
        fprintf(stderr, "%-22s more than %.0f %% of the samples were disturbed: not judged\n",
                buf_text(&names), 100 * most);
}

static void print_fleet_run(struct fan *f, const struct runs_on_nodes *r, int64_t began_ms)
{
    char time[32];
    if (r->cli->output == OUTPUT_JSON)
        print_all(f, r);
    else if (r->cli->output == OUTPUT_CSV && r->flags->dry_run)
        print_csv_plans(f, r);
    else if (r->cli->output == OUTPUT_CSV)
        print_csv(f, r);
    else if (r->cli->output == OUTPUT_TABLE && r->flags->dry_run)
        print_plans(f, r);
    else if (r->cli->output == OUTPUT_TABLE)
        print_over_nodes(f, r);
    fflush(stdout);
    print_duration(time, sizeof time, (double)(clock_mono_ms() - began_ms) / 1000);
    fan_print_failures(f, stderr);
    print_disturbed(f, r);
    print_other_versions(f, r);
    fprintf(stderr, "%d of %d node%s in %s\n", fan_ended(f, FAN_DONE), fan_count(f),
            str_plural(fan_count(f)), time);
}

// ---- The command --------------------------------------------------------------------------------

// A user's key, or one of our own, so that a repeated request starts no second run.
static void set_key(struct runs_on_nodes *r)
{
    uint64_t random[2] = {0};
    if (*r->flags->key)
        snprintf(r->key, sizeof r->key, "%s", r->flags->key);
    else if (getrandom(random, sizeof random, 0) == sizeof random)
        snprintf(r->key, sizeof r->key, "fleet-%016llx%016llx", (unsigned long long)random[0],
                 (unsigned long long)random[1]);
}

static void fleet_run_fini(struct runs_on_nodes *r, int n)
{
    for (int i = 0; r->runs && i < n; i++) {
        summary_page_fini(&r->runs[i].page);
        free(r->runs[i].plan);
        free(r->runs[i].refusal);
    }
    free(r->runs);
    buf_free(&r->body);
}

static int run_on_nodes(struct runs_on_nodes *r, const struct nodeset *names, struct err *err)
{
    struct fan_work work = {request_run, stop_runs, on_end, NULL, r};
    int64_t began_ms = clock_mono_ms();
    r->runs = calloc((size_t)names->n, sizeof *r->runs);
    if (!r->runs || !buf_ok(&r->body))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", names->n);
    struct fan *f = fan_new(r->cli, names, &work, err);
    if (!f)
        return -1;
    fan_run(f);
    print_fleet_run(f, r, began_ms);
    int status = fan_status(f, CLI_EXIT_SUCCESS, r->cli->fleet.partial_ok);
    fan_free(f);
    return status;
}

// Waiting for a busy node is ours: a node that waits would keep another from its turn.
int cmd_fleet_run(struct cli *c, const struct invocation *i, struct err *err)
{
    struct spec s = *i->spec;
    struct runs_on_nodes r = {.cli = c, .flags = i->options, .spec = &s};
    CLEANUP_NODESET struct nodeset names = {0};
    if (spec_check(&s, err) < 0 || spec_check_request(&s, err) < 0) {
        err->code = ERR_USAGE;
        return -1;
    }
    if (fleet_check_nodes_only(c, "run", err) < 0 || fleet_nodes(c, &names, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&r.body);
    r.wait_ms = 1000 * s.queue_s;
    s.queue_s = 0;
    spec_write_request(&s, i->given, &w, NULL);
    set_key(&r);
    int status = run_on_nodes(&r, &names, err);
    fleet_run_fini(&r, names.n);
    return status;
}
