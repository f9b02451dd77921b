// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/tap.h"

static size_t encode(uint32_t code, char out[static UTF8_CHAR_MAX + 1])
{
    static const struct {
        uint32_t below;
        unsigned char lead;
    } sizes[] = {{0x80, 0}, {0x800, 0xc0}, {0x10000, 0xe0}, {0x110000, 0xf0}};
    size_t n = 1;
    while (code >= sizes[n - 1].below)
        n++;
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(sizes[n - 1].lead | code);
    out[n] = '\0';
    return n;
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

static void every_character(void)
{
    uint32_t wrong = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char s[UTF8_CHAR_MAX + 1];
        size_t n = encode(c, s), well = c >= 0xd800 && c < 0xe000 ? 0 : n;
        bool ok = utf8_char(s, n) == well && utf8_step(s, n) == (well ? n : 1) &&
                  utf8_control(s, n) == (is_control(c) ? n : 0) &&
                  utf8_shown(s, n) == (is_control(c) ? 0 : well) && (!well || utf8_code(s, n) == c);
        wrong = ok || wrong ? wrong : c;
    }
    CHECK(wrong == 0, "every character is read, and none that a terminal obeys is shown: U+%04X",
          (unsigned)wrong);
}

static void lines(void)
{
    static const struct {
        const char *text, *line;
    } all[] = {{"", ""},
               {"plain \xc3\xa9 \xf0\x9f\x98\x80", "plain \xc3\xa9 \xf0\x9f\x98\x80"},
               {"two\n\tlines", "two  lines"},
               {"\x1b[2J\x7f", "?[2J?"},
               {"\xc2\x9b"
                "2J \xe2\x80\xae \xe2\x80\xa9",
                "?2J ? ?"},
               {"cut \xe2\x82", "cut ??"}};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        char text[40];
        CLEANUP_BUF struct buf b = BUF_INIT;
        strcpy(text, all[i].text);
        utf8_plain(text);
        CHECK_STR(text, all[i].line, "line %zu", i);
        buf_plain(&b, all[i].line);
        CHECK_STR(buf_text(&b), all[i].line, "a line that can be shown stays as it is: %zu", i);
        CHECK(utf8_all_shown(text), "line %zu can be shown", i);
        CHECK(utf8_all_shown(all[i].text) == (strcmp(all[i].text, all[i].line) == 0),
              "whether text %zu can be shown", i);
    }
    CLEANUP_BUF struct buf b = BUF_INIT;
    buf_plain(&b, "two\n\tlines");
    CHECK_STR(buf_text(&b), "two? lines", "a tab is a blank, as a browser shows it");
}

int main(void)
{
    every_character();
    lines();
    return tap_done();
}
