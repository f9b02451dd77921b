// SPDX-License-Identifier: Apache-2.0
// What this process uses. -1: not known.
#pragma once
#include <stdint.h>

struct process_use {
    int64_t resident_bytes, virtual_bytes, open_fds, max_fds;
    double cpu_s, start_s; // start: seconds since 1970
};
void process_use(struct process_use *out);
