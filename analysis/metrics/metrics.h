// SPDX-License-Identifier: Apache-2.0
// Summary metrics of a run: a few named numbers, so that runs can be lined up over time. One table
// says what there is; docs/METRICS.md and the texts of GET /metrics come from it. Pure.
//
// A metric over ranks is their median; its interval is the median of their lower ends and of their
// upper ends: too wide if ranks err independently, right if what disturbs one disturbs all.
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "model/matrix.h"
#include "model/metric.h"
#include "model/record.h"
#include "model/spec.h"
#include "model/topology.h"

// Of what the names mean. A run whose stored metrics are older gets them anew.
enum { METRICS_VERSION = 7, METRIC_LABELS_MAX = 4 };

// A pattern is a name with holes: {initiator} and {target} stand for a NUMA node ("n0"), {level}
// for a cache ("l3"), {kernel}, {class}, {definition} and {benchmark} for a word, [serial.] for
// that word or nothing: all ranks at once.
struct metric_rule {
    const char *pattern;
    const char *unit;   // of the value as stored: "ns", "us", "GB/s", "GHz", "" for ratios of which
                        // less is better, "share" for those of which more is
    const char *family; // of GET /metrics, after "numaprobe_"; in base units
    const char *help;   // a sentence without a full stop
};
extern const struct metric_rule metric_rules[]; // pattern NULL ends

struct metric_label {
    char name[16], value[64]; // a part of a metric's name
};
struct metric_labels {
    int n;
    struct metric_label list[METRIC_LABELS_MAX];
};

// The rule of a name, and what stands in its holes (labels may be NULL; nodes as numbers). NULL:
// none.
const struct metric_rule *metric_rule_find(const char *name, struct metric_labels *labels);
double metric_base_factor(const char *unit); // to seconds, bytes per second, ratios
bool metric_more_is_better(const char *unit);
// It is a share of samples or of time that was lost. A loss of 1.3 % instead of 1 % is 0.3 % more,
// and not 30 %: what judges nodes takes the log of one and the share (docs/VERDICTS.md).
bool metric_is_loss(const char *name);
// Added to its values before they are divided: 1 of a loss, else 0.
double metric_one(const char *name);

struct metrics_input { // borrowed
    const struct spec *spec;
    const char *method; // as measured; "" or NULL: not known
    bool imported;
    const struct matrix *matrices;
    int n_matrices;
    const struct rank_info *ranks; // NULL: not known
    int n_ranks;
    const struct topology *topology; // of that machine; NULL: not known
    int64_t found_bytes; // cache beyond those of the topology, by a run of `hierarchy`; 0: none
};

struct metrics {
    int n;
    // What sums up most comes first. Beyond the limit pairs of nodes are left out: then the last is
    // metrics.omitted, their number.
    struct metric list[METRICS_MAX];
    int omitted;
};

// ERR_NO_MEMORY is the only error. What cannot be said of the run is not there.
int metrics_find(struct metrics *out, const struct metrics_input *in, struct err *err);

// Runs of one variant may be lined up: what was requested that differs from the defaults
// (spec_variant; the mode is in the metrics' names instead), a method that is not today's, imports,
// and the number of ranks where the machine decided it: "size=1-1024 n_ranks=8".
void metrics_variant(const struct metrics_input *in, struct buf *out);
