// SPDX-License-Identifier: Apache-2.0
// Warming up. A chain is built around the caches, so it starts cold. Below four last-level caches
// it is a whole lap, which ends in the steady state whatever the cache replaces. From there on a
// visit walks less than a lap: no link is met twice, and a hit is only a line that came with its
// neighbour. These are at most half of the cache; links that fill it make them as many as they get,
// less where they are too few to matter. Those links are loaded, several at once: they are the ones
// before the one where the walk begins, in their order, so that the caches are as if it had come
// from there. Walked, one load waiting for the other, they took half of the time of a matrix. Of a
// lap as many as fill the last-level cache are walked, and those before are loaded: a chain that
// just fits a cache was found there more often when it had been loaded so fast. Nothing depends on
// the time that a cell may take, so quick and default measure the same. At least WARM_NS in all, in
// which a clock reaches its speed.
#include "bench/session/chaser.h"

#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "model/method.h"

enum {
    PLACE_STEP = 2 << 20, // working sets begin at multiples of this, the usual huge page
    SEEDS_A_RANK = 4096,  // orders of different visits and ranks never meet
};

int chaser_init(struct chaser *c, struct session *s, uint64_t smallest, int64_t visits,
                struct err *err)
{
    *c = (struct chaser){.session = s};
    c->stride = s->spec->stride ? s->spec->stride : s->cache.line_bytes;
    if (c->stride < s->cache.line_bytes)
        return err_set(err, ERR_USAGE, "stride",
                       "--stride: %" PRIu64 " is below the cache line of %" PRIu64
                       " bytes: several links would share one",
                       c->stride, s->cache.line_bytes);
    if (smallest / c->stride < 8)
        return err_set(err, ERR_USAGE, "size",
                       "--size: %" PRIu64 " bytes hold fewer than 8 links of %" PRIu64, smallest,
                       c->stride);
    if (s->spec->locality && s->spec->locality / c->stride < 8)
        return err_set(err, ERR_USAGE, "locality",
                       "--locality: %" PRIu64 " bytes hold fewer than 8 links of %" PRIu64,
                       s->spec->locality, c->stride);
    if (sampler_init(&c->sampler, s->spec, visits, err) < 0)
        return -1;
    c->sampler.lost = &s->slot->lost;
    c->sampler.counters = counters_open(&c->counters, &counter_kernel) ? &c->counters : NULL;
    return 0;
}

void chaser_fini(struct chaser *c)
{
    sampler_fini(&c->sampler);
    counters_close(&c->counters);
}

static uint64_t offset_of(const struct arena *a, uint64_t bytes, int64_t visit, int64_t visits)
{
    uint64_t steps = a->bytes > bytes ? (a->bytes - bytes) / PLACE_STEP : 0;
    return visits > 1 ? steps * (uint64_t)visit / (uint64_t)(visits - 1) * PLACE_STEP : 0;
}

void chaser_build(struct chaser *c, const struct arena *a, uint64_t bytes, int64_t visit,
                  int64_t visits)
{
    struct slot *slot = c->session->slot;
    uint64_t begin = clock_mono_ns();
    uint64_t seed = (uint64_t)slot->info.seed + SEEDS_A_RANK * (uint64_t)visit;
    chain_plan(&c->chain, a->base + offset_of(a, bytes, visit, visits), bytes, c->stride,
               c->session->spec->locality, seed);
    chain_set_line(&c->chain, c->session->cache.line_bytes);
    chain_write(&c->chain, 0, c->chain.links);
    double took = session_ms_since(begin);
    slot->phase_ms[PHASE_BUILD] += took;
    c->build_ms_per_byte = took / (double)bytes;
    sampler_start(&c->sampler, chain_link(&c->chain, perm_at(&c->chain.order, 0)));
}

struct warm_links chaser_warm_links(const struct session *s, uint64_t links)
{
    uint64_t lines = s->cache.llc_bytes / s->cache.line_bytes, spared = links / CHASE_SPARED;
    if (links < lines)
        return (struct warm_links){.walked = links};
    if (links < CHASE_WHOLE_LLC * lines)
        return (struct warm_links){links - lines, lines};
    return (struct warm_links){lines > spared ? lines - spared : 0, WARM_CHUNK};
}

void chaser_fill_caches(struct chaser *c)
{
    struct warm_links n = chaser_warm_links(c->session, c->chain.links);
    chain_load_before(&c->chain, c->sampler.at, n.loaded);
    sampler_warm(&c->sampler, n.walked, 0);
}

void chaser_warm(struct chaser *c)
{
    struct session *s = c->session;
    uint64_t begin = clock_mono_ns();
    chaser_fill_caches(c);
    uint64_t took = clock_mono_ns() - begin;
    sampler_warm(&c->sampler, 0, took < WARM_NS ? WARM_NS - took : 0);
    reference_clock_take(&s->slot->cycle);
    s->slot->phase_ms[PHASE_WARMUP] += session_ms_since(begin);
}

double chaser_guess_ms(const struct session *s, uint64_t bytes)
{
    static const double build_bytes_per_ms = 10e6, hop_ms = 80e-6, together = 0.1; // typical
    struct warm_links n = chaser_warm_links(s, bytes / s->cache.line_bytes);
    double warm_ms = ((double)n.walked + (double)n.loaded * together) * hop_ms;
    double visit_ms = (double)s->spec->cell_ms / (double)s->spec->visits;
    return (double)bytes / build_bytes_per_ms + fmax(warm_ms, WARM_NS / 1e6) + visit_ms;
}

void chaser_sample(struct chaser *c)
{
    uint64_t begin = clock_mono_ns();
    do
        sampler_take(&c->sampler);
    while (!sampler_done(&c->sampler) && !board_faulty(c->session->board));
    c->session->slot->info.migrations = c->sampler.moves;
    c->session->slot->phase_ms[PHASE_MEASURE] += session_ms_since(begin);
}

struct stolen stolen_begin(const struct session *s)
{
    return (struct stolen){guard_stolen_ms((int)s->slot->info.cpu), clock_mono_ns()};
}

double stolen_end(const struct session *s, const struct stolen *begin)
{
    int64_t now = guard_stolen_ms((int)s->slot->info.cpu);
    if (now < 0 || begin->before_ms < 0)
        return 0;
    return (double)(now - begin->before_ms) / session_ms_since(begin->begin_ns);
}
