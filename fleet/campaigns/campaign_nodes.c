// SPDX-License-Identifier: Apache-2.0
// Which nodes a campaign can have: those that the collector contacts itself. Slurm starts runs on
// any node.
#include "fleet/campaigns/parts.h"

const char *campaign_never_probes(const struct campaign *c, const struct polled *n)
{
    return c->request.by_slurm || node_is_here(n) ? NULL
           : n->pushes ? "it pushes its runs, and the collector does not contact it"
                       : "it is behind another collector: start the campaign there";
}

int campaign_all_nodes(const struct campaign *c, struct nodeset *out, struct err *err)
{
    int n;
    struct polled *const *nodes = poller_nodes(c->all->poller, &n);
    for (int i = 0; i < n; i++)
        if (nodes[i]->state != NODE_GONE && !campaign_never_probes(c, nodes[i]) &&
            nodeset_add(out, nodes[i]->name, err) < 0)
            return -1;
    nodeset_sort(out);
    return out->n ? 0
                  : err_set(err, ERR_CONFLICT, "nodes",
                            "the collector has no nodes yet that it contacts itself");
}

int campaign_check_nodes(const struct campaign *c, const struct nodeset *nodes, struct err *err)
{
    for (int i = 0; i < nodes->n; i++) {
        const struct polled *n = poller_find(c->all->poller, nodes->names[i]);
        if (!n || n->state == NODE_GONE)
            return err_set(err, ERR_INVALID, "nodes", "no source names the node \"%s\"",
                           nodes->names[i]);
        const char *never = campaign_never_probes(c, n);
        if (never)
            return err_set(err, ERR_INVALID, "nodes", "leave out %s: %s", n->name, never);
    }
    return 0;
}

int campaign_nodes_of_others(const struct campaign *c)
{
    int n = 0;
    for (const struct campaign *other = c->all->list; other; other = other->next)
        n += other == c ? 0 : other->nodes.n;
    return n;
}
