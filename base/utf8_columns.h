// SPDX-License-Identifier: Apache-2.0
// How wide texts are on a terminal, for tables, and for what is cut or folded at its end.
#pragma once
#include <stddef.h>

// Columns of a terminal that a text takes: 0 a character (a combining mark), 1, or 2 (most of
// Chinese, Japanese and Korean, and emoji). Bytes that are no UTF-8 take one each.
int utf8_columns(const char *text);
// Bytes of the characters at its begin that fit into so many columns, with the marks on the last.
size_t utf8_fit(const char *text, int columns);
// Bytes of the first of the lines that a text is folded into: all of it, or up to behind the last
// character of `behind` (" ", ", ") that fits; where there is none, what fits. *shown of them are
// to be written: no blanks at the end.
size_t utf8_fold(const char *text, int columns, const char *behind, size_t *shown);
