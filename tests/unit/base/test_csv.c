// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

int main(void)
{
    static const struct {
        const char *text, *cell;
    } cases[] = {
        {"", ""},
        {"n1", "n1"},
        {"a,b", "\"a,b\""},
        {"say \"so\"", "\"say \"\"so\"\"\""},
        {"two\r\nlines", "two??lines"},
        {"=cmd|A1", "'=cmd|A1"},
        {"=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""},
        {"@SUM(A1)", "'@SUM(A1)"},
        {"+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"},
        {"-E1", "'-E1"},
        {"\t=1", "' =1"},
        {" =1", "' =1"},
        {"  -E1", "'  -E1"},
        {" a=1", " a=1"},
        {"\x1b[2J\xc2\x9b"
         "2J \xe2\x80\xae \xc3\xa9\xff",
         "?[2J?2J ? \xc3\xa9?"},
        {"-", "-"},
        {"-3.25", "-3.25"},
        {"+1e-05", "+1e-05"},
        {"+5.1 %", "+5.1 %"},
        {"a=1", "a=1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP_BUF struct buf b = BUF_INIT;
        csv_cell(&b, cases[i].text);
        CHECK_STR(buf_text(&b), cases[i].cell, "the cell of %s", cases[i].text);
    }
    return tap_done();
}
