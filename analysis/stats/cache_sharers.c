// SPDX-License-Identifier: Apache-2.0
// A topology has the first CPU of each cache and how many share it. The cores of a cache follow
// each other, so it is that CPU's core and the next ones.
#include "analysis/stats/cache_sharers.h"

struct seats { // by core
    uint16_t cpus[TOPOLOGY_CPUS_MAX], ranks[TOPOLOGY_CPUS_MAX];
};

static bool is_core(const struct topo_cpu *c)
{
    return c && c->core >= 0 && c->core < TOPOLOGY_CPUS_MAX;
}

static void sharers_take_seats(struct seats *s, const struct cache_users *users, int64_t end)
{
    const struct topology *t = users->topology;
    *s = (struct seats){0};
    for (int i = 0; i < t->n_cpus; i++)
        if (is_core(&t->cpus[i]))
            s->cpus[t->cpus[i].core]++;
    for (int r = 0; r < users->n_ranks; r++) {
        const struct rank_info *k = &users->ranks[r];
        const struct topo_cpu *cpu = k->cpu < 0 ? NULL : topology_cpu(t, (int)k->cpu);
        if (is_core(cpu) && k->rank < end)
            s->ranks[cpu->core]++;
    }
}

static int sharers_from(const struct seats *s, int core, int n_cpus)
{
    int sum = 0;
    for (; core < TOPOLOGY_CPUS_MAX && n_cpus > 0; core++) {
        sum += s->ranks[core];
        n_cpus -= s->cpus[core];
    }
    return sum;
}

int cache_sharers(const struct cache_users *users, int level, int64_t end)
{
    const struct topology *t = users->topology;
    struct seats seats;
    int most = 0;
    if (!t || !users->ranks)
        return 0;
    sharers_take_seats(&seats, users, end);
    for (int i = 0; i < t->n_caches; i++) {
        const struct topo_cache *c = &t->caches[i];
        const struct topo_cpu *first = topology_cpu(t, c->first_cpu);
        int here =
            c->level == level && is_core(first) ? sharers_from(&seats, first->core, c->n_cpus) : 0;
        most = here > most ? here : most;
    }
    return most;
}
