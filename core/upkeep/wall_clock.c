// SPDX-License-Identifier: Apache-2.0
// Retention deletes by age, so a clock that jumps must not make runs old: age_* of core/store count
// the time that passed. Here is when they look: as runs come and end, and whenever the kernel
// reports that the clock was set.
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "core/store/age.h"
#include "core/upkeep/parts.h"
#include "core/upkeep/upkeep.h"

static void log_clock_step(int64_t step_ms)
{
    log_event(LOG_LVL_WARN, "clock.step",
              "hours=%.1f text=\"the wall clock moved by this against the time since the boot, or "
              "the node was off; runs age by the time that was seen to pass\"",
              (double)step_ms / 3600000);
}

void upkeep_compare_clocks(struct upkeep *k, bool save)
{
    struct age_clock now;
    struct err err;
    int64_t step_ms = 0;
    if (*k->why || age_clock_read(&now) < 0)
        return;
    if (store_age_look(k->store, &now, save, &step_ms, &err) < 0)
        log_error("clock", &err);
    else if (step_ms)
        log_clock_step(step_ms);
}

// The kernel reports each time that the wall clock is set, and then no more until it is asked anew.
static int watch_clock(int fd)
{
    const struct itimerspec never = {.it_value.tv_sec = INT64_MAX};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

static void on_clock_set(void *ctx, uint32_t events)
{
    struct upkeep *k = ctx;
    uint64_t times;
    (void)events;
    if (read(k->clock, &times, sizeof times) < 0 && watch_clock(k->clock) == 0) {
        upkeep_compare_clocks(k, false);
        return;
    }
    loop_unwatch(k->clock_watch); // the looks when runs come and end must do
    k->clock_watch = NULL;
}

void upkeep_watch_clock(struct upkeep *k)
{
    k->clock = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (k->clock >= 0 && watch_clock(k->clock) == 0)
        k->clock_watch = loop_watch_fd(k->loop, k->clock, EPOLLIN, on_clock_set, k, NULL);
}
