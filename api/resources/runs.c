// SPDX-License-Identifier: Apache-2.0
// Runs: request one, look at them, cancel, delete.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/resources/events.h"
#include "api/resources/resources.h"
#include "api/resources/summaries.h"
#include "api/services/run_bodies.h"
#include "api/services/work.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "core/store/history.h"
#include "core/store/size.h"
#include "http/access/access.h"
#include "model/spec_request.h"

enum { LIST_DEFAULT = 50, LIST_MAX = 200, KEY_MAX = 128 };

int run_find(const struct api_services *api, int64_t id, struct run *out, struct err *err)
{
    return api->runner ? runner_run_get(api->runner, id, out, err)
                       : store_run_get(api->store, id, out, err);
}

// `status` is of a run that is not finished; of one that is, it is 200.
static int send_run(struct request *q, struct reply *r, int64_t id, int status, struct err *err)
{
    CLEANUP(run_fini) struct run run = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct shared_body *kept = run_bodies_get(api_of(q)->bodies, id);
    if (kept) {
        reply_shared(r, 200, kept); // only what is finished is kept
        return 0;
    }
    if (run_find(api_of(q), id, &run, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    run_write_json(&run, &w, NULL);
    bool finished = run_state_final(run.state);
    if (reply_json(r, finished ? 200 : status, &body, err) < 0)
        return -1;
    if (finished)
        run_bodies_put(api_of(q)->bodies, id, &r->body);
    return 0;
}

// Waits once if the client wants to and the run is not over. 1: waiting.
static int wait_for_run(struct request *q, struct reply *r, int64_t id, struct err *err)
{
    CLEANUP(run_fini) struct run run = {0};
    int64_t seconds;
    if (request_wait_s(q, &seconds, err) < 0)
        return -1;
    if (!seconds || q->again || run_bodies_has(api_of(q)->bodies, id)) // what is kept has finished
        return 0;
    if (run_find(api_of(q), id, &run, err) < 0)
        return -1;
    if (run_state_final(run.state))
        return 0;
    reply_wait(r, &run_end, id, seconds * 1000);
    return 1;
}

int runs_show(struct request *q, struct reply *r, struct err *err)
{
    int waiting = wait_for_run(q, r, q->arg, err);
    if (waiting)
        return waiting < 0 ? -1 : 0;
    r->store = true;
    if (send_run(q, r, q->arg, 200, err) < 0)
        return -1;
    reply_waited(r, q);
    return 0;
}

int runs_latest(struct request *q, struct reply *r, struct err *err)
{
    const char *node = api_of(q)->machine->hostname;
    int64_t id;
    int found = store_run_latest(api_of(q)->store, node, &id, err);
    if (found == 0)
        err_set(err, ERR_NOT_FOUND, "",
                "no run was measured on node %.63s yet; imports do not count", node);
    if (found <= 0)
        return -1;
    r->store = true;
    return send_run(q, r, id, 200, err);
}

static int api_runs_read_spec(struct request *q, struct spec *s, bool *dry_run, struct err *err)
{
    static const char *const ignore[] = {"dry_run", NULL};
    CLEANUP_JSON struct json *root = request_json(q, err);
    if (!root || spec_from_json(s, root, ignore, err) < 0 || spec_check_request(s, err) < 0)
        return -1;
    return request_bool(q, "dry_run", json_get(root, "dry_run"), dry_run, err);
}

static int runs_send_dry_run(struct request *q, struct reply *r, const struct spec *s,
                             struct err *err)
{
    CLEANUP(plan_fini) struct plan plan = {0};
    CLEANUP_BUF struct buf command = BUF_INIT;
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct admission now;
    const bool named = access_sees_names(q);
    struct batch_place job CLEANUP(batch_place_fini) = {0};
    const struct batch_place *within = batch_place_find(&job, "", q->pid, q->uid) ? &job : NULL;
    if (runner_dry_run(api_of(q)->runner, s, within, &plan, &command, &now, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "dry_run", true);
    spec_write_json(s, &w, "spec");
    plan_write_json(&plan, &w, "plan");
    buf_needs(&body, &command);
    jsonw_text(&w, "command", buf_text(&command));
    jsonw_object(&w, "admission");
    jsonw_bool(&w, "admitted", now.n == 0);
    jsonw_bool(&w, "waits", s->queue_s && admission_may_pass(&now));
    admission_write_json(now.list, now.n, named, &w, "blockers");
    admission_write_json(now.warnings, now.n_warnings, named, &w, "warnings");
    jsonw_end(&w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

static int check_key(const char *key, struct err *err)
{
    size_t n = key ? strlen(key) : 1;
    bool printable = true;
    for (const char *c = key; c && *c; c++)
        printable = printable && *c > ' ' && *c < 0x7f;
    if (n < 1 || n > KEY_MAX || !printable)
        return err_set(err, ERR_INVALID, "Idempotency-Key",
                       "must be 1 to %d printable characters without blanks", KEY_MAX);
    return 0;
}

static int submit(struct request *q, const struct spec *s, bool *again, struct err *err)
{
    const char *sent = request_header(q, "Idempotency-Key");
    char client[ACCESS_CLIENT_ROOM], key[ACCESS_CLIENT_ROOM + 1 + KEY_MAX];
    access_write_client(q, client);
    snprintf(key, sizeof key, "%s %s", client, sent ? sent : ""); // neither has a blank
    struct batch_place job CLEANUP(batch_place_fini) = {0};
    struct batch_place *within = batch_place_find(&job, "", q->pid, q->uid) ? &job : NULL;
    return runner_submit(api_of(q)->runner, s, sent ? key : NULL, within, &q->made, again, err);
}

int runs_create(struct request *q, struct reply *r, struct err *err)
{
    bool dry_run = false, known = false;
    struct spec spec;
    int64_t seconds; // a wrong wait must be found before the run is made
    if (!q->made) {
        if (check_key(request_header(q, "Idempotency-Key"), err) < 0 ||
            request_wait_s(q, &seconds, err) < 0 || api_runs_read_spec(q, &spec, &dry_run, err) < 0)
            return -1;
        if (spec.force && access_check_member(q, SCOPE_ADMIN, "force", err) < 0)
            return -1;
        q->dry_run = dry_run;
        if (dry_run)
            return runs_send_dry_run(q, r, &spec, err);
        if (submit(q, &spec, &known, err) < 0)
            return -1;
    }
    int waiting = wait_for_run(q, r, q->made, err);
    if (waiting)
        return waiting < 0 ? -1 : 0;
    snprintf(r->location, sizeof r->location, "/v1/runs/%" PRId64, q->made);
    if (send_run(q, r, q->made, 202, err) < 0)
        return -1;
    reply_waited(r, q);
    return 0;
}

int runs_cancel(struct request *q, struct reply *r, struct err *err)
{
    if (runner_cancel(api_of(q)->runner, q->arg, err) < 0)
        return -1;
    return send_run(q, r, q->arg, 202, err);
}

int runs_label(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_JSON struct json *root = request_json(q, err);
    if (!root)
        return -1;
    for (const struct json *m = json_first(root); m; m = json_next(m))
        if (!json_name(m) || strcmp(json_name(m), "label") != 0)
            return err_set(err, ERR_INVALID, json_name(m), "is unknown; the only member is label");
    const char *label = json_text(json_get(root, "label"));
    if (!label)
        return err_set(err, ERR_INVALID, "label", "must be a text; \"\" removes the label");
    if (run_label_check(label, err) < 0 || (*label && store_has_room(api_of(q)->store, err) < 0) ||
        store_run_label(api_of(q)->store, q->arg, label, err) < 0)
        return -1;
    return send_run(q, r, q->arg, 200, err);
}

int runs_delete(struct request *q, struct reply *r, struct err *err)
{
    if (store_run_delete(api_of(q)->store, q->arg, err) < 0)
        return -1;
    upkeep_tidy(api_of(q)->upkeep); // a large one leaves something behind
    r->status = 204;
    return 0;
}

static int read_limit(const struct request *q, int *limit, struct err *err)
{
    const char *text = request_query(q, "limit");
    int64_t n = LIST_DEFAULT;
    if (text && (!str_to_i64(text, &n) || n < 1 || n > LIST_MAX))
        return err_set(err, ERR_INVALID, "limit", "must be from 1 to %d", LIST_MAX);
    *limit = (int)n;
    return 0;
}

// "b<id>": opaque to clients; where the next page begins.
static int read_cursor(const struct request *q, int64_t *before, struct err *err)
{
    const char *text = request_query(q, "cursor");
    if (text && (*text != 'b' || !str_to_i64(text + 1, before) || *before < 1))
        return err_set(err, ERR_INVALID, "cursor", "must be \"next\" of an earlier response");
    return 0;
}

static int read_filter(const struct request *q, struct run_filter *f, struct err *err)
{
    const char *state = request_query(q, "state");
    f->state = state ? run_state_find(state) : -1;
    f->benchmark = request_query(q, "benchmark");
    if (state && f->state < 0)
        return err_set(err, ERR_INVALID, "state",
                       "must be queued, running, succeeded, failed, canceled or interrupted; "
                       "got \"%.40s\"",
                       request_query(q, "state"));
    if (f->benchmark && !benchmark_find(f->benchmark))
        return err_set(err, ERR_INVALID, "benchmark",
                       "\"%.40s\" is not a benchmark (GET /v1/benchmarks lists them)",
                       f->benchmark);
    if (request_query_filter(q, "node", &f->node, err) < 0 ||
        request_query_filter(q, "label", &f->label, err) < 0 ||
        request_query_stretch(q, &f->since_ms, &f->until_ms, err) < 0 ||
        read_limit(q, &f->limit, err) < 0)
        return -1;
    return read_cursor(q, &f->before_id, err);
}

struct listing {
    struct jsonw w;
    int64_t last;
};

static void runs_list_one(void *ctx, const struct run *run)
{
    struct listing *l = ctx;
    run_write_json(run, &l->w, NULL);
    l->last = run->id;
}

static int read_form(const struct request *q, bool *summary, struct err *err)
{
    if (summaries_read_form(q, summary, err) < 0)
        return -1;
    return *summary || !request_query(q, "per_benchmark")
               ? 0
               : err_set(err, ERR_INVALID, "per_benchmark", "needs form=summary");
}

int runs_list(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct run_filter filter = {0};
    struct listing l = {.w = jsonw_to(&body)};
    bool more = false, summary;
    char next[24];
    if (read_filter(q, &filter, err) < 0 || read_form(q, &summary, err) < 0)
        return -1;
    if (summary)
        return summaries_list(q, r, &filter, err);
    jsonw_object(&l.w, NULL);
    jsonw_array(&l.w, "runs");
    if (store_run_list(api_of(q)->store, &filter, runs_list_one, &l, &more, err) < 0)
        return -1;
    jsonw_end(&l.w);
    snprintf(next, sizeof next, "b%" PRId64, l.last);
    jsonw_text(&l.w, "next", more ? next : NULL);
    jsonw_end(&l.w);
    r->store = true;
    return reply_json(r, 200, &body, err);
}

void runs_work(const struct request *q, struct work *w, struct err *why)
{
    enum { RUN_US = 20, RANK_BYTES = 600 }; // of its plan
    struct run_filter f = {0};
    int64_t ranks = 0;
    bool summary = false;
    if (read_filter(q, &f, why) < 0 || read_form(q, &summary, why) < 0)
        return;
    if (summary) {
        summaries_list_work(q, w, &f, why);
        return;
    }
    if (store_run_list_ranks(api_of(q)->store, &f, &ranks, why) < 0)
        return;
    w->bytes = (size_t)(ranks * RANK_BYTES);
    w->us = f.limit * RUN_US + ranks * RANK_BYTES * WORK_BYTE_NS / 1000;
}
