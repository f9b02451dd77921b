// SPDX-License-Identifier: Apache-2.0
// On base pages the curve has steps of page walks, which look like caches: such a run is not used.
#include "core/results/found_memory.h"

#include "analysis/stats/hierarchy.h"
#include "base/cleanup.h"
#include "core/results/machine_then.h"
#include "core/results/stored_run.h"
#include "core/store/history.h"
#include "core/store/unreadable.h"

static const double HUGE_SHARE = 0.99;

static bool found_memory_usable(const struct stored_run *r)
{
    for (int i = 0; i < r->n_ranks; i++)
        if (!(r->ranks[i].huge_share >= HUGE_SHARE))
            return false;
    return r->n_ranks > 0;
}

static int found_memory_read(struct found_memory *out, struct store *s, int64_t id, int64_t listed,
                             struct err *err)
{
    struct stored_run r CLEANUP(stored_run_fini) = {0};
    struct machine_then then CLEANUP(machine_then_fini) = {0};
    struct hierarchy h;
    if (stored_run_load(s, id, &r, err) < 0 || machine_then_load(s, &r.run, &then, err) < 0 ||
        hierarchy_find(&h, r.list, r.n, -1, err) < 0)
        return -1;
    bool usable = found_memory_usable(&r);
    uint64_t page = then.fingerprint ? fingerprint_base_page(then.fingerprint) : 0;
    *out = (struct found_memory){.run = id,
                                 .found = usable ? hierarchy_cache_bytes(&h, listed, page) : 0,
                                 .bytes = usable ? hierarchy_beyond_bytes(&h, listed, page) : 0};
    return 0;
}

int found_memory_look(struct machine *m, struct store *s, struct err *err)
{
    struct topology *t = &m->topology;
    int64_t id = 0, llc = topology_llc_bytes(t);
    int found = store_run_newest_like(s, m->hostname, BENCHMARK_HIERARCHY,
                                      m->fingerprint.machine_class.hash, &id, err);
    if (found < 0)
        return -1;
    if (!found)
        t->found = (struct found_memory){0};
    if (!found || id == t->found.run)
        return 0;
    struct err why = {0};
    if (found_memory_read(&t->found, s, id, llc > 0 ? llc : SPEC_LLC_DEFAULT, &why) == 0)
        return 0;
    if (!store_of_one_run(&why)) {
        *err = why;
        return -1;
    }
    t->found =
        (struct found_memory){.run = id}; // a run that cannot be read keeps none from starting
    return 0;
}
