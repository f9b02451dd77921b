// SPDX-License-Identifier: Apache-2.0
// A node in a few words for schedulers: the verdict, how old its run is, which latency its memory
// has and of which kinds it is. Every name and value is one that Kubernetes takes as a label.
#pragma once
#include "base/buf.h"
#include "base/json.h"
#include "client/config.h"
#include "model/summary.h"

enum {
    LABELS_MAX = 24, // more kinds of memory than any machine has
    LABEL_ROOM = 64, // 63 characters and NUL: the limit of Kubernetes
};

struct labels {
    int n;
    struct {
        char name[LABEL_ROOM], value[LABEL_ROOM];
    } list[LABELS_MAX];
};

// What may not stand in a label becomes "-". Nothing is added where nothing is left, or no room.
void labels_add(struct labels *l, const char *name, const char *value);
// day, week, month or old. `age_s` below 0: no label.
void labels_add_age(struct labels *l, int64_t age_s);
// Of GET /v1/topology: the NUMA nodes, those of each kind of memory, and kinds of cores.
void labels_add_machine(struct labels *l, const struct json *topology);
// The span of latencies that the newest value of local memory lies in, of this node's own runs.
// Returns the run, or NULL: none has measured it. *value: in ns.
const struct summary *labels_add_latency(struct labels *l, const struct summary_page *runs,
                                         double *value);
// OUTPUT_NFD: a line per label for a feature file, each of `comment`'s lines before them behind
// "#". OUTPUT_SLURM: one line "Features=…", without the comment.
void labels_write(const struct labels *l, enum output form, const char *comment, struct buf *out);
