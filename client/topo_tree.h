// SPDX-License-Identifier: Apache-2.0
// A topology as a tree: packages, NUMA nodes, last-level caches, cores with their own caches.
#pragma once
#include "client/config.h"

// `topology`: the response of /v1/topology. Lines are cut to the width of the terminal.
void topo_tree_print(const struct cli *c, const struct json *topology);
