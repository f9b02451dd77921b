// SPDX-License-Identifier: Apache-2.0
// From a spec and a topology to a launch plan. Pure: no I/O, so recorded machines test it.
#pragma once
#include "base/err.h"
#include "model/plan.h"
#include "model/spec.h"
#include "model/topology.h"

// Ranks are numbered by node, then core, then hardware thread; with `cpus` the user's order stands.
// "local" on a node without memory is the nearest node that has some, with a note; "auto" deals out
// the nodes with memory by rank. Notes also say what ranks share: a CPU, a core, a last-level
// cache. ERR_INVALID names the member: a CPU that is not there, is offline or not allowed; a node
// that is not there, has no memory, or is not allowed; as many nodes as ranks or one, else both
// numbers are named; more than SPEC_RANKS_MAX ranks.
int plan_make(struct plan *p, const struct spec *s, const struct topology *t, struct err *err);
