// SPDX-License-Identifier: Apache-2.0
// A reply has one body, in one of four places: its own buffer, the program, a shared body, or a
// file that a worker made.
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/jsonw.h"
#include "http/messages/reply.h"

static const char json_type[] = "application/json";

void reply_fini(struct reply *r)
{
    buf_free(&r->body);
    shared_body_unref(r->shared);
    answer_unref(r->answer);
    *r = (struct reply){0};
}

static int reply_take_body(struct reply *r, int status, const char *type, struct buf *body,
                           struct err *err)
{
    if (!buf_ok(body))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the response");
    buf_free(&r->body);
    r->kind = REPLY_WHOLE;
    r->status = status;
    r->type = type;
    r->body = *body;
    *body = BUF_INIT;
    return 0;
}

int reply_json(struct reply *r, int status, struct buf *body, struct err *err)
{
    buf_char(body, '\n'); // friendly to a terminal
    return reply_take_body(r, status, json_type, body, err);
}

void reply_shared(struct reply *r, int status, struct shared_body *body)
{
    shared_body_unref(r->shared);
    r->kind = REPLY_WHOLE;
    r->status = status;
    r->type = json_type;
    r->shared = body;
}

void reply_file(struct reply *r, const struct request *q, const struct embedded *file,
                const char *type)
{
    r->kind = REPLY_WHOLE;
    r->status = 200;
    r->type = type;
    r->file = file;
    r->gzip = file->gzip && request_prefers_gzip(q);
    r->store = true;
}

int reply_text(struct reply *r, const char *type, struct buf *body, struct err *err)
{
    return reply_take_body(r, 200, type, body, err);
}

void reply_answer(struct reply *r, struct ready_answer *a)
{
    answer_unref(r->answer);
    r->kind = REPLY_WHOLE;
    r->answer = a;
    r->gzip = a->head.gzip;
    r->status = a->head.status;
    r->type = a->head.type;
    r->store = a->head.store;
    r->standalone = a->head.standalone;
    r->retry_after_s = a->head.retry_after_s;
    memcpy(r->location, a->head.location, sizeof r->location);
    memcpy(r->next, a->head.next, sizeof r->next);
}

int reply_wait(struct reply *r, const struct reply_source *s, int64_t of, int64_t wait_ms)
{
    r->kind = REPLY_WAIT;
    r->source = s;
    r->of = of;
    r->wait_ms = wait_ms;
    return 0;
}

void reply_waited(struct reply *r, const struct request *q)
{
    int64_t seconds;
    if (request_preferred_wait(q, &seconds))
        snprintf(r->applied, sizeof r->applied, "wait=%" PRId64, seconds);
}

int reply_made_file(struct reply *r, const struct reply_source *s, const char *type)
{
    r->kind = REPLY_FILE;
    r->status = 200;
    r->type = type;
    r->source = s;
    return 0;
}

int reply_stream(struct reply *r, const struct reply_source *s, int64_t of, int64_t after)
{
    r->kind = REPLY_STREAM;
    r->status = 200;
    r->type = "text/event-stream";
    r->source = s;
    r->of = of;
    r->after = after;
    return 0;
}

void reply_problem(struct reply *r, const struct request *q, const struct err *err,
                   const struct problem_more *more)
{
    const struct err_info *info = err_info(err->code);
    CLEANUP_BUF struct buf body = BUF_INIT;
    char type[64];
    snprintf(type, sizeof type, "/problems/%s", info->slug);
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "type", type);
    jsonw_text(&w, "title", info->title);
    jsonw_i64(&w, "status", info->http);
    jsonw_text(&w, "detail", err->text);
    if (*err->member)
        jsonw_text(&w, "member", err->member);
    jsonw_text(&w, "request_id", q->id);
    if (more && more->name && buf_ok(&more->json))
        jsonw_raw(&w, more->name, buf_text(&more->json));
    jsonw_end(&w);
    buf_char(&body, '\n');
    if (reply_take_body(r, info->http, "application/problem+json", &body, NULL) < 0) {
        r->kind = REPLY_WHOLE;
        r->status = info->http; // without memory the status alone must do
        r->type = "application/problem+json";
    }
    if (!r->retry_after_s && (info->http == 429 || info->http == 503))
        r->retry_after_s = REPLY_RETRY_S;
    r->file = NULL;
    r->gzip = false;
    shared_body_unref(steal_ptr(&r->shared));
    answer_unref(steal_ptr(&r->answer));
    r->store = false;
}

const char *reply_bytes(const struct reply *r, size_t *n)
{
    if (r->answer) {
        *n = r->answer->head.bytes;
        return NULL;
    }
    if (r->file) {
        *n = r->gzip ? r->file->gzip_size : r->file->size;
        return r->gzip ? r->file->gzip : r->file->data;
    }
    *n = r->shared ? r->shared->n : r->body.len;
    return r->shared ? r->shared->data : r->body.data;
}

void reply_etag(const struct reply *r, char *etag, size_t room)
{
    size_t n;
    *etag = '\0';
    if (!r->store || r->status != 200)
        return;
    if (r->answer) {
        snprintf(etag, room, "%s", r->answer->head.etag);
        return;
    }
    const char *data = reply_bytes(r, &n);
    snprintf(etag, room, "\"%016" PRIx64 "\"", hash_words(data, n));
}

bool reply_matches(const char *if_none_match, const char *etag)
{
    if (!*etag)
        return false;
    return strcmp(if_none_match, "*") == 0 || strstr(if_none_match, etag) != NULL;
}
