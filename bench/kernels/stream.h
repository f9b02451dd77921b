// SPDX-License-Identifier: Apache-2.0
// Sustainable bandwidth: the four kernels of STREAM (McCalpin) on three arrays of doubles, bytes
// counted as STREAM counts them (what the program requests, no write-allocate), plus a read-only
// sum and a non-temporal write. Each kernel exists in several instruction sets, and with stores
// through the caches or around them. Pure: works on memory that the caller has placed.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "model/spec.h"

enum stream_kernel {
    STREAM_COPY,  // c[i] = a[i]
    STREAM_SCALE, // b[i] = s*c[i]
    STREAM_ADD,   // c[i] = a[i] + b[i]
    STREAM_TRIAD, // a[i] = b[i] + s*c[i]
    STREAM_READ,  // sum of a[i]
    STREAM_WRITE, // c[i] = s, around the caches
    STREAM_KERNELS
};

enum { STREAM_A = 1, STREAM_B = 2, STREAM_C = 4, STREAM_ABC = 7 };

struct stream_kernel_info {
    const char *name;
    int arrays;    // of 8-byte words moved an element: 2 for copy, 3 for add
    unsigned uses; // STREAM_A …
};
extern const struct stream_kernel_info stream_kernels[STREAM_KERNELS];

struct stream_arrays {
    double *a, *b, *c; // borrowed, aligned to 64 bytes; NULL where no kernel uses it
    size_t n;          // elements each
};

#define STREAM_SCALAR 3.0

// The kernels in one instruction set.
struct stream_code {
    const char *name; // "avx2"
    void (*store[STREAM_KERNELS])(const struct stream_arrays *s, size_t first, size_t last);
    double (*read_sum)(const struct stream_arrays *s, size_t first, size_t last);
};

// The kernels in `which` instructions (INSTRUCTIONS_AUTO: the widest of this CPU), with stores of
// `stores`. NULL if this CPU or this program does not have them.
const struct stream_code *stream_code(enum instructions which, enum stores stores);
// "scalar, sse2, avx2": what stream_code has for these stores.
void stream_code_list(enum stores stores, char *out, size_t room);

// Arrays of `n` elements one after the other: those of `uses`.
struct stream_arrays stream_layout(double *memory, size_t n, unsigned uses);
// Both work on the elements [first, last).
void stream_fill(const struct stream_arrays *s, size_t first, size_t last); // a=1, b=2, c=0
// Returns the sum for STREAM_READ, else 0: use it, so that nothing is optimised away.
double stream_pass_in(const struct stream_code *code, enum stream_kernel k,
                      const struct stream_arrays *s, size_t first, size_t last);
// In the widest instructions of this CPU, through the caches.
double stream_pass(enum stream_kernel k, const struct stream_arrays *s, size_t first, size_t last);

// MB/s (10^6 bytes) of a pass over `elements` of each array in `ns`, bytes counted as STREAM does.
double stream_mb_per_s(enum stream_kernel k, double elements, double ns);

// What every element of a, b and c has after stream_fill, and after one more pass of a kernel.
void stream_begin(double want[3]);
void stream_expect(double want[3], enum stream_kernel k);
// Every element must have the value that arithmetic gives: relative error at most 1e-13, as STREAM
// demands of doubles. Returns the worst array's relative error, and the number of wrong elements.
struct stream_check {
    double worst;
    size_t wrong;
};
struct stream_check stream_verify(const struct stream_arrays *s, const double want[3]);
