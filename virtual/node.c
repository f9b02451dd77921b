// SPDX-License-Identifier: Apache-2.0
// Runs are numbered from 1: those of the past by round and benchmark, then those that were
// requested. A run's id is that number. In the feed notes have places between the runs, so that a
// run's seq is its number and the notes before it. With the fault "gaps" all are multiplied.
#include "virtual/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

enum { GAP = 3, FEED_LIMIT = 100, LIST_LIMIT = 200, NEWER_METRICS = 99 };

// One request at a node.
struct asked {
    struct virtual_fleet *f;
    int node;
    const struct virtual_request *q;
    enum fault_kind kind;
    double value;
    int64_t now_ms;
    struct virtual_reply *r;
};

void virtual_fleet_free(struct virtual_fleet *f)
{
    for (int i = 0; f->nodes && i < world_get_options(f->world)->nodes; i++) {
        free(f->nodes[i].runs);
        free(f->nodes[i].notes);
    }
    free(f->nodes);
    faults_free(&f->faults);
    world_free(f->world);
    *f = (struct virtual_fleet){0};
}

static const char *node_version(const struct asked *a)
{
    return a->kind == FAULT_OLDER ? "0.0.9" : a->kind == FAULT_NEWER ? "99.0.0" : NUMAPROBE_VERSION;
}

// Text that a terminal would obey, and that a page must not trust.
static const char hostile[] = "\x1b]0;owned\x07\x1b[2J\x1b[31mnode\xe2\x80\xae<script>\r\n\t";

static void node_name(const struct asked *a, char out[static 64])
{
    char name[WORLD_NAME_ROOM];
    int n = (int)world_get_options(a->f->world)->nodes;
    world_name(a->f->world, a->kind == FAULT_NAME ? (a->node + 1) % n : a->node, name);
    snprintf(out, 64, "%s%s", name, a->kind == FAULT_NAME && n == 1 ? "x" : "");
    if (a->kind == FAULT_TEXT)
        snprintf(out, 64, "%s", hostile);
}

// ---- runs

static int past_runs(const struct asked *a)
{
    return (int)world_get_options(a->f->world)->runs * WORLD_BENCHMARKS;
}

static int64_t gap(const struct asked *a)
{
    return a->kind == FAULT_GAPS ? GAP : 1;
}

static const struct virtual_node *asked_node(const struct asked *a)
{
    return &a->f->nodes[a->node];
}

static bool run_finished(const struct asked *a, const struct requested_run *r)
{
    return r->finished_ms <= a->now_ms;
}

// Numbers of finished runs are 1 to this. Requested ones finish in their order.
static int finished_runs(const struct asked *a)
{
    const struct virtual_node *v = asked_node(a);
    int n = 0;
    while (n < v->n && run_finished(a, &v->runs[n]))
        n++;
    return past_runs(a) + n;
}

// The run with this number, from 1. `requested` NULL: one of the past.
static struct world_run run_of(const struct asked *a, int number,
                               const struct requested_run **requested)
{
    int at = number - 1, past = past_runs(a);
    *requested = at < past ? NULL : &asked_node(a)->runs[at - past];
    if (*requested)
        return (struct world_run){a->node, (int)world_get_options(a->f->world)->runs + at - past,
                                  (*requested)->benchmark, (*requested)->finished_ms};
    return world_past_run(a->f->world, a->node, at / WORLD_BENCHMARKS, at % WORLD_BENCHMARKS);
}

// ---- notes

// How many notes came before this run had finished.
static int notes_before(const struct asked *a, int number)
{
    const struct virtual_node *v = asked_node(a);
    int n = 0;
    while (n < v->n_notes && v->notes[n].finished < number)
        n++;
    return n;
}

static int64_t run_seq(const struct asked *a, int number)
{
    return (number + notes_before(a, number)) * gap(a);
}

// The note at this place of the feed, counted from 1; NULL: a run, of which *number is the number.
static const struct virtual_note *note_at(const struct asked *a, int place, int *number)
{
    const struct virtual_node *v = asked_node(a);
    int n = 0;
    while (n < v->n_notes && v->notes[n].finished + n + 1 < place)
        n++;
    *number = place - n;
    return n < v->n_notes && v->notes[n].finished + n + 1 == place ? &v->notes[n] : NULL;
}

static void run_label(const struct asked *a, int number, const struct requested_run *requested,
                      char out[static RUN_LABEL_MAX + 1])
{
    const struct virtual_node *v = asked_node(a);
    snprintf(out, RUN_LABEL_MAX + 1, "%s", requested && requested->labelled ? "kept" : "");
    for (int i = 0; i < v->n_notes; i++)
        if (v->notes[i].number == number)
            memcpy(out, v->notes[i].label, RUN_LABEL_MAX + 1);
}

static int64_t clock_error_ms(const struct asked *a)
{
    return a->kind == FAULT_CLOCK ? (int64_t)(a->value * 1e3) : 0;
}

static void add_summary(const struct asked *a, struct summary_writer *w, int number)
{
    struct summary s;
    struct metric list[WORLD_METRICS_MAX];
    const struct requested_run *requested;
    struct world_run run = run_of(a, number, &requested);
    int n = world_measure(a->f->world, &run, &s, list);
    s.id = number * gap(a);
    s.seq = run_seq(a, number);
    s.finished_ms += clock_error_ms(a);
    s.measured_ms += clock_error_ms(a);
    node_name(a, s.node);
    if (a->kind == FAULT_NEWER)
        s.metrics_version = NEWER_METRICS;
    run_label(a, number, requested, s.label);
    if (a->kind == FAULT_TEXT)
        snprintf(s.label, sizeof s.label, "%s", hostile);
    if (requested && (requested->canceled || requested->failed)) {
        s.state = requested->canceled ? RUN_CANCELED : RUN_FAILED;
        n = -1;
    }
    summary_writer_add(w, &s, list, n);
}

// ---- problems and small things

static void problem(const struct asked *a, enum err_code code, const char *member,
                    const char *detail, const char *blockers)
{
    const struct err_info *info = err_info(code);
    struct jsonw w = jsonw_to(&a->r->body);
    char type[64];
    snprintf(type, sizeof type, "/problems/%s", info->slug);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "type", type);
    jsonw_text(&w, "title", info->title);
    jsonw_i64(&w, "status", info->http);
    jsonw_text(&w, "detail", a->kind == FAULT_TEXT ? hostile : detail);
    if (*member)
        jsonw_text(&w, "member", member);
    if (blockers)
        jsonw_raw(&w, "blockers", blockers);
    jsonw_end(&w);
    a->r->status = info->http;
    a->r->type = "application/problem+json";
}

static const char busy_blockers[] =
    "[{\"name\":\"batch_job\",\"detail\":\"1 job of Slurm on this node, such as 88213\"}]";

static void respond_healthz(const struct asked *a)
{
    buf_fmt(&a->r->body, "{\"status\":\"ok\",\"version\":\"%s\"}", node_version(a));
}

static void respond_node(const struct asked *a)
{
    char name[64];
    struct world_run now =
        world_past_run(a->f->world, a->node, (int)world_get_options(a->f->world)->runs, 0);
    const struct fingerprint *f = world_machine(a->f->world, &now);
    struct jsonw w = jsonw_to(&a->r->body);
    node_name(a, name);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "node", name);
    jsonw_text(&w, "version", node_version(a));
    jsonw_text(&w, "cpu_model", a->kind == FAULT_TEXT ? hostile : f->machine_class.list[0].value);
    jsonw_text(&w, "job_account", "numaprobe");
    fingerprint_write_json(f, &w, "fingerprint");
    jsonw_array(&w, "findings");
    jsonw_end(&w);
    if (a->kind == FAULT_NEWER)
        jsonw_raw(&w, "quantum", "{\"entangled\":true}");
    jsonw_end(&w);
}

static void respond_availability(const struct asked *a)
{
    const struct virtual_node *v = asked_node(a);
    bool running = v->n && !run_finished(a, &v->runs[v->n - 1]);
    bool busy = a->kind == FAULT_BUSY;
    struct jsonw w = jsonw_to(&a->r->body);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "available", !busy);
    jsonw_bool(&w, "busy", running);
    jsonw_i64(&w, "queued", 0);
    jsonw_raw(&w, "blockers", busy ? busy_blockers : "[]");
    jsonw_raw(&w, "warnings", "[]");
    jsonw_raw(&w, "notes", "[]");
    if (busy)
        jsonw_i64(&w, "retry_after_s", (int64_t)a->value);
    jsonw_end(&w);
}

static void respond_facts(const struct asked *a)
{
    const struct facts *f = world_facts(a->f->world, a->q->path + strlen("/v1/facts/"));
    if (!f) {
        problem(a, ERR_NOT_FOUND, "", "no stored run has facts with this hash", NULL);
        return;
    }
    struct jsonw w = jsonw_to(&a->r->body);
    facts_write_json(f, &w, NULL);
}

// ---- pages of summaries

// The value of a query parameter; false: it is not there.
static bool query(const struct asked *a, const char *name, char *out, size_t room)
{
    size_t n = strlen(name);
    for (const char *p = a->q->query; *p; p += strcspn(p, "&"), p += *p == '&')
        if (strncmp(p, name, n) == 0 && p[n] == '=') {
            snprintf(out, room, "%.*s", (int)strcspn(p + n + 1, "&"), p + n + 1);
            return true;
        }
    return false;
}

static bool query_number(const struct asked *a, const char *name, int64_t least, int64_t most,
                         int64_t *out)
{
    char text[32];
    return !query(a, name, text, sizeof text) ||
           (str_to_i64(text, out) && *out >= least && *out <= most);
}

struct page {
    struct summary_writer w;
    struct summary_page head;
};

static void history_id(const struct asked *a, char out[static 40])
{
    const int64_t of[] = {world_get_options(a->f->world)->seed,
                          a->kind == FAULT_COPY ? 0 : a->node};
    uint64_t h = hash_bytes(of, sizeof of);
    snprintf(out, 40, "%016" PRIx64 "%016" PRIx64, h, hash_bytes(&h, sizeof h));
}

static struct page *page_new(const struct asked *a)
{
    struct page *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    summary_writer_init(&p->w);
    node_name(a, p->head.node);
    snprintf(p->head.version, sizeof p->head.version, "%s", node_version(a));
    history_id(a, p->head.history_id);
    return p;
}

static void page_send(const struct asked *a, struct page *p)
{
    summary_writer_end(&p->w, &p->head, &a->r->body);
    if (a->kind == FAULT_NEWER) { // a member that no reader of today knows
        buf_drop(&a->r->body, 1);
        CLEANUP_BUF struct buf rest = a->r->body;
        a->r->body = BUF_INIT;
        buf_str(&a->r->body, "{\"quantum\":[{\"entangled\":true}],");
        buf_add(&a->r->body, buf_text(&rest), rest.len);
    }
    summary_writer_fini(&p->w);
    free(p);
}

// An older node names the parameter that it does not know.
static bool form_is_summary(const struct asked *a)
{
    char form[16] = "";
    query(a, "form", form, sizeof form);
    if (a->kind == FAULT_OLDER && *form)
        problem(a, ERR_BAD_REQUEST, "form", "is not a query parameter of this path", NULL);
    else if (strcmp(form, "summary") != 0)
        problem(a, ERR_INVALID, "form", "a virtual node has summaries only: form=summary", NULL);
    else
        return true;
    return false;
}

// A run, or a note, at this place of the feed.
static void add_place(const struct asked *a, struct summary_writer *w, int place)
{
    int number;
    const struct virtual_note *n = note_at(a, place, &number);
    if (!n) {
        add_summary(a, w, number);
        return;
    }
    struct summary_note note = {
        .seq = place * gap(a), .run_seq = run_seq(a, n->number), .run = n->number * gap(a)};
    memcpy(note.label, n->label, sizeof note.label);
    summary_writer_note(w, &note);
}

static void respond_feed(const struct asked *a)
{
    int places = finished_runs(a) + asked_node(a)->n_notes;
    int64_t after = 0, limit = 10, last = places * gap(a);
    char wanted[40], own[40];
    history_id(a, own);
    if (!form_is_summary(a))
        return;
    if (!query_number(a, "after", 0, INT64_C(1) << 53, &after) ||
        !query_number(a, "limit", 1, FEED_LIMIT, &limit)) {
        problem(a, ERR_INVALID, "after", "after and limit must be whole numbers", NULL);
        return;
    }
    if ((query(a, "history_id", wanted, sizeof wanted) && strcmp(wanted, own) != 0) ||
        after > last) {
        problem(a, ERR_CONFLICT, "history_id", "this is a new history; read it from after=0", NULL);
        return;
    }
    const struct virtual_node *v = asked_node(a);
    if (after == last && a->q->wait_s) {
        a->r->until_ms = v->n && !run_finished(a, &v->runs[v->n - 1])
                             ? v->runs[finished_runs(a) - past_runs(a)].finished_ms
                             : INT64_MAX;
        return;
    }
    struct page *p = page_new(a);
    if (!p)
        return;
    p->head.after = after;
    p->head.next = p->head.last = last;
    int place = (int)(after / gap(a)) + 1;
    for (int i = 0; i < limit && place <= places; i++, place++) {
        add_place(a, &p->w, place);
        p->head.next = place * gap(a);
    }
    p->head.more = p->head.next < last;
    page_send(a, p);
}

struct list_query {
    int64_t limit, each, before; // each 0: not per benchmark
    int benchmark;               // -1: any
};

static bool read_list_query(const struct asked *a, struct list_query *l)
{
    char text[40];
    *l = (struct list_query){.limit = 50, .before = INT64_MAX, .benchmark = -1};
    if (query(a, "cursor", text, sizeof text) &&
        (*text != 'b' || !str_to_i64(text + 1, &l->before)))
        return false;
    if (query(a, "benchmark", text, sizeof text))
        l->benchmark = world_benchmark_find(text);
    return query_number(a, "limit", 1, LIST_LIMIT, &l->limit) &&
           query_number(a, "per_benchmark", 1, 50, &l->each);
}

// Newest first.
static void list_runs(const struct asked *a, const struct list_query *l, struct page *p)
{
    int64_t left[WORLD_BENCHMARKS], all = l->each ? INT64_MAX : l->limit;
    for (int b = 0; b < WORLD_BENCHMARKS; b++)
        left[b] = l->each ? l->each : INT64_MAX;
    for (int number = finished_runs(a); number > 0; number--) {
        const struct requested_run *requested;
        struct world_run run = run_of(a, number, &requested);
        if (number * gap(a) >= l->before || (l->benchmark >= 0 && l->benchmark != run.benchmark) ||
            left[run.benchmark] == 0)
            continue;
        if (!all--) {
            p->head.more = true;
            return;
        }
        left[run.benchmark]--;
        add_summary(a, &p->w, number);
        p->head.next = number * gap(a);
    }
}

static void respond_runs(const struct asked *a)
{
    struct list_query l;
    struct page *p;
    if (!form_is_summary(a))
        return;
    if (!read_list_query(a, &l))
        problem(a, ERR_INVALID, "limit", "limit, per_benchmark or cursor cannot be read", NULL);
    else if ((p = page_new(a))) {
        list_runs(a, &l, p);
        page_send(a, p);
    }
}

// ---- one run

static enum run_state run_state_now(const struct asked *a, const struct requested_run *r)
{
    return !r                                                       ? RUN_SUCCEEDED
           : r->created_ms > a->now_ms || r->started_ms > a->now_ms ? RUN_QUEUED
           : !run_finished(a, r)                                    ? RUN_RUNNING
           : r->canceled                                            ? RUN_CANCELED
           : r->failed                                              ? RUN_FAILED
                                                                    : RUN_SUCCEEDED;
}

// A whole run, without matrices: `export` of a node.
static void write_virtual_export(const struct asked *a, const struct run *run)
{
    struct jsonw w = jsonw_to(&a->r->body);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "format", "numaprobe-run");
    jsonw_i64(&w, "version", 1);
    run_write_json(run, &w, "run");
    jsonw_array(&w, "matrices");
    jsonw_end(&w);
    jsonw_end(&w);
}

static void send_virtual_run(const struct asked *a, int number, bool whole)
{
    const struct requested_run *requested;
    struct world_run of = run_of(a, number, &requested);
    enum run_state state = run_state_now(a, requested);
    struct summary s;
    struct metric list[WORLD_METRICS_MAX];
    struct run run CLEANUP(run_fini) = {.id = number * gap(a), .state = state};
    world_measure(a->f->world, &of, &s, list);
    enum benchmark_id id = of.benchmark ? BENCHMARK_BANDWIDTH : BENCHMARK_LATENCY;
    spec_init(&run.spec, id);
    node_name(a, run.node);
    run.created_ms = (requested ? requested->created_ms : s.measured_ms) + clock_error_ms(a);
    if (state != RUN_QUEUED) {
        run.started_ms = (requested ? requested->started_ms : s.measured_ms) + clock_error_ms(a);
        run.measured_ms = run.started_ms;
        run.n_ranks = s.n_ranks;
        memcpy(run.method, s.method, sizeof run.method);
    }
    if (state == RUN_RUNNING) {
        int64_t all = requested->finished_ms - requested->started_ms;
        snprintf(run.progress.phase, sizeof run.progress.phase, "%s",
                 requested->followed ? "measure" : "start");
        run.progress.total = 100;
        run.progress.done = all > 0 ? (a->now_ms - requested->started_ms) * 100 / all : 0;
        run.progress.eta_ms = requested->finished_ms - a->now_ms;
    }
    if (run_state_final(state)) {
        run.seq = run_seq(a, number);
        run.finished_ms = s.finished_ms + clock_error_ms(a);
    }
    if (state == RUN_FAILED) {
        run.error = ERR_INTERNAL;
        snprintf(run.error_text, sizeof run.error_text, "%s", "a rank has crashed");
    }
    run_label(a, number, requested, run.label);
    memcpy(run.class_hash, s.class_hash, sizeof run.class_hash);
    memcpy(run.config_hash, s.config_hash, sizeof run.config_hash);
    struct jsonw w = jsonw_to(&a->r->body);
    if (whole)
        write_virtual_export(a, &run);
    else
        run_write_json(&run, &w, NULL);
    if (strcmp(a->q->method, "POST") == 0 && !run_state_final(state))
        a->r->status = 202;
}

// It is looked at again and again: it may be canceled meanwhile.
static bool wait_for(const struct asked *a, int number)
{
    enum { LOOK_MS = 500 };
    int past = past_runs(a);
    struct requested_run *r = number > past ? &a->f->nodes[a->node].runs[number - past - 1] : NULL;
    if (!a->q->wait_s || !r || run_finished(a, r))
        return false;
    r->followed = true;
    a->r->until_ms = r->finished_ms < a->now_ms + LOOK_MS ? r->finished_ms : a->now_ms + LOOK_MS;
    return true;
}

// The number in "/v1/runs/17"; 0: there is no such run.
static int asked_run(const struct asked *a, char *action, size_t room)
{
    int64_t id = 0;
    char text[24];
    const char *at = a->q->path + strlen("/v1/runs/");
    size_t n = strcspn(at, "/");
    snprintf(text, sizeof text, "%.*s", (int)n, at);
    snprintf(action, room, "%s", at + n);
    if (strcmp(text, "latest") == 0)
        return finished_runs(a);
    if (!str_to_i64(text, &id) || id < 1 || id % gap(a) ||
        id / gap(a) > past_runs(a) + asked_node(a)->n)
        return 0;
    return (int)(id / gap(a));
}

static void respond_run(const struct asked *a)
{
    char action[16];
    int number = asked_run(a, action, sizeof action);
    bool whole = strcmp(action, "/export") == 0;
    if (!number || (*action && !whole))
        problem(a, ERR_NOT_FOUND, "", number ? "a virtual node does not have this" : "no such run",
                NULL);
    else if (!wait_for(a, number))
        send_virtual_run(a, number, whole);
}

static void respond_cancel(const struct asked *a)
{
    char action[16];
    int number = asked_run(a, action, sizeof action), past = past_runs(a);
    if (!number || strcmp(action, "/cancel") != 0) {
        problem(a, ERR_NOT_FOUND, "", "no such run", NULL);
        return;
    }
    if (number > past) {
        struct requested_run *r = &a->f->nodes[a->node].runs[number - past - 1];
        if (!run_finished(a, r)) {
            r->canceled = true;
            r->finished_ms = a->now_ms;
        }
    }
    send_virtual_run(a, number, false);
}

// ---- requesting a run

static struct requested_run *run_add(struct virtual_node *v)
{
    if (v->n == v->room) {
        int room = v->room ? v->room * 2 : 4;
        struct requested_run *more = realloc(v->runs, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        v->runs = more;
        v->room = room;
    }
    return &v->runs[v->n++];
}

static int read_benchmark(const struct asked *a, bool *labelled, struct err *err)
{
    CLEANUP_JSON struct json *j = json_parse(a->q->body, a->q->body_len, err);
    if (!j)
        return -1;
    *labelled = *json_get_text(j, "label", "");
    int b = world_benchmark_find(json_get_text(j, "benchmark", ""));
    return b >= 0 ? b
                  : err_set(err, ERR_INVALID, "benchmark",
                            "a virtual node measures latency and bandwidth");
}

static int known_run(const struct asked *a)
{
    const struct virtual_node *v = asked_node(a);
    for (int i = 0; a->q->key && i < v->n; i++)
        if (v->runs[i].key == a->q->key)
            return past_runs(a) + i + 1;
    return 0;
}

static void respond_create(const struct asked *a)
{
    struct virtual_node *v = &a->f->nodes[a->node];
    struct err err = {0};
    bool labelled = false;
    int number = known_run(a), benchmark = number ? 0 : read_benchmark(a, &labelled, &err);
    if (a->kind == FAULT_BUSY && !number) {
        problem(a, ERR_BUSY, "", "batch_job: 1 job of Slurm on this node, such as 88213",
                busy_blockers);
        a->r->retry_after_s = (int)a->value;
        return;
    }
    if (benchmark < 0) {
        problem(a, err.code, err.member, err.text, NULL);
        return;
    }
    if (!number) {
        int64_t free_ms = v->n ? v->runs[v->n - 1].finished_ms : 0;
        int64_t start_ms = free_ms > a->now_ms ? free_ms : a->now_ms;
        struct requested_run *r = run_add(v);
        if (!r)
            return;
        *r = (struct requested_run){.benchmark = benchmark,
                                    .key = a->q->key,
                                    .created_ms = a->now_ms,
                                    .started_ms = start_ms,
                                    .finished_ms = start_ms + a->f->run_ms,
                                    .failed = a->kind == FAULT_FAILS,
                                    .labelled = labelled};
        number = past_runs(a) + v->n;
    }
    if (!wait_for(a, number))
        send_virtual_run(a, number, false);
}

// ---- labels

static struct virtual_note *note_add(struct virtual_node *v)
{
    if (v->n_notes == v->notes_room) {
        int room = v->notes_room ? v->notes_room * 2 : 4;
        struct virtual_note *more = realloc(v->notes, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        v->notes = more;
        v->notes_room = room;
    }
    return &v->notes[v->n_notes++];
}

// Of a run that has finished.
static void respond_label(const struct asked *a)
{
    char action[16];
    struct err err = {0};
    int number = asked_run(a, action, sizeof action);
    CLEANUP_JSON struct json *j = json_parse(a->q->body, a->q->body_len, &err);
    const char *label = j ? json_text(json_get(j, "label")) : NULL;
    if (!number || number > finished_runs(a) || strcmp(action, "/label") != 0) {
        problem(a, ERR_NOT_FOUND, "", "no such run has finished", NULL);
        return;
    }
    if (!label || run_label_check(label, &err) < 0) {
        problem(a, ERR_INVALID, "label", "must be a text; \"\" removes the label", NULL);
        return;
    }
    struct virtual_note *n = note_add(&a->f->nodes[a->node]);
    if (!n)
        return;
    *n = (struct virtual_note){.number = number, .finished = finished_runs(a)};
    snprintf(n->label, sizeof n->label, "%s", label);
    send_virtual_run(a, number, false);
}

// ---- bodies that are no page

static void hostile_json(const struct asked *a)
{
    static const char *const texts[] = {
        "{\"runs\":[{\"id\":1e999999}],\"next\":-1}",
        "{\"form\":\"summary\",\"form\":\"summary\"}",
        "{\"form\":\"summary\",\"node\":{\"a\":[null]},\"runs\":{}}",
        "\xff\xfe{\"form\":\"summary\"}",
        "{\"form\":\"summary\",\"runs\":[1,2,3",
        "null",
        "",
        ("{\"form\":\"summary\",\"node\":\"n\",\"version\":\"1\",\"history_id\":\"\",\"after\":0,"
         "\"layouts\":[],\"runs\":[{\"layout\":7}],\"next\":0,\"last\":0,\"more\":true}"),
    };
    enum { DEEP = 100000 };
    size_t k = (size_t)a->node % (COUNT_OF(texts) + 1);
    if (k < COUNT_OF(texts))
        buf_str(&a->r->body, texts[k]);
    else
        for (int i = 0; i < DEEP; i++)
            buf_char(&a->r->body, '[');
}

static const struct {
    const char *method, *path;
    bool below; // the path continues
    void (*respond)(const struct asked *a);
} routes[] = {
    {"GET", "/healthz", false, respond_healthz},
    {"GET", "/v1/node", false, respond_node},
    {"GET", "/v1/availability", false, respond_availability},
    {"GET", "/v1/facts/", true, respond_facts},
    {"GET", "/v1/feed", false, respond_feed},
    {"GET", "/v1/runs", false, respond_runs},
    {"POST", "/v1/runs", false, respond_create},
    {"GET", "/v1/runs/", true, respond_run},
    {"POST", "/v1/runs/", true, respond_cancel},
    {"PUT", "/v1/runs/", true, respond_label},
};

void virtual_respond(struct virtual_fleet *f, int node, const struct virtual_request *q,
                     enum fault_kind kind, double value, int64_t now_ms, struct virtual_reply *r)
{
    const struct asked a = {f, node, q, kind, value, now_ms, r};
    *r = (struct virtual_reply){.status = 200, .type = "application/json"};
    if (kind == FAULT_UNAVAILABLE) {
        char name[WORLD_NAME_ROOM], text[80];
        world_name(f->world, node, name); // each node has a text of its own: nothing folds
        snprintf(text, sizeof text, "%s is starting", name);
        problem(&a, ERR_UNAVAILABLE, "", text, NULL);
        r->retry_after_s = (int)value;
        return;
    }
    if (kind == FAULT_JSON) {
        hostile_json(&a);
        return;
    }
    for (size_t k = 0; k < COUNT_OF(routes); k++)
        if (strcmp(routes[k].method, q->method) == 0 &&
            (routes[k].below ? str_starts(q->path, routes[k].path)
                             : strcmp(q->path, routes[k].path) == 0)) {
            routes[k].respond(&a);
            return;
        }
    problem(&a, ERR_NOT_FOUND, "", "a virtual node does not have this path", NULL);
}
