// SPDX-License-Identifier: Apache-2.0
// The findings that are kept, in the store: a judgement is merged in one transaction, a person's
// mark is another one. Errors as in fleet/store/store.h.
#pragma once
#include "fleet/judge/kept_findings.h"
#include "fleet/store/store.h"

struct fleet_tally {
    struct kept_counts counts;
    int opened;   // findings that are alarms since this judgement
    int left_out; // sights without room
};
int fleet_store_judge(struct fleet_store *s, const struct kept_judgement *j,
                      struct fleet_tally *out, struct err *err);

struct fleet_mark {
    int64_t id;
    enum kept_event event; // KEPT_ACKNOWLEDGE, KEPT_FIX or KEPT_REOPEN
    const char *note;      // at most KEPT_NOTE_MAX bytes; NULL: it stays
    const char *by;
    int64_t now_ms; // UTC
};
// ERR_NOT_FOUND; ERR_CONFLICT: the finding is closed.
int fleet_store_mark(struct fleet_store *s, const struct fleet_mark *m, struct fleet_tally *out,
                     struct err *err);
// Its node was drained for it. One that is not there any more is passed over.
int fleet_store_drained(struct fleet_store *s, int64_t id, int64_t now_ms, struct err *err);
int fleet_store_counts(struct fleet_store *s, struct fleet_tally *out, struct err *err);
// Deletes closed findings that were closed before `before_ms`: in a day those of
// FLEET_RETAIN_MONTHS months that have some, as fleet_store_retain() does.
int fleet_store_findings_retain(struct fleet_store *s, struct fleet_retention *r, struct err *err);

struct fleet_kept { // as fn gets it; texts are valid during the call
    int64_t id;
    enum kept_what what;
    enum kept_state state;
    int grade, times;
    const char *node, *class, *metric, *text, *by, *note, *evidence;
    double percent, lo, hi; // NaN: not known
    // 0: never, not known.
    int64_t found_ms, seen_ms, opened_ms, closed_ms, marked_ms, since_ms, drained_ms;
};
struct fleet_kept_query {
    int64_t id;              // 0: all
    int64_t before;          // only ids below; 0: all
    unsigned states;         // bit 1 << state
    const char *what, *node; // NULL: all
};
// The newest first. fn returns 1 to end the list, -1 to end with its error.
int fleet_store_findings(struct fleet_store *s, const struct fleet_kept_query *q,
                         int (*fn)(void *ctx, const struct fleet_kept *k, struct err *err),
                         void *ctx, struct err *err);
