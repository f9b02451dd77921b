// SPDX-License-Identifier: Apache-2.0
// The machine as a picture: packages, NUMA nodes, last-level caches and cores as boxes within
// boxes, each node with its memory, latency and bandwidth, and what memory costs from node to node
// as tables of coloured cells. SVG text as in analysis/plot/plot.h. Pure; the same data give the
// same bytes.
#pragma once
#include "analysis/plot/topology_layout.h"
#include "base/buf.h"

struct topology_picture { // borrowed
    const struct topology *topology;
    const struct node_costs *costs; // NULL: nothing is measured
    const char *node;               // host name
    const char *heading;            // which runs the values are from; "": none
    int width;                      // of the picture; a box that does not fit makes it wider
};

// ERR_NO_MEMORY is the only error; `out` may hold a part then.
int topology_picture_write(const struct topology_picture *p, struct buf *out, struct err *err);
