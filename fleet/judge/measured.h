// SPDX-License-Identifier: Apache-2.0
// What nodes and classes measured, as a judgement: the verdict of analysis/peers becomes sights,
// and what could not be judged becomes unseen. Pure.
#pragma once
#include "analysis/peers/fleet_findings.h"
#include "fleet/judge/kept_findings.h"

struct measured_to {
    // Texts are borrowed during the call, names as long as the fleet is. Text may be longer than
    // KEPT_TEXT_MAX.
    void (*sight)(void *ctx, const struct kept_sight *s);
    void (*unseen)(void *ctx, const struct kept_unseen *u);
    void *ctx;
};
// A finding about what a node measured that is kept and has not ended.
struct measured_kept {
    enum kept_what what;
    const char *node, *metric;
    double percent; // NaN: not known
};

// `list`: what fleet_findings_find() says of the fleet. ERR_NO_MEMORY, ERR_TOO_LARGE.
int measured_judge(const struct fleet *f, const struct fleet_findings *list,
                   const struct measured_to *to, struct err *err);
// After it. Unseen, if the runs of the node cannot say that the finding has ended: they do not have
// its metric, or, where the node has no peers, they do not show that it got better. Its slow runs
// become its past. ERR_NO_MEMORY.
int measured_keep(const struct fleet *f, const struct fleet_findings *list,
                  const struct measured_kept *k, const struct measured_to *to, struct err *err);
