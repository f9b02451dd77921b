// SPDX-License-Identifier: Apache-2.0
// The constants are those that the algorithm's authors published.
#include "base/hash.h"

#include <string.h>

uint64_t hash_bytes(const void *data, size_t n)
{
    const unsigned char *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}
