// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fake_fetch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fetch/fetch.h"
#include "tests/fuzz/fuzz.h"

struct fake_call {
    struct fetch_request q;
    fetch_done *fn;
    void *ctx;
    struct fake_call *next;
};

struct fetch {
    int fd;
    struct fake_call *first, **last;
};

static struct fake_answer answers[FAKE_ANSWERS_MAX];
static int n_answers, n_most, n_requests;

void fake_fetch_set(const struct fake_answer *list, int n, int most)
{
    fuzz_hold(n > 0 && n <= FAKE_ANSWERS_MAX);
    memcpy(answers, list, sizeof *list * (size_t)n);
    n_answers = n;
    n_most = most;
    n_requests = 0;
}

int fake_fetch_requests(void)
{
    return n_requests;
}

void fetch_response_free(struct fetch_response *r)
{
    buf_free(&r->body);
}

// Each piece in memory of its own, so that reading past it is seen.
static bool hand_over(const struct fetch_request *q, const uint8_t *data, size_t n)
{
    char *piece = malloc(n);
    fuzz_hold(piece != NULL);
    memcpy(piece, data, n);
    bool taken = q->take(q->take_ctx, piece, n);
    free(piece);
    return taken;
}

enum fetch_error fetch_one(const struct fetch_request *q, struct fetch_response *out)
{
    const struct fake_answer *a = &answers[n_requests % n_answers];
    *out = (struct fetch_response){.error = FETCH_REFUSED};
    if (n_requests++ >= n_most)
        return out->error;
    out->error = FETCH_OK;
    out->status = (int)a->status;
    if (!q->take || a->status != 200) {
        buf_add(&out->body, a->body, a->size);
        return out->error;
    }
    for (size_t at = 0; at < a->size; at += a->piece) {
        size_t n = a->piece < a->size - at ? a->piece : a->size - at;
        if (!hand_over(q, a->body + at, n))
            return out->error = FETCH_STOPPED;
    }
    return out->error;
}

struct fetch *fetch_new(int in_flight, const struct fetch_limits *limits, struct err *err)
{
    struct fetch *f = calloc(1, sizeof *f);
    (void)in_flight, (void)limits, (void)err;
    fuzz_hold(f != NULL);
    f->fd = eventfd(1, EFD_CLOEXEC); // there is always something to do
    f->last = &f->first;
    return f;
}

int fetch_start(struct fetch *f, const struct fetch_request *q, fetch_done *fn, void *ctx,
                struct err *err)
{
    struct fake_call *c = calloc(1, sizeof *c);
    (void)err;
    fuzz_hold(c != NULL);
    *c = (struct fake_call){*q, fn, ctx, NULL};
    *f->last = c;
    f->last = &c->next;
    return 0;
}

int fetch_fd(const struct fetch *f)
{
    return f->fd;
}

static bool end_first(struct fetch *f, bool made)
{
    struct fetch_response r = {.error = FETCH_INTERRUPTED};
    struct fake_call *c = f->first;
    if (!c)
        return false;
    if (!(f->first = c->next))
        f->last = &f->first;
    if (made)
        fetch_one(&c->q, &r);
    c->fn(c->ctx, &r);
    fetch_response_free(&r);
    free(c);
    return true;
}

int fetch_turn(struct fetch *f)
{
    end_first(f, true);
    return f->first != NULL;
}

void fetch_run(struct fetch *f, const volatile int *interrupted)
{
    while (fetch_turn(f) && !(interrupted && *interrupted))
        ;
    fetch_stop(f);
}

void fetch_stop(struct fetch *f)
{
    while (end_first(f, false))
        ;
}

void fetch_free(struct fetch *f)
{
    if (!f)
        return;
    for (struct fake_call *c; (c = f->first); free(c))
        f->first = c->next;
    close(f->fd);
    free(f);
}
