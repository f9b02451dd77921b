// SPDX-License-Identifier: Apache-2.0
// A reply is whole at once, or comes after a wait, or as a stream, or is a file that must be made
// first.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "http/server/dispatch.h"
#include "http/server/parts.h"

enum {
    STREAM_BLOCK = 4096,
    STOPPING_MS = 1000,
};

static ssize_t read_stream(void *ctx, uint64_t pos, char *out, size_t room)
{
    struct exchange *x = ctx;
    (void)pos;
    if (x->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!dispatch_still_allows(&x->q, NULL))
        return MHD_CONTENT_READER_END_OF_STREAM;
    ssize_t n = x->source->read(x->opened, out, room);
    if (n > 0)
        return n;
    if (n < 0 || x->server->stopping)
        return MHD_CONTENT_READER_END_OF_STREAM;
    exchange_suspend(x);
    return 0;
}

static enum MHD_Result cannot_wait(struct exchange *x, const struct err *err)
{
    exchange_end_wait(x);
    return exchange_send_error(x, err, false);
}

static bool open_source(struct exchange *x, struct err *err)
{
    x->source = x->r.source;
    x->opened =
        x->source->open(x->server->service->context, x->r.of, x->r.after, exchange_resume, x, err);
    return x->opened;
}

static ssize_t read_nothing(void *ctx, uint64_t pos, char *out, size_t room)
{
    (void)ctx, (void)pos, (void)out, (void)room;
    return MHD_CONTENT_READER_END_OF_STREAM;
}

// HEAD of what has no length yet: nothing is opened or made to answer it. In chunks the library
// would end the body that is not there, and a client would read that end as its next answer.
static enum MHD_Result send_unknown_length(struct exchange *x)
{
    struct MHD_Response *m =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_nothing, NULL, NULL);
    if (m &&
        MHD_set_response_options(m, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END) != MHD_YES) {
        MHD_destroy_response(m);
        return MHD_NO;
    }
    connection_allow(x->connection, connection_time(CONNECTION_ANSWER_MS, 0));
    return exchange_queue(x, m, 200, "");
}

static bool is_head(const struct exchange *x)
{
    return strcmp(x->q.method, "HEAD") == 0;
}

static enum MHD_Result send_stream(struct exchange *x)
{
    struct err err;
    if (is_head(x))
        return send_unknown_length(x);
    if (exchange_begin_wait(x, &err) < 0 || !open_source(x, &err))
        return cannot_wait(x, &err);
    connection_allow(x->connection,
                     -1); // it lasts as long as its source; heartbeats find who has gone
    return exchange_queue(
        x, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, x, NULL),
        200, "");
}

static void answers_on_deadline(void *ctx, uint32_t events)
{
    (void)events;
    exchange_resume(ctx);
}

static enum MHD_Result start_waiting(struct exchange *x)
{
    struct err err;
    if (exchange_begin_wait(x, &err) < 0)
        return cannot_wait(x, &err);
    x->deadline = loop_timer_new(x->server->loop, answers_on_deadline, x, &err);
    if (!x->deadline || !open_source(x, &err))
        return cannot_wait(x, &err);
    loop_timer_set(x->deadline, x->r.wait_ms);
    exchange_suspend(x);
    return MHD_YES;
}

static enum MHD_Result start_file(struct exchange *x)
{
    struct err err;
    if (is_head(x))
        return send_unknown_length(x);
    if (!open_source(x, &err) || exchange_watch_hangup(x, &err) < 0) {
        x->r.retry_after_s = err.code == ERR_CONFLICT ? x->source->retry_after_conflict : 0;
        return exchange_send_error(x, &err, false);
    }
    exchange_suspend(x);
    return MHD_YES;
}

static enum MHD_Result send_made_file(struct exchange *x)
{
    struct err err;
    char disposition[128];
    int64_t bytes = 0;
    int fd = x->source->take(x->opened, &bytes, &err);
    if (fd < 0)
        return exchange_send_error(x, &err, false);
    struct MHD_Response *m = MHD_create_response_from_fd64((uint64_t)bytes, fd);
    if (!m) {
        close(fd);
        return MHD_NO;
    }
    snprintf(disposition, sizeof disposition, "attachment; filename=\"%s\"", x->source->file_name);
    MHD_add_response_header(m, "Content-Disposition", disposition);
    connection_allow(x->connection, connection_time(CONNECTION_ANSWER_MS, (uint64_t)bytes));
    return exchange_queue(x, m, 200, "");
}

void exchange_leave_queues(struct exchange *x)
{
    exchange_leave_job(x);
    exchange_leaves_turn(x);
    exchange_drop_pieces(x);
}

// The daemon ends, and this would take long.
static enum MHD_Result refuse_stopping(struct exchange *x)
{
    struct err err;
    exchange_leave_queues(x);
    err_set(&err, ERR_UNAVAILABLE, "", "the daemon is stopping");
    return exchange_send_error(x, &err, true);
}

// Of a request that has changed something already it is said what it did. A job changes nothing
// before it is taken over in pieces.
static bool may_have_changed(const struct exchange *x)
{
    bool begun = x->opened || x->q.again || x->q.made || x->taking;
    return begun && strcmp(x->q.method, "GET") != 0 && !is_head(x);
}

static enum MHD_Result refuse_revoked(struct exchange *x, const struct err *err)
{
    exchange_leave_queues(x);
    exchange_close_source(x);
    reply_fini(&x->r);
    return exchange_send_error(x, err, true);
}

static enum MHD_Result answer_now(struct exchange *x)
{
    reply_fini(&x->r);
    dispatch(&x->q, &x->r);
    if (x->r.kind == REPLY_WAIT && x->server->stopping && !x->q.again) {
        x->q.again = true; // without the wait
        return answer_now(x);
    }
    if (x->r.kind != REPLY_WHOLE && x->server->stopping)
        return refuse_stopping(x);
    if (x->r.kind == REPLY_WAIT)
        return start_waiting(x);
    if (x->r.kind == REPLY_STREAM)
        return send_stream(x);
    if (x->r.kind == REPLY_FILE)
        return start_file(x);
    return exchange_send(x);
}

// A daemon that ends has a second for all that wait for their turn.
static bool is_late(const struct server *s)
{
    return clock_mono_ms() - s->stopping_ms > STOPPING_MS;
}

enum MHD_Result exchange_answer(struct exchange *x)
{
    enum MHD_Result sent;
    struct err err;
    const bool waited = x->hangup || x->opened || x->prepared || x->waited_turn || x->received;
    exchange_end_wait(x);
    if (x->gone)
        return MHD_NO;
    if (waited && !may_have_changed(x) && !dispatch_still_allows(&x->q, &err))
        return refuse_revoked(x, &err);
    if (x->opened && x->r.kind == REPLY_FILE)
        return send_made_file(x);
    if (x->server->stopping && (x->job || x->taking || (x->waited_turn && is_late(x->server))))
        return refuse_stopping(x);
    if (x->prepared)
        return exchange_send_made(x);
    if (x->opened) {
        exchange_close_source(x);
        x->q.again = true;
    } else if (!exchange_takes_turn(x)) {
        return MHD_YES;
    }
    uint64_t began_ns = clock_mono_ns();
    int begun = exchange_begin_job(x, &sent);
    if (begun < 0)
        sent = refuse_stopping(x);
    else if (!begun)
        sent = answer_now(x);
    exchange_charge(x, (int64_t)((clock_mono_ns() - began_ns) / 1000));
    return sent;
}
