// SPDX-License-Identifier: Apache-2.0
// Is B slower than A? Cell by cell and for groups of cells. Pure; docs/VERDICTS.md describes how
// each verdict is reached.
//
// A cell: difference of the logs of the medians. Its standard error comes from the stored interval,
// whose width Student's t of the visits' medians makes (docs/METHOD.md), so that it has one degree
// of freedom less than there were visits; never less than the samples' spread says (1.2533 sd /
// sqrt n, the median's under a normal law). Welch's t test; all cells together are corrected by
// Benjamini and Hochberg. A group: mean of its cells' differences; its error is the larger of the
// cells' own errors put together and of what the cells' scatter says; groups are corrected among
// themselves.
#pragma once
#include "analysis/compare/comparison.h"

const char *compare_by_name(enum compare_by by); // "overall", "size" …
// "32MB", "0-4", "remote", "crossed", "3": what people call the group; "all" for overall.
void compare_group_label(const struct compare_group *g, char *out, size_t room);

// ERR_CONFLICT says exactly what differs when the two must not be compared; *c untouched then.
int compare(struct comparison *c, const struct compare_side *a, const struct compare_side *b,
            const struct compare_options *options, struct err *err);
void comparison_fini(struct comparison *c);
// "memory of node 3 +18.2 % [+17.7, +18.7]; the rest same (+0.1 %)".
void comparison_text(const struct comparison *c, char *out, size_t room);
void comparison_write_json(const struct comparison *c, const struct compare_side *a,
                           struct jsonw *w, const char *key);
// {"matrix","unit","percent",…,"verdict","text"}: the comparison as a whole.
void comparison_write_overall(const struct comparison *c, const struct compare_side *a,
                              struct jsonw *w, const char *key);

// ---- Two runs: all matrices that both have ------------------------------------------------------

void conclusion_add(struct conclusion *k, const struct comparison *c, const struct matrix *m);
// "idle memory of node 3 +18.2 % [+17.7, +18.7]; the rest same (+0.1 %)".
void conclusion_text(const struct conclusion *k, char *out, size_t room);
