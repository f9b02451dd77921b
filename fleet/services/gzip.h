// SPDX-License-Identifier: Apache-2.0
// zlib's one door: responses for browsers, compressed.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

// Appends n bytes in the format gzip. False: no memory.
bool gzip_pack(const void *data, size_t n, struct buf *out);
