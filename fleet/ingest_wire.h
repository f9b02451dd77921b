// SPDX-License-Identifier: Apache-2.0
// What the collector sends to the process that stores: a head, then so many bytes of body. Both are
// the same program, so structures go as they are.
#pragma once
#include "fleet/ingest.h"

enum { INGEST_FD = 3 }; // of the process

struct ingest_head {
    uint32_t bytes; // of the body
    enum ingest_kind kind;
    int skew_ms;
    int64_t after, received_ms;
    char node[64];
};
