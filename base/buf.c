// SPDX-License-Identifier: Apache-2.0
// The buffer doubles as it grows. A failed allocation is remembered in the buffer and for the
// process (buf_any_failed), so that a writer of JSON need not check each call.
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void buf_free(struct buf *b)
{
    free(b->data);
    *b = BUF_INIT;
}

bool buf_ok(const struct buf *b)
{
    return !b->failed;
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

static bool any_failed;

bool buf_any_failed(void)
{
    return any_failed;
}

void buf_fail(struct buf *b)
{
    b->failed = any_failed = true;
}

void buf_needs(struct buf *b, const struct buf *part)
{
    if (part->failed)
        buf_fail(b);
}

static bool buf_reserve(struct buf *b, size_t extra)
{
    if (b->failed)
        return false;
    size_t need = b->len + extra + 1;
    if (need <= b->room)
        return true;
    size_t room = b->room ? b->room : 256;
    while (room < need && room <= SIZE_MAX / 2)
        room *= 2;
    char *data = room >= need ? realloc(b->data, room) : NULL;
    if (!data) {
        buf_fail(b);
        return false;
    }
    b->data = data;
    b->room = room;
    return true;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
    if (!buf_reserve(b, n))
        return;
    if (n)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

// Characters of which `takes` says how many bytes they have; what it does not take becomes '?', a
// tab a blank.
static void buf_add_taken(struct buf *b, const char *s, size_t (*takes)(const char *s, size_t left))
{
    while (*s) {
        size_t n = takes(s, UTF8_CHAR_MAX);
        if (n)
            buf_add(b, s, n);
        else
            buf_char(b, *s == '\t' ? ' ' : '?');
        s += n ? n : utf8_step(s, UTF8_CHAR_MAX);
    }
}

void buf_utf8(struct buf *b, const char *s)
{
    buf_add_taken(b, s, utf8_char);
}

void buf_plain(struct buf *b, const char *s)
{
    buf_add_taken(b, s, utf8_shown);
}

void buf_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_drop(struct buf *b, size_t n)
{
    if (n > b->len)
        n = b->len;
    if (!n)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

void buf_cut(struct buf *b, size_t len)
{
    if (len >= b->len)
        return;
    b->len = len;
    b->data[len] = '\0';
}

void buf_vfmt(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0 || !buf_reserve(b, (size_t)n))
        return;
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
}

void buf_fmt(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vfmt(b, fmt, ap);
    va_end(ap);
}

const char *buf_text(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_steal(struct buf *b)
{
    if (!b->failed && !b->data)
        buf_add(b, "", 0);
    char *data = b->failed ? NULL : b->data;
    if (b->failed)
        free(b->data);
    *b = BUF_INIT;
    return data;
}
