// SPDX-License-Identifier: Apache-2.0
// Conditions of the node that distort measurements, and how to fix them: for doctor, and for the
// conditions of a run.
#pragma once
#include <stdbool.h>

#include "base/jsonw.h"
#include "model/topology.h"

struct finding {
    const char *name; // "thp_never", "governor", "numa_balancing", "virtual_machine", "load", …
    char text[200];   // what and why it matters
    char remedy[200]; // the exact command that fixes it; "" if there is none
    bool serious;
};
// Writes up to `most` findings; how many.
int machine_findings(const struct topology *t, const char *root, struct finding *out, int most);
// An array of {"name","text","remedy","serious"}.
void findings_write_json(const struct finding *list, int n, struct jsonw *w, const char *key);
