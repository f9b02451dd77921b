// SPDX-License-Identifier: Apache-2.0
// Results that were measured elsewhere: read (model/intake), stored all or none, and answered as
// the runs that they are now.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#include "api/resources/imports.h"
#include "api/resources/resources.h"
#include "api/services/work.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "core/store/stage.h"
#include "formats/intake.h"

// A larger one is a tenth of a second of work on a core where something may be measured.
enum { QUIET_MAX = 1 << 20 };

// What can be said beside a document: as query parameters, or as members beside "text".
struct import_call {
    struct intake_options options;
    const char *date;
    bool dry_run;
    struct json *root; // of a body that is JSON; owned
    const char *text;  // of all others
    size_t len;
};

static void call_fini(struct import_call *c)
{
    json_free(c->root);
}

static const struct import_member {
    const char *name;
    size_t offset; // of a text in struct import_call
    bool query;    // may be a query parameter too
} members[] = {
    {"mapping", offsetof(struct import_call, options.mapping), false},
    {"mode", offsetof(struct import_call, options.mode), true},
    {"node", offsetof(struct import_call, options.node), true},
    {"label", offsetof(struct import_call, options.label), true},
    {"pages", offsetof(struct import_call, options.pages), true},
    {"method", offsetof(struct import_call, options.method), true},
    {"file", offsetof(struct import_call, options.file), true},
    {"date", offsetof(struct import_call, date), true},
};

static const char **slot_of(struct import_call *c, const struct import_member *m)
{
    return (const char **)(void *)((char *)c + m->offset);
}

static const struct import_member *find_member(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(members); i++)
        if (strcmp(members[i].name, name) == 0)
            return &members[i];
    return NULL;
}

static int read_query(const struct request *q, struct import_call *c, struct err *err)
{
    for (size_t i = 0; i < COUNT_OF(members); i++)
        if (members[i].query)
            *slot_of(c, &members[i]) = request_query(q, members[i].name);
    return request_query_bool(q, "dry_run", &c->dry_run, err);
}

static int imports_read_member(const struct request *q, struct import_call *c, const struct json *v,
                               struct err *err)
{
    const char *name = json_name(v);
    const struct import_member *m = find_member(name);
    if (strcmp(name, "dry_run") == 0)
        return request_bool(q, name, v, &c->dry_run, err);
    if (!m && strcmp(name, "text") != 0)
        return err_set(
            err, ERR_INVALID, name,
            "is not a member of an import; allowed are text, mapping, mode, node, label, "
            "pages, method, file, date, dry_run");
    if (!json_text(v))
        return err_set(err, ERR_INVALID, name, "must be a text");
    if (m && *slot_of(c, m))
        return err_set(err, ERR_INVALID, name, "is in the query already; give it once");
    if (m)
        *slot_of(c, m) = json_text(v);
    return 0;
}

// {"text":"…","mode":"serial",…}: then root stays only because the texts are in it.
static int read_envelope(const struct request *q, struct import_call *c, const char *text,
                         struct err *err)
{
    for (const struct json *v = json_first(c->root); v; v = json_next(v))
        if (imports_read_member(q, c, v, err) < 0)
            return -1;
    c->text = text;
    c->len = strlen(text);
    return 0;
}

static int read_body(const struct request *q, struct import_call *c, struct err *err)
{
    const char *type = request_header(q, "Content-Type");
    c->text = buf_text(&q->body);
    c->len = q->body.len;
    if (!type || strncasecmp(type, "application/json", strlen("application/json")) != 0)
        return 0;
    c->root = request_json(q, err);
    if (!c->root)
        return -1;
    const struct json *text = json_get(c->root, "text");
    if (!text) {
        bool here = false; // as members of other versions are, it would be ignored
        c->text = NULL;
        return !json_bool(json_get(c->root, "dry_run"), &here) || !here || c->dry_run
                   ? 0
                   : err_set(err, ERR_INVALID, "dry_run",
                             "belongs in the query here: POST /v1/imports?dry_run=true");
    }
    if (!json_text(text))
        return err_set(err, ERR_INVALID, "text", "must be a text");
    return read_envelope(q, c, json_text(text), err);
}

static int read_call(const struct request *q, struct import_call *c, struct err *err)
{
    if (read_query(q, c, err) < 0 || read_body(q, c, err) < 0)
        return -1;
    c->options.now_ms = clock_wall_ms();
    if (c->date && *c->date && !clock_parse(c->date, &c->options.measured_ms))
        return err_set(err, ERR_INVALID, "date",
                       "must be a time such as 2026-11-21T04:05:06Z, or a day, from 1970 on");
    return intake_check(&c->options, err);
}

static int imports_read_runs(const struct import_call *c, struct intake *in, struct err *err)
{
    return c->text ? intake_read(in, c->text, c->len, &c->options, err)
                   : intake_from_json(in, c->root, &c->options, err);
}

// ---- storing ----

static struct run_result result_of(const struct run_document *w)
{
    return (struct run_result){
        .state = w->run.state,
        .error = w->run.error,
        .error_member = w->run.error ? w->run.error_member : NULL,
        .error_text = w->run.error ? w->run.error_text : NULL,
        .method = *w->run.method ? w->run.method : NULL,
        .conditions_json = w->run.conditions_json,
        .phase_ms = w->run.phase_ms,
        .matrices = w->matrices,
        .n_matrices = w->n_matrices,
        .ranks = w->ranks,
        .n_ranks = w->n_ranks,
        .log = w->log,
        .finished_ms = w->run.finished_ms,
    };
}

static struct run_import import_of(const struct run_document *w, const char *key,
                                   const struct run_result *result)
{
    return (struct run_import){
        .spec = &w->run.spec,
        .node = w->run.node,
        .label = w->run.label,
        .measured_ms = w->run.measured_ms,
        .result = result,
        .key = key,
        // Without an end, that of the import is stored: the time between is not the run's.
        .started_ms = w->run.finished_ms ? w->run.started_ms : 0,
        .plan_json = w->run.plan_json,
        .class_hash = w->run.class_hash,
        .class_json = w->class_json,
        .config_hash = w->run.config_hash,
        .config_json = w->config_json,
        .topology_hash = *w->run.topology_hash ? w->run.topology_hash : NULL,
        .topology_xml = w->topology_xml,
    };
}

// The runs of a document as the store takes them, and what became of them.
struct batch {
    int n;
    struct run_result *results;
    struct run_import *imports;
    int64_t *ids;
    bool *again;
};

static void batch_fini(struct batch *b)
{
    free(b->results);
    free(b->imports);
    free(b->ids);
    free(b->again);
}

static int batch_make(struct batch *b, const struct intake *in, struct err *err)
{
    size_t n = (size_t)in->n;
    b->n = in->n;
    b->results = calloc(n, sizeof *b->results);
    b->imports = calloc(n, sizeof *b->imports);
    b->ids = calloc(n, sizeof *b->ids);
    b->again = calloc(n, sizeof *b->again);
    if (!b->results || !b->imports || !b->ids || !b->again)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d runs", in->n);
    for (int i = 0; i < in->n; i++) {
        b->results[i] = result_of(&in->list[i]);
        b->imports[i] = import_of(&in->list[i], in->keys[i], &b->results[i]);
    }
    return 0;
}

// ---- answers ----

static int imports_send_dry_run(const struct request *q, struct reply *r, const struct intake *in,
                                struct batch *b, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "dry_run", true);
    jsonw_array(&w, "runs");
    for (int i = 0; i < b->n; i++) {
        const struct run_document *one = &in->list[i];
        int found = store_import_find(api_of(q)->store, &b->imports[i], &b->ids[i], err);
        if (found < 0)
            return -1;
        jsonw_object(&w, NULL);
        if (found)
            jsonw_i64(&w, "existing_run", b->ids[i]);
        else
            jsonw_null(&w, "existing_run");
        run_write_json(&one->run, &w, "run");
        jsonw_array(&w, "matrices");
        for (int k = 0; k < one->n_matrices; k++) {
            jsonw_object(&w, NULL);
            matrix_write_head_members(&one->matrices[k], &w);
            jsonw_end(&w);
        }
        jsonw_end(&w);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

static int write_run(const struct request *q, int64_t id, struct jsonw *w, struct err *err)
{
    CLEANUP(run_fini) struct run run = {0};
    if (runner_run_get(api_of(q)->runner, id, &run, err) < 0)
        return -1;
    run_write_json(&run, w, NULL);
    return 0;
}

// A document of one run is answered with that run, a list with a list.
static int send_runs(const struct request *q, struct reply *r, const struct batch *b, bool several,
                     struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    int known = 0;
    for (int i = 0; i < b->n; i++)
        known += b->again[i];
    if (several) {
        jsonw_object(&w, NULL);
        jsonw_i64(&w, "stored", b->n - known);
        jsonw_i64(&w, "existing", known);
        jsonw_array(&w, "runs");
    }
    for (int i = 0; i < b->n; i++)
        if (write_run(q, b->ids[i], &w, err) < 0)
            return -1;
    if (several) {
        jsonw_end(&w);
        jsonw_end(&w);
        snprintf(r->location, sizeof r->location, "/v1/runs");
    } else {
        snprintf(r->location, sizeof r->location, "/v1/runs/%" PRId64, b->ids[0]);
    }
    return reply_json(r, known == b->n ? 200 : 201, &body, err);
}

static int send_stored(struct request *q, struct reply *r, const struct intake *in,
                       const struct batch *batch, struct err *err)
{
    runner_fill_metrics(api_of(q)->runner);
    for (int i = 0; i < batch->n; i++)
        if (!batch->again[i])
            runner_notify(api_of(q)->runner, batch->ids[i]);
    return send_runs(q, r, batch, in->several, err);
}

static int check_quiet(const struct request *q, size_t bytes, struct err *err)
{
    if (bytes > QUIET_MAX && runner_busy(api_of(q)->runner))
        return err_set(err, ERR_UNAVAILABLE, "",
                       "a run is being measured, and a document of this size would disturb it; "
                       "try again when it has finished, or send at most %d MiB at once",
                       QUIET_MAX >> 20);
    return 0;
}

int imports_create(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(call_fini) struct import_call call = {0};
    CLEANUP(intake_fini) struct intake in = {0};
    CLEANUP(batch_fini) struct batch batch = {0};
    if (read_call(q, &call, err) < 0 || imports_read_runs(&call, &in, err) < 0 ||
        batch_make(&batch, &in, err) < 0)
        return -1;
    q->dry_run = call.dry_run;
    if (call.dry_run)
        return imports_send_dry_run(q, r, &in, &batch, err);
    if (store_has_room(api_of(q)->store, err) < 0)
        return -1;
    if (store_runs_import(api_of(q)->store, batch.imports, batch.n, batch.ids, batch.again, err) <
        0)
        return -1;
    return send_stored(q, r, &in, &batch, err);
}

// ---- by a worker: the runs as bytes

// The head, then for each run its structure, its key and what its pointers point to. All of it is
// aligned; pointers say only whether there is something.
struct image_head {
    int n;
    int64_t cells;
    bool several, dry_run;
};

enum { IMAGE_ALIGNMENT = 8 };

static void add_bytes(struct buf *out, const void *data, size_t n)
{
    static const char zeros[IMAGE_ALIGNMENT];
    buf_add(out, data, n);
    buf_add(out, zeros, (IMAGE_ALIGNMENT - n % IMAGE_ALIGNMENT) % IMAGE_ALIGNMENT);
}

static void imports_add_text(struct buf *out, const char *text)
{
    size_t n = text ? strlen(text) + 1 : 0;
    add_bytes(out, &n, sizeof n);
    add_bytes(out, text, n);
}

static void imports_add_run(struct buf *out, const struct run_document *w, const char *key)
{
    add_bytes(out, w, sizeof *w);
    add_bytes(out, key, sizeof *((struct intake *)0)->keys);
    const char *const texts[] = {w->run.plan_json, w->run.conditions_json, w->class_json,
                                 w->config_json,   w->topology_xml,        w->log};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        imports_add_text(out, texts[i]);
    add_bytes(out, w->ranks, (size_t)w->n_ranks * sizeof *w->ranks);
    add_bytes(out, w->matrices, (size_t)w->n_matrices * sizeof *w->matrices);
    for (int i = 0; i < w->n_matrices; i++) {
        const struct matrix *m = &w->matrices[i];
        add_bytes(out, m->row.values, (size_t)m->row.n * sizeof *m->row.values);
        add_bytes(out, m->col.values, (size_t)m->col.n * sizeof *m->col.values);
        add_bytes(out, m->cells, (size_t)m->row.n * (size_t)m->col.n * sizeof *m->cells);
    }
}

int import_read(struct request *q, const char *body, size_t n, struct buf *out, struct err *err)
{
    CLEANUP(call_fini) struct import_call call = {0};
    CLEANUP(intake_fini) struct intake in = {0};
    buf_add(&q->body, body, n);
    int rc = !buf_ok(&q->body) ? err_set(err, ERR_NO_MEMORY, "", "no memory for the body")
             : read_call(q, &call, err) < 0 ? -1
                                            : imports_read_runs(&call, &in, err);
    const struct image_head head = {in.n, in.cells, in.several, call.dry_run};
    add_bytes(out, &head, sizeof head);
    for (int i = 0; rc == 0 && i < in.n; i++)
        imports_add_run(out, &in.list[i], in.keys[i]);
    buf_free(&q->body);
    return rc == 0 && !buf_ok(out) ? err_set(err, ERR_NO_MEMORY, "", "no memory for the runs") : rc;
}

// ---- in the daemon: the same, as the structures

struct import {
    const struct api_services *api;
    char *map;
    size_t bytes;
    bool dry_run, staged, over;
    struct intake in; // points into the map
    struct batch batch;
    struct store_stage stage;
    struct loop_timer *next;
    struct err err;
    void (*done)(void *ctx);
    void *ctx;
};

// NULL: the image ends before.
static void *take_bytes(char **at, const char *end, size_t n)
{
    size_t whole = (n + IMAGE_ALIGNMENT - 1) / IMAGE_ALIGNMENT * IMAGE_ALIGNMENT;
    char *p = *at;
    if (whole < n || whole > (size_t)(end - p))
        return NULL;
    *at += whole;
    return p;
}

static bool take_text(char **at, const char *end, char **text)
{
    const size_t *n = take_bytes(at, end, sizeof *n);
    *text = n && *n ? take_bytes(at, end, *n) : NULL;
    return n && (!*n || (*text && !(*text)[*n - 1]));
}

static bool imports_take_matrix(char **at, const char *end, struct matrix *m)
{
    if (m->row.n < 0 || m->col.n < 0 || (int64_t)m->row.n * m->col.n > MATRIX_CELLS_MAX)
        return false;
    m->row.values = take_bytes(at, end, (size_t)m->row.n * sizeof *m->row.values);
    m->col.values = take_bytes(at, end, (size_t)m->col.n * sizeof *m->col.values);
    m->cells = take_bytes(at, end, (size_t)m->row.n * (size_t)m->col.n * sizeof *m->cells);
    return m->row.values && m->col.values && m->cells;
}

static bool take_run(char **at, const char *end, struct run_document *out, char key[65])
{
    const struct run_document *w = take_bytes(at, end, sizeof *w);
    const char *k = w ? take_bytes(at, end, sizeof *((struct intake *)0)->keys) : NULL;
    if (!k || w->n_ranks < 0 || w->n_matrices < 0)
        return false;
    *out = *w;
    memcpy(key, k, sizeof *((struct intake *)0)->keys);
    char **const texts[] = {&out->run.plan_json, &out->run.conditions_json, &out->class_json,
                            &out->config_json,   &out->topology_xml,        &out->log};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (!take_text(at, end, texts[i]))
            return false;
    out->ranks = take_bytes(at, end, (size_t)out->n_ranks * sizeof *out->ranks);
    out->matrices = take_bytes(at, end, (size_t)out->n_matrices * sizeof *out->matrices);
    for (int i = 0; out->matrices && i < out->n_matrices; i++)
        if (!imports_take_matrix(at, end, &out->matrices[i]))
            return false;
    return out->ranks && out->matrices;
}

static int take_image(struct import *i, struct err *err)
{
    char *at = i->map;
    const char *end = i->map + i->bytes;
    const struct image_head *head = take_bytes(&at, end, sizeof *head);
    if (!head || head->n < 0 || head->n > INTAKE_RUNS_MAX)
        return err_set(err, ERR_INTERNAL, "", "a worker's runs make no sense");
    i->dry_run = head->dry_run;
    i->in = (struct intake){.cells = head->cells, .several = head->several};
    i->in.list = calloc((size_t)head->n + 1, sizeof *i->in.list);
    i->in.keys = calloc((size_t)head->n + 1, sizeof *i->in.keys);
    if (!i->in.list || !i->in.keys)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d runs", head->n);
    for (; i->in.n < head->n; i->in.n++)
        if (!take_run(&at, end, &i->in.list[i->in.n], i->in.keys[i->in.n]))
            return err_set(err, ERR_INTERNAL, "", "a worker's runs are cut short");
    return batch_make(&i->batch, &i->in, err);
}

static void imports_finish(struct import *i, int rc)
{
    i->over = true;
    if (rc == 0)
        i->err.code = ERR_NONE;
    store_stage_end(i->api->store, &i->stage);
    if (rc < 0)
        upkeep_tidy(i->api->upkeep);
    i->done(i->ctx);
}

static void store_piece(void *ctx, uint32_t events)
{
    struct import *i = ctx;
    (void)events;
    int more = store_stage_step(i->api->store, &i->stage, &i->err);
    if (more > 0)
        loop_timer_set(i->next, 0);
    else
        imports_finish(i, more);
}

static int imports_begin(struct import *i, struct err *err)
{
    struct batch *b = &i->batch;
    i->next = loop_timer_new(i->api->loop, store_piece, i, err);
    if (!i->next)
        return -1;
    if (i->dry_run) {
        i->over = true;
        return 0;
    }
    i->stage = (struct store_stage){
        .list = b->imports, .n = b->n, .ids = b->ids, .again = b->again, .results = b->results};
    if (store_has_room(i->api->store, err) < 0 ||
        store_stage_begin(i->api->store, &i->stage, err) < 0)
        return -1;
    loop_timer_set(i->next, 0);
    return 0;
}

static void import_end(void *begun)
{
    struct import *i = begun;
    bool half = i->stage.numbers;
    store_stage_end(i->api->store, &i->stage);
    if (half)
        upkeep_tidy(i->api->upkeep);
    loop_timer_free(i->next);
    batch_fini(&i->batch);
    free(i->in.list);
    free(i->in.keys);
    if (i->map)
        munmap(i->map, i->bytes);
    free(i);
}

static void *import_begin(void *context, int fd, size_t bytes, void (*done)(void *ctx), void *ctx,
                          struct err *err)
{
    struct import *i = calloc(1, sizeof *i);
    if (!i) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for an import");
        return NULL;
    }
    *i = (struct import){.api = context, .bytes = bytes, .done = done, .ctx = ctx};
    i->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (i->map == MAP_FAILED) {
        i->map = NULL;
        err_sys(err, "a worker's runs cannot be mapped");
    } else if (take_image(i, err) == 0 && imports_begin(i, err) == 0) {
        return i;
    }
    import_end(i);
    return NULL;
}

static bool import_is_over(const void *begun)
{
    const struct import *i = begun;
    return i->over;
}

static int import_answer(void *begun, struct request *q, struct reply *r, struct err *err)
{
    struct import *i = begun;
    if (i->err.code) {
        *err = i->err;
        return -1;
    }
    q->dry_run = i->dry_run;
    return i->dry_run ? imports_send_dry_run(q, r, &i->in, &i->batch, err)
                      : send_stored(q, r, &i->in, &i->batch, err);
}

static int import_check(const struct request *q, struct err *err)
{
    return check_quiet(q, q->body_bytes, err);
}

static const struct job_pieces import_pieces = {
    .begin = import_begin, .is_over = import_is_over, .answer = import_answer, .end = import_end};
static const struct job_kind import_job = {
    .number = JOB_IMPORT, .with_body = true, .check = import_check, .pieces = &import_pieces};

void imports_work(const struct request *q, struct work *w, struct err *why)
{
    (void)why;
    w->kind = &import_job;
    w->us = q->body_bytes > IMPORT_INLINE ? INT64_MAX : 0;
}
