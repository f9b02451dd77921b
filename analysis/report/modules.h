// SPDX-License-Identifier: Apache-2.0
// What the memory modules of a machine could deliver. Pure.
#pragma once
#include <stdbool.h>

#include "model/fingerprint.h"

struct memory_modules {
    int n;            // populated
    int channels;     // that have modules; 0: not known
    double mts;       // million transfers per second that they are set up for
    double most_mbps; // channels (modules, where they are not known) x 8 bytes x mts
};

// From the facts `dimms` ("16x64G DDR5-4800 2R, …; slots …"), `dimm_channels` ("8: mc0 0-7") and
// `dimm_speed` ("4800 MT/s", which goes before the rated speed). False: not known. Of several
// speeds the lowest counts, as controllers set all modules to it. A DDR module transfers 64 bits at
// a time; DDR5 has two halves.
bool memory_modules_of(const struct fingerprint *f, struct memory_modules *out);
