// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

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

int64_t clock_wall_ms(void)
{
    return (int64_t)(read_ns(CLOCK_REALTIME) / 1000000u);
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
