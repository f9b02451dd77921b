// SPDX-License-Identifier: Apache-2.0
// A reply becomes a response of the library: headers, and a body that is handed over where it can
// be. Large bodies are counted, so that clients that read slowly cannot fill the memory.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "http/server/parts.h"
#include "http/server/status_counts.h"

enum {
    ANSWER_LARGE = 64 << 10,
    ANSWERS_RETRY_S = 5,
};

#define PICTURE "image/svg+xml"

// What a browser may do with a reply that it shows as a page of its own.
static const struct {
    const char *type, *policy;
} page_policies[] = {
    {"text/html",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
     "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    // A picture has its colours in itself and needs nothing else. So has a standalone page.
    {PICTURE, "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
              "frame-ancestors 'none'; sandbox"},
};

static const char *policy_of(const char *type)
{
    for (size_t i = 0; type && i < COUNT_OF(page_policies); i++)
        if (str_starts(type, page_policies[i].type))
            return page_policies[i].policy;
    return NULL;
}

static const char *cache_control(const struct reply *r, const char *etag)
{
    if (!*etag)
        return "no-store";
    return r->immutable ? "private, max-age=31536000, immutable" : "no-cache";
}

// The headers of a request that other requests for this path may have other bodies by.
static const char *varies_by(const struct reply *r)
{
    if (r->file)
        return r->file->gzip ? "Accept-Encoding" : NULL;
    if (r->answer && r->answer->head.coded)
        return "Accept, Accept-Encoding";
    return r->store ? "Accept" : NULL;
}

// Of a connection of TLS that began before its files were renewed: clients whose authority was
// removed are not known for longer.
static bool closes(const struct reply *r, const struct exchange *x)
{
    const struct tls *began_with = x->connection ? x->connection->tls : NULL;
    return r->close || x->last || arrivals_wait(x) || (began_with && began_with != x->server->tls);
}

// False: no memory for one of them. A page without its policy, or a refusal without its time, is
// another answer.
static bool add_headers(struct MHD_Response *m, const struct exchange *x, const char *etag)
{
    const struct reply *r = &x->r;
    const char *policy = policy_of(r->standalone ? PICTURE : r->type);
    char retry_after[16] = "", link[sizeof r->next + 16] = "";
    if (*r->next)
        snprintf(link, sizeof link, "<%s>; rel=\"next\"", r->next);
    if (r->retry_after_s > 0)
        snprintf(retry_after, sizeof retry_after, "%d", r->retry_after_s);
    const struct http_pair all[] = {
        {"Content-Type", r->status == 204 ? NULL : r->type},
        {"X-Request-Id", x->q.id},
        {"X-Accel-Buffering", r->kind == REPLY_STREAM ? "no" : NULL}, // a proxy holds no event back
        {"X-Content-Type-Options", "nosniff"},
        {"Cache-Control", cache_control(r, etag)},
        {"ETag", etag},
        {"Vary", varies_by(r)},
        {"Content-Encoding", r->gzip ? "gzip" : NULL},
        {"Allow", r->allow},
        {"WWW-Authenticate", r->status == 401 ? "Bearer realm=\"numaprobe\"" : NULL},
        {"Location", r->location},
        {"Link", link},
        {"Preference-Applied", r->applied},
        {"Connection", closes(r, x) ? "close" : NULL},
        {"Retry-After", retry_after},
        {"Referrer-Policy", policy ? "no-referrer" : NULL},
        {"Content-Security-Policy",
         policy ? policy : "default-src 'none'; frame-ancestors 'none'; sandbox"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (all[i].value && *all[i].value &&
            MHD_add_response_header(m, all[i].name, all[i].value) != MHD_YES)
            return false;
    return true;
}

static struct MHD_Response *shared_response(struct reply *r)
{
    struct MHD_Response *m = MHD_create_response_from_buffer_with_free_callback_cls(
        r->shared->n, r->shared->data, shared_body_unref, r->shared);
    if (m)
        r->shared = NULL; // the library gives the reference back
    return m;
}

// From the file, in pieces that a connection gets in turn: neither a copy of ours, nor a round of
// the loop that fills a large socket buffer.
static struct MHD_Response *file_response(const struct ready_answer *a)
{
    int fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
    struct MHD_Response *m = fd < 0 ? NULL : MHD_create_response_from_fd64(a->head.bytes, fd);
    if (!m && fd >= 0)
        close(fd);
    return m;
}

// What is small costs no file descriptor.
static struct MHD_Response *copy_response(const struct ready_answer *a)
{
    char *copy = malloc(a->head.bytes);
    if (!copy || pread(a->fd, copy, a->head.bytes, 0) != (ssize_t)a->head.bytes) {
        free(copy);
        return NULL;
    }
    return MHD_create_response_from_buffer(a->head.bytes, copy, MHD_RESPMEM_MUST_FREE);
}

static struct MHD_Response *body_response(struct reply *r, bool without)
{
    size_t n;
    const char *data = reply_bytes(r, &n);
    if (without || !n)
        return MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    if (r->answer)
        return n > ANSWER_LARGE ? file_response(r->answer) : copy_response(r->answer);
    if (r->file)
        return MHD_create_response_from_buffer(n, (void *)(uintptr_t)data, MHD_RESPMEM_PERSISTENT);
    if (r->shared)
        return shared_response(r);
    char *fit = n > ANSWER_LARGE ? realloc(r->body.data, n) : NULL; // it grew by doubling
    if (fit)
        r->body.data = fit;
    struct MHD_Response *m =
        MHD_create_response_from_buffer(n, r->body.data, MHD_RESPMEM_MUST_FREE);
    if (m)
        r->body = BUF_INIT; // the library frees it
    return m;
}

enum MHD_Result exchange_queue(struct exchange *x, struct MHD_Response *m, int status,
                               const char *etag)
{
    if (!m)
        return MHD_NO;
    enum MHD_Result ok = MHD_NO;
    if (add_headers(m, x, etag)) {
        counts_add(status);
        ok = MHD_queue_response(x->mhd, (unsigned)status, m);
    }
    MHD_destroy_response(m);
    return ok;
}

// A client that does not read holds its answer until its deadline. What many are sent at once is
// one body, and not counted.
static bool hold_answer(struct exchange *x, size_t n)
{
    size_t *all = &x->server->answers_own;
    if (n > ANSWER_LARGE && x->r.answer) {
        x->sends_large = x->server->answers_sent < ANSWERS_SENT_MAX;
        x->server->answers_sent += x->sends_large;
        return x->sends_large;
    }
    if (n <= ANSWER_LARGE || x->r.file || x->r.shared)
        return true;
    if (*all && *all + n > ANSWERS_MAX && strcmp(x->q.method, "GET") == 0)
        return false; // a change that was made must be reported
    x->held_answer += n;
    *all += n;
    return true;
}

static void refuse_answer(struct exchange *x)
{
    struct err err;
    err_set(&err, ERR_UNAVAILABLE, "", "too many large responses are in progress; try again later");
    reply_problem(&x->r, &x->q, &err, NULL);
    x->r.retry_after_s = ANSWERS_RETRY_S;
}

enum MHD_Result exchange_send(struct exchange *x)
{
    char etag[24];
    size_t n;
    reply_etag(&x->r, etag, sizeof etag);
    CLEANUP_BUF struct buf known = BUF_INIT;
    request_header_list(&x->q, "If-None-Match", &known);
    bool same = reply_matches(buf_text(&known), etag);
    reply_bytes(&x->r, &n);
    if (!same && !hold_answer(x, n)) {
        refuse_answer(x);
        *etag = '\0';
        reply_bytes(&x->r, &n);
    }
    int status = same ? 304 : x->r.status;
    audit_request(&x->server->audit, &x->q, &x->connection->peer, status, clock_mono_ms());
    connection_allow(x->connection, connection_time(CONNECTION_ANSWER_MS, n));
    if (!same && n > ANSWER_LARGE)
        exchange_charge_bytes(x, n);
    return exchange_queue(x, body_response(&x->r, same), status, etag);
}

enum MHD_Result exchange_send_error(struct exchange *x, const struct err *err, bool close)
{
    reply_problem(&x->r, &x->q, err, NULL);
    x->r.close = close;
    return exchange_send(x);
}
