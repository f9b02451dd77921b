// SPDX-License-Identifier: Apache-2.0
// What was measured between the nodes of a machine, as tables of nodes by nodes.
#pragma once
#include "client/config.h"

// `topology`: the response of /v1/topology with its member "measured".
void topo_measured_print(const struct json *topology);
