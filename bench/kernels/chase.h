// SPDX-License-Identifier: Apache-2.0
// Following a chain: each load's address is the value of the load before, so their times add up.
#pragma once
#include <stdint.h>

enum { CHASE_UNROLL = 64 }; // hops come in multiples of this

// Follows the links `hops` times (rounded up to CHASE_UNROLL) and returns where it ends. The loads
// are written in assembly where we know how: no compiler deletes or reorders them, in no build, and
// sanitizers do not see them.
void *chase(void *from, uint64_t hops);
uint64_t chase_round(uint64_t hops); // to what chase() really does
