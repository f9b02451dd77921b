// SPDX-License-Identifier: Apache-2.0
// Whoever names a run, a note or a node chooses what stands in a cell. A spreadsheet takes some
// texts for formulas, and a formula can start programs.
#include "base/csv.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

// A number with its sign, "-" alone, "+5 %".
static bool csv_is_number(const char *text)
{
    double number;
    return str_to_double(text, &number) || !text[1 + strspn(text + 1, "0123456789., %")];
}

static bool csv_is_formula(const char *text)
{
    text += strspn(text, " ");
    return *text && (strchr("=@", *text) || (strchr("+-", *text) && !csv_is_number(text)));
}

void csv_cell(struct buf *out, const char *text)
{
    CLEANUP_BUF struct buf plain = BUF_INIT;
    buf_plain(&plain, text);
    buf_needs(out, &plain);
    bool quoted = strpbrk(buf_text(&plain), ",\"");
    buf_str(out, quoted ? "\"" : "");
    buf_str(out, csv_is_formula(buf_text(&plain)) ? "'" : "");
    for (const char *c = buf_text(&plain); *c; c++) {
        if (*c == '"')
            buf_char(out, '"');
        buf_char(out, *c);
    }
    buf_str(out, quoted ? "\"" : "");
}
