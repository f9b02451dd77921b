// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static void appends(void)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    CHECK_STR(buf_text(&b), "", "an empty buffer reads as an empty text");
    buf_str(&b, "abc");
    buf_char(&b, '-');
    buf_fmt(&b, "%d/%s", 42, "x");
    CHECK_STR(buf_text(&b), "abc-42/x", "appends follow each other");
    CHECK(b.len == 8 && buf_ok(&b), "the length counts bytes");
    buf_drop(&b, 4);
    CHECK_STR(buf_text(&b), "42/x", "drop takes from the front");
    buf_drop(&b, 100);
    CHECK(b.len == 0, "dropping more than there is empties it");
    buf_add(&b, "a\0b", 3);
    CHECK(b.len == 3 && memcmp(b.data, "a\0b", 4) == 0,
          "bytes may hold NUL, and a NUL follows them");
}

static void grows(void)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    for (int i = 0; i < 10000; i++)
        buf_fmt(&b, "%04d", i);
    CHECK(b.len == 40000 && memcmp(b.data + 39996, "9999", 5) == 0, "growing keeps every byte");
}

static void gives_away(void)
{
    struct buf b = BUF_INIT;
    CLEANUP_MEM char *empty = buf_steal(&b);
    CHECK(empty && !*empty, "stealing an empty buffer gives an empty text");
    buf_str(&b, "mine");
    CLEANUP_MEM char *text = buf_steal(&b);
    CHECK_STR(text, "mine", "stealing hands over the text");
    CHECK(!b.data && b.len == 0, "and leaves an empty buffer");
}

static void mends_text(void)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    buf_utf8(&b, "a\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    CHECK_STR(buf_text(&b), "a\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "UTF-8 stays as it is");
    buf_reset(&b);
    buf_utf8(&b, "x\xff\xc3y\xe2\x82\xa9\xa9z\xe2\x82");
    CHECK_STR(buf_text(&b), "x??y\xe2\x82\xa9?z??", "what is none becomes question marks");
}

static void fails_for_good(void)
{
    struct buf b = BUF_INIT;
    buf_str(&b, "x");
    b.failed = true; // as a failed allocation leaves it
    buf_str(&b, "lost");
    CHECK(!buf_ok(&b) && b.len == 1, "after a failure nothing is appended");
    CHECK(buf_steal(&b) == NULL, "and nothing is given away");
}

int main(void)
{
    appends();
    grows();
    gives_away();
    mends_text();
    fails_for_good();
    return tap_done();
}
