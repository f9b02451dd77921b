// SPDX-License-Identifier: Apache-2.0
// Lists of nodes as text: files of lines, and what other programs print.
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum { LIST_MAX = 8 << 20 }; // bytes of a file, of standard input, or printed by sinfo

// Appends a file; "-" is standard input. ERR_USAGE: it cannot be read. ERR_INVALID: it has more
// than LIST_MAX bytes.
int list_read(const char *path, struct buf *out, struct err *err);
// The next line, without its end, blanks and comment. NULL: there is none. Changes the text.
char *line_next(char **rest);
