// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <errno.h>

#include "tests/unit/tap.h"

static void codes(void)
{
    int whole = 1, distinct = 1;
    for (int a = 0; a < ERR_CODES; a++) {
        const struct err_info *i = err_info(a);
        whole &=
            i->slug && i->title && i->http >= 200 && i->http < 600 && i->exit >= 0 && i->exit < 10;
        for (int b = 0; b < a; b++)
            distinct &= strcmp(i->slug, err_info(b)->slug) != 0;
    }
    CHECK(whole, "every code has a slug, a title, a status and an exit status");
    CHECK(distinct, "slugs are distinct");
    CHECK(err_info(ERR_CODES) == err_info(ERR_INTERNAL), "an unknown code is an internal error");
}

static void setting(void)
{
    struct err err = {0};
    CHECK(err_set(&err, ERR_INVALID, "stride", "got %d", 7) == -1, "err_set is -1");
    CHECK_STR(err.member, "stride", "the member is kept");
    CHECK_STR(err.text, "got 7", "the text is formatted");
    CHECK(err_set(NULL, ERR_INVALID, "x", "y") == -1, "nobody has to listen");
    errno = ENOENT;
    err_sys(&err, "open %s", "/x");
    CHECK(err.sys == ENOENT && strstr(err.text, "No such file"), "err_sys says why");
    err_prefix(&err, "start");
    CHECK(strncmp(err.text, "start: open /x", 14) == 0, "a prefix goes in front");
    err_set(&err, ERR_INVALID, "node", "must be a text");
    CHECK(err_name_member(&err) == -1, "err_name_member is -1");
    CHECK_STR(err.text, "node: must be a text", "a text names the member");
    err_name_member(&err);
    CHECK_STR(err.text, "node: must be a text", "and names it once");
    err_set(&err, ERR_INVALID, "", "no memory");
    err_name_member(&err);
    CHECK_STR(err.text, "no memory", "an error without a member stays as it is");
    CHECK(err_name_member(NULL) == -1, "an error without a place for it is an error too");
    err_set(&err, ERR_INVALID, "a\x1b[m", "got \"\x1b[2J\x7f\x01\", line 1\n\tline 2");
    CHECK_STR(err.text, "got \"?[2J??\", line 1  line 2", "a text is plain");
    CHECK_STR(err.member, "a?[m", "so is a member");
    err_prefix(&err, "\r%s", "x");
    CHECK(strncmp(err.text, "?x: got", 7) == 0, "and a prefix");
    err_sys(&err, "open %s", "/\x1b");
    CHECK(strncmp(err.text, "open /?: ", 9) == 0, "and a path");
    err_set(&err, ERR_INVALID, "",
            "\xc2\x9b"
            "2J \x9b \xff \xc3\xa9 %.1s",
            "\xc3\xa9");
    CHECK_STR(err.text, "?2J ? ? \xc3\xa9 ?", "a text is UTF-8 without other controls");
    char long_text[600];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    err_set(&err, ERR_INVALID, long_text, "%s", long_text);
    err_prefix(&err, "%s", long_text);
    CHECK(strlen(err.text) < sizeof err.text && strlen(err.member) < sizeof err.member,
          "texts that are too long are cut");
}

int main(void)
{
    codes();
    setting();
    return tap_done();
}
