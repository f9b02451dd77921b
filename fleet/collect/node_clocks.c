// SPDX-License-Identifier: Apache-2.0
// The clocks of nodes beside ours. A response says what its node's clock is.
#include "fleet/collect/parts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/collect/clocks.h"
#include "fleet/collect/poller.h"

// A node that pushes does not say what its clock is, nor does one behind another collector.
static bool states_its_clock(const struct polled *n)
{
    return n->state == NODE_UP && !n->pushes && !*n->behind;
}

void poller_compare_clocks(struct poller *p)
{
    int known = 0;
    CLEANUP_MEM double *skews = calloc((size_t)p->n + 1, sizeof *skews);
    for (int i = 0; skews && i < p->n; i++)
        if (states_its_clock(p->nodes[i]))
            skews[known++] = (double)p->nodes[i]->skew_ms;
    int64_t off_ms = skews ? -clocks_common(skews, known) : p->clock_off_ms;
    if (off_ms && !p->clock_off_ms)
        log_event(LOG_LVL_WARN, "clock.wrong",
                  "ahead_s=%" PRId64 " hint=\"most nodes agree on another time: correct the clock "
                  "of this machine\"",
                  off_ms / 1000);
    else if (!off_ms && p->clock_off_ms)
        log_event(LOG_LVL_INFO, "clock.right", "nodes=%d", known);
    p->clock_off_ms = off_ms;
}

int64_t poller_clock_off(const struct poller *p)
{
    return p->clock_off_ms;
}

int64_t node_clock_off(const struct polled *n)
{
    return n->skew_ms ? n->skew_ms + n->poller->clock_off_ms : 0;
}

bool node_clock_wrong(const struct polled *n)
{
    return llabs(node_clock_off(n)) > NODE_SKEW_MAX_MS;
}

void poller_clock_set(struct poller *p, int64_t step_ms)
{
    for (int i = 0; i < p->n; i++)
        if (!p->nodes[i]->pushes && !*p->nodes[i]->behind) // of those nothing is known
            p->nodes[i]->skew_ms -= step_ms;
    poller_compare_clocks(p);
}
