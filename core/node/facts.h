// SPDX-License-Identifier: Apache-2.0
// Names and meanings of the facts of a fingerprint; fingerprint_read is in core/node/machine.h.
#pragma once
#include <stdbool.h>

struct fact_info {
    const char *name;
    bool of_class; // else of the configuration
    const char *meaning;
};

const struct fact_info *facts_info(int i); // NULL behind the last
