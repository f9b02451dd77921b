// SPDX-License-Identifier: Apache-2.0
// A judgement counts as old from its start: one that takes long is not the newer for it.
#include "fleet/collect/judging_times.h"

bool judging_is_old(const struct judging_times *t, bool stands_by, int64_t now_ms)
{
    const int64_t most_s = stands_by ? JUDGING_STANDBY_S : JUDGING_HOUR_S;
    return !t->ended_ms || t->stood_by != stands_by || now_ms - t->started_ms >= most_s * 1000;
}

bool judging_takes_too_long(const struct judging_times *t, int64_t now_ms)
{
    return now_ms - t->started_ms > (int64_t)JUDGING_LIMIT_S * 1000;
}

bool judging_looks(struct judging_times *t, bool may, bool stands_by, int64_t every_ms,
                   int64_t now_ms)
{
    if (now_ms < t->round_ms && !(may && judging_is_old(t, stands_by, now_ms)))
        return false;
    t->round_ms = now_ms + every_ms;
    return true;
}

int64_t judging_look_in(const struct judging_times *t, int64_t every_ms, int64_t now_ms)
{
    const int64_t ms = now_ms < t->round_ms ? t->round_ms - now_ms : every_ms;
    return ms < JUDGING_LOOK_S * 1000 ? ms : JUDGING_LOOK_S * 1000;
}
