// SPDX-License-Identifier: Apache-2.0
// The verdict of a run against a baseline, kept until something is stored.
#pragma once
#include "core/results/baseline_check.h"
#include "http/messages/reply.h"

// *out is borrowed until the next call. ERR_NOT_FOUND: no such baseline, or none at all.
int check_verdict(const struct request *q, const struct check_options *options,
                  const struct check_result **out, struct err *err);
// In a worker: the verdicts that GET /v1/check or /metrics needs.
int verdicts_make(const struct request *q, struct buf *out, struct err *err);
