// SPDX-License-Identifier: Apache-2.0
// Campaigns of the collector: the same run on many nodes, a few at a time (docs/COLLECTOR.md). In
// the loop of the collector; the process that stores keeps their state.
//
// What is stored decides. A probe is written before its node is contacted, and its request has the
// key <campaign>/<round>/<node>: whatever ends at any moment, the same request is made again, and
// the node returns the run that it has. When the process that stores ends, everything here is
// dropped and begins again from what was stored.
#pragma once
#include "base/jsonw.h"
#include "core/os/loop.h"
#include "fleet/collect/poller.h"
#include "fleet/store/campaigns.h"

enum {
    CAMPAIGNS_MAX = 16,           // that have not ended
    CAMPAIGNS_NODES_MAX = 131072, // of them together
};

struct campaigns;

// Borrows all; `poller` must outlive it.
struct campaigns *campaigns_new(struct loop *loop, const struct fleetd_config *c,
                                struct poller *poller, struct err *err);
void campaigns_free(struct campaigns *c);      // NULL is fine
void campaigns_renew_tls(struct campaigns *c); // as poller_renew_tls(), which says what is wrong

// Begins a campaign, or a dry run, and returns its number: it is settled later. `text` is the
// request, `by` the client. -1: ERR_BAD_REQUEST, ERR_INVALID, ERR_CONFLICT (its name),
// ERR_TOO_MANY, ERR_UNAVAILABLE (the store).
int64_t campaigns_submit(struct campaigns *c, const struct buf *text, const char *by,
                         struct err *err);
// No campaign that has not ended has this number: ERR_NOT_FOUND, or ERR_CONFLICT if it has ended.
int campaigns_cancel(struct campaigns *c, int64_t id, const char *by, struct err *err);

// The shell script that gives the nodes that are left in this round to Slurm, appended.
// ERR_NOT_FOUND, ERR_CONFLICT: it has ended, or is not for Slurm; ERR_UNAVAILABLE.
int campaigns_script(const struct campaigns *c, int64_t id, struct buf *out, struct err *err);

// Calls wake() once when what was submitted or cancelled is settled. NULL: no memory.
struct campaigns_watch;
struct campaigns_watch *campaigns_watch(struct campaigns *c, int64_t id, void (*wake)(void *ctx),
                                        void *ctx);
void campaigns_unwatch(struct campaigns_watch *w);
// 1: it is stored, and was written to `w`; *dry: it was a dry run, of which there is the plan.
// 0: not yet. -1: it was refused; ERR_UNAVAILABLE: the store failed meanwhile.
int campaigns_settled(const struct campaigns *c, int64_t id, struct jsonw *w, bool *dry,
                      struct err *err);

void campaign_write_json(const struct fleet_campaign *c, struct jsonw *w, const char *key);
