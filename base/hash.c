// SPDX-License-Identifier: Apache-2.0
// The constants are those that the algorithm's authors published.
#include "base/hash.h"

#include <string.h>

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

uint64_t hash_bytes(const void *data, size_t n)
{
    const unsigned char *bytes = data;
    uint64_t hash = FNV_BASIS;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * FNV_PRIME;
    return hash;
}

uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}

// The shift brings what differs in a word's high bytes down, where the next product spreads it.
uint64_t hash_words(const void *data, size_t n)
{
    const char *bytes = data;
    uint64_t hash = FNV_BASIS ^ n;
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, n - i < sizeof word ? n - i : sizeof word);
        hash = (hash ^ word) * FNV_PRIME;
        hash ^= hash >> 32;
    }
    return hash;
}
