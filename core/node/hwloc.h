// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/err.h"
#include "model/topology.h"

// *xml is hwloc's own, malloc'ed. Reads what hwloc's environment variables say, else this machine.
int probe_topology(struct topology *t, char **xml, struct err *err);
// The same by a process of its own: hwloc may end it where memory runs out.
int probe_machine(struct topology *t, char **xml, struct err *err);
// The machine of another time from the XML that probe_topology gave then; t->this_system is false.
// A node without CPUs may be told from its neighbour's: XML does not say which node was lent some.
// It may be of anybody's making: a process of its own reads it, and what makes no sense is
// ERR_INVALID.
int probe_topology_stored(struct topology *t, const char *xml, struct err *err);
// The work of that process: hwloc may end it.
int probe_topology_xml(struct topology *t, const char *xml, struct err *err);
const char *probe_library(void); // "2.9.0"
