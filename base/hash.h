// SPDX-License-Identifier: Apache-2.0
// 64-bit FNV-1a: to distinguish texts and values where no other party chooses them.
#pragma once
#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *data, size_t n);
uint64_t hash_text(const char *text);
// For tables of texts that another party may choose: it cannot know which ones come together,
// because each process draws a key. Never store it.
uint64_t hash_keyed(const void *data, size_t n);
uint64_t hash_mix(uint64_t x); // each bit of it changes half of the others (SplitMix64)
// Of large texts: 8 bytes at a time. Other values than hash_bytes().
uint64_t hash_words(const void *data, size_t n);
