// SPDX-License-Identifier: Apache-2.0
// A request that has begun does not wait any more, however long it takes.
#include "fleet/services/polling.h"

#include "base/clock.h"

void polling_count(const struct poller *p, struct polling_counts *out)
{
    struct polled *const *nodes;
    *out = (struct polling_counts){0};
    nodes = poller_nodes(p, &out->all);
    for (int i = 0; i < out->all; i++) {
        out->states[nodes[i]->state]++;
        out->outcomes[nodes[i]->outcome] += nodes[i]->state != NODE_GONE;
    }
}

bool polling_awaits(const struct polled *n)
{
    return n->state != NODE_GONE && !node_asleep(n) && !*n->behind;
}

static int64_t longer_wait(const struct polled *n, int64_t mono_ms, int64_t lag_ms)
{
    return n->busy || mono_ms - n->due_ms < lag_ms ? lag_ms : mono_ms - n->due_ms;
}

int64_t polling_lag_ms(const struct poller *p)
{
    int n;
    int64_t lag_ms = 0, mono_ms = clock_mono_ms();
    struct polled *const *nodes = poller_nodes(p, &n);
    const struct polled *collector;
    if (poller_stands_by(p))
        return 0;
    for (int i = 0; i < n; i++)
        if (polling_awaits(nodes[i]))
            lag_ms = longer_wait(nodes[i], mono_ms, lag_ms);
    for (int i = 0; (collector = poller_collector_at(p, i)); i++)
        lag_ms = longer_wait(collector, mono_ms, lag_ms);
    return lag_ms;
}
