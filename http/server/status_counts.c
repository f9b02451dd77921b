// SPDX-License-Identifier: Apache-2.0
// For the metrics of the process.
#include "http/server/status_counts.h"

static int64_t counts[STATUS_MAX + 1]; // of this process

void counts_add(int status)
{
    if (status >= 100 && status <= STATUS_MAX)
        counts[status]++;
}

int64_t counts_of(int status)
{
    return status >= 100 && status <= STATUS_MAX ? counts[status] : 0;
}
