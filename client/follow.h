// SPDX-License-Identifier: Apache-2.0
// Stays with a run until it has finished: event stream first, long poll when that fails.
#pragma once
#include "client/config.h"

// *run: the finished run (caller json_free). ERR_TIMEOUT: it was interrupted. Unblocks that.
int follow(const struct cli *c, int64_t id, struct json **run, struct err *err);
// The same without progress and without being interrupted.
int follow_to_end(const struct cli *c, int64_t id, struct json **run, struct err *err);
// Returns at this time of clock_mono_ms(), or when a signal comes.
void follow_pause_until(int64_t mono_ms);
