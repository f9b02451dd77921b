// SPDX-License-Identifier: Apache-2.0
// Inside the store only: zstd's one door. A frame says how many bytes it holds, and never more is
// made of it than is allowed.
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

// Appends the frame of n bytes to *out.
int compress_bytes(const char *bytes, size_t n, struct buf *out, struct err *err);
// Appends what it was made of. ERR_DAMAGED: it is no frame, or of more than `most` bytes.
int compress_undo(const char *frame, size_t n, size_t most, struct buf *out, struct err *err);
