// SPDX-License-Identifier: Apache-2.0
// Inside the store only: values and widths of a run as big-endian bytes, for SQLite's BLOBs and
// PostgreSQL's binary arrays.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACK_NARROW = 2, PACK_WIDE = 4 }; // bytes of a width

void pack_u16(unsigned char *to, uint16_t v);
void pack_u32(unsigned char *to, uint32_t v);
void pack_u64(unsigned char *to, uint64_t v);
uint32_t unpack_u32(const unsigned char *from);
uint64_t unpack_u64(const unsigned char *from);
void pack_float(unsigned char *to, float v);
float unpack_float(const unsigned char *from);
int unpack_width(const unsigned char *from, int bytes); // -1: not known

// The widths of a run: 2 * n numbers, below and above each value. Returns the bytes that each of
// them needs.
int pack_widths(const float *v, const float *lo, const float *hi, int n, int32_t *widths);
