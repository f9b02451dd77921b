// SPDX-License-Identifier: Apache-2.0
// Sketches of simulated samples: with one level, two, a tail; few and many. What they say of the
// samples, how large they are, and what is refused.
#include "analysis/stats/pooled.h"

#include "analysis/stats/stats.h"
#include "base/cleanup.h"
#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

enum { MOST = 20000 };
static double v[MOST];
static unsigned long long seed = 17;

static double sim_share(void)
{
    return (double)(dist_next(&seed) >> 11) / 9007199254740992.0;
}

static double one_level(void)
{
    return 98 * (1 + 0.01 * sim_normal(&seed));
}
static double lognormal(void)
{
    return 98 * exp(0.1 * sim_normal(&seed));
}
static double two_levels(void)
{
    return (sim_share() < 0.4 ? 59 : 20) * (1 + 0.02 * sim_normal(&seed));
}
static double long_tail(void)
{
    return 98 * (sim_share() < 0.05 ? 1 + 20 * sim_share() : 1 + 0.01 * sim_normal(&seed));
}
static double small(void)
{
    return 0.004 * (1 + 0.1 * sim_normal(&seed));
}
static double large(void)
{
    return 4e8 * exp(1.5 * sim_normal(&seed));
}

static const struct {
    const char *name;
    double (*next)(void);
} shapes[] = {{"one level", one_level}, {"lognormal", lognormal}, {"two levels", two_levels},
              {"a tail", long_tail},    {"0.004", small},         {"4e8", large}};

static struct cell cell_of(int n)
{
    struct cell c;
    cell_clear(&c);
    stats_cell(&c, v, NULL, n, NULL);
    sketch_of(&c.sketch, v, n);
    return c;
}

static double widest_ratio(const struct histogram *h)
{
    return pooled_edge(h, 1) / pooled_edge(h, 0) * 1.000001;
}

static bool one_bin_off(const struct histogram *h, double got, double want)
{
    double slack = 0.0011; // values are in thousandths
    return got <= want * widest_ratio(h) + slack && got >= want / widest_ratio(h) - slack;
}

static int64_t counted(const struct histogram *h)
{
    int64_t sum = 0;
    for (int i = 0; i < h->n_bins; i++)
        sum += h->counts[i];
    return sum;
}

// The sample at the position that the sketch has in mind: of n samples, q n are below.
static double true_quantile(const double *sorted, int n, double q)
{
    int at = (int)ceil(q * n) - 1;
    return sorted[at < 0 ? 0 : at];
}

static void shapes_and_sizes(void)
{
    static const int sizes[] = {2, 3, 7, 25, 64, 128, 129, 1000, MOST};
    for (size_t k = 0; k < COUNT_OF(shapes); k++) {
        int bad = 0, large_ones = 0, off = 0, least_bins = SKETCH_BINS_MAX;
        for (size_t s = 0; s < COUNT_OF(sizes); s++)
            for (int repeat = 0; repeat < 20; repeat++) {
                int n = sizes[s];
                for (int i = 0; i < n; i++)
                    v[i] = shapes[k].next();
                struct cell c = cell_of(n);
                struct histogram h;
                if (!cell_histogram(&c, &h)) {
                    bad++;
                    continue;
                }
                stats_sort(v, n);
                bad += counted(&h) != n || h.n != n || h.low > v[0] + 0.001 ||
                       h.high < v[n - 1] - 0.001;
                large_ones += c.sketch.size > (n <= 128 ? 11 : n <= 256 ? 15 : SKETCH_BYTES_MAX);
                for (int q = 1; q < 20; q++)
                    off += !one_bin_off(&h, pooled_quantile(&h, 0.05 * q),
                                        true_quantile(v, n, 0.05 * q));
                least_bins = n > 100 && h.n_bins < least_bins ? h.n_bins : least_bins;
            }
        CHECK_INT(bad, 0, "%s: counts add up, edges hold all samples", shapes[k].name);
        CHECK_INT(large_ones, 0, "%s: as small as promised", shapes[k].name);
        CHECK_INT(off, 0, "%s: quantiles within one bin", shapes[k].name);
        CHECK(least_bins >= 8, "%s: %d bins or more", shapes[k].name, least_bins);
    }
}

static void two_levels_show(void)
{
    struct histogram h;
    int apart = 0;
    for (int repeat = 0; repeat < 100; repeat++) {
        for (int i = 0; i < 64; i++)
            v[i] = two_levels();
        struct cell c = cell_of(64);
        int64_t between = 0;
        for (int i = 0; cell_histogram(&c, &h) && i < h.n_bins; i++)
            if (pooled_edge(&h, i) > 25 && pooled_edge(&h, i + 1) < 50)
                between += h.counts[i];
        apart += h.n_bins >= 32 && between == 0;
    }
    CHECK_INT(apart, 100, "20 and 59 ns are apart in each of 100 cells of 64 samples");
}

static void round_trip(const struct cell *c, int *bad)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct histogram h, back;
    struct sketch again;
    struct err err;
    if (!cell_histogram(c, &h)) {
        ++*bad;
        return;
    }
    sketch_write_text(&h, &text);
    *bad += text.len > SKETCH_TEXT_MAX ||
            sketch_from_text(&again, buf_text(&text), c->v[CELL_N], c->v[CELL_MIN], &err) < 0 ||
            again.size != c->sketch.size || memcmp(again.bytes, c->sketch.bytes, again.size) != 0 ||
            !sketch_read(&back, &again, h.n, h.low) || back.n_bins != h.n_bins ||
            back.high != h.high || memcmp(back.counts, h.counts, sizeof h.counts) != 0;
}

static void text_and_back(void)
{
    int bad = 0;
    for (size_t k = 0; k < COUNT_OF(shapes); k++)
        for (int n = 2; n < 3000; n += 1 + n / 3) {
            for (int i = 0; i < n; i++)
                v[i] = shapes[k].next();
            struct cell c = cell_of(n);
            round_trip(&c, &bad);
        }
    for (int i = 0; i < 9; i++)
        v[i] = 100;
    struct cell same = cell_of(9);
    round_trip(&same, &bad);
    CHECK_INT(bad, 0, "a text gives the same bytes again");
    struct histogram h;
    CHECK(cell_histogram(&same, &h) && h.n_bins == 1 && h.low == 100 && h.high == 100,
          "equal samples are one bin");
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct sketch s;
    struct err err;
    CHECK(sketch_from_text(&s, "131 3 -2 1", 4, 98.5, &err) == 0 && sketch_read(&h, &s, 4, 98.5),
          "by hand");
    sketch_write_text(&h, &text);
    CHECK_STR(buf_text(&text), "131.012 3 -2 1",
              "empty bins are one word; the edge is rounded up to 8 bits of the distance");
}

static void none_there(void)
{
    struct histogram h;
    v[0] = v[1] = 5;
    struct cell c = cell_of(1);
    CHECK(!cell_histogram(&c, &h), "one sample has no distribution");
    v[0] = 0;
    c = cell_of(2);
    CHECK(!cell_histogram(&c, &h), "nor have samples of 0");
    v[0] = 2e12;
    c = cell_of(2);
    CHECK(!cell_histogram(&c, &h), "nor what is too large for a cell");
}

static void refusals(void)
{
    static const struct {
        const char *text;
        double n, low;
        const char *why;
    } bad[] = {
        {"131 3 1", 5, 98, "add up to 4, n is 5"},
        {"131 3 1 1", 5, 98, "has 3 bins"},
        {"131 -65 1", 1e6, 98, "neither a count"},
        {"131 -60 1 1 1 1 1", 5, 98, "more than 64"},
        {"97 3 1", 4, 98, "not above min"},
        {"98 3 1", 4, 98, "not above min"},
        {"", 4, 98, "does not begin"},
        {"nan 3 1", 4, 98, "does not begin"},
        {"inf 3 1", 4, 98, "does not begin"},
        {"131 3 0", 3, 98, "neither"},
        {"131 3 x", 3, 98, "neither"},
        {"131 3  1", 4, 98, "empty or endless"},
        {"131 3 00000000000000000000000000000000000000001", 4, 98, "endless"},
        {"131", 4, 98, "has 0 bins"},
        {"131 3 1", NAN, 98, "needs n"},
        {"131 3 1", 1, 98, "needs n"},
        {"131 3 1", 4, NAN, "min"},
        {"131 3 1", 4, 0, "min"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct sketch s;
        struct err err = {0};
        CHECK(sketch_from_text(&s, bad[i].text, bad[i].n, bad[i].low, &err) < 0 &&
                  strcmp(err.member, "distribution") == 0 && strstr(err.text, bad[i].why),
              "\"%s\": %s", bad[i].text, err.text);
    }
}

// Whatever bytes a damaged file has: no histogram, or a whole one.
static void damaged(void)
{
    int bad = 0, read = 0;
    for (int k = 0; k < 200000; k++) {
        struct sketch s = {.size = (unsigned char)dist_below(&seed, SKETCH_BYTES_MAX + 3)};
        for (int i = 0; i < SKETCH_BYTES_MAX; i++)
            s.bytes[i] = (unsigned char)dist_below(&seed, 256);
        if (k % 2) // sizes that may fit
            s.bytes[0] &= 0xe1;
        struct histogram h;
        double n = 2 + dist_below(&seed, k % 3 ? 60 : 1000000000);
        if (!sketch_read(&h, &s, n, 98.5))
            continue;
        read++;
        bad += h.n != (int64_t)n || counted(&h) != h.n || h.n_bins > SKETCH_BINS_MAX ||
               !(h.high >= h.low) || !isfinite(h.high);
        for (int i = 0; i < h.n_bins; i++)
            bad += h.counts[i] < 0;
    }
    CHECK(bad == 0 && read > 100, "random bytes: %d of 200000 are whole histograms", read);
}

static void pools(void)
{
    struct matrix m CLEANUP(matrix_fini) = {0};
    struct histogram h, whole;
    int off = 0, n = 0, bad = 0;
    static const double level[] = {98, 99, 140, 98.5};
    matrix_init(&m, "concurrent", "latency", "ns", 4, 2, NULL);
    CHECK_INT(pooled_cells(&h, &m, -1, -1), 0, "nothing is there");
    for (int r = 0; r < 4; r++) {
        int each = r == 3 ? 200 : 40;
        for (int i = 0; i < each; i++)
            v[n + i] = level[r] * (1 + 0.01 * sim_normal(&seed));
        cell_clear(matrix_at(&m, r, 1));
        stats_cell(matrix_at(&m, r, 1), v + n, NULL, each, NULL);
        sketch_of(&matrix_at(&m, r, 1)->sketch, v + n, each);
        n += each;
    }
    CHECK(pooled_cells(&h, &m, 2, -1) == 1 && h.n == 40 && h.low > 130, "a row");
    CHECK(pooled_cells(&h, &m, 2, 0) == 0, "a cell without");
    CHECK(pooled_cells(&h, &m, -1, 1) == 4 && h.n == n && counted(&h) == n, "all of a column");
    struct cell c = cell_of(n);
    CHECK(cell_histogram(&c, &whole) && whole.low == h.low &&
              fabs(whole.high - h.high) < 0.02 * (h.high - h.low),
          "the edges are those of all samples together");
    stats_sort(v, n);
    for (int q = 1; q < 20; q++)
        off += !one_bin_off(&h, pooled_quantile(&h, 0.05 * q),
                            true_quantile(v, n, 0.05 * q) *
                                (pooled_quantile(&h, 0.05 * q) > true_quantile(v, n, 0.05 * q)
                                     ? widest_ratio(&h)
                                     : 1 / widest_ratio(&h)));
    CHECK_INT(off, 0, "quantiles of the pool: a bin for each cell's sketch, and one for the pool");
    // As many samples are below each edge as in the sketch of all samples, a bin earlier or later.
    for (int i = 1; i < h.n_bins; i++) {
        int64_t below = 0;
        for (int k = 0; k < i; k++)
            below += h.counts[k];
        double edge = pooled_edge(&h, i), early = edge / widest_ratio(&h) / widest_ratio(&h),
               late = edge * widest_ratio(&h) * widest_ratio(&h);
        int64_t least = 0, most = 0;
        for (int k = 0; k < whole.n_bins; k++) {
            least += pooled_edge(&whole, k + 1) <= early ? whole.counts[k] : 0;
            most += pooled_edge(&whole, k) < late ? whole.counts[k] : 0;
        }
        bad += below < least || below > most;
    }
    CHECK_INT(bad, 0, "the pool is the sketch of the whole, within a bin");
}

int main(void)
{
    shapes_and_sizes();
    two_levels_show();
    text_and_back();
    none_there();
    refusals();
    damaged();
    pools();
    return tap_done();
}
