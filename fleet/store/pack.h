// SPDX-License-Identifier: Apache-2.0
// Inside the store only: values and widths of a run as big-endian bytes, for SQLite's BLOBs and
// PostgreSQL's binary arrays; and texts as both take them.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { PACK_NARROW = 2, PACK_WIDE = 4 }; // bytes of a width

void pack_u16(unsigned char *to, uint16_t v);
void pack_u32(unsigned char *to, uint32_t v);
void pack_u64(unsigned char *to, uint64_t v);
uint32_t unpack_u32(const unsigned char *from);
uint64_t unpack_u64(const unsigned char *from);
void pack_float(unsigned char *to, float v);
float unpack_float(const unsigned char *from);

// The ends of the intervals of n values, as whole numbers (model/summary.h): below and above each
// value. Returns the bytes; at most PACK_WIDTHS_BYTES(n).
#define PACK_WIDTHS_BYTES(n) (2 * PACK_WIDE * (n))
int pack_widths(const float *v, const float *lo, const float *hi, int n, unsigned char *to);
// False: so many bytes are not what pack_widths() makes of n values.
bool unpack_widths(const unsigned char *from, int bytes, const float *v, int n, float *lo,
                   float *hi);

// The text, or a copy in `room` with '?' for bytes that are no UTF-8, as JSON shows them. A reason
// that was cut in the middle of a character has such bytes, and PostgreSQL would refuse all of the
// transaction.
const char *pack_text(const char *text, struct buf *room);
