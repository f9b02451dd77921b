// SPDX-License-Identifier: Apache-2.0
// Clocks are read with clock_gettime(), times are written and read as RFC 3339, always in UTC.
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

#define LAST_MS INT64_C(253402300799999) // the last that RFC 3339 can write: of the year 9999

static uint64_t read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
    return read_ns(CLOCK_MONOTONIC_RAW);
}

int64_t clock_mono_ms(void)
{
    return (int64_t)(read_ns(CLOCK_MONOTONIC) / 1000000u);
}

int64_t clock_mono_us(void)
{
    return (int64_t)(read_ns(CLOCK_MONOTONIC) / 1000u);
}

int64_t clock_set_by(int64_t *offset_ms)
{
    enum { SET_MS = 10 * 1000 }; // a clock that is this far from where it was expected
    const int64_t boot_ms = (int64_t)(read_ns(CLOCK_BOOTTIME) / 1000000u); // a suspend counts
    const int64_t offset = clock_wall_ms() - boot_ms, step = offset - *offset_ms;
    if (step > -SET_MS && step < SET_MS)
        return 0;
    const bool first = !*offset_ms;
    *offset_ms = offset;
    return first ? 0 : step;
}

uint64_t clock_cpu_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clock_wall_ms(void)
{
    return (int64_t)(read_ns(CLOCK_REALTIME) / 1000000u);
}

struct clock_local clock_local_of(int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm = {0};
    tzset(); // localtime_r() reads the zone once
    localtime_r(&seconds, &tm);
    return (struct clock_local){(tm.tm_wday + 6) % 7, tm.tm_hour * 60 + tm.tm_min,
                                tm.tm_gmtoff * INT64_C(1000)};
}

void clock_rfc3339(int64_t wall_ms, char out[static 32])
{
    time_t s = (time_t)(wall_ms / 1000);
    int ms = (int)(wall_ms % 1000);
    if (ms < 0) {
        ms += 1000;
        s--;
    }
    struct tm tm;
    gmtime_r(&s, &tm);
    char text[24];
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, 32, "%.20s.%03dZ", text, ms);
}

// `n` digits into *out, then the character `after` (0: none is wanted).
static bool clock_number(const char **at, int n, char after, int *out)
{
    const char *p = *at;
    *out = 0;
    for (int i = 0; i < n; i++, p++) {
        if (*p < '0' || *p > '9')
            return false;
        *out = *out * 10 + (*p - '0');
    }
    if (after && *p++ != after)
        return false;
    *at = p;
    return true;
}

static bool clock_read_day(const char **at, struct tm *tm)
{
    int year, month, day;
    if (!clock_number(at, 4, '-', &year) || !clock_number(at, 2, '-', &month) ||
        !clock_number(at, 2, 0, &day))
        return false;
    *tm = (struct tm){.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    struct tm back = *tm;
    timegm(&back); // the 30th of February becomes another day
    return year >= 1970 && back.tm_mon == tm->tm_mon && back.tm_mday == day;
}

static bool read_hours(const char **at, struct tm *tm, int *ms)
{
    if (!clock_number(at, 2, ':', &tm->tm_hour) || !clock_number(at, 2, ':', &tm->tm_min) ||
        !clock_number(at, 2, 0, &tm->tm_sec) || tm->tm_hour > 23 || tm->tm_min > 59 ||
        tm->tm_sec > 60)
        return false;
    *ms = 0;
    if (**at != '.' || (*at)[1] < '0' || (*at)[1] > '9') // the dot may end a sentence of a log
        return true;
    int scale = 100;
    for (++*at; **at >= '0' && **at <= '9'; ++*at, scale /= 10)
        *ms += (**at - '0') * scale;
    return true;
}

// "Z", "+02:00", "-0530"; minutes east of UTC.
static bool read_zone(const char **at, int *east)
{
    const char *p = *at;
    int hours, minutes;
    *east = 0;
    if (*p == 'Z') {
        *at = p + 1;
        return true;
    }
    if (*p != '+' && *p != '-')
        return false;
    int sign = *p++ == '+' ? 1 : -1;
    if (!clock_number(&p, 2, 0, &hours))
        return false;
    p += *p == ':';
    if (!clock_number(&p, 2, 0, &minutes) || hours > 14 || minutes > 59)
        return false;
    *east = sign * (hours * 60 + minutes);
    *at = p;
    return true;
}

const char *clock_read(const char *text, int64_t *wall_ms, bool *zoned)
{
    struct tm tm;
    const char *at = text;
    if (!clock_read_day(&at, &tm))
        return NULL;
    struct tm whole = tm;
    const char *hours = at + 1;
    int ms = 0, east = 0;
    bool known = false;
    if ((*at == 'T' || *at == ' ') && read_hours(&hours, &whole, &ms)) {
        at = hours;
        tm = whole;
        known = read_zone(&at, &east);
    }
    const int64_t utc_ms = ((int64_t)timegm(&tm) - east * 60) * 1000 + ms;
    if (utc_ms < 0 || utc_ms > LAST_MS) // in UTC it may be of another year
        return NULL;
    *zoned = known;
    *wall_ms = utc_ms;
    return at;
}

bool clock_parse(const char *text, int64_t *wall_ms)
{
    bool zoned;
    int64_t ms;
    const char *end = clock_read(text, &ms, &zoned);
    if (!end || *end || (end - text > 10 && (!zoned || text[10] != 'T')))
        return false;
    *wall_ms = ms;
    return true;
}
