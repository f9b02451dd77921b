// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/err.h"
#include "model/topology.h"

// *xml is hwloc's own, malloc'ed. Reads what hwloc's environment variables say, else this machine.
int probe_topology(struct topology *t, char **xml, struct err *err);
const char *probe_library(void); // "2.9.0"
