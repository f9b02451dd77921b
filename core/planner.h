// SPDX-License-Identifier: Apache-2.0
// From a spec and a topology to a launch plan. Pure: no I/O, so recorded machines test it.
#pragma once
#include "base/err.h"
#include "model/plan.h"
#include "model/spec.h"
#include "model/topology.h"

// ERR_INVALID names the member: a CPU that is not there, is offline or not allowed; a node that is
// not there, has no memory, or is not allowed; more nodes listed than ranks; no CPU with a local
// node for "local"…
int plan_make(struct plan *p, const struct spec *s, const struct topology *t, struct err *err);
