// SPDX-License-Identifier: Apache-2.0
// Level 3: whole runs become a fifth, at several times the speed of reading their JSON.
#include "fleet/store/compress.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/cleanup.h"

enum { COMPRESS_LEVEL = 3 };

int compress_bytes(const char *bytes, size_t n, struct buf *out, struct err *err)
{
    size_t room = ZSTD_compressBound(n);
    CLEANUP_MEM char *frame = malloc(room);
    if (!frame)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to compress %zu bytes", n);
    size_t made = ZSTD_compress(frame, room, bytes, n, COMPRESS_LEVEL);
    if (ZSTD_isError(made))
        return err_set(err, ERR_INTERNAL, "", "zstd: %s", ZSTD_getErrorName(made));
    buf_add(out, frame, made);
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory to compress %zu bytes", n);
}

int compress_undo(const char *frame, size_t n, size_t most, struct buf *out, struct err *err)
{
    unsigned long long size = ZSTD_getFrameContentSize(frame, n);
    if (size > most) // also both values that say that it is not known
        return err_set(err, ERR_DAMAGED, "", "an archived run is no frame of zstd");
    CLEANUP_MEM char *bytes = malloc(size + 1);
    if (!bytes)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %llu bytes", size);
    if (ZSTD_decompress(bytes, size, frame, n) != size)
        return err_set(err, ERR_DAMAGED, "", "an archived run is a damaged frame of zstd");
    buf_add(out, bytes, size);
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for %llu bytes", size);
}
