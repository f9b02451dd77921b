// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include "tests/unit/tap.h"

static void test_parse(void)
{
    static const struct {
        const char *text;
        int64_t ms; // -1: refused
    } cases[] = {
        {"2026-11-21", 1795219200000},
        {"2026-11-21T04:05:06Z", 1795233906000},
        {"2026-11-21T04:05:06.5Z", 1795233906500},
        {"2026-11-21T04:05:06.1239Z", 1795233906123},
        {"2026-11-21T06:05:06+02:00", 1795233906000},
        {"2026-11-20T22:35:06-0530", 1795233906000},
        {"2024-02-29", 1709164800000},
        {"1970-01-01", 0},
        {"1970-01-01T01:00:00+01:00", 0},
        {"9999-12-31T23:59:59.999Z", 253402300799999},
        {"2038-01-19T03:14:08Z", 2147483648000},
        {"1970-01-01T00:59:59+01:00", -1}, // is in 1969
        {"9999-12-31T23:59:59-00:01", -1}, // would be read back by no one
        {"2026-11-21T04:05:06", -1},       // whose clock?
        {"2026-11-21 04:05:06Z", -1},
        {"2026-11-21T04:05:06.Z", -1},
        {"2026-02-29", -1},
        {"2026-13-01", -1},
        {"2026-11-21T24:00:00Z", -1},
        {"2026-11-21T04:05:06Zx", -1},
        {"2026-11-21T", -1},
        {"1969-12-31", -1},
        {"26-11-21", -1},
        {"", -1},
        {"now", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ms = -1;
        bool ok = clock_parse(cases[i].text, &ms);
        CHECK(ok == (cases[i].ms >= 0) && ms == cases[i].ms, "\"%s\" gives %lld", cases[i].text,
              (long long)ms);
    }
}

static void test_within_text(void)
{
    int64_t ms;
    bool zoned;
    const char *text = "2026-11-21 04:05:06 done";
    CHECK(clock_read(text, &ms, &zoned) == text + 19 && ms == 1795233906000 && !zoned,
          "a time without a zone is read as UTC, and says so");
    text = "2026-11-21, a Saturday";
    CHECK(clock_read(text, &ms, &zoned) == text + 10 && ms == 1795219200000, "a day alone");
}

static void test_round_trip(void)
{
    char text[32];
    int64_t ms = 0;
    clock_rfc3339(1795233906123, text);
    CHECK(clock_parse(text, &ms) && ms == 1795233906123, "what is written is read back: %s", text);
}

static void test_set(void)
{
    enum { HOUR_MS = 3600 * 1000 };
    int64_t offset_ms = 0;
    CHECK_INT(clock_set_by(&offset_ms), 0, "the first time nothing is known");
    CHECK_INT(clock_set_by(&offset_ms), 0, "it was not set since");
    offset_ms -= 2 * HOUR_MS;
    int64_t step_ms = clock_set_by(&offset_ms);
    CHECK(step_ms / 60000 >= 119 && step_ms / 60000 <= 120, "it was set by two hours");
    CHECK_INT(clock_set_by(&offset_ms), 0, "and that is said once");
}

int main(void)
{
    test_set();
    test_parse();
    test_within_text();
    test_round_trip();
    return tap_done();
}
