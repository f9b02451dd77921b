// SPDX-License-Identifier: Apache-2.0
// Waits for what a process does of which no event tells the test.
#pragma once
#include "core/os/loop.h"

enum { LOOK_MS = 2 };

static struct {
    struct loop *loop;
    struct loop_timer *look;
    bool (*holds)(void);
} waiting;

static void on_look(void *ctx, uint32_t events)
{
    (void)ctx;
    (void)events;
    if (waiting.holds())
        loop_stop(waiting.loop);
    else
        loop_timer_set(waiting.look, LOOK_MS);
}

// Runs the loop until it holds, or until something else stops the loop.
static void run_until(struct loop *loop, bool (*holds)(void), struct err *err)
{
    waiting.loop = loop;
    waiting.holds = holds;
    waiting.look = loop_timer_new(loop, on_look, NULL, err);
    if (!waiting.look)
        return;
    loop_timer_set(waiting.look, 0);
    loop_run(loop, err);
    loop_timer_free(waiting.look);
}
