// SPDX-License-Identifier: Apache-2.0
// A wait is kept in memory alone: after a restart the run is in the queue, and what is left of its
// time follows from when it was created.
#include "core/run/waits.h"

#include <stdio.h>

#include "base/clock.h"

static int waits_find(const struct waits *w, int64_t run_id)
{
    for (int i = 0; i < w->n; i++)
        if (w->list[i].run_id == run_id)
            return i;
    return -1;
}

static int waits_add(struct waits *w, int64_t run_id, int64_t left_ms)
{
    if (w->n == RUNNER_QUEUE_MAX)
        return -1;
    w->list[w->n] = (struct wait){
        .run_id = run_id, .until_ms = clock_mono_ms() + left_ms, .what = WAIT_UNKNOWN};
    return w->n++;
}

void waits_begin(struct waits *w, int64_t run_id, int64_t queue_s)
{
    if (queue_s && waits_find(w, run_id) < 0)
        waits_add(w, run_id, queue_s * 1000);
}

// Of a run that was requested before a restart: what is left of the time by the wall.
static int64_t left_by_wall(const struct run *run)
{
    int64_t most = run->spec.queue_s * 1000, left = run->created_ms + most - clock_wall_ms();
    return left < 0 ? 0 : left < most ? left : most;
}

int waits_note(struct waits *w, const struct run *run, int what, const char *text, int64_t *left_ms)
{
    int at = waits_find(w, run->id);
    if (at < 0)
        at = waits_add(w, run->id, left_by_wall(run));
    if (at < 0)
        return -1;
    struct wait *this = &w->list[at];
    bool news = this->what != what;
    this->what = what;
    snprintf(this->text, sizeof this->text, "%s", text);
    *left_ms = this->until_ms - clock_mono_ms();
    return news;
}

void waits_forget(struct waits *w, int64_t run_id)
{
    int at = waits_find(w, run_id);
    if (at >= 0)
        w->list[at] = w->list[--w->n];
}

void waits_describe(const struct waits *w, struct run *run)
{
    int at = waits_find(w, run->id);
    if (at < 0 || w->list[at].what == WAIT_UNKNOWN)
        return;
    snprintf(run->waiting, sizeof run->waiting, "%s", w->list[at].text);
    if (w->list[at].what != WAIT_FOR_STORE)
        run->wait_until_ms = clock_wall_ms() + w->list[at].until_ms - clock_mono_ms();
}
