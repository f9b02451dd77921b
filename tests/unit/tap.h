// SPDX-License-Identifier: Apache-2.0
// Test Anything Protocol in thirty lines. A test program is a main() of CHECKs that ends with
// `return tap_done();`.
#pragma once
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int tap_count, tap_failed;

// The rest of a line: texts of several lines are one, as TAP has it.
__attribute__((unused, format(printf, 1, 2))) static void tap_say(const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (char *at = text; *at; at++)
        *at = *at == '\n' ? ' ' : *at;
    puts(text);
}

#define CHECK(cond, ...)                                                                           \
    do {                                                                                           \
        int tap_ok_ = !!(cond);                                                                    \
        tap_failed += !tap_ok_;                                                                    \
        printf("%sok %d - ", tap_ok_ ? "" : "not ", ++tap_count);                                  \
        tap_say(__VA_ARGS__);                                                                      \
        if (!tap_ok_)                                                                              \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);                                    \
        fflush(stdout); /* a child would write it again, at its _exit() with ThreadSanitizer */    \
    } while (0)

// These also print both values when they differ. Each argument is evaluated once.
#define CHECK_STR(got, want, ...)                                                                  \
    do {                                                                                           \
        const char *tap_got_ = (got), *tap_want_ = (want);                                         \
        int tap_same_ = tap_got_ && strcmp(tap_got_, tap_want_) == 0;                              \
        CHECK(tap_same_, __VA_ARGS__);                                                             \
        if (!tap_same_)                                                                            \
            printf("# got \"%s\", want \"%s\"\n", tap_got_ ? tap_got_ : "(null)", tap_want_);      \
    } while (0)
#define CHECK_INT(got, want, ...)                                                                  \
    do {                                                                                           \
        long long tap_got_ = (got), tap_want_ = (want);                                            \
        CHECK(tap_got_ == tap_want_, __VA_ARGS__);                                                 \
        if (tap_got_ != tap_want_)                                                                 \
            printf("# got %lld, want %lld\n", tap_got_, tap_want_);                                \
    } while (0)

__attribute__((unused)) static int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0;
}

// For what this machine cannot test: says so and counts as one passed, skipped test.
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        printf("ok %d # SKIP ", ++tap_count);                                                      \
        tap_say(__VA_ARGS__);                                                                      \
    } while (0)
