// SPDX-License-Identifier: Apache-2.0
// Where the boxes of a machine's picture lie. Cores are squares in their cache, caches lie in the
// card of their node, cards in the box of their package. All boxes flow from left to right and are
// wrapped where the picture ends.
#pragma once
#include "analysis/stats/node_costs.h"

enum {
    TOPOLOGY_WIDTH_MIN = 320, // pixels
    TOPOLOGY_WIDTH_MAX = 3840,
    TOPOLOGY_WIDTH = 1120,
    TOPOLOGY_CORES_MAX = 2048, // drawn one by one; more: one bar per cache
};

struct layout_box {
    double x, y, w, h;
};

struct layout_core {
    int node, l3, core; // index of the node and of the cache, number of the core
    int first, n;       // of its CPUs in layout.cpus
    struct layout_box box;
};

struct layout_cache {
    int l3;       // index into the topology's caches; -1: not known
    int first, n; // of its cores in layout.cores
    struct layout_box box;
};

struct layout_card { // of a node
    int node;        // index
    int first, n;    // of its caches in layout.caches; n 0: a node without CPUs
    struct layout_box box;
};

struct layout_group { // a package, or all nodes without CPUs
    int package;      // -1: of nodes without CPUs
    int first, n;     // of its cards in layout.cards
    struct layout_box box;
};

struct layout {
    const struct topology *topology; // borrowed
    const struct node_costs *costs;  // borrowed; NULL: cards have no values
    int most;                        // width of the picture
    const struct topo_cpu **cpus;    // by node, cache, core; all owned
    struct layout_core *cores;
    struct layout_cache *caches;
    struct layout_card *cards;
    struct layout_group *groups;
    int n_cpus, n_cores, n_caches, n_cards, n_groups;
    double core_side, core_step; // of a square, and from one to the next; 0: cores are one bar
    bool core_numbers;           // a square has room for its number
    double values_height;        // of a card's latency and bandwidth; 0: none is drawn
    double width, bottom;        // of all groups
};

enum {
    LAYOUT_MARGIN = 16,
    LAYOUT_PAD = 10,  // inside a box
    LAYOUT_GAP = 10,  // between boxes
    LAYOUT_HEAD = 24, // of a group or card: its name
    LAYOUT_CACHE_HEAD = 17,
};

// From `top` on. `costs` NULL: cards have no room for values. The caller calls
// topology_layout_fini, also on failure.
int topology_layout_init(struct layout *l, const struct topology *t, const struct node_costs *costs,
                         int width, double top, struct err *err);
void topology_layout_fini(struct layout *l);
