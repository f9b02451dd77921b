// SPDX-License-Identifier: Apache-2.0
// Judges the fleet after each sweep in which something was stored, after states of nodes changed,
// and at least hourly. A process of its own reads the store and judges (fleet/judging_main.c); the
// process that stores merges the result into the findings that are kept. It also says which nodes
// to drain (fleet/judging_drain.h). A collector on standby takes the summary alone, each minute.
#pragma once
#include "fleet/collect/draining.h"
#include "fleet/collect/judged_wire.h"

enum {
    MARKS_MAX = 256, // people's marks that wait for the store
    MARK_WAIT_MS = 20000,
};

struct judging;
// Borrows all. A judgement begins when the poller has nodes.
struct judging *judging_new(struct loop *loop, const struct fleetd_config *c, struct poller *p,
                            const struct naming *naming, struct err *err);
void judging_free(struct judging *j); // before the poller; NULL is fine

struct judging_summary {
    struct fleet_tally judged; // of the findings that are stored
    bool counted;              // it is known
    // Of the last judgement that was stored; on standby of the last one, without drains. Empty:
    // there is none yet. Borrowed until the next one.
    const struct buf *coverage, *drain; // a JSON object each
    const struct buf *drain_lines;
    struct fleet_store_size store; // when it was judged last; bytes 0: not known yet
    int64_t judged_ms;             // UTC: the last one that was stored; 0: none yet
    const char *problem;           // why the last one failed; "": it did not
    const char *drain_problem;     // why nodes could not be drained the last time; "": they were
};
struct judging_summary judging_summary(const struct judging *j);

// A person's mark goes to the process that stores. Returns its ticket. ERR_UNAVAILABLE: too many
// wait.
int64_t judging_mark(struct judging *j, const struct ingest_mark *m, struct err *err);
// 1: it is stored; 0: it waits; -1 and an error.
int judging_marked(const struct judging *j, int64_t ticket, struct err *err);
// `wake` is called once the ticket is no longer waiting; NULL: no more.
void judging_mark_wake(struct judging *j, int64_t ticket, void (*wake)(void *ctx), void *ctx);
