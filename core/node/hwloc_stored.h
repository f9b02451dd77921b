// SPDX-License-Identifier: Apache-2.0
// Topologies that hwloc reads in a process of its own, because it may end that process.
#pragma once
#include "base/err.h"
#include "model/topology.h"

// As probe_topology of core/node/hwloc.h: hwloc ends the process where memory runs out.
int probe_machine(struct topology *t, char **xml, struct err *err);
// The machine of another time from the XML that probe_topology gave then; t->this_system is false.
// A node without CPUs may differ from its neighbour's: XML does not say which node was lent some.
// Any client may have made it: a process of its own reads it, and what is invalid is
// ERR_INVALID.
int probe_topology_stored(struct topology *t, const char *xml, struct err *err);
