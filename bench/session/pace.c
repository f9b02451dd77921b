// SPDX-License-Identifier: Apache-2.0
// One number has the schedule: each piece moves it on, and what is skipped moves it on too.
#include "bench/session/pace.h"

void pace_begin(struct pace *p, double mb_per_s, double slack_bytes)
{
    *p = (struct pace){.rate = mb_per_s / 1000, .slack = slack_bytes};
}

void pace_moved(struct pace *p, double bytes, double now_ns)
{
    if (p->rate <= 0)
        return;
    p->due_ns += bytes / p->rate;
    double behind = (now_ns - p->due_ns) * p->rate - p->slack;
    if (behind <= 0)
        return;
    p->skipped += behind;
    p->due_ns += behind / p->rate;
}
