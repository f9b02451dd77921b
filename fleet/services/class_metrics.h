// SPDX-License-Identifier: Apache-2.0
// What Prometheus is given of the history: medians and spreads of each class, what the verdict
// finds, and the class and the newest run of each node. The process that reads makes it, and the
// collector keeps it, so that a scrape of GET /metrics is answered from memory.
//
// How many series there are does not depend on the number of nodes: at most CLASS_SERIES_MAX of
// classes, and CLASS_FINDINGS_MAX of findings.
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/messages/request.h"

enum {
    CLASS_METRICS_JOB = 1,       // struct job_kind.number
    CLASS_METRICS_AGE_S = 30,    // they are not made anew before, even if runs were stored
    CLASS_NODES_AGE_S = 300,     // nor what they say of nodes, if that alone is requested
    CLASSES_MAX = 40,            // with most nodes
    CLASS_METRICS_MAX = 100,     // of a class; what sums up most comes first
    CLASS_SERIES_MAX = 2 * 2000, // a median and a spread each
    CLASS_FINDINGS_MAX = 500,    // sure ones first
};

// In the process that reads: appends an image for class_metrics_keep(). now_ms: UTC.
int class_metrics_make(const struct request *q, int64_t now_ms, struct buf *out, struct err *err);

// In the collector. `version` of the data it was made of. ERR_INTERNAL: no image.
int class_metrics_keep(const void *image, size_t n, int64_t version, struct err *err);
// Nothing can be made now: what is kept counts as made, for CLASS_METRICS_AGE_S at most.
void class_metrics_missed(void);
// They are younger than age_s, or nothing was stored since and they are younger than an hour: also
// without a new run there are fewer that are new.
bool class_metrics_fresh(int64_t version, int age_s);
// In the form of base/exposition.h; "": none yet.
const char *class_metrics_text(void);
// What is known of a node. {0}: nothing.
struct class_node {
    const char *class; // its hash; NULL: not known
    int64_t newest_ms; // its newest run was measured, UTC; 0: not known
};
// Of each of many nodes, which are given in the order of strcmp(). {0} at the beginning.
struct class_search {
    size_t at;
};
struct class_node class_metrics_next(struct class_search *s, const char *node);
struct class_node class_metrics_of(const char *node); // of one
