// SPDX-License-Identifier: Apache-2.0
// The core's clock, without any right: a chain of dependent instructions, each of one cycle on
// every CPU that this program knows. Beside it a chase in the L1 cache.
#pragma once

// One cycle in ns: the fastest of `tries` pieces of some 20 µs, so that an interrupt does not
// count.
double core_clock_cycle_ns(int tries);
// A load from L1 in ns, measured in the same way.
double core_clock_load_ns(int tries);
