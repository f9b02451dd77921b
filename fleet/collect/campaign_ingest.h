// SPDX-License-Identifier: Apache-2.0
// Campaigns in the process that stores: they are written as they change, and what is known of their
// nodes is read when a round begins.
#pragma once
#include "fleet/collect/campaign_wire.h"
#include "fleet/collect/ingest_wire.h"
#include "fleet/store/campaigns.h"

// Sends a report with r->bytes of body behind it; -1: the collector has ended.
typedef int campaign_send(const struct ingest_report *r, const void *body);

// All campaigns that have not ended or have a probe in progress, and the number of the last one
// that was made.
int campaign_ingest_load(struct fleet_store *store, campaign_send *send, struct err *err);
// An item. ERR_INVALID: what it wishes cannot be; any other error is the store's.
int campaign_ingest_put(struct fleet_store *store, const char *body, size_t n, campaign_send *send,
                        struct err *err);
// A campaign as the store has it; borrows all.
struct fleet_campaign campaign_head_row(const struct campaign_head *h, const char *request,
                                        const char *nodes);
