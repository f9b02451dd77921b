// SPDX-License-Identifier: Apache-2.0
// With a topology the sizes decide, without one the steps of the curve.
#include "analysis/stats/beyond_caches.h"

#include <stdlib.h>

#include "analysis/stats/rank_places.h"
#include "base/cleanup.h"

enum { CACHES_BEYOND = 4 };
// Without a topology, a plateau below this may be a cache's.
static const int64_t beyond_bytes_min = (int64_t)64 << 20;

static int64_t largest_set(const struct matrix *m)
{
    return m->col.values[m->col.n - 1];
}

static int by_plateau(const struct matrix *m, bool *beyond, struct err *err)
{
    const struct curve_machine unknown = {0};
    CLEANUP_MEM struct curve *c = calloc(1, sizeof *c);
    struct err why = {0};
    if (!c)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the curve");
    bool found = curve_find(c, m, &unknown, &why) == 0;
    if (!found && why.code == ERR_NO_MEMORY)
        return err_set(err, ERR_NO_MEMORY, "", "%s", why.text);
    *beyond = found && c->n && largest_set(m) >= beyond_bytes_min &&
              largest_set(m) >= CACHES_BEYOND * c->steps[c->n - 1].from_bytes;
    return 0;
}

bool size_beyond_caches(int64_t bytes, const struct curve_machine *machine)
{
    int64_t llc = machine->topology ? topology_llc_bytes(machine->topology) : 0;
    return llc <= 0 ? bytes >= beyond_bytes_min
                    : bytes >= CACHES_BEYOND * llc && bytes >= CACHES_BEYOND * machine->found_bytes;
}

// The fewest ranks of `rows` that a node has.
static int on_one_node(const struct places *p, const struct axis *rows)
{
    int least = 0;
    for (int i = 0; i < rows->n; i++) {
        const struct rank_info *a = places_info(p, rows->values[i]);
        int n = 0;
        for (int k = 0; a && k < rows->n; k++) {
            const struct rank_info *b = places_info(p, rows->values[k]);
            n += b && b->cpu_node == a->cpu_node;
        }
        least = !least || n < least ? n : least;
    }
    return least ? least : 1;
}

int beyond_caches(const struct matrix *m, const struct curve_machine *machine, bool *beyond,
                  struct err *err)
{
    const struct topology *t = machine->topology;
    struct places places CLEANUP(places_fini) = {0};
    int64_t llc = t ? topology_llc_bytes(t) : 0;
    int sharers = 1;
    if (llc <= 0)
        return by_plateau(m, beyond, err);
    CLEANUP_MEM int *counts = calloc((size_t)t->n_caches + 1, sizeof *counts);
    if (!counts)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the caches");
    if (places_init(&places, machine->ranks, machine->n_ranks, t, err) < 0)
        return -1;
    if (machine->together)
        sharers = places_sharers(&places, &m->row, t->n_caches, counts);
    int node_mates = machine->together && machine->found_bytes ? on_one_node(&places, &m->row) : 1;
    *beyond = largest_set(m) * sharers >= CACHES_BEYOND * llc &&
              largest_set(m) * node_mates >= CACHES_BEYOND * machine->found_bytes;
    return 0;
}
