// SPDX-License-Identifier: Apache-2.0
// Times that users give: leap days, ends of months, and a clock that is not set yet.
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/when.h"
#include "tests/unit/tap.h"

static void test_times(void)
{
    static const struct {
        const char *now, *text, *is;
    } times[] = {
        {"2024-03-01T00:30:00Z", "yesterday", "2024-02-29T00:00:00.000Z"},
        {"2026-03-01T00:30:00Z", "yesterday", "2026-02-28T00:00:00.000Z"},
        {"2027-01-01T00:00:00Z", "2h", "2026-12-31T22:00:00.000Z"},
        {"2027-01-01T00:00:00Z", "today", "2027-01-01T00:00:00.000Z"},
        {"2027-01-01T00:00:00Z", "2028-02-29", "2028-02-29T00:00:00.000Z"},
        {"2027-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"},
        {"1970-01-01T00:00:05Z", "2s", NULL},
        {"1970-01-01T00:00:05Z", "2d", "1970-01-01T00:00:00.000Z"},
        {"1970-01-01T00:00:05Z", "today", "1970-01-01T00:00:00.000Z"},
        {"1970-01-01T00:00:05Z", "yesterday", "1970-01-01T00:00:00.000Z"},
        {"2027-01-01T00:00:00Z", "99999w", "1970-01-01T00:00:00.000Z"},
        {"2027-01-01T00:00:00Z", "2026-02-29", NULL},
        {"2027-01-01T00:00:00Z", "1969-12-31", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        char got[WHEN_ROOM];
        int64_t now_ms = 0;
        struct err err = {0};
        clock_parse(times[i].now, &now_ms);
        int rc = when_read(times[i].text, now_ms, "since", got, &err);
        CHECK((rc == 0) == (times[i].is != NULL), "%s at %s: %s", times[i].text, times[i].now,
              err.text);
        CHECK_STR(rc == 0 ? got : "", times[i].is ? times[i].is : "", "%s at %s", times[i].text,
                  times[i].now);
    }
}

int main(void)
{
    test_times();
    return tap_done();
}
