// SPDX-License-Identifier: Apache-2.0
// A run that shall fit a budget of time: parameters of effort (repetitions, samples, time per cell)
// are lowered until the estimate fits. What is measured stays as requested.
#pragma once
#include "base/err.h"
#include "model/plan.h"
#include "model/spec.h"
#include "model/workload.h"

// Fills p->shortened and p->estimate_s where s->budget_s is set. ERR_INVALID on "budget_s" with
// both numbers: the least effort takes longer. The workload is the plan's.
int budget_fit(struct plan *p, const struct spec *s, const struct workload *w, struct err *err);
// The spec that is measured: with the plan's lowered values.
void budget_apply(const struct plan *p, struct spec *s);
// "visits 8 -> 4, cell_ms 240 -> 100"; "" where nothing was lowered.
void budget_describe(const struct plan *p, struct buf *out);
