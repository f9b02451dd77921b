// SPDX-License-Identifier: Apache-2.0
// Hours of the week as people write them.
#include "base/hours.h"
#include "tests/unit/tap.h"

#include "base/cleanup.h"

static void test_hours(void)
{
    struct hours h;
    struct err err;
    static const struct {
        const char *text;
        int day, minute, wait;
    } asks[] = {
        {"", 3, 700, 0},
        {"08:00-09:00", 3, 480, 0},
        {"08:00-09:00", 3, 540, 23 * 60},
        {"20:00-06:00", 0, 359, 0},
        {"20:00-06:00", 0, 360, 14 * 60},
        {"Mon 20:00-06:00", 1, 10, 0},
        {"Mon 20:00-06:00", 0, 10, 20 * 60 - 10},
        {"Sun 20:00-06:00", 0, 10, 0},
        {"Sat-Sun 00:00-24:00", 4, 1439, 1},
        {"Sat-Mon 00:00-24:00", 0, 5, 0},
        {"Mon-Fri 20:00-06:00, sat-sun 00:00-24:00", 6, 700, 0},
        {"Tue 10:00-11:00", 1, 661, 7 * 24 * 60 - 61},
    };
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        int rc = hours_parse(&h, asks[i].text, &err);
        int wait = rc < 0 ? -1 : hours_wait_min(&h, asks[i].day, asks[i].minute);
        CHECK(wait == asks[i].wait, "\"%s\", day %d, minute %d: %d min", asks[i].text, asks[i].day,
              asks[i].minute, wait);
    }
    CHECK(hours_parse(&h, "Mon 20:00-06:00", &err) == 0 &&
              hours_pass_min(&h, 0, 20 * 60, 600) == 600 &&
              hours_pass_min(&h, 0, 19 * 60, 1) == 61 &&
              hours_pass_min(&h, 1, 5 * 60, 61) == 6 * 24 * 60 + 15 * 60 + 1 &&
              hours_pass_min(&h, 0, 20 * 60, 1800) == 2 * HOURS_WEEK_MIN + 600,
          "minutes of ten hours in a week");
    static const char *const wrong[] = {"8-9",
                                        "08:00",
                                        "08:00-25:00",
                                        "24:00-06:00",
                                        "08:00-08:00",
                                        "Foo 08:00-09:00",
                                        "Mon08:00-09:00",
                                        "08:00-09:00,",
                                        "Mon- 08:00-09:00",
                                        "08:60-09:00",
                                        "+8:00-09:00",
                                        "08:00-09:+5",
                                        "08:00- 9:00",
                                        "08:00-09:0"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        CHECK(hours_parse(&h, wrong[i], &err) < 0 && !strcmp(err.member, "hours"),
              "\"%s\" is refused", wrong[i]);
}

int main(void)
{
    test_hours();
    return tap_done();
}
