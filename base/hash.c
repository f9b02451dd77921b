// SPDX-License-Identifier: Apache-2.0
// The constants are those that the algorithm's authors published.
#include "base/hash.h"

#include <string.h>
#include <sys/random.h>

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t fnv_1a(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * FNV_PRIME;
    return hash;
}

uint64_t hash_bytes(const void *data, size_t n)
{
    return fnv_1a(FNV_BASIS, data, n);
}

uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}

// Where the system has no random numbers yet, the address differs at least.
static uint64_t hash_key(void)
{
    static uint64_t key;
    if (!key && getrandom(&key, sizeof key, GRND_NONBLOCK) != sizeof key)
        key = (uintptr_t)&key;
    return key;
}

uint64_t hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

// Of two texts whose sums have the same low bits, these stay the same with any common end: of
// two numbers in each of 16 brackets, 65,536 names would come together. So all bits decide.
uint64_t hash_keyed(const void *data, size_t n)
{
    return hash_mix(fnv_1a(hash_key(), data, n));
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
