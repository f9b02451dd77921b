// SPDX-License-Identifier: Apache-2.0
// Times as people type them, for --since and --until.
#pragma once
#include <stdint.h>

#include "base/err.h"

enum { WHEN_ROOM = 40 };
// "2d", "12h", "30m", "2w" (ago), "today", "yesterday" (their first moment, UTC), a day or a time
// of RFC 3339. Writes RFC 3339; "" gives "". ERR_USAGE names `option` ("since").
int when_read(const char *text, int64_t now_ms, const char *option, char out[static WHEN_ROOM],
              struct err *err);
// "2026-11-22T06:24:02.123Z" -> "2026-11-22T06:24:02Z". Anything else is copied. Returns out.
const char *when_show(const char *time, char out[static WHEN_ROOM]);
