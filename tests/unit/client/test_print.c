// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "client/print.h"
#include "tests/unit/tap.h"

static void spark(const double *v, int n, const char *want, const char *what)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    print_sparkline(&b, v, n);
    CHECK(strcmp(buf_text(&b), want) == 0, "sparkline: %s (%s)", what, buf_text(&b));
}

static void test_sparkline(void)
{
    const double rise[] = {0, 1, 2, 3, 4, 5, 6, 7}, hole[] = {1, NAN, 2};
    const double flat[] = {100, 100, 100}, noise[] = {100, 100.2, 99.9};
    const double zero[] = {0, 0}, none[] = {NAN, NAN}, below[] = {-2, 0, 2};
    spark(rise, 8, "▁▂▃▄▅▆▇█", "lowest to highest");
    spark(hole, 3, "▁ █", "a missing value is a gap");
    spark(flat, 3, "▅▅▅", "no difference lies in the middle");
    spark(noise, 3, "▄▅▄", "noise of a per mille stays flat");
    spark(zero, 2, "▁▁", "nothing but zero");
    spark(none, 2, "  ", "nothing known");
    spark(below, 3, "▁▅█", "values below zero");
    spark(rise, 0, "", "no values");
}

static void test_unicode(void)
{
    struct cli c = {.to_terminal = true};
    unsetenv("LC_ALL");
    unsetenv("LC_CTYPE");
    setenv("LANG", "de_DE.UTF-8", 1);
    CHECK(print_unicode(&c), "a terminal and a UTF-8 locale");
    setenv("LC_ALL", "C", 1);
    CHECK(!print_unicode(&c), "LC_ALL goes before LANG");
    setenv("LC_ALL", "C.utf8", 1);
    CHECK(print_unicode(&c), "the other spelling");
    c.to_terminal = false;
    CHECK(!print_unicode(&c), "never into a file");
}

int main(void)
{
    test_sparkline();
    test_unicode();
    return tap_done();
}
