// SPDX-License-Identifier: Apache-2.0
// The course of a scan: everything is measured broadly and quickly, again and again; then what
// deviates from its peers is measured longer, and is called odd if that confirms it. Pure: what it
// measures and the time come from functions of its caller, which may be a simulated machine.
#pragma once
#include "analysis/stats/odd.h"
#include "bench/session/pair_rounds.h"
#include "model/scan.h"

// Of a rank. Cores of equal kinds are alike; -1: not known.
struct scan_place {
    int core, llc, node, package, kind;
};

struct scan_machine {
    void *context;
    // All ranks at once: ns of a load, or MB/s (ASPECT_BANDWIDTH); NaN: not measured. [ranks]
    int (*ranks)(void *context, enum aspect aspect, int times, double *values, struct err *err);
    // The pairs of a round at once: ns of a round trip, from its first pair on.
    int (*pairs)(void *context, int round, int times, double *values, struct err *err);
    double (*elapsed_s)(void *context); // of the budget
    int (*progress)(void *context, double share, struct err *err);
    bool (*stopped)(void *context); // there is no time left for a further step
};

enum scan_level_id { SCAN_NODE, SCAN_L3, SCAN_CORE, SCAN_LEVELS };

struct scan_level {
    int units;
    int *unit;    // [ranks]; owned
    int *kind;    // [units]; owned
    int *first;   // [units]: the lowest rank; owned
    bool skipped; // its units are those of another level
};

struct scan_course {
    // Given; borrowed.
    int ranks;
    const struct scan_place *places;
    const struct pair_rounds *rounds;
    int visits;      // of the broad part at most, and of the part that confirms
    double budget_s; // 0: none
    double least;    // ratio to the peers that is odd, at least
    // Found; owned.
    struct scan_level levels[SCAN_LEVELS];
    struct odd_table tables[AXIS_ASPECTS];             // of ranks; the last: of pairs
    struct odd_units found[SCAN_LEVELS][AXIS_ASPECTS]; // pairs: of cores alone
    struct odd_units pairs;
    int broad, confirmed; // visits
    int candidates, open; // open: of these, what there was no time to confirm or to refute
};

// Takes over what is given. On failure nothing is owned.
int scan_course_init(struct scan_course *c, struct err *err);
void scan_course_fini(struct scan_course *c);
int scan_course_run(struct scan_course *c, const struct scan_machine *m, struct err *err);
