// SPDX-License-Identifier: Apache-2.0
// Whose turn it is, and how much of the loop a client has while a run is measured.
#include "http/server/share.h"
#include "http/server/turns.h"
#include "tests/unit/tap.h"

static void test_share(void)
{
    struct share s = {0};
    int64_t used = 0, now = 1000;
    share_charge(&s, 1, SHARE_FREE_US, now);
    CHECK(share_wait_ms(&s, 1, now) == 0, "what is free is free");
    share_charge(&s, 1, 10000, now);
    CHECK(share_wait_ms(&s, 1, now) > 0 && share_wait_ms(&s, 2, now) == 0,
          "who has used more waits, and nobody else");
    now += share_wait_ms(&s, 1, now);
    CHECK(share_wait_ms(&s, 1, now) == 0, "for as long as it said");
    for (int64_t end = now + 100000; now < end; now++)
        while (share_wait_ms(&s, 1, now) == 0) {
            share_charge(&s, 1, 5000, now);
            used += 5000;
        }
    CHECK(used <= 100000 * SHARE_PERMILLE + SHARE_FREE_US + 5000, "2 %% of 100 s: %lld us",
          (long long)used);
    share_charge(&s, 1, INT64_C(1) << 40, now);
    CHECK(share_wait_ms(&s, 1, now) <= SHARE_WAIT_MAX_MS + 1, "no wait is longer than that");
}

static bool any(void *ctx, uint64_t client)
{
    (void)ctx;
    (void)client;
    return true;
}

static bool not_seven(void *ctx, uint64_t client)
{
    (void)ctx;
    return client != 7;
}

static void test_turns(void)
{
    struct turns all;
    struct turn a[3] = {0}, b[2] = {0};
    turns_init(&all);
    for (int i = 0; i < 3; i++)
        turns_add(&all, &a[i], 7);
    for (int i = 0; i < 2; i++)
        turns_add(&all, &b[i], 9);
    CHECK(turns_of(&all, 7) == 3 && turns_of(&all, 9) == 2 && turns_of(&all, 8) == 0, "they wait");
    turns_remove(&all, &a[1]);
    turns_remove(&all, &a[1]);
    CHECK(turns_of(&all, 7) == 2 && all.n == 4, "one goes away, once");
    CHECK(turns_next(&all, any, 0) == &a[0] && turns_next(&all, any, 0) == &b[0] &&
              turns_next(&all, not_seven, 0) == &b[1],
          "clients take turns, and who may not is passed over");
    CHECK(!turns_any(&all, not_seven, 0) && !turns_next(&all, not_seven, 0) &&
              turns_next(&all, any, 0) == &a[2] && !all.n && !turns_next(&all, any, 0),
          "to the last");
}

// A round of the loop was too short for what had its turn: it is before all that came later.
static void test_return(void)
{
    struct turns all;
    struct turn a[4] = {0};
    turns_init(&all);
    for (int i = 0; i < 4; i++)
        turns_add(&all, &a[i], 7);
    for (int i = 0; i < 3; i++)
        turns_next(&all, any, 0);
    turns_return(&all, &a[2], 7);
    turns_return(&all, &a[1], 7);
    CHECK_INT(turns_of(&all, 7), 3, "two came back");
    CHECK(turns_next(&all, any, 0) == &a[1] && turns_next(&all, any, 0) == &a[2] &&
              turns_next(&all, any, 0) == &a[3] && !all.n,
          "and go first, in the old order");
    turns_return(&all, &a[0], 7);
    CHECK(turns_next(&all, any, 0) == &a[0], "also where nothing else waits");
    turns_add(&all, &a[0], 7);
    turns_next(&all, any, 0);
    turns_add(&all, &a[1], 8);
    turns_return(&all, &a[0], 7);
    CHECK(turns_next(&all, any, 0) == &a[0] && turns_next(&all, any, 0) == &a[1],
          "and before other clients, who come later");
}

int main(void)
{
    test_share();
    test_turns();
    test_return();
    return tap_done();
}
