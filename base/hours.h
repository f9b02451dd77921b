// SPDX-License-Identifier: Apache-2.0
// Hours of the week, as people write them: "20:00-06:00" or "Mon-Fri 20:00-06:00, Sat-Sun
// 00:00-24:00". A span that ends before it begins continues into the next day. Local time.
#pragma once
#include <stdint.h>

#include "base/err.h"

enum { HOURS_SPANS_MAX = 16, HOURS_WEEK_MIN = 7 * 24 * 60 };

struct hours {
    int n; // 0: any time
    struct hours_span {
        int first_day, last_day; // 0 is Monday; Sat-Mon is 5, 0
        int from_min, to_min;    // of the day, 0…1440
    } span[HOURS_SPANS_MAX];
};

// ERR_USAGE (member "hours") says what would be right.
int hours_parse(struct hours *h, const char *text, struct err *err);
// Minutes until the next moment that is inside; 0: now is.
int hours_wait_min(const struct hours *h, int day, int minute);
// Minutes that pass until so many of them were inside.
int64_t hours_pass_min(const struct hours *h, int day, int minute, int64_t inside);
