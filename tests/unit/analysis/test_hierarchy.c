// SPDX-License-Identifier: Apache-2.0
#include "analysis/stats/hierarchy.h"

#include "tests/unit/analysis/hierarchy_machine.h"
#include "tests/unit/tap.h"

static bool about(double a, double b, double share)
{
    return fabs(a - b) <= share * b;
}

static void check_levels(const struct hierarchy *h)
{
    static const struct level truth[] = {{1.25, 32768}, {3.5, 1 << 20}, {12.5, 32 << 20}, {98, 0}};
    CHECK_INT(h->levels.n, 4, "three caches and memory");
    for (int k = 0; k < h->levels.n && k < 4; k++)
        CHECK(about(h->levels.list[k].ns, truth[k].ns, 0.03) &&
                  about((double)h->levels.list[k].bytes, (double)truth[k].bytes, 0.19),
              "level %d: %.2f ns, %.0f KiB", k + 1, h->levels.list[k].ns,
              (double)h->levels.list[k].bytes / 1024);
}

static void check_reach(const struct hierarchy *h)
{
    CHECK(h->base.n == 2 && about((double)h->base.pages[0], 64, 0.12) &&
              about((double)h->base.pages[1], 1536, 0.12),
          "TLBs of %d and %d entries", (int)h->base.pages[0], (int)h->base.pages[1]);
    CHECK(about(h->base.miss_ns[0], 2, 0.05) && about(h->base.miss_ns[1], 22, 0.05),
          "a miss takes %.2f ns, a walk %.2f", h->base.miss_ns[0], h->base.miss_ns[1]);
    CHECK(h->huge.n == 1 && about((double)h->huge.pages[0], 32, 0.12) &&
              about(h->huge.miss_ns[0], 3, 0.05),
          "%d huge pages, %.2f ns", (int)h->huge.pages[0], h->huge.miss_ns[0]);
}

// Of the machine's 32 MiB, by what the kernel lists: about as much, nothing but a second level (its
// last-level cache is of the system), and more than the curve can tell.
static void check_cache(const struct hierarchy *h)
{
    CHECK(about((double)hierarchy_cache_bytes(h, 32 << 20, 0), 32 << 20, 0.19) &&
              hierarchy_beyond_bytes(h, 32 << 20, 0) == 0 &&
              hierarchy_beyond_bytes(h, 28 << 20, 0) == 0,
          "the cache that is listed: %d MiB", (int)(hierarchy_cache_bytes(h, 32 << 20, 0) >> 20));
    int64_t beyond = hierarchy_beyond_bytes(h, 1 << 20, 0);
    CHECK(beyond == 32 << 20 || beyond == 48 << 20, "one that is not: %d MiB", (int)(beyond >> 20));
    CHECK(hierarchy_cache_bytes(h, 256 << 20, 0) == 0, "the curve ends below four caches");
    CHECK(hierarchy_is_reach(h, 1536 * 4096, 0) && !hierarchy_is_reach(h, 32 << 20, 0) &&
              hierarchy_is_reach(h, 1536 << 14, 16384) &&
              !hierarchy_is_reach(h, 1536 * 4096, 16384) &&
              hierarchy_is_reach(h, 1536 << 16, 65536),
          "where translations run out there is no cache, whatever the page");
    CHECK(hierarchy_cache_bytes(h, 1 << 20, 16384) < 2 << 20,
          "with pages of 16 KiB the step at 32 MiB may be that of 1,536 translations");
    struct hierarchy rounded = {.largest_bytes = (int64_t)1 << 40,
                                .levels = {.n = 2, .list = {{5, 33 << 20}, {90, 0}}}};
    CHECK(hierarchy_beyond_bytes(&rounded, 1 << 20, 0) == 48 << 20, "33 MiB are 48");
    rounded.levels.list[0].bytes = 49 << 20;
    CHECK(hierarchy_beyond_bytes(&rounded, 1 << 20, 0) == 64 << 20, "49 MiB are 64");
    rounded.levels.list[0].bytes = 64 << 20;
    CHECK(hierarchy_beyond_bytes(&rounded, 1 << 20, 0) == 64 << 20, "64 MiB are 64");
}

// Three ranks on two nodes: the nearest memory of the third is on the other node. One node was not
// measured from the first rank.
static void check_nodes(struct matrix *m, int n)
{
    enum { NODES = 7 };
    static const double truth[3][2] = {{NAN, 100}, {90, 150}, {180, 110}};
    double was[3][2];
    struct hierarchy h;
    struct err err = {0};
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 2; c++) {
            struct cell *cell = matrix_at(&m[NODES], r, c);
            was[r][c] = cell->v[CELL_MEDIAN];
            cell->v[CELL_MEDIAN] = truth[r][c];
            cell->v[CELL_LO] = truth[r][c] - 1;
            cell->v[CELL_HI] = truth[r][c] + 2;
        }
    CHECK_STR(m[NODES].name, "nodes", "the matrix of nodes");
    CHECK(hierarchy_find(&h, m, n, -1, &err) == 0 && h.memory_ns == 100 && h.hop_ns == 65,
          "each rank has its nearest node: memory %.0f ns, a hop %.0f", h.memory_ns, h.hop_ns);
    CHECK(h.memory_ends.lo == 99 && h.memory_ends.hi == 102 && about(h.strides[6].gain, 2.08, 0.01),
          "its interval, and the gain of a stride");
    CHECK(hierarchy_find(&h, m, n, 0, &err) == 0 && h.memory_ns == 100 && isnan(h.hop_ns),
          "of a rank that was measured on one node");
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 2; c++)
            matrix_at(&m[NODES], r, c)->v[CELL_MEDIAN] = was[r][c];
}

// Without one chain alone it is not known how many loads are under way, but how long each takes.
static void check_parallel(struct matrix *m, int n)
{
    enum { PARALLEL = 4 };
    struct hierarchy h;
    struct err err = {0};
    double was = matrix_at(&m[PARALLEL], 0, 0)->v[CELL_MEDIAN];
    CHECK_STR(m[PARALLEL].name, "parallel", "the matrix of chains");
    matrix_at(&m[PARALLEL], 0, 0)->v[CELL_MEDIAN] = NAN;
    CHECK(hierarchy_find(&h, m, n, 0, &err) == 0 && isnan(h.misses) && about(h.access_ns, 8, 0.001),
          "a load takes %.1f ns", h.access_ns);
    matrix_at(&m[PARALLEL], 0, 0)->v[CELL_MEDIAN] = was;
}

int main(void)
{
    struct matrix m[HIERARCHY_PARTS] = {0};
    struct hierarchy h;
    struct err err = {0};
    int n = hierarchy_matrices(m, 3);
    matrix_at(&m[0], 2, 5)->v[CELL_MEDIAN] = 900; // one rank of three, at one size
    CHECK(hierarchy_find(&h, m, n, -1, &err) == 0 &&
              hierarchy_find_usual(&h, m, n, NULL, 128 << 20, &err) == 0,
          "of all ranks");
    check_levels(&h);
    check_reach(&h);
    check_cache(&h);
    CHECK(about(h.access_ends.lo, 0.99 * 8, 0.001) && about(h.cycle_ends.hi, 0.2525, 0.001) &&
              about(h.strides[6].ends.lo, 0.99 * 48, 0.001),
          "ends of intervals");
    CHECK(about(h.misses, 12, 0.001) && h.misses_chains == 12 && about(h.access_ns, 8, 0.001),
          "%.1f loads at once, %.2f ns each, by %d chains", h.misses, h.access_ns, h.misses_chains);
    CHECK(h.memory_ns == 96 && h.hop_ns == 63, "memory %.0f ns, a hop %.0f", h.memory_ns, h.hop_ns);
    CHECK(h.n_strides == 7 && h.strides[0].gain == 12 && h.strides[6].gain == 2,
          "prefetchers save a factor of %.0f at 64 bytes, %.0f at 4 KiB", h.strides[0].gain,
          h.strides[6].gain);
    CHECK(about(h.usual_share, (98 - 85.5 / 4) / h.largest_ns, 0.001) && h.cycle_ns == 0.25,
          "128 MiB reaches %.0f %% of the plateau", 100 * h.usual_share);
    CHECK(h.enough_bytes > 128 << 20 && h.enough_bytes < 512 << 20, "more is needed: %d MiB",
          (int)(h.enough_bytes >> 20));
    check_nodes(m, n);
    check_parallel(m, n);
    CHECK(hierarchy_find(&h, m, n, 1, &err) == 0 && h.levels.n == 4 && isnan(h.usual_share),
          "of one rank, without a size to compare");
    for (int c = 0; c < m[0].col.n; c++)
        matrix_at(&m[0], 0, c)->v[CELL_MEDIAN] *= m[0].col.values[c] > 128 << 20 ? 1.25 : 1;
    CHECK(hierarchy_find(&h, m, n, 0, &err) == 0 && h.levels.n == 4 &&
              h.levels.list[3].bytes == 0 && h.rise_bytes > 64 << 20 &&
              h.rise_ns > h.levels.list[3].ns,
          "page walks are no level: %d levels, a rise at %d MiB", h.levels.n,
          (int)(h.rise_bytes >> 20));
    CHECK(hierarchy_find(&h, m, 1, 0, &err) == 0 && h.levels.n == 4 && h.base.n == 0 &&
              isnan(h.misses) && isnan(h.memory_ns) && h.n_strides == 0,
          "of the curve alone: the rest is not known");
    CHECK(hierarchy_find(&h, NULL, 0, -1, &err) == 0 && h.levels.n == 0, "of nothing: nothing");
    for (int i = 0; i < n; i++)
        matrix_fini(&m[i]);
    return tap_done();
}
