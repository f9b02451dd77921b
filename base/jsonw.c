// SPDX-License-Identifier: Apache-2.0
// Commas follow from one flag, and a bit per level says whether its members have names.
#include "base/jsonw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

struct jsonw jsonw_to(struct buf *out)
{
    return (struct jsonw){.out = out, .first = true};
}

// One that jsonw_plain() does not take: bytes of it.
static size_t escape(struct buf *out, const char *s)
{
    size_t n = utf8_char(s, UTF8_CHAR_MAX);
    if (!n) // of a text that was cut, or of firmware
        buf_char(out, '?');
    else if (*s == '"' || *s == '\\')
        buf_fmt(out, "\\%c", *s);
    else if (*s == '\n')
        buf_str(out, "\\n");
    else
        buf_fmt(out, "\\u%04x", (unsigned)utf8_code(s, n));
    return utf8_step(s, UTF8_CHAR_MAX);
}

// Bytes of a character that stands in a text as it is. A terminal obeys none of them.
static size_t jsonw_plain(const char *s)
{
    return *s == '"' || *s == '\\' ? 0 : utf8_shown(s, UTF8_CHAR_MAX);
}

static void escaped(struct buf *out, const char *s)
{
    buf_char(out, '"');
    while (*s) {
        const char *run = s;
        for (size_t n; (n = jsonw_plain(s)) > 0;)
            s += n;
        buf_add(out, run, (size_t)(s - run));
        if (*s)
            s += escape(out, s);
    }
    buf_char(out, '"');
}

static void lead(struct jsonw *w, const char *key)
{
    if (!w->first)
        buf_char(w->out, ',');
    w->first = false;
    if (key) {
        escaped(w->out, key);
        buf_char(w->out, ':');
    }
}

static void open_level(struct jsonw *w, const char *key, bool array)
{
    lead(w, key);
    buf_char(w->out, array ? '[' : '{');
    w->depth++;
    uint32_t bit = 1u << (w->depth & 31);
    w->is_array = array ? w->is_array | bit : w->is_array & ~bit;
    w->first = true;
}

void jsonw_object(struct jsonw *w, const char *key)
{
    open_level(w, key, false);
}

void jsonw_array(struct jsonw *w, const char *key)
{
    open_level(w, key, true);
}

void jsonw_end(struct jsonw *w)
{
    buf_char(w->out, w->is_array & (1u << (w->depth & 31)) ? ']' : '}');
    w->depth--;
    w->first = false;
}

void jsonw_text(struct jsonw *w, const char *key, const char *s)
{
    lead(w, key);
    if (s)
        escaped(w->out, s);
    else
        buf_str(w->out, "null");
}

void jsonw_i64(struct jsonw *w, const char *key, int64_t v)
{
    char text[24], *at = text + sizeof text; // printf takes ten times as long: pages have thousands
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        *--at = '-';
    lead(w, key);
    buf_add(w->out, at, (size_t)(text + sizeof text - at));
}

// "%.*f" follows the locale; our programs never call setlocale, a test holds them to it.
void jsonw_fixed(struct jsonw *w, const char *key, double v, int digits)
{
    lead(w, key);
    if (!isfinite(v)) {
        buf_str(w->out, "null");
        return;
    }
    char text[352];
    int n = snprintf(text, sizeof text, "%.*f", digits, v);
    if (strchr(text, '.')) {
        while (text[n - 1] == '0')
            n--;
        if (text[n - 1] == '.')
            n--;
    }
    buf_add(w->out, text, (size_t)n);
}

void jsonw_digits(struct jsonw *w, const char *key, double v, int digits)
{
    char text[40];
    snprintf(text, sizeof text, "%.*g", digits, v);
    if (isfinite(v))
        jsonw_raw(w, key, text);
    else
        jsonw_null(w, key);
}

void jsonw_bool(struct jsonw *w, const char *key, bool v)
{
    lead(w, key);
    buf_str(w->out, v ? "true" : "false");
}

void jsonw_null(struct jsonw *w, const char *key)
{
    lead(w, key);
    buf_str(w->out, "null");
}

void jsonw_raw(struct jsonw *w, const char *key, const char *json)
{
    lead(w, key);
    buf_str(w->out, json);
}

void jsonw_time(struct jsonw *w, const char *key, int64_t wall_ms)
{
    char when[32];
    if (wall_ms)
        clock_rfc3339(wall_ms, when);
    jsonw_text(w, key, wall_ms ? when : NULL);
}
