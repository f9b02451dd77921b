// SPDX-License-Identifier: Apache-2.0
// The core's clock, without any right: a chain of dependent instructions, each of so many cycles as
// is known of the CPU. Beside it a chase in the L1 cache.
#pragma once

// Of a CPU of powerpc64 with these features (AT_HWCAP2): an addition takes two cycles from POWER9
// on. Of all others that this program knows it takes one, as with features 0.
int core_clock_step_cycles(unsigned long hwcap2);

// One cycle in ns: the fastest of `tries` pieces of some 20 µs, so that an interrupt does not
// count.
double core_clock_cycle_ns(int tries);
// A load from L1 in ns, measured in the same way.
double core_clock_load_ns(int tries);
