// SPDX-License-Identifier: Apache-2.0
// Ticks of an axis of time (UTC): hours, days, months or years, whichever are few enough.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analysis/plot/parts.h"
#include "base/cleanup.h"
#include "base/clock.h"

static const int64_t MINUTE = 60000, HOUR = 3600000, DAY = 86400000;

static void add_time(struct time_ticks *t, int64_t at, int from, int n)
{
    char text[32];
    if (t->n == TICKS_MAX)
        return;
    clock_rfc3339(at, text);
    t->at[t->n] = at;
    snprintf(t->text[t->n++], sizeof t->text[0], "%.*s", n, text + from);
    char *blank = strchr(t->text[t->n - 1], 'T');
    if (blank)
        *blank = ' ';
}

// Every so many months, from a January on.
static void add_months(struct time_ticks *t, int64_t lo, int64_t hi, int every)
{
    time_t s = (time_t)(lo / 1000);
    struct tm tm;
    gmtime_r(&s, &tm);
    int month = (tm.tm_year * 12 + tm.tm_mon) / every * every;
    for (;; month += every) {
        struct tm at = {.tm_year = month / 12, .tm_mon = month % 12, .tm_mday = 1};
        int64_t ms = (int64_t)timegm(&at) * 1000;
        if (ms > hi || t->n == TICKS_MAX)
            return;
        if (ms >= lo)
            add_time(t, ms, 0, every % 12 ? 7 : 4);
    }
}

void ticks_time(struct time_ticks *t, int64_t lo, int64_t hi, int wanted)
{
    const struct {
        int64_t step;
        int from, n; // of "2026-10-30T06:00:00.000Z"
    } steps[] = {{MINUTE, 11, 5},   {5 * MINUTE, 11, 5}, {15 * MINUTE, 11, 5}, {HOUR, 5, 11},
                 {3 * HOUR, 5, 11}, {6 * HOUR, 5, 11},   {12 * HOUR, 5, 11},   {DAY, 0, 10},
                 {2 * DAY, 0, 10},  {7 * DAY, 0, 10},    {14 * DAY, 0, 10}};
    static const int months[] = {1, 2, 3, 6, 12, 24, 60, 120, 600, 1200, 12000};
    t->n = 0;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if ((hi - lo) / steps[i].step > wanted)
            continue;
        for (int64_t at = (lo + steps[i].step - 1) / steps[i].step * steps[i].step; at <= hi;
             at += steps[i].step)
            add_time(t, at, steps[i].from, steps[i].n);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(months); i++)
        if ((hi - lo) / (months[i] * 30 * DAY) <= wanted || i + 1 == COUNT_OF(months)) {
            add_months(t, lo, hi, months[i]);
            return;
        }
}
