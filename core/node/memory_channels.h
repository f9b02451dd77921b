// SPDX-License-Identifier: Apache-2.0
// The channels of the memory controllers that have modules, from the kernel's EDAC drivers
// (Documentation/admin-guide/ras.rst). The firmware's tables name slots only: eight modules can be
// on eight channels or on four, with half the bandwidth.
#pragma once
#include <stddef.h>

// Reads `root`/sys/devices/system/edac/mc. Writes "8: mc0 0-3, mc1 0-3": how many channels, and
// those of each controller. "" without a driver.
void memory_channels_describe(const char *root, char *out, size_t room);
