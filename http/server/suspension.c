// SPDX-License-Identifier: Apache-2.0
// An exchange that waits is a suspended connection of the library: memory, and nothing else.
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "http/server/parts.h"

// So many waiters are resumed a round, about 10 ms, and other requests have their turn between.
// Each round costs more the more wait, because the library looks at all of them: with 128 a round
// that was nearly half of the time that 5,000 took.
enum { WAKE_BATCH = 256 };

// Nothing ends a suspended connection but this, so the exchange is there when its turn comes.
void exchange_resume(void *exchange)
{
    struct exchange *x = exchange;
    if (!x->suspended)
        return;
    x->suspended = false;
    x->next_waking = NULL;
    *x->server->waking_end = x;
    x->server->waking_end = &x->next_waking;
}

void server_wake_some(struct server *s)
{
    for (int i = 0; s->waking && i < WAKE_BATCH; i++) {
        struct exchange *x = s->waking;
        s->waking = x->next_waking;
        if (!s->waking)
            s->waking_end = &s->waking;
        x->listener->touched = true;
        MHD_resume_connection(x->mhd);
    }
}

// Who waits for us is not late.
void exchange_suspend(struct exchange *x)
{
    x->suspended = true;
    connection_allow(x->connection, -1);
    MHD_suspend_connection(x->mhd);
}

static void on_hangup(void *ctx, uint32_t events)
{
    struct exchange *x = ctx;
    (void)events;
    loop_unwatch(steal_ptr(&x->hangup));
    exchange_close_source(x);
    x->server->hung_up(x);
    x->gone = true;
    exchange_resume(x);
}

int exchange_watch_hangup(struct exchange *x, struct err *err)
{
    x->hangup = loop_watch_fd(x->server->loop, x->connection->fd, EPOLLRDHUP, on_hangup, x, err);
    return x->hangup ? 0 : -1;
}

int exchange_begin_wait(struct exchange *x, struct err *err)
{
    if (!connection_wait(x->connection))
        return err_set(err, ERR_UNAVAILABLE, "",
                       "no waiting slot is left for this client: %d of this listener's %d are in "
                       "use. Poll without wait instead",
                       x->listener->connections.waiting, x->server->connections / 2);
    if (exchange_watch_hangup(x, err) < 0) {
        connection_wait_end(x->connection);
        return -1;
    }
    return 0;
}

void exchange_end_wait(struct exchange *x)
{
    loop_unwatch(steal_ptr(&x->hangup));
    connection_wait_end(x->connection);
}

void exchange_close_source(struct exchange *x)
{
    loop_timer_free(steal_ptr(&x->deadline));
    if (x->opened)
        x->source->close(steal_ptr(&x->opened));
}
