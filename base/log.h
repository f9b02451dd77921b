// SPDX-License-Identifier: Apache-2.0
// One event a line on stderr, in logfmt, control bytes escaped: what journald and grep like best.
// Where the log is not read, lines are dropped and counted; the daemon never waits for its log.
//
//     log_event(LOG_LVL_INFO, "run.started", "id=%lld ranks=%d", (long long)id, n);
//     log_error("store.commit", &err);
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum log_level { LOG_LVL_ERROR = 3, LOG_LVL_WARN = 4, LOG_LVL_INFO = 6, LOG_LVL_DEBUG = 7 };

// Names of the levels for settings, as `choices`, and the level of one of them by its index.
extern const char *const log_level_names[];
enum log_level log_level_of(int index);

// `journal`: prefix lines with "<level>" for systemd and leave the time out.
void log_init(enum log_level most, int journal);
__attribute__((format(printf, 3, 4))) void log_event(enum log_level level, const char *event,
                                                     const char *fmt, ...);
bool log_wants(enum log_level level); // it is not below the level that is written
void log_error(const char *event, const struct err *err);

// For a value between quotes, which a name of a process or a setting could end: "text=\"%s\"" with
// log_quote(text).text. Quotes and backslashes get a backslash; what is too long is cut.
struct log_quoted {
    char text[560];
};
struct log_quoted log_quote(const char *text);

// A budget of lines that others may cause: `burst` at once, then one every `every_ms`. {0} begins
// it.
struct log_budget {
    int64_t full_ms; // when the burst will be there whole again, on the monotonic clock
};
bool log_budget_take(struct log_budget *b, int burst, int every_ms, int64_t now_ms);
// Of 20 lines at once, then two a second: 172,800 a day of about 150 bytes, 26 MB.
enum { LOG_BURST = 20, LOG_EVERY_MS = 500 };
bool log_may(struct log_budget *b, int64_t now_ms);
