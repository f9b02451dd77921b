// SPDX-License-Identifier: Apache-2.0
// A store does not have the version of the program that writes, but its schema says which is older.
#include "fleet/store/writer.h"

#include <inttypes.h>
#include <stdio.h>

void fleet_writer_text(int64_t version, int64_t known, char out[static FLEET_WRITER_ROOM])
{
    *out = '\0';
    if (version > 0 && version < known)
        snprintf(out, FLEET_WRITER_ROOM,
                 "; it upgrades the store (schema %" PRId64 ", this one has %" PRId64
                 "), or is an older numaprobe: then update that one",
                 version, known);
    if (version > known)
        snprintf(out, FLEET_WRITER_ROOM,
                 "; it is a newer numaprobe (schema %" PRId64 ", this one has %" PRId64
                 "): update this one",
                 version, known);
}
