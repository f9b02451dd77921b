// SPDX-License-Identifier: Apache-2.0
// What changed on the machine between two fingerprints, most suspicious first. Pure.
#pragma once
#include <stdbool.h>

#include "model/fingerprint.h"

enum { CHANGES_MAX = 2 * FACTS_MAX };

struct change {
    bool is_class;     // another kind of machine; else how it is set up
    const char *name;  // borrowed from the fingerprints
    const char *a, *b; // borrowed; NULL: not known there
    int weight;        // how likely it explains a latency difference; 0…100
};

struct changes {
    int n;
    struct change list[CHANGES_MAX]; // class first, then config; each by weight, then name
};

// 0…100; -1: no weight was ever given to a fact of this name (it counts 30 then).
int changes_weight(const char *name);
void changes_find(struct changes *out, const struct fingerprint *a, const struct fingerprint *b);
void changes_write_json(const struct changes *c, struct jsonw *w, const char *key);
