// SPDX-License-Identifier: Apache-2.0
// Nodes from a document of Prometheus's service discovery (http_sd_config, file_sd_config):
// [{"targets": ["n1:7780", …], "labels": {"class": "login", …}}, …].
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { SD_MEMORY_MAX = 192 << 20 }; // of cJSON for a document of 4 MiB

// Appends a line (nodes/named.h) per target. A node is named by the host of its target, or by the
// label "node" of a group with one target. The labels __scheme__, class and partition count; others
// are passed over. ERR_BAD_REQUEST, ERR_INVALID, ERR_TOO_LARGE: it is no such document.
int sd_named(const char *text, size_t n, struct buf *out, struct err *err);
