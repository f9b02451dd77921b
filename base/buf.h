// SPDX-License-Identifier: Apache-2.0
// A growable byte buffer. Failure to allocate is sticky: further appends do nothing and buf_ok() is
// false, so that a writer checks once at the end.
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;  // NUL-terminated when len > 0; owned
    size_t len;  // bytes, without the NUL
    size_t room; // bytes allocated
    bool failed;
};

#define BUF_INIT ((struct buf){0})

void buf_free(struct buf *b); // frees and resets; also a cleanup function
bool buf_ok(const struct buf *b);
// Some buffer of this program could not grow, at any time: a command that prints one answer asks at
// its end.
bool buf_any_failed(void);
void buf_fail(struct buf *b);                          // as if it could not grow
void buf_needs(struct buf *b, const struct buf *part); // fails if part did
void buf_reset(struct buf *b);                         // empty, keeps the memory
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_str(struct buf *b, const char *s);
void buf_utf8(struct buf *b, const char *s); // bytes that are not UTF-8 become '?'
// Likewise, and each control character (utf8_control()); a tab becomes a blank.
void buf_plain(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_drop(struct buf *b, size_t n);  // removes the first n bytes
void buf_cut(struct buf *b, size_t len); // keeps the first len bytes
__attribute__((format(printf, 2, 3))) void buf_fmt(struct buf *b, const char *fmt, ...);
__attribute__((format(printf, 2, 0))) void buf_vfmt(struct buf *b, const char *fmt, va_list ap);
const char *buf_text(const struct buf *b); // never NULL
char *buf_steal(struct buf *b);            // the caller frees; NULL if it failed

#define CLEANUP_BUF CLEANUP(buf_free)
