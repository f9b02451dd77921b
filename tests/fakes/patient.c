// SPDX-License-Identifier: Apache-2.0
// A worker that has a hundred times as long: a test stops it, and may itself be late on a machine
// that is busy. With NUMAPROBED_DEADLINE=own only for being idle. The daemon of this test alone is
// linked with --wrap=loop_timer_set.
#include <stdlib.h>

#include "core/os/loop.h"
#include "http/server/worker.h"

void __real_loop_timer_set(struct loop_timer *t, int64_t delay_ms);
void __wrap_loop_timer_set(struct loop_timer *t, int64_t delay_ms);

void __wrap_loop_timer_set(struct loop_timer *t, int64_t delay_ms)
{
    bool is_long = delay_ms == WORKER_IDLE_MS ||
                   (delay_ms == WORKER_DEADLINE_MS && !getenv("NUMAPROBED_DEADLINE"));
    __real_loop_timer_set(t, is_long ? 100 * delay_ms : delay_ms);
}
