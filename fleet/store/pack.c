// SPDX-License-Identifier: Apache-2.0
// Big-endian, so that hex() in a shell shows digits in the order in which people read them.
#include "fleet/store/pack.h"

#include <endian.h>
#include <string.h>

#include "base/str.h"
#include "model/summary.h"

void pack_u16(unsigned char *to, uint16_t v)
{
    v = htobe16(v);
    memcpy(to, &v, sizeof v);
}

void pack_u32(unsigned char *to, uint32_t v)
{
    v = htobe32(v);
    memcpy(to, &v, sizeof v);
}

void pack_u64(unsigned char *to, uint64_t v)
{
    v = htobe64(v);
    memcpy(to, &v, sizeof v);
}

uint64_t unpack_u64(const unsigned char *from)
{
    uint64_t v;
    memcpy(&v, from, sizeof v);
    return be64toh(v);
}

uint32_t unpack_u32(const unsigned char *from)
{
    uint32_t v;
    memcpy(&v, from, sizeof v);
    return be32toh(v);
}

void pack_float(unsigned char *to, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    pack_u32(to, bits);
}

float unpack_float(const unsigned char *from)
{
    uint32_t bits = unpack_u32(from);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static int unpack_width(const unsigned char *from, int each)
{
    return each == PACK_WIDE ? (int32_t)unpack_u32(from) : (int16_t)(from[0] << 8 | from[1]);
}

static bool is_wide(const float *v, const float *hi, int n)
{
    for (int i = 0; i < n; i++)
        if (summary_width(v[i], hi[i]) > INT16_MAX)
            return true;
    return false;
}

int pack_widths(const float *v, const float *lo, const float *hi, int n, unsigned char *to)
{
    bool wide = is_wide(v, hi, n);
    for (int i = 0; i < 2 * n; i++) {
        int width = summary_width(v[i / 2], i % 2 ? hi[i / 2] : lo[i / 2]);
        if (wide)
            pack_u32(to + PACK_WIDE * i, (uint32_t)width);
        else
            pack_u16(to + PACK_NARROW * i, (uint16_t)width);
    }
    return 2 * n * (wide ? PACK_WIDE : PACK_NARROW);
}

bool unpack_widths(const unsigned char *from, int bytes, const float *v, int n, float *lo,
                   float *hi)
{
    int each = bytes == PACK_WIDTHS_BYTES(n) ? PACK_WIDE : PACK_NARROW;
    if (bytes != 2 * n * each)
        return false;
    for (int i = 0; i < n; i++) {
        lo[i] = summary_end(v[i], -1, unpack_width(from + 2 * i * each, each));
        hi[i] = summary_end(v[i], 1, unpack_width(from + (2 * i + 1) * each, each));
    }
    return true;
}

const char *pack_text(const char *text, struct buf *room)
{
    if (str_utf8_valid(text, strlen(text)))
        return text;
    buf_utf8(room, text);
    return buf_text(room);
}
