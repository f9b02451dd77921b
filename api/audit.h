// SPDX-License-Identifier: Apache-2.0
// The log of who changed what (info), of who was not let in (warn), and of the rest (debug).
#pragma once
#include "api/http.h"
#include "api/line.h"

// Lines for the requests of strangers, so that they cannot fill a disk: 20 at once, then two a
// second (172,800 a day of about 150 bytes: 26 MB). What is left out is counted by the next line.
enum { AUDIT_BURST = 20, AUDIT_EVERY_MS = 500 };

struct audit {
    int64_t full_ms; // when the burst will be there whole again, on the monotonic clock
    unsigned left_out;
};

// Of a request whose answer is there.
void audit_request(struct audit *a, const struct request *q, const struct line *l, int status,
                   int64_t now_ms);
