// SPDX-License-Identifier: Apache-2.0
// The assumed values stand in the units of the metrics: model/estimate.c has the same in seconds
// and bytes (tests/unit/core/launch/test_estimate.c compares them).
#include "model/speed.h"

#include <math.h>

const struct speed_info speed_infos[SPEEDS] = {
    [SPEED_LOAD] = {"memory_load", BENCHMARK_HIERARCHY, "hierarchy.memory_ns", "pages=", 140, false,
                    false},
    [SPEED_BASE_PAGE] = {"base_page", BENCHMARK_PAGEFAULT, "pagefault.4k.single_ns", "", 2276,
                         false, false},
    [SPEED_HUGE_PAGE] = {"huge_page", BENCHMARK_PAGEFAULT, "pagefault.thp.single_ns", "", 233017,
                         false, false},
    [SPEED_MESSAGE] = {"message", BENCHMARK_PINGPONG, "pingpong.latency.median_us", "", 0.5, false,
                       true},
    [SPEED_MESSAGE_BYTE] = {"message_byte", BENCHMARK_PINGPONG, "pingpong.bandwidth.median.gbps",
                            "message_max=", 2.5, true, true},
};

double speed_bound(double times)
{
    return fmin(fmax(times, 1 / SPEED_TIMES_MOST), SPEED_TIMES_MOST);
}

double speed_times(enum speed speed, double value)
{
    const struct speed_info *i = &speed_infos[speed];
    if (!(value > 0) || !isfinite(value))
        return 0;
    return speed_bound(i->is_rate ? i->assumed / value : value / i->assumed);
}

double speed_factor(const struct found_speed *found, enum speed speed)
{
    return found[speed].times > 0 ? found[speed].times : 1;
}

void speeds_write_json(const struct found_speed *found, enum benchmark_id benchmark,
                       struct jsonw *w, const char *key)
{
    jsonw_array(w, key);
    for (int i = 0; i < SPEEDS; i++) {
        const struct speed_info *info = &speed_infos[i];
        if (!found[i].run || (info->only_own && info->benchmark != benchmark))
            continue;
        jsonw_object(w, NULL);
        jsonw_text(w, "speed", info->name);
        jsonw_text(w, "benchmark", benchmarks[info->benchmark].name);
        jsonw_i64(w, "run", found[i].run);
        jsonw_fixed(w, "times", found[i].times, 3);
        jsonw_end(w);
    }
    jsonw_end(w);
}
