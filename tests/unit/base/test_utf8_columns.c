// SPDX-License-Identifier: Apache-2.0
#include "base/utf8_columns.h"

#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

#define E_ACUTE "e\xcc\x81"               // with a combining mark
#define HAN "\xe6\xbc\xa2\xe5\xad\x97"    // two characters
#define PENGUIN "\xf0\x9f\x90\xa7"        // an emoji
#define JOINER "\xe2\x80\x8d"             // U+200D
#define HANGUL "\xe1\x84\x92\xe1\x85\xa1" // one syllable of two parts
#define BEYOND "\xf0\xa0\x80\x80"         // U+20000

int main(void)
{
    static const struct {
        const char *text;
        int columns, room; // room: of how much fits, `bytes`
        size_t bytes;
    } all[] = {
        {"", 0, 3, 0},
        {"plain", 5, 3, 3},
        {"gr\xc3\xbc\xc3\x9f", 4, 3, 4},
        {E_ACUTE E_ACUTE, 2, 1, 3},
        {HAN, 4, 3, 3},
        {"a" PENGUIN "b", 4, 2, 1},
        {"a" PENGUIN JOINER "b", 4, 3, 8},
        {HANGUL, 2, 2, 6},
        {BEYOND "\xef\xbc\xa1", 4, 2, 4},
        {"\xe2\x80\xa6\xc2\xb7\xc3\x97\xe2\x96\x88\xe2\xa0\xbf", 5, 4, 10}, // signs of our own
        {"x\xff\xe6\xbc", 4, 2, 2},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        CHECK_INT(utf8_columns(all[i].text), all[i].columns, "columns of text %zu", i);
        CHECK_INT(utf8_fit(all[i].text, all[i].room), all[i].bytes, "what fits of text %zu", i);
        CHECK_INT(utf8_fit(all[i].text, all[i].columns), strlen(all[i].text), "text %zu fits", i);
    }
    static const struct {
        const char *text, *behind;
        int columns;
        size_t bytes, shown;
    } folds[] = {
        {"one two", " ", 7, 7, 7},       {"one two", " ", 6, 4, 3},
        {"one two", " ", 4, 4, 3},       {"one,two,three", ", ", 9, 8, 8},
        {"one,two three", " ", 9, 8, 7}, {"undivided", " ", 5, 5, 5},
        {"one   ", " ", 20, 6, 3},       {HAN " " HAN, " ", 6, 7, 6},
    };
    for (size_t i = 0; i < COUNT_OF(folds); i++) {
        size_t shown = 0;
        CHECK_INT(utf8_fold(folds[i].text, folds[i].columns, folds[i].behind, &shown),
                  folds[i].bytes, "\"%s\" in %d columns", folds[i].text, folds[i].columns);
        CHECK_INT(shown, folds[i].shown, "without blanks at its end");
    }
    return tap_done();
}
