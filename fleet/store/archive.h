// SPDX-License-Identifier: Apache-2.0
// Whole runs, as nodes export them, compressed. A run is wanted first, in the transaction that
// stores its summary or because a finding cites it, then fetched from its node, and stored once. A
// run that its node does not have any more is not requested again. One that was kept for its
// label or its baseline goes when a note says that it has neither any more. Errors as in
// fleet/store/store.h.
#pragma once
#include "fleet/store/store.h"

enum fleet_archive {
    FLEET_ARCHIVE_NONE,
    // Runs with a label or in a baseline, the first and the last of each set-up of a node, and
    // those that a sure finding cites.
    FLEET_ARCHIVE_KEPT,
    FLEET_ARCHIVE_ALL,
    FLEET_ARCHIVES
};

enum {
    FLEET_ARCHIVE_BYTES_MAX = 32 << 20, // of a run, before it is compressed
    FLEET_CITED_MAX = 64,               // runs of one node that are wanted at once
    // Runs of a node in the archive, beyond which its labels and set-ups add none: one a day for
    // five years. Of 192 ranks and 15 sizes one has 128 KiB compressed: 250 MiB a node.
    FLEET_LABELLED_MAX = 2000,
    // As long a run that was given up keeps its place among them. A node that labels runs and then
    // refuses them has no more than 2,000 of them requested in this time.
    FLEET_GIVEN_UP_DAYS = 30,
    // A run that its node has and cannot send is given up when the node has refused it ten times,
    // the last two for the same reason: after so many there is one more. Tries without a response
    // do not count. The time to the next one is doubled with each try, so the last refusal comes
    // 8.5 hours after the first at the earliest.
    FLEET_REFUSED_TRIES = 9,
};

// What fleet_store_put() wants of the runs that it stores; NONE at first. With NONE nothing is
// wanted by findings either.
void fleet_store_archives(struct fleet_store *s, enum fleet_archive which);
// Runs of a node, by its own numbers of them, as findings cite them. Those that were measured
// before since_ms (UTC), or that it does not have, are passed over.
struct fleet_cited_runs {
    const char *node;
    const int64_t *runs;
    int n; // at most FLEET_CITED_MAX
    int64_t since_ms;
};
// Wants them, in one transaction.
int fleet_store_archive_want(struct fleet_store *s, const struct fleet_cited_runs *list, int n,
                             struct err *err);

struct fleet_wanted_run {
    const char *node;  // that has the history now, and is requested
    const char *under; // that the run is stored of: a node that was renamed had this name then
    int64_t seq, run;  // run: the node's number of it
};
// At most `most` that are due, those first that were wanted first.
int fleet_store_archive_wanted(struct fleet_store *s, int64_t now_ms, int most,
                               int (*fn)(void *ctx, const struct fleet_wanted_run *w,
                                         struct err *err),
                               void *ctx, struct err *err);
struct fleet_whole {
    const char *node, *under; // as above; under NULL: the same
    int64_t seq;
    struct buf frame; // compressed; empty: it could not be fetched
    int64_t bytes;    // before
    bool never;       // it cannot be had: not requested again. Otherwise it is, later
    bool refused;     // the node cannot send it. Not requested again if it was refused for the same
                      // reason the last time, after FLEET_REFUSED_TRIES refusals
    const char *why;  // for people; neither of both: not kept
    bool given_up;    // of fleet_store_archive_put(): it is not requested again
};
// Compresses an export into w->frame, which the caller frees. ERR_TOO_LARGE.
int fleet_whole_fill(struct fleet_whole *w, const char *body, size_t n, struct err *err);
// In one transaction. What is not wanted, or is here already, is passed over.
int fleet_store_archive_put(struct fleet_store *s, struct fleet_whole *list, int n, int64_t now_ms,
                            struct err *err);
// Appends the export of a node's run; after a reinstallation the newer history counts.
// ERR_GONE names the reason why it was given up. ERR_NOT_FOUND: it is not wanted, or not here yet.
int fleet_store_archive_get(struct fleet_store *s, const char *node, int64_t seq, struct buf *out,
                            struct err *err);
// Deletes whole runs that were stored before `before_ms`: in a day those of FLEET_RETAIN_MONTHS
// months that have some, as fleet_store_retain() does.
int fleet_store_archive_retain(struct fleet_store *s, struct fleet_retention *r, struct err *err);
