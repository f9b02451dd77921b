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
