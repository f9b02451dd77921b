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
    struct call *c = ctx;
    (void)pos;
    if (c->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ssize_t n = c->source->read(c->opened, out, room);
    if (n > 0)
        return n;
    if (n < 0 || c->server->stopping)
        return MHD_CONTENT_READER_END_OF_STREAM;
    call_suspend(c);
    return 0;
}

static enum MHD_Result cannot_wait(struct call *c, const struct err *err)
{
    call_end_wait(c);
    return call_send_error(c, err, false);
}

static bool open_source(struct call *c, struct err *err)
{
    c->source = c->r.source;
    c->opened =
        c->source->open(c->server->service->context, c->r.of, c->r.after, call_resume, c, err);
    return c->opened;
}

static enum MHD_Result send_stream(struct call *c)
{
    struct err err;
    if (c->server->stopping)
        return call_refuse_stopping(c);
    if (call_begin_wait(c, &err) < 0 || !open_source(c, &err))
        return cannot_wait(c, &err);
    line_allow(c->line, -1); // it lasts as long as its source; heartbeats find who has gone
    return call_queue(
        c, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, c, NULL),
        200, "");
}

static void answers_on_deadline(void *ctx, uint32_t events)
{
    (void)events;
    call_resume(ctx);
}

static enum MHD_Result start_waiting(struct call *c)
{
    struct err err;
    if (call_begin_wait(c, &err) < 0)
        return cannot_wait(c, &err);
    c->deadline = loop_timer_new(c->server->loop, answers_on_deadline, c, &err);
    if (!c->deadline || !open_source(c, &err))
        return cannot_wait(c, &err);
    loop_timer_set(c->deadline, c->r.wait_ms);
    call_suspend(c);
    return MHD_YES;
}

static enum MHD_Result start_file(struct call *c)
{
    struct err err;
    if (strcmp(c->q.method, "HEAD") == 0) // nothing is copied to say how long it would be
        return call_send(c);
    if (!open_source(c, &err) || call_watch_hangup(c, &err) < 0) {
        c->r.retry_after_s = err.code == ERR_CONFLICT ? c->source->retry_after_conflict : 0;
        return call_send_error(c, &err, false);
    }
    call_suspend(c);
    return MHD_YES;
}

static enum MHD_Result send_made_file(struct call *c)
{
    struct err err;
    char disposition[128];
    int64_t bytes = 0;
    int fd = c->source->take(c->opened, &bytes, &err);
    if (fd < 0)
        return call_send_error(c, &err, false);
    struct MHD_Response *m = MHD_create_response_from_fd64((uint64_t)bytes, fd);
    if (!m) {
        close(fd);
        return MHD_NO;
    }
    snprintf(disposition, sizeof disposition, "attachment; filename=\"%s\"", c->source->file_name);
    MHD_add_response_header(m, "Content-Disposition", disposition);
    line_allow(c->line, line_time(LINE_ANSWER_MS, (uint64_t)bytes));
    return call_queue(c, m, 200, "");
}

static enum MHD_Result answer_now(struct call *c)
{
    reply_fini(&c->r);
    dispatch(&c->q, &c->r);
    if (c->r.kind == REPLY_WAIT && !c->server->stopping)
        return start_waiting(c);
    if (c->r.kind == REPLY_STREAM)
        return send_stream(c);
    if (c->r.kind == REPLY_FILE && !c->server->stopping)
        return start_file(c);
    return call_send(c);
}

// A daemon that ends has a second for all that wait for their turn.
static bool is_late(const struct server *s)
{
    return clock_mono_ms() - s->stopping_ms > STOPPING_MS;
}

enum MHD_Result call_refuse_stopping(struct call *c)
{
    struct err err;
    call_leave_heavy(c);
    call_leaves_turn(c);
    call_drop_pieces(c);
    err_set(&err, ERR_UNAVAILABLE, "", "the daemon is stopping");
    return call_send_error(c, &err, true);
}

enum MHD_Result call_answer(struct call *c)
{
    enum MHD_Result sent;
    call_end_wait(c);
    if (c->gone)
        return MHD_NO;
    if (c->opened && c->r.kind == REPLY_FILE)
        return send_made_file(c);
    if (c->server->stopping && (c->job || c->taking || (c->waited_turn && is_late(c->server))))
        return call_refuse_stopping(c);
    if (c->prepared)
        return call_send_heavy(c);
    if (c->opened) {
        call_close_source(c);
        c->q.again = true;
    } else if (!call_takes_turn(c)) {
        return MHD_YES;
    }
    uint64_t began_ns = clock_mono_ns();
    if (!call_begin_heavy(c, &sent))
        sent = answer_now(c);
    call_charge(c, (int64_t)((clock_mono_ns() - began_ns) / 1000));
    return sent;
}
