// SPDX-License-Identifier: Apache-2.0
// A timer takes runs without metrics, for STEP_MS at a time and with as much rest between. It is
// off while a run is measured.
#include "core/run/fill.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/results/run_metrics.h"
#include "core/store/runs.h"

enum {
    // A run of 120 cells takes 1 ms and the disk's answer; steps of 10 ms with as much rest
    // between.
    STEP_MS = 10,
    RETRY_MS = 30000,
};

// 1: one was filled, or is elsewhere, 0: none is left, -1: not now. A run that cannot be read must
// not stop those behind it: it counts as one without metrics.
static int fill_one(struct filler *f, struct err *err)
{
    int64_t id;
    int found = store_run_without_metrics(f->store, METRICS_VERSION, &id, err);
    if (found > 0 && f->elsewhere && f->elsewhere(f->ctx, id)) {
        f->taken = id;
        return 1;
    }
    if (found <= 0 || metrics_fill(f->store, f->machine, id, err) == 0)
        return found;
    if (err->code == ERR_NO_MEMORY)
        return -1;
    log_error("run.metrics", err);
    return store_run_no_metrics(f->store, METRICS_VERSION, id, err) < 0 ? -1 : 1;
}

static void fill_some(void *ctx, uint32_t events)
{
    struct filler *f = ctx;
    struct err err = {0};
    int64_t end = clock_mono_ms() + STEP_MS;
    int more = 1;
    (void)events;
    while (more > 0 && !f->taken && clock_mono_ms() < end) {
        more = fill_one(f, &err);
        f->filled += more > 0;
    }
    f->due = more != 0;
    if (!more && f->filled) {
        log_event(LOG_LVL_INFO, "metrics.filled", "runs=%" PRId64, f->filled);
        f->filled = 0;
    }
    if (more < 0)
        log_error("run.metrics", &err);
    if (more && !f->taken)
        loop_timer_set(f->timer, more > 0 ? STEP_MS : RETRY_MS);
}

int filler_init(struct filler *f, struct loop *l, struct store *s, const struct machine *m,
                struct err *err)
{
    *f = (struct filler){.store = s, .machine = m};
    f->timer = loop_timer_new(l, fill_some, f, err);
    return f->timer ? 0 : -1;
}

void filler_fini(struct filler *f)
{
    loop_timer_free(f->timer);
}

void filler_go(struct filler *f)
{
    if (f->due)
        loop_timer_set(f->timer, 0);
}

void filler_pause(struct filler *f)
{
    loop_timer_set(f->timer, -1);
}

// What fails twice is not requested again.
static int note_failure(struct filler *f, int64_t id, struct err *err)
{
    bool again = f->failed != id;
    f->failed = id;
    return again ? -1 : store_run_no_metrics(f->store, METRICS_VERSION, id, err);
}

// It was deleted while they were made: nothing has failed.
static bool is_deleted(const struct filler *f, int64_t id)
{
    struct err err;
    return store_run_state(f->store, id, &err) < 0 && err.code == ERR_NOT_FOUND;
}

static int store_made(struct filler *f, int64_t id, const struct run_metrics *m,
                      const struct err *why)
{
    struct err err = {0};
    if (!m)
        log_error("run.metrics", why);
    int rc = m ? store_run_metrics(f->store, id, m, &err) : note_failure(f, id, &err);
    if (rc < 0 && err.code)
        log_error("run.metrics", &err);
    return rc;
}

void filler_made(struct filler *f, int64_t id, const struct run_metrics *m, const struct err *why)
{
    f->taken = 0;
    int rc = is_deleted(f, id) ? 0 : store_made(f, id, m, why);
    if (f->due)
        loop_timer_set(f->timer, rc < 0 ? RETRY_MS : 0);
}
