// SPDX-License-Identifier: Apache-2.0
// Whether a plan that is being carried out still fits the machine.
#pragma once
#include "base/err.h"
#include "model/plan.h"
#include "model/topology.h"

// Is what the plan was made of still there in `now`? ERR_UNAVAILABLE names the member: a CPU of a
// rank or of the load is off-line or not ours any more, or a node has no memory any more. The
// kernel then moves what runs there elsewhere, and what is measured is not what was requested.
int plan_check_there(const struct plan *p, const struct topology *now, struct err *err);
