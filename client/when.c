// SPDX-License-Identifier: Apache-2.0
// Three forms are tried: an age such as 2d, the words today and yesterday, and a date or time.
#include "client/when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

enum { MINUTE_MS = 60 * 1000, DAY_MS = 24 * 60 * MINUTE_MS, COUNT_MAX = 99999 };

// "2d": a count and a unit. False: it is something else.
static bool read_ago(const char *text, int64_t *ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'m', MINUTE_MS}, {'h', 60 * MINUTE_MS}, {'d', DAY_MS}, {'w', 7LL * DAY_MS}};
    char number[8] = "";
    size_t n = strlen(text);
    int64_t count;
    if (n < 2 || n > sizeof number)
        return false;
    memcpy(number, text, n - 1);
    if (!str_to_i64(number, &count) || count < 0 || count > COUNT_MAX)
        return false;
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (units[i].unit == text[n - 1]) {
            *ms = count * units[i].ms;
            return true;
        }
    return false;
}

int when_read(const char *text, int64_t now_ms, const char *option, char out[static WHEN_ROOM],
              struct err *err)
{
    int64_t ms;
    *out = '\0';
    if (!*text)
        return 0;
    if (strcmp(text, "today") == 0)
        ms = now_ms - now_ms % DAY_MS;
    else if (strcmp(text, "yesterday") == 0)
        ms = now_ms - now_ms % DAY_MS - DAY_MS;
    else if (read_ago(text, &ms))
        ms = now_ms - ms;
    else if (!clock_parse(text, &ms))
        return err_set(
            err, ERR_USAGE, "",
            "--%s: \"%.40s\" is not a time from 1970 on. Examples: 2d, 12h, yesterday, 2026-01-31, "
            "2026-01-31T06:00:00Z",
            option, text);
    clock_rfc3339(ms > 0 ? ms : 0, out); // the clock may be of 1970, before NTP has set it
    return 0;
}

const char *when_show(const char *time, char out[static WHEN_ROOM])
{
    enum { TO_SECONDS = 19, WHOLE = 24 };
    if (strlen(time) == WHOLE && time[TO_SECONDS] == '.')
        snprintf(out, WHEN_ROOM, "%.*sZ", TO_SECONDS, time);
    else
        snprintf(out, WHEN_ROOM, "%s", time);
    return out;
}
