// SPDX-License-Identifier: Apache-2.0
// The run, its matrices and its ranks are read together, or not at all.
#include "core/results/stored_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/node/hwloc.h"
#include "core/node/hwloc_stored.h"
#include "model/plan.h"

void stored_run_fini(struct stored_run *r)
{
    run_fini(&r->run);
    store_matrices_free(r->list, r->n);
    free(r->ranks);
    *r = (struct stored_run){0};
}

int stored_run_load(struct store *s, int64_t id, struct stored_run *out, struct err *err)
{
    struct stored_run r CLEANUP(stored_run_fini) = {0};
    if (store_run_get(s, id, &r.run, err) < 0 || run_check_spec(&r.run, err) < 0 ||
        store_matrices_get(s, id, &r.list, &r.n, err) < 0 ||
        store_ranks_get(s, id, &r.ranks, &r.n_ranks, err) < 0)
        return -1;
    *out = r;
    r = (struct stored_run){0};
    return 0;
}

int stored_run_load_axes(struct store *s, int64_t id, struct stored_run *out, struct err *err)
{
    struct stored_run r CLEANUP(stored_run_fini) = {0};
    if (store_run_get(s, id, &r.run, err) < 0 || run_check_spec(&r.run, err) < 0 ||
        store_matrix_axes_get(s, id, &r.list, &r.n, err) < 0)
        return -1;
    r.n_ranks = (int)r.run.n_ranks;
    *out = r;
    r = (struct stored_run){0};
    return 0;
}

const struct matrix *stored_run_matrix(const struct stored_run *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->list[i].name, name) == 0)
            return &r->list[i];
    return NULL;
}

struct metrics_input stored_run_metrics_input(const struct stored_run *r, const struct topology *t)
{
    return (struct metrics_input){.spec = &r->run.spec,
                                  .method = r->run.method,
                                  .imported = r->run.imported,
                                  .matrices = r->list,
                                  .n_matrices = r->n,
                                  .ranks = r->ranks,
                                  .n_ranks = r->n_ranks,
                                  .topology = t,
                                  .found_bytes = plan_read_found(r->run.plan_json)};
}

void stored_run_variant(const struct stored_run *r, struct buf *out)
{
    const struct metrics_input in = stored_run_metrics_input(r, NULL);
    metrics_variant(&in, out);
}

int stored_run_topology(struct store *s, const struct machine *m, int64_t id, struct topology *room,
                        const struct topology **out, struct err *err)
{
    CLEANUP_MEM char *xml = NULL;
    struct err why = {0};
    *out = NULL;
    if (store_topology_xml(s, id, &xml, &why) < 0) {
        *err = why;
        return why.code == ERR_NOT_FOUND ? 0 : -1;
    }
    if (m->topology_xml && strcmp(xml, m->topology_xml) == 0) {
        *out = &m->topology;
        return 0;
    }
    if (probe_topology_stored(room, xml, &why) == 0) {
        *out = room;
        return 0;
    }
    *err = why;
    return why.code == ERR_NO_MEMORY || why.code == ERR_UNAVAILABLE ? -1 : 0;
}
