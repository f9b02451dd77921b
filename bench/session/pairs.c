// SPDX-License-Identifier: Apache-2.0
// A list of pairs is made from the places that the ranks reported: the first pair of each
// class, all of them, or those that were requested.
#include "bench/session/pairs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/shape.h"
#include "model/spec_values.h"

static struct topo_cpu pairs_cpu_of(const struct cpu_place *p)
{
    return (struct topo_cpu){.core = p->core, .l3 = p->llc, .node = p->node, .package = p->package};
}

enum pair_class pair_class_of(const struct cpu_place *a, const struct cpu_place *b)
{
    const struct topo_cpu x = pairs_cpu_of(a), y = pairs_cpu_of(b);
    return topology_pair_class(&x, &y);
}

static const struct cpu_place *session_pairs_place_of(const struct session *s, int rank)
{
    return &s->board->slot[rank].cpu_place;
}

static void pairs_add(int (*pairs)[2], int *n, int first, int second)
{
    pairs[*n][0] = first;
    pairs[(*n)++][1] = second;
}

// The first pair of each class, in the order of the ranks.
static void one_of_each(const struct session *s, int (*pairs)[2], int *n)
{
    for (int class = 0; class < PAIR_CLASSES; class ++) {
        int before = *n;
        for (int i = 0; *n == before && i < session_ranks(s); i++)
            for (int j = i + 1; *n == before && j < session_ranks(s); j++)
                if (pair_class_of(session_pairs_place_of(s, i), session_pairs_place_of(s, j)) ==
                    (enum pair_class) class)
                    pairs_add(pairs, n, i, j);
    }
}

int pairs_possible(const struct session *s, struct err *err)
{
    if (session_ranks(s) >= 2)
        return shape_check_ranks(s->spec, session_ranks(s), err);
    return err_set(err, ERR_USAGE, "ranks",
                   "two ranks are needed: start at least two (mpirun -np 2, --np=2)");
}

bool pairs_chosen(const struct session *s)
{
    int64_t ranks = session_ranks(s), most = s->spec->pairs_most;
    return most && most < ranks * (ranks - 1) / 2;
}

int64_t pairs_that_fit(int64_t all, int64_t least, double visit_s, double visits, double room_s)
{
    int64_t most = all, fewer;
    while (visits * visit_s * (double)most > room_s * (double)all) {
        fewer = spec_fewer_pairs(most);
        if (fewer < least || fewer == most)
            break;
        most = fewer;
    }
    return most;
}

int pair_list(const struct session *s, const char *which, int (**pairs)[2], int *n, struct err *err)
{
    *n = 0;
    int(*list)[2] = calloc(SPEC_PAIRS_MAX, sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", SPEC_PAIRS_MAX);
    int outcome = 0;
    if (strcmp(which, "classes") == 0)
        one_of_each(s, list, n);
    else
        outcome = spec_pairs(which, list, n, err);
    if (outcome < 0)
        free(list);
    else
        *pairs = list;
    return outcome;
}

int pair_note(struct session *s, const int ends[2], struct err *err)
{
    const struct slot *first = &s->board->slot[ends[0]], *second = &s->board->slot[ends[1]];
    return session_note(s, err, CONDITION_PAIR, -1,
                        "pair %d-%d (%s): CPU %" PRId64 " and CPU %" PRId64, ends[0], ends[1],
                        pair_class_names[pair_class_of(&first->cpu_place, &second->cpu_place)],
                        first->info.cpu, second->info.cpu);
}
