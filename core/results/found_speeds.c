// SPDX-License-Identifier: Apache-2.0
// One look at the store for each row of the table.
#include "core/results/found_speeds.h"

#include "core/store/history.h"
#include "model/speed.h"

static int found_speed_read(struct found_speed *out, struct store *s, const struct machine *m,
                            enum speed speed, struct err *err)
{
    const struct speed_info *i = &speed_infos[speed];
    const struct metric_wanted wanted = {.like = {.node = m->hostname,
                                                  .benchmark = i->benchmark,
                                                  .class_hash = m->fingerprint.machine_class.hash,
                                                  .config_hash = m->fingerprint.config.hash,
                                                  .method = benchmarks[i->benchmark].method},
                                         .metric = i->metric,
                                         .without = i->without};
    double value = 0;
    int64_t run = 0;
    int found = store_metric_newest_like(s, &wanted, &run, &value, err);
    double times = found > 0 ? speed_times(speed, value) : 0;
    *out = (struct found_speed){.run = times > 0 ? run : 0, .times = times};
    return found < 0 ? -1 : 0;
}

int found_speeds_look(struct machine *m, struct store *s, struct err *err)
{
    for (int i = 0; i < SPEEDS; i++)
        if (found_speed_read(&m->topology.speeds[i], s, m, (enum speed)i, err) < 0)
            return -1;
    return 0;
}
