// SPDX-License-Identifier: Apache-2.0
// Neither overlong forms, nor halves of surrogates, nor what is beyond U+10FFFF.
#include "base/utf8.h"

#include <string.h>

#include "base/cleanup.h"

size_t utf8_char(const char *s, size_t left)
{
    const unsigned char *p = (const unsigned char *)s;
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : 0;
    if (p[0] >= 0xf0 && p[0] <= 0xf4)
        n = 4;
    if (!n || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return overlong || beyond ? 0 : n;
}

size_t utf8_step(const char *s, size_t left)
{
    size_t n = utf8_char(s, left);
    return n ? n : 1;
}

uint32_t utf8_code(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    uint32_t code = n == 1 ? p[0] : p[0] & (0xffU >> (n + 1));
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (p[i] & 0x3fU);
    return code;
}

size_t utf8_control(const char *s, size_t left)
{
    static const struct {
        uint32_t first, last;
    } controls[] = {{0, 0x1f}, {0x7f, 0x9f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    size_t n = utf8_char(s, left);
    uint32_t code = n ? utf8_code(s, n) : UINT32_MAX;
    for (size_t i = 0; i < COUNT_OF(controls); i++)
        if (code >= controls[i].first && code <= controls[i].last)
            return n;
    return 0;
}

size_t utf8_shown(const char *s, size_t left)
{
    if (*s >= ' ' && *s < 0x7f)
        return 1;
    return utf8_control(s, left) ? 0 : utf8_char(s, left);
}

bool utf8_all_shown(const char *text)
{
    for (size_t n; *text; text += n)
        if (!(n = utf8_shown(text, UTF8_CHAR_MAX)))
            return false;
    return true;
}

void utf8_plain(char *text)
{
    char *to = text;
    for (size_t n; *text; text += n) {
        n = utf8_step(text, UTF8_CHAR_MAX);
        if (utf8_shown(text, UTF8_CHAR_MAX)) {
            memmove(to, text, n);
            to += n;
        } else {
            *to++ = *text == '\n' || *text == '\t' ? ' ' : '?';
        }
    }
    *to = '\0';
}
