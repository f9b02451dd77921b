// SPDX-License-Identifier: Apache-2.0
// Half the square of a step from run to run is a variance, whatever the level is that the runs
// have. A node is compared with the typical one of its class, and how many nodes scatter as much as
// it does decides how far that is chance. Few runs may agree by chance. So where a class has noisy
// nodes, each node with few runs may be one of them.
#include "analysis/peers/scatter.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "analysis/peers/kinds.h"
#include "analysis/stats/median.h"

enum {
    STEPS_MAX = NEWEST_RUNS - 1 + BEFORE_RUNS - 1,
    DROP_EACH = 8,       // one of so many steps does not count
    BINS = 64,           // of BIN_WIDTH standard deviations
    SAMPLE_NODES = 1024, // of more nodes every second one, or fewer, for what is typical
    NOISY_MIN = 3,       // … of so many nodes
    GRAIN_NODES = 20,    // one of so many has runs on two levels: else a level is no chance
};
#define BIN_WIDTH 0.125
#define STEP_FREEDOM 0.58 // degrees of freedom a step, and so many more (simulated)
#define STEP_MORE 0.5
#define SAME_VALUE 1e-6  // logs of floats
#define NOISY_CLEAR 0.75 // share: the class has noisy nodes if it is more …
#define NOISY_LIKELY 0.5 // of these, what noisy ones scatter
#define CHANCE_MIN 1e-7F // less makes no difference
#define EXPONENT_MAX 50  // beyond it a node is noisy
#define CHANCE_ALL 0.8   // from this q on nothing says that a node is noisy

// What remains of the mean of normal values' n squares without the largest eighth (simulated).
static const double kept_part[STEPS_MAX + 1] = {
    1,     1,     1,     1,     1,     1,     1,     1,     0.674, 0.697, 0.711, 0.724,
    0.738, 0.750, 0.760, 0.769, 0.626, 0.638, 0.650, 0.660, 0.670, 0.680, 0.688, 0.697};

// A variance of so many steps as a normal value: its cube root (Wilson and Hilferty).
struct cube_root {
    double mean, deviation;
};

static double steps_freedom(int steps)
{
    return STEP_FREEDOM * steps + STEP_MORE;
}

static struct cube_root cube_root_of(int steps)
{
    double part = 2 / (9 * steps_freedom(steps));
    return (struct cube_root){1 - part, sqrt(part)};
}

// Half the mean square of the steps between neighbours; NaN: too few runs.
static double run_variance(struct newest_scatter *s, const double *x, int runs)
{
    double sum = 0, most = 0, second = 0, last = 0;
    int seen = 0;
    for (int r = 0; r < runs && seen < NEWEST_RUNS + BEFORE_RUNS; r++) {
        if (isnan(x[r]))
            continue;
        double step = x[r] - last, square = step * step;
        last = x[r];
        if (seen++ == 0 || seen == NEWEST_RUNS + 1)
            continue;
        sum += square;
        double lower = square < most ? square : most; // without a branch: it is not to be foreseen
        second = second > lower ? second : lower;
        most = most > square ? most : square;
    }
    s->runs = (unsigned char)(seen < NEWEST_RUNS ? seen : NEWEST_RUNS);
    s->before = (unsigned char)(seen - s->runs);
    s->steps = (unsigned char)(seen > NEWEST_RUNS ? seen - 2 : seen > 0 ? seen - 1 : 0);
    if (s->runs < RUNS_MIN)
        return NAN;
    int drop = s->steps / DROP_EACH;
    sum -= drop > 1 ? most + second : drop > 0 ? most : 0;
    return (sum > 0 ? sum : 0) / 2 / (s->steps - drop) / kept_part[s->steps];
}

// The smallest step between two of the newest runs; 0: all have one value. *tied: two have.
static double newest_step(const double *x, int runs, bool *tied)
{
    double v[NEWEST_RUNS], least = INFINITY;
    int n = 0;
    *tied = false;
    for (int r = 0; r < runs && n < NEWEST_RUNS; r++) {
        if (isnan(x[r]))
            continue;
        for (int k = 0; k < n; k++) {
            double apart = fabs(x[r] - v[k]);
            *tied = *tied || apart < SAME_VALUE;
            least = apart < SAME_VALUE ? least : fmin(least, apart);
        }
        v[n++] = x[r];
    }
    return isinf(least) ? 0 : least;
}

static int scatter_every(int nodes)
{
    return 1 + nodes / SAMPLE_NODES;
}

// Half a step of the metric's levels, where two of the newest runs have one value on most nodes and
// runs of one node are on two levels now and then. Else 0.
static double find_grain(const struct newest_scatter *of, const double *x, int nodes, int runs,
                         double *scratch)
{
    int known = 0, ties = 0, n = 0;
    for (int i = 0; i < nodes; i += scatter_every(nodes)) {
        bool tied;
        if (of[i].runs < RUNS_MIN)
            continue;
        double step = newest_step(x + (size_t)i * runs, runs, &tied);
        known++;
        ties += tied;
        if (step > 0)
            scratch[n++] = step;
    }
    return n > 0 && 2 * ties >= known && n * GRAIN_NODES >= known ? middle_select(scratch, n) / 2
                                                                  : 0;
}

// `excess` is the variance until here.
static double typical_variance(const struct newest_scatter *of, int nodes,
                               const struct cube_root *root, double *scratch)
{
    int n = 0;
    for (int i = 0; i < nodes; i += scatter_every(nodes)) {
        double mean = root[of[i].steps].mean;
        if (!isnan(of[i].excess))
            scratch[n++] = of[i].excess / (mean * mean * mean);
    }
    return n ? middle_select(scratch, n) : 0;
}

// Benjamini and Hochberg, by bins: of the nodes that scatter as much, so many do by chance. `share`
// has the number of the bin until here.
static void find_shares(struct newest_scatter *of, int nodes)
{
    int count[BINS] = {0}, above = 0, all = 0;
    float share[BINS];
    double q[BINS], least = 1;
    for (int i = 0; i < nodes; i++) {
        count[(int)of[i].share] += of[i].runs >= RUNS_MIN;
        all += of[i].runs >= RUNS_MIN;
    }
    for (int b = BINS - 1; b > 0; b--) {
        above += count[b];
        q[b] = above ? all * erfc((b - 1) * BIN_WIDTH * M_SQRT1_2) / 2 / above : 1;
    }
    share[0] = 0;
    for (int b = 1; b < BINS; b++) {
        least = fmin(least, q[b]);
        share[b] = (float)fmax(0, 1 - least / CHANCE_ALL);
    }
    for (int i = 0; i < nodes; i++)
        of[i].share = share[(int)of[i].share];
}

// What the noisy nodes of the class typically scatter, as a ratio; 1: there are too few. Not their
// mean: one node that is broken says nothing about the others.
static double noisy_ratio(const struct newest_scatter *of, int nodes, const struct cube_root *root,
                          double *scratch)
{
    int n = 0, clear = 0;
    for (int i = 0; i < nodes; i++) {
        double mean = root[of[i].steps].mean;
        clear += of[i].share > NOISY_CLEAR;
        if (of[i].share > NOISY_LIKELY)
            scratch[n++] = of[i].chance / (mean * mean * mean);
    }
    return clear < NOISY_MIN ? 1 : fmax(1, middle_select(scratch, n));
}

// By Bayes' rule, how likely a node with this variance is one of the noisy nodes of the class, as
// far as it does not count as one. The shares count those. Variances of n degrees of freedom are
// gamma distributed. `chance` has the ratio to the typical variance until here.
static void find_chances(struct newest_scatter *of, int nodes, double typical,
                         const struct cube_root *root, double *scratch)
{
    float factor[STEPS_MAX + 1], half[STEPS_MAX + 1];
    double noisy = 0, times = noisy_ratio(of, nodes, root, scratch);
    int known = 0;
    for (int i = 0; i < nodes; i++) {
        known += of[i].runs >= RUNS_MIN;
        noisy += of[i].share;
    }
    double odds = noisy / fmax(1, known - noisy);
    float beyond = (float)sqrt((times - 1) * typical);
    for (int n = 0; n <= STEPS_MAX; n++) {
        half[n] = (float)(steps_freedom(n) / 2 * (1 - 1 / times));
        factor[n] = (float)(odds * pow(times, -steps_freedom(n) / 2));
    }
    for (int i = 0; i < nodes; i++) {
        struct newest_scatter *one = &of[i];
        float more = 0;
        if (times > 1 && one->runs >= RUNS_MIN)
            more = factor[one->steps] * expf(fminf(half[one->steps] * one->chance, EXPONENT_MAX));
        one->chance = more > CHANCE_MIN ? (1 - one->share) * more / (1 + more) : 0;
        one->noisy = beyond;
    }
}

void scatter_find(struct newest_scatter *out, double *grain, const double *x, int nodes, int runs,
                  double *scratch)
{
    struct cube_root root[STEPS_MAX + 1];
    for (int n = 0; n <= STEPS_MAX; n++)
        root[n] = cube_root_of(n);
    for (int i = 0; i < nodes; i++)
        out[i].excess = (float)run_variance(&out[i], x + (size_t)i * runs, runs);
    *grain = find_grain(out, x, nodes, runs, scratch);
    double least = fmax(*grain, KIND_SCALE_MIN);
    double typical = fmax(typical_variance(out, nodes, root, scratch), least * least);
    for (int i = 0; i < nodes; i++) {
        struct newest_scatter *one = &out[i];
        struct cube_root of = root[one->steps];
        float ratio = one->excess / (float)typical;
        one->share = 0;
        one->chance = ratio;
        if (ratio > of.mean * of.mean * of.mean) {
            int bin = 1 + (int)((cbrtf(ratio) - of.mean) / of.deviation / BIN_WIDTH);
            one->share = bin < BINS ? (float)bin : BINS - 1;
        }
        one->excess = ratio > 1 ? one->excess - (float)typical : 0;
    }
    find_shares(out, nodes);
    find_chances(out, nodes, typical, root, scratch);
}

double scatter_freedom(const struct newest_scatter *s)
{
    return steps_freedom(s->steps);
}
