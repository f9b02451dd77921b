// SPDX-License-Identifier: Apache-2.0
// Do the runs of one node scatter more than its peers', and does a metric have few levels only? The
// median of a noisy node is uncertain, and one step of a coarse metric is no difference
// (docs/VERDICTS.md). Pure.
#pragma once

enum {
    NEWEST_RUNS = 5,  // whose median a node is judged by: beyond a limit if 3 of 5 runs are
    RUNS_MIN = 3,     // of fewer nothing is said
    BEFORE_RUNS = 20, // the node's own past: so many before the newest ones
    BEFORE_MIN = 10,  // fewer are no past
};

// What runs of one node differ by, beside what they do on its peers.
struct newest_scatter {
    float excess;               // variance of a run, in logs, beyond the typical one
    float share;                // 0 to 1: how sure it is that the node scatters more than its peers
    float chance;               // 0 to 1: that it does though its few runs do not show it
    float noisy;                // then a standard deviation of a run, beyond the typical one
    unsigned char runs, before; // at most NEWEST_RUNS, BEFORE_RUNS
    unsigned char steps;        // between two of them
};

// One metric of all nodes, x[node][run] as in struct newest_column, into out[node]. The scatter is
// that from one run to the next of up to NEWEST_RUNS and BEFORE_RUNS runs, without the largest
// eighth of the steps: neither a change nor a single far run makes a node noisy. `grain` as in
// struct newest. `scratch` has room for a number per node.
void scatter_find(struct newest_scatter *out, double *grain, const double *x, int nodes, int runs,
                  double *scratch);
// Degrees of freedom of the node's own variance.
double scatter_freedom(const struct newest_scatter *s);
