// SPDX-License-Identifier: Apache-2.0
// hwloc's XML of a machine with values added to it: memory attributes of pairs of nodes, and facts
// of the machine. A process of its own does it, because hwloc may end the process.
#pragma once
#include "core/node/hwloc.h"

// `xml` is as probe_topology wrote it. Values that the firmware gave of the same attributes are
// replaced. *out: free().
int probe_topology_annotated(const char *xml, const struct probe_annotations *with, char **out,
                             struct err *err);
