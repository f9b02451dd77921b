// SPDX-License-Identifier: Apache-2.0
// Two sources of replies (struct reply_source): one that ends with the run's end or a deadline,
// and one that sends each change. Neither keeps a queue: the newest state replaces an older one
// that was not sent yet.
#include "api/resources/events.h"

#include <stdlib.h>
#include <string.h>

#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

enum { HEARTBEAT_MS = 15000 }; // below the 30 s after which proxies and browsers give up
// Event of a final state: the largest number that all JSON readers have. Those before it begin anew
// with each start of the daemon.
static const int64_t FINAL_ID = (INT64_C(1) << 53) - 1;

struct run_wait {
    struct runner_watch *watch;
    void (*wake)(void *ctx);
    void *ctx;
};

static void run_wait_event(void *ctx, const struct run_event *e)
{
    struct run_wait *w = ctx;
    if (e->final)
        w->wake(w->ctx);
}

static void run_wait_close(void *opened)
{
    struct run_wait *w = opened;
    runner_watch_remove(w->watch);
    free(w);
}

static void *run_wait_open(void *context, int64_t of, int64_t after, void (*wake)(void *ctx),
                           void *ctx, struct err *err)
{
    const struct api_services *api = context;
    struct run_wait *w = calloc(1, sizeof *w);
    (void)after;
    if (!w) {
        err_set(err, ERR_NO_MEMORY, "", "no memory to wait for the run");
        return NULL;
    }
    *w = (struct run_wait){.wake = wake, .ctx = ctx};
    w->watch = runner_watch_add(api->runner, of, run_wait_event, w, err);
    if (w->watch)
        return w;
    free(w);
    return NULL;
}

const struct reply_source run_end = {.open = run_wait_open, .close = run_wait_close};

// One reader of one run's events. It keeps no queue: a reader that is slow gets the newest state.
struct stream {
    const struct api_services *api;
    struct runner_watch *watch;
    struct loop_timer *heartbeat;
    int64_t run_id;
    void (*wake)(void *ctx);
    void *ctx;
    struct buf pending;   // rendered, not yet taken
    bool state, progress; // something of this kind is newer than what was rendered
    bool beat;            // a comment is due
    bool over;            // nothing will follow what is pending
};

static void stream_event(void *ctx, const struct run_event *e)
{
    struct stream *s = ctx;
    if (e->kind == EVENT_STATE || e->final)
        s->state = true;
    else
        s->progress = true;
    s->wake(s->ctx);
}

static void stream_beat(void *ctx, uint32_t events)
{
    struct stream *s = ctx;
    (void)events;
    s->beat = true;
    loop_timer_set(s->heartbeat, HEARTBEAT_MS);
    s->wake(s->ctx);
}

static void stream_close(void *opened)
{
    struct stream *s = opened;
    runner_watch_remove(s->watch);
    loop_timer_free(s->heartbeat);
    buf_free(&s->pending);
    free(s);
}

static int stream_start(struct stream *s, struct err *err)
{
    s->heartbeat = loop_timer_new(s->api->loop, stream_beat, s, err);
    if (!s->heartbeat)
        return -1;
    s->watch = runner_watch_add(s->api->runner, s->run_id, stream_event, s, err);
    if (!s->watch)
        return -1;
    loop_timer_set(s->heartbeat, HEARTBEAT_MS);
    return 0;
}

static void *stream_open(void *context, int64_t run_id, int64_t after, void (*wake)(void *ctx),
                         void *ctx, struct err *err)
{
    const struct api_services *api = context;
    struct stream *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for an event stream");
        return NULL;
    }
    *s = (struct stream){.api = api, .run_id = run_id, .wake = wake, .ctx = ctx};
    s->state = after <= 0 || runner_event_id(api->runner, run_id) != after;
    buf_str(&s->pending, s->state ? "" : ": nothing new\n\n");
    if (stream_start(s, err) < 0) {
        stream_close(s);
        return NULL;
    }
    return s;
}

// The newest state of the run as one event; whatever happened in between is in it.
static void render(struct stream *s)
{
    struct run run = {0};
    struct err err;
    if (runner_run_get(s->api->runner, s->run_id, &run, &err) < 0) {
        s->over = true; // deleted meanwhile
        return;
    }
    s->over = run_state_final(run.state);
    buf_fmt(&s->pending, "event: %s\nid: %lld\ndata: ", s->state ? "state" : "progress",
            (long long)(s->over ? FINAL_ID : runner_event_id(s->api->runner, s->run_id)));
    struct jsonw w = jsonw_to(&s->pending);
    run_write_json(&run, &w, NULL);
    buf_str(&s->pending, "\n\n");
    s->over = s->over || !buf_ok(&s->pending);
    s->state = s->progress = s->beat = false;
    run_fini(&run);
}

static ssize_t stream_read(void *opened, char *out, size_t room)
{
    struct stream *s = opened;
    if (!s->pending.len && !s->over) {
        buf_reset(&s->pending);
        if (s->state || s->progress)
            render(s);
        else if (s->beat)
            buf_str(&s->pending, ": still here\n\n");
        s->beat = false;
    }
    if (!s->pending.len)
        return s->over ? -1 : 0;
    size_t n = s->pending.len < room ? s->pending.len : room;
    memcpy(out, s->pending.data, n);
    buf_drop(&s->pending, n);
    return (ssize_t)n;
}

static const struct reply_source run_events = {
    .open = stream_open, .close = stream_close, .read = stream_read};

static int64_t last_event_id(const struct request *q)
{
    const char *text = request_header(q, "Last-Event-ID");
    int64_t id;
    return text && str_to_i64(text, &id) && id > 0 ? id : 0;
}

int runs_events(struct request *q, struct reply *r, struct err *err)
{
    struct run run = {0};
    if (runner_run_get(api_of(q)->runner, q->arg, &run, err) < 0)
        return -1;
    bool final = run_state_final(run.state);
    run_fini(&run);
    int64_t after = last_event_id(q);
    if (final && after == FINAL_ID) {
        r->status = 204; // an EventSource then does not come back
        return 0;
    }
    return reply_stream(r, &run_events, q->arg, final ? 0 : after);
}
