// SPDX-License-Identifier: Apache-2.0
// A run that shall fit a budget of time: parameters of effort (repetitions, samples, time per cell)
// are lowered until the estimate fits. What is measured stays as requested, except that some of all
// pairs (of ranks, or of a rank and a target node) are left out where the least effort would take
// too long.
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
// The same from a stored plan, by which the spec that was requested becomes the measured one. What
// cannot be read is not lowered.
void budget_apply_stored(const char *plan_json, struct spec *s);
// The run itself found that the budget has room for `most` pairs of ranks only: the plan and the
// spec that is measured say so too.
void budget_take_pairs(struct plan *p, struct spec *s, int64_t most);
// "visits 8 -> 4, cell_ms 240 -> 100"; "" where nothing but pairs was lowered.
void budget_describe(const struct plan *p, struct buf *out);
// As budget_pairs_text(); "": it has room for all.
void budget_describe_pairs(const struct plan *p, int64_t budget_s, struct buf *out);
// "the budget of 60 s has room for 2048 of 18336 pairs"; budget_s 0: without the number. Right
// before the run and after it.
void budget_pairs_text(int64_t pairs, int64_t of, int64_t budget_s, struct buf *out);
