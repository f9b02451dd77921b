// SPDX-License-Identifier: Apache-2.0
// What a request may cost: bytes and time.
#pragma once
#include <stddef.h>
#include <stdint.h>

// What one request may cost.
struct fetch_limits {
    // Bytes of a body that is kept in memory. Endless bodies of all requests in flight take so many
    // each, so a client of thousands of nodes sets what its responses need.
    size_t body_max;
    size_t head_max; // bytes of the status line and the headers
    int connect_ms;  // name, connection and TLS
    int total_ms;    // the whole request; 0: as long as it takes, with TCP keep-alive
    // Below so many bytes per second over slow_s seconds the request ends. Waiting for the first
    // byte counts, so a request that the server holds (?wait=) sets 0: no least rate.
    int least_rate, slow_s;
};

enum {
    // A page of 100 runs is 90 KB (30 metrics at 30 bytes each). This is 46 times that.
    FETCH_BODY_MAX = 4 << 20,
    // A daemon's headers are 300 to 600 bytes.
    FETCH_HEAD_MAX = 16 << 10,
    // A lost SYN is repeated after 1, 3 and 7 s.
    FETCH_CONNECT_MS = 8000,
    // FETCH_BODY_MAX at 210 KB/s.
    FETCH_TOTAL_MS = 20000,
    FETCH_LEAST_RATE = 1 << 10,
    FETCH_SLOW_S = 5,
};
extern const struct fetch_limits fetch_defaults;

// The limits of a request that a user gave so many seconds. It ends earlier when nothing, or less
// than the least rate, comes for a quarter of them, and at least for FETCH_SLOW_S.
struct fetch_limits fetch_limits_within(int64_t total_s);
