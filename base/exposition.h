// SPDX-License-Identifier: Apache-2.0
// Writes metrics for Prometheus: text format 0.0.4, or OpenMetrics 1.0 where the scraper prefers
// it.
//
//     struct exposition e = exposition_to(&body, open);
//     exposition_begin(&e, "numaprobe_runs", "gauge", "Stored runs by state");
//     exposition_labelled(&e, "state", "failed", 3);
//     exposition_end(&e);
//
// All samples of a family follow its beginning.
#pragma once
#include <stdbool.h>

#include "base/buf.h"

struct exposition {
    struct buf *out; // borrowed
    bool open;       // OpenMetrics
    char family[80]; // with prefix, without _total
    bool counter;
};

enum { EXPOSITION_TYPES = 2 };
extern const char *const exposition_types[EXPOSITION_TYPES]; // of HTTP; the second is OpenMetrics
// `open`: as OpenMetrics. The buffer's state has the errors.
struct exposition exposition_to(struct buf *out, bool open);
const char *exposition_content_type(const struct exposition *e);
void exposition_end(struct exposition *e);

// `type`: gauge, counter or summary. `family` has no _total. The unit is the end of its name.
void exposition_begin(struct exposition *e, const char *family, const char *type, const char *help);
// Labels as pairs of texts, without commas or quotes of their own. What is not finite is not known,
// and is not there.
void exposition_sample(struct exposition *e, const char *const labels[][2], int n, double value);
void exposition_labelled(struct exposition *e, const char *label, const char *text, double value);
// A family of one sample without labels. Below 0: not known, and nothing is written.
void exposition_single(struct exposition *e, const char *family, const char *type, const char *help,
                       double value);
