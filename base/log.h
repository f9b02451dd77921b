// SPDX-License-Identifier: Apache-2.0
// One event a line on stderr, in logfmt, control bytes escaped: what journald and grep like best.
// Where nobody reads, lines are left out and counted; nobody waits for a log.
//
//     log_event(LOG_LVL_INFO, "run.started", "id=%lld ranks=%d", (long long)id, n);
//     log_error("store.commit", &err);
#pragma once
#include <stdbool.h>

#include "base/err.h"

enum log_level { LOG_LVL_ERROR = 3, LOG_LVL_WARN = 4, LOG_LVL_INFO = 6, LOG_LVL_DEBUG = 7 };

// `journal`: prefix lines with "<level>" for systemd and leave the time out.
void log_init(enum log_level most, int journal);
__attribute__((format(printf, 3, 4))) void log_event(enum log_level level, const char *event,
                                                     const char *fmt, ...);
bool log_wants(enum log_level level); // it is not below the level that is written
void log_error(const char *event, const struct err *err);
