// SPDX-License-Identifier: Apache-2.0
// A target has a place from its first pages on.
#include "bench/session/spreads.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

void spreads_add(struct spreads *all, int target, const struct rank_info *got)
{
    int i = 0;
    while (i < all->n && all->list[i].target != target)
        i++;
    if (i == SPREADS_MAX)
        return; // no run has so many
    all->n += i == all->n;
    all->list[i].target = target;
    for (int k = 0; k < got->n_nodes; k++)
        if (got->nodes[k].node < TARGET_NODES)
            all->list[i].pages[got->nodes[k].node] += got->nodes[k].pages;
}

void spread_text(const struct spread *p, char out[static SPREAD_TEXT_ROOM])
{
    enum { LISTED = 6 };
    int nodes[TARGET_NODES], n = 0;
    double all = 0, least = 100, most = 0;
    char list[SPREAD_TEXT_ROOM - 40];
    for (int node = 0; node < TARGET_NODES; node++)
        all += (double)p->pages[node];
    *out = '\0';
    for (int node = 0; node < TARGET_NODES; node++) {
        double share = 100 * (double)p->pages[node] / all;
        size_t used = strlen(out);
        if (!p->pages[node])
            continue;
        snprintf(out + used, SPREAD_TEXT_ROOM - used, "%s%.1f %% on node %d", used ? ", " : "",
                 share, node);
        nodes[n++] = node;
        least = fmin(least, share);
        most = fmax(most, share);
    }
    if (n <= LISTED)
        return;
    str_from_ids(nodes, n, list, sizeof list);
    snprintf(out, SPREAD_TEXT_ROOM, "%.1f to %.1f %% on each of nodes %s", least, most, list);
}
