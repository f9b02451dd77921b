// SPDX-License-Identifier: Apache-2.0
// Other collectors, whose feeds are followed as those of nodes are. They are sources of the
// configuration, so the list never changes.
#include "fleet/collect/parts.h"

#include <stdio.h>

#include "base/clock.h"
#include "fleet/collect/poller.h"

int poller_add_collectors(struct poller *p, struct err *err)
{
    static char list[FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX];
    enum source_kind kind;
    int n = fleetd_sources(p->c, list, err);
    for (int i = 0; i < n; i++) {
        const char *where = source_split(list[i], &kind, err);
        if (!where)
            return -1;
        if (kind != SOURCE_COLLECTOR)
            continue;
        p->collector_sources |= UINT32_C(1) << i;
        if (poller_find_collector(p, where))
            continue; // it is named twice
        p->collectors[i] = polled_new(p, where, clock_mono_ms());
        if (!p->collectors[i])
            return err_set(err, ERR_NO_MEMORY, "", "no memory for the poller");
        polled_text(&p->collectors[i]->base[0], where);
    }
    return n < 0 ? -1 : 0;
}

const struct polled *poller_collector_at(const struct poller *p, int i)
{
    for (int k = 0; k < FLEETD_SOURCES_MAX; k++)
        if (p->collectors[k] && i-- == 0)
            return p->collectors[k];
    return NULL;
}
