// SPDX-License-Identifier: Apache-2.0
// How wide texts are on a terminal, for tables, and for what is cut or folded at its end.
#pragma once
#include <stddef.h>

// Columns of a terminal that a text takes: 0 a character (a combining mark), 1, or 2 (most of
// Chinese, Japanese and Korean, and emoji). Bytes that are no UTF-8 take one each.
int utf8_columns(const char *text);
// Bytes of the characters at its begin that fit into so many columns, with the marks on the last.
size_t utf8_fit(const char *text, int columns);
