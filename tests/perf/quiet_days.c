// SPDX-License-Identifier: Apache-2.0
// How many alarms quiet fleets give in 1,000 days. Nothing is wrong in them, so each is false.
// usage: quiet_days [FLEETS]; each has 100 days.
#include "analysis/peers/peers.h"
#include "base/str.h"
#include "tests/unit/fleet/quiet.h"

int main(int argc, char **argv)
{
    enum { DAYS = 100 };
    static const struct quiet worlds[] = {
        {.nodes = 24, .spread = 0.01, .run = 0.005, .common = 0.003, .seed = 7000},
        {.nodes = 24, .spread = 0.01, .run = 0.02, .common = 0.003, .seed = 7000},
        {.nodes = 64, .spread = 0.01, .run = 0.005, .common = 0.003, .seed = 7000},
        {.nodes = 64, .spread = 0.01, .run = 0.02, .common = 0.003, .seed = 7000},
        {.nodes = 200, .spread = 0.01, .run = 0.005, .common = 0.003, .seed = 7000},
        {.nodes = 200, .spread = 0.01, .run = 0.02, .common = 0.003, .seed = 7000},
    };
    int64_t fleets = 10;
    if (argc > 2 || (argc == 2 && (!str_to_i64(argv[1], &fleets) || fleets < 1)))
        return 2;
    double most = PEERS_DEFAULTS.suspect * DAYS * (double)fleets;
    printf("# the false discovery rate of %g allows %g alarms a line\n", PEERS_DEFAULTS.suspect,
           most);
    for (size_t i = 0; i < COUNT_OF(worlds); i++)
        if (quiet_fleets(worlds[i], (int)fleets, DAYS) > most)
            printf("#     these are more\n");
    return 0;
}
