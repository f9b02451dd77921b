// SPDX-License-Identifier: Apache-2.0
// A span is its days and two minutes of the day. One that ends before it begins holds on its days
// from the first minute on, and on the days after these until the second.
#include "base/hours.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

enum { DAY_MIN = 24 * 60 };

static int hours_bad(const char *text, struct err *err)
{
    return err_set(err, ERR_USAGE, "hours",
                   "must be spans such as \"20:00-06:00\" or \"Mon-Fri 20:00-06:00, Sat "
                   "00:00-24:00\", at most %d; got \"%.60s\"",
                   HOURS_SPANS_MAX, text);
}

// "Mon" at *text: its number, and *text behind it; -1: no day.
static int hours_read_day(const char **text)
{
    static const char *const names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
    for (int i = 0; i < (int)COUNT_OF(names); i++)
        if (strncasecmp(*text, names[i], 3) == 0) {
            *text += 3;
            return i;
        }
    return -1;
}

static bool read_days(const char **text, struct hours_span *s)
{
    s->first_day = hours_read_day(text);
    if (s->first_day < 0) { // every day
        s->first_day = 0;
        s->last_day = 6;
        return true;
    }
    s->last_day = s->first_day;
    if (**text == '-') {
        ++*text;
        s->last_day = hours_read_day(text);
    }
    return s->last_day >= 0 && **text == ' ';
}

// Two digits; -1: something else, such as a sign or a blank.
static int two_digits(const char *text)
{
    bool two = text[0] >= '0' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9';
    return two ? (text[0] - '0') * 10 + text[1] - '0' : -1;
}

// "06:30" at *text; -1: none.
static int read_minute(const char **text)
{
    int hour = two_digits(*text);
    int minute = hour >= 0 && (*text)[2] == ':' ? two_digits(*text + 3) : -1;
    if (minute < 0 || minute > 59 || hour * 60 + minute > DAY_MIN)
        return -1;
    *text += strlen("06:30");
    return hour * 60 + minute;
}

static bool read_span(const char **text, struct hours_span *s)
{
    *text += strspn(*text, " ");
    if (!read_days(text, s))
        return false;
    *text += strspn(*text, " ");
    s->from_min = read_minute(text);
    if (s->from_min < 0 || *(*text)++ != '-')
        return false;
    s->to_min = read_minute(text);
    *text += strspn(*text, " ");
    return s->to_min >= 0 && s->from_min != s->to_min && s->from_min < DAY_MIN;
}

int hours_parse(struct hours *h, const char *text, struct err *err)
{
    struct hours got = {0};
    const char *at = text;
    at += strspn(at, " ");
    while (*at) {
        if (got.n == HOURS_SPANS_MAX || !read_span(&at, &got.span[got.n++]))
            return hours_bad(text, err);
        if (!*at)
            break;
        if (*at++ != ',' || !*at)
            return hours_bad(text, err);
    }
    *h = got;
    return 0;
}

static bool has_day(const struct hours_span *s, int day)
{
    if (s->first_day <= s->last_day)
        return day >= s->first_day && day <= s->last_day;
    return day >= s->first_day || day <= s->last_day;
}

static bool hours_inside(const struct hours *h, int day, int minute)
{
    for (int i = 0; i < h->n; i++) {
        const struct hours_span *s = &h->span[i];
        bool night = s->to_min < s->from_min;
        if (has_day(s, day) && minute >= s->from_min && (night || minute < s->to_min))
            return true;
        if (night && has_day(s, (day + 6) % 7) && minute < s->to_min)
            return true;
    }
    return h->n == 0;
}

int hours_wait_min(const struct hours *h, int day, int minute)
{
    int start = day * DAY_MIN + minute;
    for (int wait = 0; wait < HOURS_WEEK_MIN; wait++) {
        int at = (start + wait) % HOURS_WEEK_MIN;
        if (hours_inside(h, at / DAY_MIN, at % DAY_MIN))
            return wait;
    }
    return HOURS_WEEK_MIN;
}

int64_t hours_pass_min(const struct hours *h, int day, int minute, int64_t inside)
{
    int start = day * DAY_MIN + minute, week = 0;
    for (int at = 0; at < HOURS_WEEK_MIN; at++)
        week += hours_inside(h, at / DAY_MIN, at % DAY_MIN);
    int64_t weeks = inside > 0 ? (inside - 1) / week : 0;
    int64_t passed = weeks * HOURS_WEEK_MIN, left = inside - weeks * week;
    for (int at = start; left > 0; at = (at + 1) % HOURS_WEEK_MIN, passed++)
        left -= hours_inside(h, at / DAY_MIN, at % DAY_MIN);
    return passed;
}
