// SPDX-License-Identifier: Apache-2.0
// Campaigns in the store: what was requested, how far it is, and what became of each node.
#pragma once
#include "fleet/store/store.h"

enum fleet_campaign_state {
    FLEET_CAMPAIGN_RUNNING,
    FLEET_CAMPAIGN_WAITING, // for its window, its next round, or nodes that are not free
    FLEET_CAMPAIGN_DONE,
    FLEET_CAMPAIGN_CANCELLED, // by a client
    FLEET_CAMPAIGN_STOPPED,   // by itself: too many failures
    FLEET_CAMPAIGN_STATES
};
extern const char
    *const fleet_campaign_states[FLEET_CAMPAIGN_STATES + 1]; // in JSON; ends with NULL

struct fleet_campaign {
    int64_t id;
    const char *name, *by;       // by: the client that submitted it
    const char *request, *nodes; // JSON; a node set
    enum fleet_campaign_state state;
    int round;                              // from 1
    int64_t created_ms, round_ms, until_ms; // UTC; round: its beginning; until 0: waits for nothing
    int n, running, done, failed, skipped;  // nodes; of this round
    double spent_s, round_s;                // node-seconds; of this round
    const char *why;                        // why it waits or has ended; ""
};

struct fleet_campaign_node {
    const char *name;
    int state, round;                    // enum probe_state
    int64_t requested_ms, ended_ms, run; // 0: not yet
    double seconds;                      // NaN: not known
    const char *why;                     // it failed or was skipped; ""
};

// Until a node has ended, its ended_ms is the time at which it was first refused in the round: a
// collector that begins continues to count from it.
static inline bool fleet_campaign_node_ended(int state)
{
    return state > 1; // done, failed, skipped
}

// Writes the campaign and the nodes that changed in one transaction. Its name, client and request
// are those of the first call, and its nodes those of the first call of the round.
int fleet_store_campaign_put(struct fleet_store *s, const struct fleet_campaign *c,
                             const struct fleet_campaign_node *nodes, int n, struct err *err);

struct fleet_campaign_query {
    int64_t id, before; // 0: any
    bool active;        // only running and waiting ones
    bool running;       // beside them those whose last probes have not ended
    int limit;
};
// Texts are valid during the call. -1 ends the reading with its error.
typedef int fleet_campaign_fn(void *ctx, const struct fleet_campaign *c, struct err *err);
typedef int fleet_campaign_node_fn(void *ctx, const struct fleet_campaign_node *n, struct err *err);

// The newest first.
int fleet_store_campaigns(struct fleet_store *s, const struct fleet_campaign_query *q,
                          fleet_campaign_fn *fn, void *ctx, struct err *err);
// Nodes with a row, in no order.
int fleet_store_campaign_nodes(struct fleet_store *s, int64_t campaign, fleet_campaign_node_fn *fn,
                               void *ctx, struct err *err);
// One campaign and then its nodes with a row, as both were at one moment. An unknown id: no calls.
int fleet_store_campaign(struct fleet_store *s, int64_t id, fleet_campaign_fn *campaign,
                         fleet_campaign_node_fn *node, void *ctx, struct err *err);
