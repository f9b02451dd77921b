// SPDX-License-Identifier: Apache-2.0
// Histograms of several cells have other edges each. The samples of a bin go where its middle is.
// The common bins are at least as wide as the widest that goes in, so that no gaps appear.
#include "analysis/stats/pooled.h"

#include <math.h>
#include <string.h>

static double bin_width(const struct histogram *h)
{
    return log(h->high / h->low) / h->n_bins;
}

static int pooled_bin(const struct histogram *h, double v)
{
    int bin = h->n_bins > 1 ? (int)(log(v / h->low) / bin_width(h)) : 0;
    return bin < 0 ? 0 : bin < h->n_bins ? bin : h->n_bins - 1;
}

struct reach {
    int row, col; // -1: all
    int r, c;     // the next cell
};

// The next cell with a sketch.
static bool next_of(const struct matrix *m, struct reach *at, struct histogram *h)
{
    for (; at->r < m->row.n; at->r++, at->c = 0)
        for (; at->c < m->col.n; at->c++) {
            bool in = (at->row < 0 || at->row == at->r) && (at->col < 0 || at->col == at->c);
            if (in && cell_histogram(matrix_at(m, at->r, at->c), h)) {
                at->c++;
                return true;
            }
        }
    return false;
}

static void add_all(struct histogram *to, const struct histogram *from)
{
    for (int i = 0; i < from->n_bins; i++)
        to->counts[pooled_bin(to, pooled_edge(from, i) * exp(bin_width(from) / 2))] +=
            from->counts[i];
    to->n += from->n;
}

int pooled_cells(struct histogram *out, const struct matrix *m, int row, int col)
{
    struct histogram one, all = {.low = INFINITY};
    double widest = 0;
    int n = 0;
    for (struct reach at = {row, col, 0, 0}; next_of(m, &at, &one); n++) {
        all.low = fmin(all.low, one.low);
        all.high = fmax(all.high, one.high);
        widest = fmax(widest, bin_width(&one));
        if (!n)
            *out = one;
    }
    if (n < 2)
        return n;
    for (all.n_bins = all.high > all.low ? SKETCH_BINS_MAX : 1; all.n_bins > 1; all.n_bins /= 2)
        if (bin_width(&all) >= widest)
            break;
    for (struct reach at = {row, col, 0, 0}; next_of(m, &at, &one);)
        add_all(&all, &one);
    *out = all;
    return n;
}

double pooled_edge(const struct histogram *h, int i)
{
    return i < h->n_bins ? h->low * exp(i * bin_width(h)) : h->high;
}

double pooled_quantile(const struct histogram *h, double q)
{
    double wanted = q * (double)h->n, below = 0;
    for (int i = 0; i < h->n_bins; i++) {
        double count = (double)h->counts[i];
        if (count > 0 && below + count >= wanted)
            return pooled_edge(h, i) * exp((wanted - below) / count * bin_width(h));
        below += count;
    }
    return h->high;
}
