// SPDX-License-Identifier: Apache-2.0
// Several chases at once in one loop: each load depends on the one before of its own chase only, so
// that as many are under way as there are chases, or as the core can have.
#pragma once
#include <stdint.h>

#include "model/hierarchy_parts.h"

// Follows `chases` chains (1…PARALLEL_CHAINS_MAX) from at[0…chases-1], each for `turns` links, and
// leaves in `at` where they are. One loop is compiled for each number of chases.
void parallel_chase(void *at[], int chases, uint64_t turns);
