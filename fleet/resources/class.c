// SPDX-License-Identifier: Apache-2.0
// One class of hardware: its facts, its set-ups, each metric of each node, and whether it gets
// slower as a whole. All classes are read, since their nodes are judged together. In the process
// that reads.
#include "analysis/peers/class_view.h"

#include <string.h>

#include "analysis/peers/drift.h"
#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "fleet/resources/resources.h"
#include "fleet/services/stored_fleet.h"

static int has_metric(const struct class_view *v, const char *metric, struct err *err)
{
    for (int m = 0; m < v->table.in.metrics; m++)
        if (strcmp(metric, fleet_table_metric(&v->table, v->f, m)) == 0)
            return 0;
    return err_set(err, ERR_NOT_FOUND, "metric", "no node of the class has the metric \"%.64s\"",
                   metric);
}

int fleetd_class(struct request *q, struct reply *r, struct err *err)
{
    const char *metric = request_query(q, "metric");
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    CLEANUP_FLEET struct fleet *f = stored_fleet_newest(q, err);
    int class = f ? fleet_class_find(f, q->name, err) : -1;
    struct class_view v CLEANUP(class_view_fini) = {0};
    struct drift drift;
    if (class < 0 || class_view_make(&v, f, class, err) < 0 ||
        (metric && has_metric(&v, metric, err) < 0) || drift_find(&drift, f, class, err) < 0)
        return -1;
    jsonw_object(&w, NULL);
    class_view_write_json(&v, metric, &w);
    drift_write_json(&drift, f, &w, "drift");
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}
