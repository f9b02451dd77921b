// SPDX-License-Identifier: Apache-2.0
// A round of a campaign as a script for a cluster with Slurm. Pure.
#pragma once
#include "fleet/campaigns/request.h"

// ERR_INVALID names the member of the request that Slurm cannot keep, or no line of a script hold.
int campaign_script_check(const struct campaign_request *r, struct err *err);

// Appends the body of a job: numaprobe with what is requested as options.
int campaign_script_body(const struct campaign_request *r, struct buf *out, struct err *err);

// Appends a script that submits one job array: a task per node of `nodes`, in their order, at most
// at_once of them at the same time, `minutes` each.
int campaign_script_write(const struct campaign_request *r, const struct nodeset *nodes,
                          int64_t minutes, struct buf *out, struct err *err);
