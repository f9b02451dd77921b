// SPDX-License-Identifier: Apache-2.0
// What this process uses: CPU time, memory, file descriptors.
#pragma once
#include "base/exposition.h"

// The families process_* of GET /metrics. What is not known is left out.
void process_use_write(struct exposition *e);
