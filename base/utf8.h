// SPDX-License-Identifier: Apache-2.0
// Characters of UTF-8, for all that read texts of others.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_CHAR_MAX = 4 };

// Bytes of the well-formed character at s (RFC 3629), of which `left` may be read; 0: it is none.
// Before a NUL `left` can be UTF8_CHAR_MAX: the NUL continues nothing.
size_t utf8_char(const char *s, size_t left);
// Bytes to the next character: those of the one at s, or 1 where there is none.
size_t utf8_step(const char *s, size_t left);
uint32_t utf8_code(const char *s, size_t n); // the code point of such a character of n bytes

// Bytes of the character at s if it is a control character, 0 if it is none: one that a terminal or
// a viewer of logs obeys instead of showing it. These are U+0000 to U+001F, DEL, U+0080 to U+009F
// (U+009B begins a command as ESC [ does), the breaks U+2028 and U+2029, and what turns the
// direction of writing (U+202A to U+202E, U+2066 to U+2069).
size_t utf8_control(const char *s, size_t left);
// Bytes of the character at s if it is well-formed and no control character, else 0.
size_t utf8_shown(const char *s, size_t left);
bool utf8_all_shown(const char *text); // of each character
// A text as one line that can be shown: line breaks and tabs become blanks, other control
// characters and bytes that are no UTF-8 become '?'.
void utf8_plain(char *text);
