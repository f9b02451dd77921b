// SPDX-License-Identifier: Apache-2.0
// Nodes that send their runs themselves: a collector cannot contact them. They are those of its
// tokens of scope push.
#pragma once
#include "base/buf.h"
#include "base/err.h"

// Appends the nodes of a token file as lines (nodes/named.h). A file that is not there has none.
// ERR_INVALID names the line.
int announced_named(const char *path, struct buf *out, struct err *err);
