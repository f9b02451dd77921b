// SPDX-License-Identifier: Apache-2.0
// The scatter of a node's runs beside its class, on simulated nodes; seeds are printed. What
// verdicts make of it is in test_peers.c.
#include "analysis/peers/scatter.h"

#include <math.h>

#include "tests/unit/analysis/fleet_sim.h"
#include "tests/unit/tap.h"

// Most nodes scatter alike, of some of them only five runs are known, and the last hundred scatter
// three times as much.
enum { NODES = 1000, RUNS = 25, FEW = 850, NOISY = 900, MIDDLE = 950 };

static struct newest_scatter found[NODES];

// The last node scatters `wild` times as much as a usual one.
static void find(double wild)
{
    static double x[NODES][RUNS], scratch[NODES];
    unsigned long long seed = 261;
    double grain;
    for (int i = 0; i < NODES; i++) {
        double times = i == NODES - 1 ? wild : i >= NOISY ? 3 : 1;
        for (int r = 0; r < RUNS; r++) {
            double error = 0.01 * times * sim_normal(&seed);
            x[i][r] = i >= FEW && i < NOISY && r >= NEWEST_RUNS ? NAN : error;
        }
    }
    scatter_find(found, &grain, x[0], NODES, RUNS, scratch);
    CHECK(grain == 0, "no levels: %g", grain);
}

static double mean_chance(int from, int to)
{
    double sum = 0;
    for (int i = from; i < to; i++)
        sum += found[i].chance;
    return sum / (to - from);
}

static void test_shares(void)
{
    find(3);
    int shown = 0, quiet = 0, of_few = 0;
    for (int i = 0; i < NODES; i++) {
        shown += i >= NOISY && found[i].share > 0.9;
        quiet += i < NOISY && found[i].share < 0.75;
        of_few += i >= FEW && i < NOISY && found[i].runs == NEWEST_RUNS && found[i].before == 0;
    }
    printf("# seed 261: %d of 100 noisy nodes, %d of 900 others\n", shown, quiet);
    CHECK(shown >= 98 && quiet >= 870, "25 runs show which nodes are noisy: %d, %d", shown, quiet);
    CHECK(of_few == NOISY - FEW, "five runs: %d", of_few);
}

static void test_chances(void)
{
    find(3);
    double few = mean_chance(FEW, NOISY), many = mean_chance(0, FEW);
    CHECK(few > 0.01 && few < 0.2, "five runs leave a chance: %g", few);
    CHECK(many < few / 20, "25 runs leave hardly one: %g", many);
    CHECK(mean_chance(NOISY, MIDDLE) < 0.05,
          "what counts as noisy already does not count twice: %g", mean_chance(NOISY, MIDDLE));
    CHECK(fabs(found[0].noisy / (0.01 * sqrt(8)) - 1) < 0.15, "what noisy nodes scatter: %g",
          found[0].noisy);
}

static void test_one_broken_node(void)
{
    find(3);
    double few = mean_chance(FEW, NOISY), noisy = found[0].noisy;
    find(100);
    CHECK(found[NODES - 1].share > 0.99, "it is noisy");
    CHECK(fabs(found[0].noisy / noisy - 1) < 0.05 && fabs(mean_chance(FEW, NOISY) / few - 1) < 0.1,
          "it says nothing about the others: %g beside %g, %g beside %g", found[0].noisy, noisy,
          mean_chance(FEW, NOISY), few);
}

int main(void)
{
    test_shares();
    test_chances();
    test_one_broken_node();
    return tap_done();
}
