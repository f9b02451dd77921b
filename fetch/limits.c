// SPDX-License-Identifier: Apache-2.0
// What a request may cost where its user sets nothing, or its time alone.
#include "fetch/limits.h"

enum { SHARE = 4 }; // of the time that may pass in silence

const struct fetch_limits fetch_defaults = {
    .body_max = FETCH_BODY_MAX,
    .head_max = FETCH_HEAD_MAX,
    .connect_ms = FETCH_CONNECT_MS,
    .total_ms = FETCH_TOTAL_MS,
    .least_rate = FETCH_LEAST_RATE,
    .slow_s = FETCH_SLOW_S,
};

struct fetch_limits fetch_limits_within(int64_t total_s)
{
    struct fetch_limits l = fetch_defaults;
    l.total_ms = (int)total_s * 1000;
    if (total_s / SHARE > l.slow_s)
        l.slow_s = (int)(total_s / SHARE);
    return l;
}
