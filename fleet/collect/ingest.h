// SPDX-License-Identifier: Apache-2.0
// The process that reads what nodes sent and stores it. A hostile page can end only that process:
// it is started again, and what it had not confirmed is requested from the nodes again. The
// collector itself reads no page and never waits for a disk.
//
//     collector ── heads and bodies, a stream ──▶ fleetd --ingest ──▶ store
//               ◀── places, confirmations, wishes ──
#pragma once
#include <sys/types.h>

#include "base/buf.h"
#include "core/os/loop.h"
#include "fleet/collect/ingest_wire.h"

enum {
    // A page has at most 4 MiB (fetch/): two of the largest, or 90 usual ones of 100 runs. They
    // take longer to store than more take to come. Above it nothing more is requested.
    INGEST_BACKLOG_MAX = 8 << 20,
    // Without a report while one is due: the store does not respond, or is upgraded.
    INGEST_STALL_MS = 10000,
    INGEST_STALL_DELETING_MS = 600000, // likewise, while it deletes what is too old
};

struct ingest;
// `report` is called for each message. `ended`: the process has ended, and is started again in a
// moment; what was sent and not confirmed is lost, and must be requested again. `suspect`: what was
// being read alone, twice, of its node; NULL: not known. Valid during the call.
struct ingest_user {
    void (*report)(void *ctx, const struct ingest_report *r);
    void (*ended)(void *ctx, const struct ingest_head *suspect);
    void *ctx;
};

// What the process does with the store. Months of runs that are older than `keep_days`, and whole
// runs that were stored longer ago than `archive_keep_days`, are deleted; 0: none.
struct ingest_store {
    const char *where;
    int64_t keep_days, archive_keep_days;
    enum fleet_archive archive;
};

// Starts this program again with --ingest. ERR_*: it cannot be started.
struct ingest *ingest_new(struct loop *loop, const struct ingest_store *store,
                          const struct ingest_user *user, struct err *err);
void ingest_free(struct ingest *i); // waits until what was sent is stored; NULL is fine

struct ingest_item {
    enum ingest_kind kind;
    const char *node;  // NULL: of none
    const char *hash;  // FACTS: of those that were requested; others: NULL
    const char *under; // WHOLE: the name that its node had when the run was stored; others: NULL
    // WHOLE: `after` is the number of the run in the feed. INGEST_AS_SAID: the page says it.
    int64_t after, received_ms;
    int skew_ms, status;
    bool collector; // PAGE: of another collector
};
// Takes the body. Confirmed by INGEST_STORED or INGEST_REFUSED, in the order of sending. Without
// memory the item counts as lost: ERR_NO_MEMORY.
int ingest_send(struct ingest *i, const struct ingest_item *item, struct buf *body,
                struct err *err);
size_t ingest_backlog(const struct ingest *i); // bytes that were not confirmed
bool ingest_ready(const struct ingest *i);     // all places are known
