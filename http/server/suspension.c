// SPDX-License-Identifier: Apache-2.0
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "http/server/parts.h"

// Waiters are told so many a round, about 10 ms, and other requests have their turn between. Each
// round costs more the more wait, because the library looks at all of them: with 128 a round that
// was nearly half of the time that 5,000 took.
enum { WAKE_BATCH = 256 };

// Nothing ends a suspended connection but this, so the call is there when its turn comes.
void call_resume(void *call)
{
    struct call *c = call;
    if (!c->suspended)
        return;
    c->suspended = false;
    c->next_waking = NULL;
    *c->server->waking_end = c;
    c->server->waking_end = &c->next_waking;
}

void server_wake_some(struct server *s)
{
    for (int i = 0; s->waking && i < WAKE_BATCH; i++) {
        struct call *c = s->waking;
        s->waking = c->next_waking;
        if (!s->waking)
            s->waking_end = &s->waking;
        MHD_resume_connection(c->connection);
    }
}

// Who waits for us is not late.
void call_suspend(struct call *c)
{
    c->suspended = true;
    line_allow(c->line, -1);
    MHD_suspend_connection(c->connection);
}

static void on_hangup(void *ctx, uint32_t events)
{
    struct call *c = ctx;
    (void)events;
    loop_unwatch(steal_ptr(&c->hangup));
    call_close_source(c);
    call_leave_heavy(c);
    call_leaves_turn(c);
    call_drop_pieces(c);
    c->gone = true;
    call_resume(c);
}

int call_watch_hangup(struct call *c, struct err *err)
{
    c->hangup = loop_watch_fd(c->server->loop, c->line->fd, EPOLLRDHUP, on_hangup, c, err);
    return c->hangup ? 0 : -1;
}

int call_begin_wait(struct call *c, struct err *err)
{
    if (!line_wait(c->line))
        return err_set(err, ERR_UNAVAILABLE, "",
                       "no place to wait is left for this client: %d of this listener's %d are in "
                       "use. Ask without wait, again and again",
                       c->listener->lines.waiting, c->server->connections / 2);
    if (call_watch_hangup(c, err) < 0) {
        line_wait_end(c->line);
        return -1;
    }
    return 0;
}

void call_end_wait(struct call *c)
{
    loop_unwatch(steal_ptr(&c->hangup));
    line_wait_end(c->line);
}

void call_close_source(struct call *c)
{
    loop_timer_free(steal_ptr(&c->deadline));
    if (c->opened)
        c->source->close(steal_ptr(&c->opened));
}
