// SPDX-License-Identifier: Apache-2.0
// What was measured between the nodes of this machine, as JSON and as memory attributes of hwloc.
#pragma once
#include "base/jsonw.h"
#include "core/results/measured_nodes.h"

// {"runs":[…],"quantities":[{"name","unit",…,"values":[[…]…]}]}; rows and columns are nodes in the
// order of the topology's.
void measured_values_write_json(const struct measured_nodes *n, struct jsonw *w, const char *key);
// *out is the machine's XML with them, malloc'ed. Latencies are whole ns and bandwidths whole MiB/s
// there, as hwloc defines.
int measured_values_xml(const struct machine *m, const struct measured_nodes *n, char **out,
                        struct err *err);
