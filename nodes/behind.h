// SPDX-License-Identifier: Apache-2.0
// Nodes of another collector: this one never contacts them, and reads their runs from the feed of
// that one.
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum {
    BEHIND_MAX = 63,               // bytes of a collector's address, by which it is known
    BEHIND_MEMORY_MAX = 192 << 20, // of its document, when it is parsed
};

// "https://fleet.example:7790" can be the address of a collector: a URL without a path. ERR_USAGE.
int behind_check(const char *url, struct err *err);
// Appends the nodes of GET /v1/fleet/states as lines (nodes/named.h), with their states, but for
// those that are gone. ERR_INVALID: it is no such document.
int behind_named(const char *text, size_t n, const char *url, struct buf *out, struct err *err);
