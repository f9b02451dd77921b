// SPDX-License-Identifier: Apache-2.0
// The clocks of nodes beside ours. A response says what its node's clock is.
#include "fleet/collect/parts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "fleet/collect/clocks.h"
#include "fleet/collect/poller.h"

// Neither a node that pushes nor one behind another collector does.
static bool says_its_clock(const struct polled *n)
{
    return !n->pushes && !*n->behind;
}

static bool has_known_clock(const struct polled *n)
{
    return n->state == NODE_UP && says_its_clock(n);
}

// Ours was set: the clocks of nodes differ from it otherwise, before they say so.
static void follow_own_clock(struct poller *p)
{
    const int64_t step_ms = clock_set_by(&p->clock_offset_ms);
    for (int i = 0; step_ms && i < p->n; i++)
        if (says_its_clock(p->nodes[i]))
            p->nodes[i]->skew_ms -= step_ms;
}

// -1: no memory.
static int find_clock_off(const struct poller *p, int64_t *off_ms)
{
    int known = 0, all = 0;
    CLEANUP_MEM double *skews = calloc((size_t)p->n + 1, sizeof *skews);
    if (!skews)
        return -1;
    for (int i = 0; i < p->n; i++) {
        all += p->nodes[i]->state != NODE_GONE && says_its_clock(p->nodes[i]);
        if (has_known_clock(p->nodes[i]))
            skews[known++] = (double)p->nodes[i]->skew_ms;
    }
    *off_ms = poller_stands_by(p) ? 0 : -clocks_common(skews, known, all);
    return 0;
}

void poller_compare_clocks(struct poller *p)
{
    int64_t off_ms;
    follow_own_clock(p);
    if (find_clock_off(p, &off_ms) < 0)
        return;
    if (off_ms && !p->clock_off_ms)
        log_event(LOG_LVL_WARN, "clock.wrong",
                  "seconds=%" PRId64 " is=%s hint=\"most nodes agree on another time: correct the "
                  "clock of this machine\"",
                  (int64_t)llabs(off_ms) / 1000, off_ms > 0 ? "ahead" : "behind");
    else if (!off_ms && p->clock_off_ms)
        log_event(LOG_LVL_INFO, "clock.right", "text=\"most nodes agree with it\"");
    p->clock_off_ms = off_ms;
}

int64_t poller_clock_off(const struct poller *p)
{
    return p->clock_off_ms;
}

int64_t node_clock_off(const struct polled *n)
{
    return has_known_clock(n) ? n->skew_ms + n->poller->clock_off_ms : 0;
}

bool node_clock_wrong(const struct polled *n)
{
    return llabs(node_clock_off(n)) > NODE_SKEW_MAX_MS;
}
