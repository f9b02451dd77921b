// SPDX-License-Identifier: Apache-2.0
// Events of the run come first. When their connection fails, the run is polled. Ctrl-C is
// noticed between two of these, and the caller decides what it means.
#include "client/follow.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/http.h"
#include "client/interrupts.h"
#include "client/progress.h"
#include "client/result.h"
#include "model/run.h"

enum {
    STREAM_TRIES = 5, // broken streams before we only poll
    POLL_MS = 1000,   // then not more often than this
    BUSY_TRIES = 60,  // a daemon that has no time for us now
};

struct follower {
    struct progress_bar bar;
    char last_id[40];
    struct json *run; // the newest final state
    bool quiet;
};

static bool is_final(const struct json *run)
{
    int state = run_state_find(json_get_text(run, "state", ""));
    return state >= 0 && run_state_final((enum run_state)state);
}

static bool follow_on_event(void *ctx, const char *event, const char *id, const char *data,
                            size_t len)
{
    struct follower *f = ctx;
    (void)event;
    snprintf(f->last_id, sizeof f->last_id, "%s", id);
    struct json *run = json_parse(data, len, NULL);
    if (!run)
        return true;
    if (is_final(run)) {
        f->run = run;
        return false;
    }
    progress_show(&f->bar, run);
    json_free(run);
    return true;
}

static void on_interrupt(int signo)
{
    (void)signo;
    http_interrupted = 1;
}

void follow_pause_until(int64_t mono_ms)
{
    int64_t left = mono_ms - clock_mono_ms();
    if (left > 0)
        poll(NULL, 0, (int)left); // a signal ends it
}

// A server that answers at once, whatever it was asked to wait for, is asked once a second. So is
// one that has no place to wait left.
static int poll_until_final(const struct cli *c, int64_t id, struct follower *f, struct err *err)
{
    for (int wait_s = 30, busy = 0; !f->run;) {
        struct json *run = NULL;
        int64_t next_ms = clock_mono_ms() + POLL_MS;
        if (result_get_run(c, id, wait_s, &run, err) < 0) {
            if (err->code != ERR_UNAVAILABLE || ++busy > BUSY_TRIES || http_interrupted)
                return -1;
            wait_s = 0;
            follow_pause_until(next_ms);
            continue;
        }
        busy = 0;
        if (is_final(run)) {
            f->run = run;
            return 0;
        }
        if (!f->quiet)
            progress_show(&f->bar, run);
        json_free(run);
        follow_pause_until(next_ms);
    }
    return 0;
}

int follow_to_end(const struct cli *c, int64_t id, struct json **run, struct err *err)
{
    struct follower f = {.quiet = true};
    if (poll_until_final(c, id, &f, err) < 0)
        return -1;
    *run = f.run;
    return 0;
}

int follow(const struct cli *c, int64_t id, struct json **run, struct err *err)
{
    struct follower f = {.bar = {.cli = c}};
    struct interrupts before;
    char path[80];
    snprintf(path, sizeof path, "/v1/runs/%lld/events", (long long)id);
    interrupts_take(&before, on_interrupt);
    interrupts_block(false);
    int rc = 0;
    bool refused = false;
    for (int tries = 0; !f.run && !refused && tries < STREAM_TRIES && !http_interrupted; tries++) {
        rc = http_events(c, path, f.last_id, follow_on_event, &f, err);
        refused = rc < 0 && err->code == ERR_UNAVAILABLE;
    }
    if (!f.run && !http_interrupted)
        rc = poll_until_final(c, id, &f, err);
    interrupts_give_back(&before);
    progress_clear(&f.bar);
    if (!f.run && http_interrupted) {
        http_interrupted = 0;
        return err_set(err, ERR_TIMEOUT, "", "interrupted");
    }
    if (!f.run)
        return rc < 0 ? -1 : err_set(err, ERR_UNREACHABLE, "url", "the daemon went away");
    *run = f.run;
    return 0;
}
