// SPDX-License-Identifier: Apache-2.0
// How many lines strangers and others may have, and that none hides another's.
#include "http/access/audit.h"
#include "tests/unit/tap.h"

enum { DAY_S = 86400, KNOWN = 1 };

static struct audit a;

// Of `asks` requests a second from each of `clients`, for `seconds`.
static int lines(int clients, int asks, int seconds, bool trusted)
{
    int written = 0;
    a = (struct audit){0};
    for (int64_t ms = 1000; ms < 1000 + seconds * (int64_t)1000; ms += 1000 / asks)
        for (int i = 0; i < clients; i++)
            written += audit_may_write(&a, 1000 + (uint64_t)i, trusted, ms);
    return written;
}

static void bounds(void)
{
    int one = lines(1, 10, 600, false), many = lines(500, 2, 600, false);
    CHECK(one >= AUDIT_BURST && one <= AUDIT_BURST + 600000 / AUDIT_EVERY_MS + 1,
          "one stranger has %d lines in 10 minutes", one);
    CHECK(many <= AUDIT_ALL_BURST + 600000 / AUDIT_ALL_EVERY_MS + 1,
          "500 strangers, more than are remembered, have %d", many);
    int admin = lines(1, 10, 600, true);
    CHECK(admin <= AUDIT_BURST + 600000 / AUDIT_TRUSTED_EVERY_MS + 1,
          "failures of a client that may change things: %d", admin);
}

static void nobody_hides_another(void)
{
    a = (struct audit){0};
    for (int i = 0; i < 100000; i++)
        audit_may_write(&a, 1000 + (uint64_t)(i % 500), false, 5000);
    CHECK(audit_may_write(&a, KNOWN, true, 5000),
          "strangers have used up nothing of a client that may change things");
}

static void counts(void)
{
    int written = 0;
    a = (struct audit){0};
    for (int i = 0; i < AUDIT_BURST + 7; i++)
        written += audit_may_write(&a, KNOWN, false, 5000);
    CHECK(written == AUDIT_BURST && a.left_out == 7, "a burst; what is left out is counted");
    CHECK(audit_may_write(&a, KNOWN, false, 5000 + AUDIT_EVERY_MS), "later there is one more");
}

int main(void)
{
    bounds();
    nobody_hides_another();
    counts();
    return tap_done();
}
