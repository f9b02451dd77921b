// SPDX-License-Identifier: Apache-2.0
// The C library knows the calendar.
#include "fleet/store/months.h"

#include <time.h>

enum { TM_EPOCH = 70 }; // struct tm counts years from 1900

int month_of(int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    gmtime_r(&seconds, &t);
    return (t.tm_year - TM_EPOCH) * 12 + t.tm_mon;
}

int64_t month_begin_ms(int month)
{
    struct tm t = {.tm_year = TM_EPOCH + month / 12, .tm_mon = month % 12, .tm_mday = 1};
    return (int64_t)timegm(&t) * 1000;
}
