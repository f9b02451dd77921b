// SPDX-License-Identifier: Apache-2.0
// What became of a damaged database, for people.
#pragma once
#include <stdint.h>

struct store_damage {
    int64_t when_ms; // 0: none since the start
    char file[600];  // where the damaged database is now
    char why[256];
    int64_t carried; // runs of the queue that were taken over
};
