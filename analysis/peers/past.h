// SPDX-License-Identifier: Apache-2.0
// Is a node slower than it was itself? The change of each node, from the median of the runs before
// to that of the newest ones, is judged against the changes of its peers. So what changes for all
// is no finding, and much less than the difference between nodes is enough. Pure.
#pragma once
#include "analysis/peers/newest.h"
#include "analysis/peers/peers.h"

#define PAST_LEAST 0.0119286 // log 1.012: smaller changes do not matter

// Classes of fewer than PEERS_MIN nodes are judged by what the node's own runs before differ by,
// with the threshold of peers, and at most as `suspect`: whether the change is the node's alone is
// not known there. `newest` has changes. ERR_NO_MEMORY is the only error.
int past_judge(struct peers *out, const struct peers_input *in, const struct newest *newest, int n,
               struct err *err);
extern const struct peers_options past_options; // with which it judges

// When the newest runs of a node became what they are: the run (index into the input's runs) that
// is the first after the last change for the worse. -1: no change is seen, it was always so. -2: an
// error.
int past_since(const struct newest_column *c, int node, struct err *err);
