// SPDX-License-Identifier: Apache-2.0
// Big-endian, so that hex() in a shell shows digits in the order in which people read them.
#include "fleet/store/pack.h"

#include <endian.h>
#include <string.h>

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

int unpack_width(const unsigned char *from, int bytes)
{
    return bytes == PACK_WIDE ? (int32_t)unpack_u32(from) : (int16_t)(from[0] << 8 | from[1]);
}

int pack_widths(const float *v, const float *lo, const float *hi, int n, int32_t *widths)
{
    int most = 0;
    for (int i = 0; i < n; i++) {
        widths[2 * i] = summary_width(v[i], lo[i]);
        widths[2 * i + 1] = summary_width(v[i], hi[i]);
        most = widths[2 * i + 1] > most ? widths[2 * i + 1] : most;
    }
    return most > INT16_MAX ? PACK_WIDE : PACK_NARROW;
}
