// SPDX-License-Identifier: Apache-2.0
// Writing JSON: a streaming writer into a buf. Commas and escapes are its business; nesting is the
// caller's (object/array … end). Integers are exact, NaN becomes null. `key` is NULL inside arrays
// and at the top.
//
//     struct jsonw w = jsonw_to(&buf);
//     jsonw_object(&w, NULL);
//     jsonw_text(&w, "state", "queued");
//     jsonw_array(&w, "sizes");
//     jsonw_i64(&w, NULL, 1024);
//     jsonw_end(&w);
//     jsonw_end(&w);
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct jsonw {
    struct buf *out; // borrowed
    int depth;
    bool first;        // no comma before the next value
    uint32_t is_array; // bit d: level d is an array
};

struct jsonw jsonw_to(struct buf *out);
void jsonw_object(struct jsonw *w, const char *key);
void jsonw_array(struct jsonw *w, const char *key);
void jsonw_end(struct jsonw *w);
void jsonw_text(struct jsonw *w, const char *key, const char *s); // s NULL -> null
void jsonw_i64(struct jsonw *w, const char *key, int64_t v);
void jsonw_fixed(struct jsonw *w, const char *key, double v, int digits);  // digits after the point
void jsonw_digits(struct jsonw *w, const char *key, double v, int digits); // significant ones
void jsonw_bool(struct jsonw *w, const char *key, bool v);
void jsonw_null(struct jsonw *w, const char *key);
void jsonw_raw(struct jsonw *w, const char *key, const char *json); // already JSON
void jsonw_time(struct jsonw *w, const char *key, int64_t wall_ms); // RFC 3339; 0 -> null
