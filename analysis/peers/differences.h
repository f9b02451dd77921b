// SPDX-License-Identifier: Apache-2.0
// In which facts of their set-up some nodes of a class differ from the others. Pure.
#pragma once
#include "analysis/peers/fleet.h"

enum { DIFFERENCES_MAX = 8 };

struct difference {
    const char *name;    // borrowed from the fleet, as the values
    const char *value;   // of most of the nodes
    const char *others;  // of most of the others
    double share;        // of the nodes that have `value`, 0…1
    double others_share; // of the others that have `others`
    double others_same;  // of the others that have `value`
};

struct differences {
    int n;
    struct difference list[DIFFERENCES_MAX]; // what separates best and explains most comes first
};

// `node`: numbers of the class's nodes; `in`: of each, whether it is one of those in question. Only
// facts count that most of the nodes have in common, and at least two and most of the others: what
// differs on every node, such as a serial number, says nothing. ERR_NO_MEMORY is the only error.
int differences_find(struct differences *out, const struct fleet *f, const int *node, int n,
                     const unsigned char *in, struct err *err);
