// SPDX-License-Identifier: Apache-2.0
// Errors that ECC corrected, as the kernel's EDAC drivers count them. Each takes time, and many of
// them announce a DIMM that fails.
// Source: https://docs.kernel.org/admin-guide/RAS/main.html.
#pragma once
#include <stdint.h>

enum { MEMORY_CONTROLLERS_MAX = 64 };

struct memory_errors {
    int n; // controllers; 0: this machine does not count
    struct {
        int controller;    // of mc0, 0
        int64_t corrected; // since boot, or since its driver was loaded
    } list[MEMORY_CONTROLLERS_MAX];
};

// Reads `root`/sys/devices/system/edac/mc, in the order of numbers.
void memory_errors_read(struct memory_errors *out, const char *root);
// How many more there are than `earlier` had; controllers that it did not have, and counts that
// went back, add none. *most: the controller that has most of them, -1: none has.
int64_t memory_errors_since(const struct memory_errors *now, const struct memory_errors *earlier,
                            int *most);
