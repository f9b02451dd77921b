// SPDX-License-Identifier: Apache-2.0
// Results that were measured elsewhere: read (model/intake), stored all or none, and answered as
// the runs that they are now.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/resources.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "model/intake.h"

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

static int read_member(struct import_call *c, const struct json *v, struct err *err)
{
    const char *name = json_name(v);
    const struct import_member *m = find_member(name);
    if (strcmp(name, "dry_run") == 0)
        return json_bool(v, &c->dry_run) ? 0
                                         : err_set(err, ERR_INVALID, name, "must be true or false");
    if (!m && strcmp(name, "text") != 0)
        return err_set(err, ERR_INVALID, name,
                       "is no member of an import; there are text, mapping, mode, node, label, "
                       "pages, method, file, date, dry_run");
    if (!json_text(v))
        return err_set(err, ERR_INVALID, name, "must be a text");
    if (m && *slot_of(c, m))
        return err_set(err, ERR_INVALID, name, "is in the query already; say it once");
    if (m)
        *slot_of(c, m) = json_text(v);
    return 0;
}

// {"text":"…","mode":"serial",…}: then root stays only because the texts are in it.
static int read_envelope(struct import_call *c, const char *text, struct err *err)
{
    for (const struct json *v = json_first(c->root); v; v = json_next(v))
        if (read_member(c, v, err) < 0)
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
    c->root = json_parse(c->text, c->len, err);
    if (!c->root)
        return -1;
    const struct json *text = json_get(c->root, "text");
    if (!text) {
        c->text = NULL;
        return 0;
    }
    if (!json_text(text))
        return err_set(err, ERR_INVALID, "text", "must be a text");
    return read_envelope(c, json_text(text), err);
}

static int read_call(const struct request *q, struct import_call *c, struct err *err)
{
    if (read_query(q, c, err) < 0 || read_body(q, c, err) < 0)
        return -1;
    c->options.now_ms = clock_wall_ms();
    if (c->date && *c->date && !clock_parse(c->date, &c->options.measured_ms))
        return err_set(err, ERR_INVALID, "date",
                       "must be a time such as 2026-11-21T04:05:06Z, or a day");
    return intake_check(&c->options, err);
}

static int read_runs(const struct import_call *c, struct intake *in, struct err *err)
{
    return c->text ? intake_read(in, c->text, c->len, &c->options, err)
                   : intake_from_json(in, c->root, &c->options, err);
}

// ---- storing ----

static struct run_result result_of(const struct whole *w)
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

static struct run_import import_of(const struct whole *w, const char *key,
                                   const struct run_result *result)
{
    return (struct run_import){
        .spec = &w->run.spec,
        .node = w->run.node,
        .label = w->run.label,
        .measured_ms = w->run.measured_ms,
        .result = result,
        .key = key,
        .started_ms = w->run.started_ms,
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

static int send_dry_run(const struct request *q, struct reply *r, const struct intake *in,
                        struct batch *b, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "dry_run", true);
    jsonw_array(&w, "runs");
    for (int i = 0; i < b->n; i++) {
        const struct whole *one = &in->list[i];
        int found = store_import_find(q->api->store, &b->imports[i], &b->ids[i], err);
        if (found < 0)
            return -1;
        jsonw_object(&w, NULL);
        if (found)
            jsonw_i64(&w, "known_as", b->ids[i]);
        else
            jsonw_null(&w, "known_as");
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
    if (runner_run_get(q->api->runner, id, &run, err) < 0)
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
        jsonw_i64(&w, "known", known);
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

int imports_create(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP(call_fini) struct import_call call = {0};
    CLEANUP(intake_fini) struct intake in = {0};
    CLEANUP(batch_fini) struct batch batch = {0};
    if (q->body.len > QUIET_MAX && runner_busy(q->api->runner))
        return err_set(err, ERR_UNAVAILABLE, "",
                       "a run is being measured, and so large a document would disturb it; try "
                       "again when it is over, or send at most %d MiB at once",
                       QUIET_MAX >> 20);
    if (read_call(q, &call, err) < 0 || read_runs(&call, &in, err) < 0 ||
        batch_make(&batch, &in, err) < 0)
        return -1;
    q->dry_run = call.dry_run;
    if (call.dry_run)
        return send_dry_run(q, r, &in, &batch, err);
    if (store_has_room(q->api->store, err) < 0)
        return -1;
    if (store_runs_import(q->api->store, batch.imports, batch.n, batch.ids, batch.again, err) < 0)
        return -1;
    runner_fill_metrics(q->api->runner);
    for (int i = 0; i < batch.n; i++)
        if (!batch.again[i])
            runner_tell(q->api->runner, batch.ids[i]);
    return send_runs(q, r, &batch, in.several, err);
}
