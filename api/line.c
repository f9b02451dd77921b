// SPDX-License-Identifier: Apache-2.0
#include "api/line.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static void arm(struct lines *all, int64_t at_ms, int64_t now_ms)
{
    all->armed_ms = at_ms;
    loop_timer_set(all->timer, at_ms == INT64_MAX ? -1 : at_ms > now_ms ? at_ms - now_ms : 1);
}

// Cuts who is late and sleeps until the next one would be.
static void on_deadline(void *ctx, uint32_t events)
{
    struct lines *all = ctx;
    int64_t now = clock_mono_ms(), next = INT64_MAX;
    (void)events;
    for (struct line *l = LIST_FIRST(&all->list); l; l = LIST_NEXT(l, entry)) {
        if (l->deadline_ms <= now)
            line_cut(l);
        else if (l->deadline_ms < next)
            next = l->deadline_ms;
    }
    arm(all, next, now);
}

int lines_init(struct lines *all, struct loop *loop, int per_account, struct err *err)
{
    *all = (struct lines){.loop = loop, .armed_ms = INT64_MAX, .per_account = per_account};
    all->timer = loop_timer_new(loop, on_deadline, all, err);
    return all->timer ? 0 : -1;
}

void lines_fini(struct lines *all)
{
    loop_timer_free(all->timer);
    all->timer = NULL;
}

void line_cut(struct line *l)
{
    l->cut = true;
    l->deadline_ms = INT64_MAX;
    shutdown(l->fd, SHUT_RDWR);
}

void line_allow(struct line *l, int64_t ms)
{
    if (!l || l->cut)
        return;
    int64_t now = clock_mono_ms();
    l->deadline_ms = ms < 0 ? INT64_MAX : now + ms;
    if (l->deadline_ms < l->all->armed_ms)
        arm(l->all, l->deadline_ms, now);
}

int64_t line_time(int64_t least, uint64_t bytes)
{
    return least + (int64_t)(bytes / LINE_RATE);
}

static int of_the_same(const struct line *one)
{
    int n = 0;
    for (const struct line *l = LIST_FIRST(&one->all->list); l; l = LIST_NEXT(l, entry))
        n += l->listener == one->listener && l->local && l->uid == one->uid;
    return n;
}

static void find_account(struct line *l)
{
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t n = sizeof who;
    if (getsockopt(l->fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        log_event(LOG_LVL_WARN, "connection", "text=\"the kernel does not say who it is\"");
    l->uid = who.uid;
}

struct line *line_new(struct lines *all, const void *listener, int fd, bool local)
{
    struct line *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct line){.all = all, .listener = listener, .fd = fd, .local = local};
    LIST_INSERT_HEAD(&all->list, l, entry);
    if (++all->n > all->most)
        all->most = all->n;
    if (local)
        find_account(l);
    if (local && l->uid != 0 && l->uid != geteuid() && of_the_same(l) > all->per_account)
        line_cut(l);
    line_allow(l, LINE_HEAD_MS);
    return l;
}

void line_free(struct line *l)
{
    if (!l)
        return;
    l->all->n--;
    LIST_REMOVE(l, entry);
    free(l);
}
