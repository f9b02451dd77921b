// SPDX-License-Identifier: Apache-2.0
// Time. Durations come from the monotonic clock, never from the wall.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// 2020-01-01: numaprobe is younger. A wall clock that shows less was never set.
#define CLOCK_SET_MS ((int64_t)1577836800000)

uint64_t clock_mono_ns(void); // CLOCK_MONOTONIC_RAW
uint64_t clock_cpu_ns(void);  // what this thread has computed
int64_t clock_mono_ms(void);  // CLOCK_MONOTONIC: what the timers of the loop count in
int64_t clock_mono_us(void);  // the same clock, as systemd counts it
int64_t clock_wall_ms(void);  // UTC, ms since 1970
// How far the wall clock was set since the call before with this *offset_ms, ms; 0: it was not, or
// this is the first call, with *offset_ms 0.
int64_t clock_set_by(int64_t *offset_ms);
// The local time of the week (Monday is 0), and how far it is ahead of UTC, in the zone that the
// system has now: it may have been set since the process began.
struct clock_local {
    int day, minute;
    int64_t east_ms;
};
struct clock_local clock_local_of(int64_t wall_ms);
// 1700000000123 -> "2023-11-14T22:13:20.123Z" (RFC 3339 UTC, 24 characters)
void clock_rfc3339(int64_t wall_ms, char out[static 32]);
// Reads a time at the start of `text`: "2026-11-21", or with "T04:05:06" (a blank for the T will
// do), a fraction, "Z" or "+02:00". *zoned: it said which zone; without, UTC is taken. Returns what
// follows it, or NULL: none there, or no such day. From 1970 to 9999, in UTC.
const char *clock_read(const char *text, int64_t *wall_ms, bool *zoned);
// The whole text is a day, or a time with its zone (RFC 3339).
bool clock_parse(const char *text, int64_t *wall_ms);
