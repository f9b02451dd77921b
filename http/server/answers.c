// SPDX-License-Identifier: Apache-2.0
// A reply is whole at once, or comes after a wait, or as a stream of events, or is a backup that
// must be made first.
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "http/server/dispatch.h"
#include "http/server/parts.h"

enum {
    STREAM_BLOCK = 4096,
    STOPPING_MS = 1000,
    RETRY_BACKUP_S = 30, // a gigabyte and its way to the client
};

static ssize_t read_stream(void *ctx, uint64_t pos, char *out, size_t room)
{
    struct call *c = ctx;
    (void)pos;
    if (c->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ssize_t n = stream_read(c->stream, out, room);
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

static enum MHD_Result send_stream(struct call *c)
{
    struct err err;
    if (c->server->stopping)
        return call_refuse_stopping(c);
    if (call_begin_wait(c, &err) < 0)
        return cannot_wait(c, &err);
    c->stream = stream_new(&c->server->api, c->r.run_id, c->r.after, call_resume, c, &err);
    if (!c->stream)
        return cannot_wait(c, &err);
    line_allow(c->line, -1); // it lasts as long as its run; heartbeats find who has gone
    return call_queue(
        c, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, c, NULL),
        200, "");
}

static enum MHD_Result start_waiting(struct call *c)
{
    struct err err;
    if (call_begin_wait(c, &err) < 0)
        return cannot_wait(c, &err);
    c->waiter = waiter_new(&c->server->api, c->r.run_id, c->r.wait_ms, call_resume, c, &err);
    if (!c->waiter)
        return cannot_wait(c, &err);
    call_suspend(c);
    return MHD_YES;
}

static enum MHD_Result server_answer_start_backup(struct call *c)
{
    struct err err;
    if (strcmp(c->q.method, "HEAD") == 0) // nothing is copied to say how long it would be
        return call_send(c);
    c->backup = keeper_backup(c->server->api.keeper, call_resume, c, &err);
    if (!c->backup || call_watch_hangup(c, &err) < 0) {
        c->r.retry_after_s = err.code == ERR_CONFLICT ? RETRY_BACKUP_S : 0;
        return call_send_error(c, &err, false);
    }
    call_suspend(c);
    return MHD_YES;
}

static enum MHD_Result send_backup(struct call *c)
{
    struct err err;
    int64_t bytes = 0;
    int fd = backup_take(c->backup, &bytes, &err);
    if (fd < 0)
        return call_send_error(c, &err, false);
    struct MHD_Response *m = MHD_create_response_from_fd64((uint64_t)bytes, fd);
    if (!m) {
        close(fd);
        return MHD_NO;
    }
    MHD_add_response_header(m, "Content-Disposition", "attachment; filename=\"numaprobe.db\"");
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
    if (c->r.kind == REPLY_BACKUP && !c->server->stopping)
        return server_answer_start_backup(c);
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
    call_drop_import(c);
    err_set(&err, ERR_UNAVAILABLE, "", "the daemon is stopping");
    return call_send_error(c, &err, true);
}

enum MHD_Result call_answer(struct call *c)
{
    enum MHD_Result sent;
    call_end_wait(c);
    if (c->gone)
        return MHD_NO;
    if (c->backup)
        return send_backup(c);
    if (c->server->stopping && (c->job || c->import || (c->waited_turn && is_late(c->server))))
        return call_refuse_stopping(c);
    if (c->prepared)
        return call_send_heavy(c);
    if (c->waiter) {
        waiter_free(steal_ptr(&c->waiter));
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
