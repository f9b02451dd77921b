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
// `list`: what fleet_findings_find() says of the fleet. ERR_NO_MEMORY, ERR_TOO_LARGE.
int measured_judge(const struct fleet *f, const struct fleet_findings *list,
                   const struct measured_to *to, struct err *err);
