// SPDX-License-Identifier: Apache-2.0
// Waiting for a run: until it has finished (long poll), or for every change (Server-Sent Events).
#pragma once
#include "http/messages/reply.h"

// Of a run, or of any with RUNNER_ANY_RUN: wakes when it has finished.
extern const struct reply_source run_end;
