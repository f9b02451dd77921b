// SPDX-License-Identifier: Apache-2.0
// The log of changes (info), of refused requests (warn), and of all other requests (debug).
//
// A change by a client that may make it is always written. Everything else is written within a
// budget per client: a client that may change things has one of its own, and all clients that may
// not share one more. So the volume of strangers neither fills a disk nor hides a line about
// others.
#pragma once
#include "base/log.h"
#include "http/access/peer.h"
#include "http/messages/request.h"

enum {
    AUDIT_CLIENTS = 64, // of each kind whose budgets are kept
    AUDIT_BURST = 20,   // lines of one client at once, then one every
    AUDIT_EVERY_MS = 2000,
    AUDIT_TRUSTED_EVERY_MS = 500, // of a client that may change things
    // Of all that may not: 100 at once, then two a second, 172,800 a day of about 200 bytes: 35 MB.
    AUDIT_ALL_BURST = 100,
    AUDIT_ALL_EVERY_MS = 500,
};

struct audit_client {
    uint64_t client;
    struct log_budget budget;
};

struct audit {
    struct audit_client strangers[AUDIT_CLIENTS], trusted[AUDIT_CLIENTS];
    struct log_budget all; // of the strangers
    unsigned left_out;     // lines, since the last one: the next one says how many
};

// Of a request whose answer is there.
void audit_request(struct audit *a, const struct request *q, const struct peer *from, int status,
                   int64_t now_ms);
// May a line about this client be written now? If not, it is counted.
bool audit_may_write(struct audit *a, uint64_t client, bool trusted, int64_t now_ms);
