// SPDX-License-Identifier: Apache-2.0
// Bytes that many answers send at once: 5,000 clients that wait for one body of 70 KB would
// have 350 MB between them if each had its own. Freed with the last answer; one thread.
#pragma once
#include <stddef.h>

struct shared_body {
    int refs;
    size_t n;
    char data[]; // n bytes and a NUL
};

// A copy, with one reference. NULL: no memory.
struct shared_body *shared_body_new(const char *data, size_t n);
struct shared_body *shared_body_ref(struct shared_body *s);
void shared_body_unref(void *s); // of a struct shared_body; NULL is fine
