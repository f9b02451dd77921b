// SPDX-License-Identifier: Apache-2.0
// Levels found in curves of machines whose levels are known: each cache answers what the theory of
// its replacement says, each point has noise, some points are disturbed.
#include "analysis/stats/levels.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/unit/analysis/published.h"
#include "tests/unit/tap.h"

enum { POINTS_MAX = 160, CACHES_MAX = 5, SEEDS = 10, PER_OCTAVE = 4 };

static uint64_t state = 15;

static double random_share(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += random_share();
    return sum;
}

// --- Caches ------------------------------------------------------------------------------------

enum replacement {
    LRU,     // lines that are next to each other in memory: no set is fuller than others
    COLOURS, // pages anywhere: a set of 8 lines gets a random number of them
    RANDOM   // a random line is replaced
};

// Share of the loads of an endless cycle through `over` capacities that hit.
static double hit_share(enum replacement how, double over)
{
    double hit = 0;
    if (how == LRU)
        return over <= 1 ? 1 : fmax(0, 1 - 8 * (over - 1)); // a fuller set misses wholly
    if (how == RANDOM) {
        for (int i = 0; over > 1 && i < 200; i++) // a line stays with exp(-misses between)
            hit = exp(-(1 - hit) * over);
        return over > 1 ? hit : 1;
    }
    double term = exp(-8 * over);
    for (int k = 0; k < 8; k++) {
        hit += term;
        term *= 8 * over / (k + 1);
    }
    return hit;
}

struct machine {
    const char *name;
    double memory_ns;
    struct {
        double ns, kib;
        enum replacement how;
    } caches[CACHES_MAX];
};

static const struct machine machines[] = {
    {"three levels, sharp", 90, {{1.2, 32, LRU}, {4, 256, LRU}, {12, 8192, LRU}}},
    {"three levels, hashed", 95, {{1.2, 32, LRU}, {4, 1024, COLOURS}, {18, 32768, RANDOM}}},
    {"48 KiB and 2 MiB", 120, {{1.5, 48, LRU}, {4.6, 2048, COLOURS}, {24, 107520, RANDOM}}},
    {"a small last level", 110, {{1.3, 32, LRU}, {4.2, 1024, COLOURS}, {19, 8192, RANDOM}}},
    {"a large last level", 105, {{1.1, 32, LRU}, {3.6, 512, LRU}, {13, 98304, RANDOM}}},
    {"two levels", 130, {{1.8, 64, LRU}, {18, 8192, LRU}}},
    {"system-level cache, hidden", 100, {{1.3, 64, LRU}, {4, 1024, COLOURS}, {31, 32768, RANDOM}}},
    {"four levels",
     160,
     {{1.3, 64, LRU}, {4, 1024, LRU}, {22, 32768, RANDOM}, {80, 262144, RANDOM}}},
    {"lateral caches",
     110,
     {{1, 32, LRU}, {4, 512, LRU}, {10, 10240, RANDOM}, {45, 112640, RANDOM}}},
    {"memory-side cache", 300, {{2, 32, LRU}, {10, 1024, COLOURS}, {150, 16777216, RANDOM}}},
    {"four and memory-side",
     260,
     {{1.5, 48, LRU}, {4.5, 2048, LRU}, {33, 114688, RANDOM}, {130, 67108864, LRU}}},
    {"memory-side, little gain",
     190,
     {{1.5, 48, LRU}, {4.5, 2048, LRU}, {33, 114688, RANDOM}, {130, 67108864, RANDOM}}},
    {"a guest with little cache", 150, {{1.1, 32, LRU}, {3.9, 512, COLOURS}, {14, 4096, COLOURS}}},
    {"128 KiB and 12 MiB", 97, {{0.9, 128, LRU}, {5.5, 12288, COLOURS}, {25, 49152, RANDOM}}},
    {"one level", 60, {{1.5, 16, LRU}}},
    {"slow clock", 250, {{4, 32, LRU}, {15, 256, COLOURS}, {60, 6144, RANDOM}}},
    {"second level, random", 80, {{1.2, 32, RANDOM}, {5, 512, RANDOM}}},
    {"all in colours", 100, {{1.2, 32, COLOURS}, {5, 512, COLOURS}, {20, 16384, COLOURS}}},
    {"large and far apart", 140, {{1.2, 32, LRU}, {4, 2048, LRU}, {26, 393216, RANDOM}}},
    {"close together", 90, {{1.2, 32, LRU}, {3.5, 128, LRU}, {10, 1024, LRU}, {25, 4096, LRU}}},
    {"no cache at all", 70, {{0, 0, LRU}}},
    {"an accelerator's host", 240, {{1.4, 64, LRU}, {5, 1024, COLOURS}, {38, 116736, RANDOM}}},
};

static double time_of(const struct machine *m, double bytes)
{
    double ns = 0, reach = 1;
    for (int k = 0; k < CACHES_MAX && m->caches[k].kib > 0; k++) {
        double hit = hit_share(m->caches[k].how, bytes / 1024 / m->caches[k].kib);
        ns += reach * hit * m->caches[k].ns;
        reach *= 1 - hit;
    }
    return ns + reach * m->memory_ns;
}

struct curve {
    int n;
    int64_t bytes[POINTS_MAX];
    double ns[POINTS_MAX];
};

static int caches_of(const struct machine *m)
{
    int n = 0;
    while (n < CACHES_MAX && m->caches[n].kib > 0)
        n++;
    return n;
}

// From 4 KiB to eight of the last cache, at least 64 MiB.
static void draw(struct curve *c, const struct machine *m, int per_octave, double noise,
                 double disturbed)
{
    int caches = caches_of(m);
    double most = 64 << 20, at = 4096;
    if (caches)
        most = fmax(most, 8 * 1024 * m->caches[caches - 1].kib);
    for (c->n = 0; at <= most * 1.001; at *= exp2(1.0 / per_octave), c->n++) {
        c->bytes[c->n] = (int64_t)(at + 0.5);
        c->ns[c->n] = time_of(m, at) * (1 + noise * normal());
        if (random_share() < disturbed)
            c->ns[c->n] *= 1.2 + 2 * random_share();
    }
}

// --- Judging -----------------------------------------------------------------------------------

// A step, and what the mean over forms moves.
static bool is_close(int64_t found, double kib, int per_octave)
{
    return fabs(log2((double)found / 1024 / kib)) * per_octave <= 1.3;
}

static bool is_found(const struct machine *m, const struct levels *got, int per_octave)
{
    int caches = caches_of(m);
    bool same = got->n == caches + 1;
    for (int k = 0; same && k < caches; k++)
        same = is_close(got->list[k].bytes, m->caches[k].kib, per_octave);
    return same && fabs(got->list[caches].ns / m->memory_ns - 1) < 0.1;
}

static void describe(const struct machine *m, const struct levels *got)
{
    printf("# %s:", m ? m->name : "published");
    for (int k = 0; k < got->n; k++)
        printf(" %.1f ns to %.0f KiB", got->list[k].ns, (double)got->list[k].bytes / 1024);
    printf("\n");
}

// Returns how many of the seeds were right.
static int judge_machine(const struct machine *m)
{
    struct curve c;
    struct levels got;
    struct err err = {0};
    int right = 0;
    draw(&c, m, PER_OCTAVE, 0, 0);
    levels_find(&got, c.bytes, c.ns, c.n, &err);
    CHECK(is_found(m, &got, PER_OCTAVE), "%s: %d levels, capacities within one step", m->name,
          got.n);
    for (int seed = 0; seed < SEEDS; seed++) {
        draw(&c, m, PER_OCTAVE, 0.01, 0.03);
        levels_find(&got, c.bytes, c.ns, c.n, &err);
        right += is_found(m, &got, PER_OCTAVE);
        if (!is_found(m, &got, PER_OCTAVE))
            describe(m, &got);
    }
    return right;
}

// The published tables of a node with 32 MiB of last-level cache, from 1 MiB on, an octave a step.
static void published(const char *mode)
{
    struct import i = {0};
    struct levels got;
    struct err err = {0};
    int right = 0;
    CHECK(published_load(&i, mode) == 0, "the published %s table can be read", mode);
    const struct matrix *m = &i.matrices[0];
    for (int row = 0; row < m->row.n; row++) {
        double ns[POINTS_MAX];
        for (int c = 0; c < m->col.n; c++)
            ns[c] = matrix_at(m, row, c)->v[CELL_MEDIAN];
        levels_find(&got, m->col.values, ns, m->col.n, &err);
        bool found = false;
        for (int k = 0; k < got.n; k++)
            found |= is_close(got.list[k].bytes, 32768, 1);
        right += found;
        if (!found)
            describe(NULL, &got);
    }
    CHECK(m->row.n && right >= m->row.n - 1, "%s: its 32 MiB are found for %d of %d ranks", mode,
          right, m->row.n);
    import_fini(&i);
}

static void too_few(void)
{
    static const int64_t bytes[] = {1, 2, 4, 8, 16, 32, 64, 128};
    double ns[] = {1, 1, 1, NAN, 9, 9, 9, 9};
    struct levels got = {.n = 5};
    CHECK(levels_find(&got, bytes, ns, 8, NULL) == 0 && got.n == 0, "of seven points nothing");
    ns[3] = 1;
    CHECK(levels_find(&got, bytes, ns, 8, NULL) == 0 && got.n == 2 && got.list[0].bytes == 8,
          "of eight the step");
    for (int i = 0; i < 8; i++)
        ns[i] = 5;
    CHECK(levels_find(&got, bytes, ns, 8, NULL) == 0 && got.n == 1 &&
              fabs(got.list[0].ns - 5) < 1e-6,
          "a flat curve has one level");
}

int main(void)
{
    int right = 0, all = 0;
    for (size_t i = 0; i < COUNT_OF(machines); i++, all += SEEDS)
        right += judge_machine(&machines[i]);
    CHECK(right >= 0.9 * all,
          "with 1 %% of noise and 3 %% of the points disturbed, all capacities within one step: %d "
          "of %d",
          right, all);
    published("serial");
    published("concurrent");
    too_few();
    return tap_done();
}
