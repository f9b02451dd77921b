// SPDX-License-Identifier: Apache-2.0
// What the collector sends to browsers, compressed. At the fastest level: most of it is the same
// words again and again, which every level finds.
#include "fleet/services/gzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/cleanup.h"

enum {
    GZIP_WINDOW = MAX_WBITS + 16, // + 16: with the head and the end of the format gzip
    GZIP_MEMORY = 8,              // zlib's default
};

bool gzip_pack(const void *data, size_t n, struct buf *out)
{
    z_stream z = {0};
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return false;
    uLong room = deflateBound(&z, n);
    CLEANUP_MEM Bytef *packed = malloc(room);
    z.next_in = (z_const Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)n;
    z.next_out = packed;
    z.avail_out = (uInt)room;
    bool done = packed && deflate(&z, Z_FINISH) == Z_STREAM_END;
    if (done)
        buf_add(out, packed, z.total_out);
    deflateEnd(&z);
    return done;
}
