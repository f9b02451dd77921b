// SPDX-License-Identifier: Apache-2.0
// Lists of nodes as text: files of lines, and what other programs print.
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum { LIST_MAX = 8 << 20 }; // bytes of a file, of standard input, or printed by sinfo

// What is at the path is a regular file, or nothing yet. Else ERR_USAGE: a FIFO or a device may
// have no end.
int list_check(const char *path, struct err *err);
// Fills *out, which is empty, with a file but for the mark that may begin it (str_mark()). With
// `any` it may be a FIFO or a device, and "-" is standard input. ERR_USAGE: it cannot be read.
// ERR_INVALID: it has more than LIST_MAX bytes.
int list_read(const char *path, bool any, struct buf *out, struct err *err);
// The next line, without its end, blanks and comment. NULL: there is none. Changes the text.
char *line_next(char **rest);
