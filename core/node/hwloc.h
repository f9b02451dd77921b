// SPDX-License-Identifier: Apache-2.0
// The door to hwloc: a topology as hwloc reports it.
#pragma once
#include "base/err.h"
#include "model/topology.h"

// *xml is hwloc's own, malloc'ed. Reads what hwloc's environment variables say, else this machine.
int probe_topology(struct topology *t, char **xml, struct err *err);
// The topology of another time from such XML; core/node/hwloc_stored.h says what it is. hwloc may
// end the process.
int probe_topology_xml(struct topology *t, const char *xml, struct err *err);
const char *probe_library(void); // "2.9.0"
