// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static const char *nearest(const char *typed, struct suggestion *s)
{
    static const char *const known[] = {"run",      "runs",      "report", "latency",
                                        "pingpong", "bandwidth", "size",   "visits"};
    *s = SUGGESTION_FOR(typed);
    for (size_t i = 0; i < COUNT_OF(known); i++)
        suggest_consider(s, known[i]);
    return s->best;
}

static void test_nearest(void)
{
    static const char *const pairs[][2] = {
        {"rusn", "runs"},     {"latncy", "latency"}, {"sizes", "size"}, {"band", "bandwidth"},
        {"pign", ""},         {"vistis", "visits"},  {"x", ""},         {"nonsense", ""},
        {"repotr", "report"}, {"zzz", ""},
    };
    struct suggestion s;
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        CHECK(strcmp(nearest(pairs[i][0], &s), pairs[i][1]) == 0, "%s: \"%s\", got \"%s\"",
              pairs[i][0], pairs[i][1], s.best);
}

static void test_words(void)
{
    struct suggestion s;
    char text[SUGGEST_TEXT_ROOM], longest[200];
    memset(longest, 'r', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    nearest("sizes", &s);
    CHECK(strcmp(suggest_text(&s, "--", text, sizeof text), "; did you mean \"--size\"?") == 0,
          "%s", text);
    nearest(longest, &s);
    CHECK(!*suggest_text(&s, "", text, sizeof text), "a word of any length may be typed");
}

int main(void)
{
    test_nearest();
    test_words();
    return tap_done();
}
