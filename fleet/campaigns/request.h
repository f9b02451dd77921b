// SPDX-License-Identifier: Apache-2.0
// A campaign as it is requested: a JSON object whose members are listed in docs/COLLECTOR.md. Pure.
#pragma once
#include "base/json.h"
#include "fleet/campaigns/probe_plan.h"
#include "fleet/collect/campaign_wire.h"
#include "model/nodeset.h"

enum {
    CAMPAIGN_AT_ONCE = 16, // unless it says another number
    CAMPAIGN_AT_ONCE_MAX = 256,
    CAMPAIGN_FAILED_PERCENT = 20,
    CAMPAIGN_RETRY_H = 24,
};

#define CAMPAIGN_EACH_LEAST "10m" // rounds do not begin more often
#define CAMPAIGN_RETRY_LEAST "1s"

struct campaign_request {
    char name[CAMPAIGN_NAME];
    char benchmark[24];
    struct nodeset nodes; // empty: all; owned
    struct buf spec;      // JSON, as it is sent to the nodes; owned
    struct probe_rules rules;
    int each_by;     // enum campaign_by
    int64_t each_ms; // a round begins so long after the one before; 0: one round
    bool by_slurm;   // jobs make the runs, no request of the collector
    bool dry_run;
};

// ERR_INVALID names the member: "at_once_each.by", "spec.size".
int campaign_request_read(struct campaign_request *out, const struct json *object, struct err *err);
void campaign_request_fini(struct campaign_request *r);
#define CLEANUP_CAMPAIGN_REQUEST CLEANUP(campaign_request_fini)
