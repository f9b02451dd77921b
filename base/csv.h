// SPDX-License-Identifier: Apache-2.0
// Cells of CSV (RFC 4180), for spreadsheets too.
#pragma once
#include "base/buf.h"

// In quotes where it needs them. Control characters and what is no UTF-8 become '?', tabs blanks,
// so a row is a line and a terminal can show it. What a spreadsheet would calculate gets an
// apostrophe before it: texts of others that begin with =, @, or with a sign and are no number,
// also behind blanks.
void csv_cell(struct buf *out, const char *text);
