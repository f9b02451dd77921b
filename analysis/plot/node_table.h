// SPDX-License-Identifier: Apache-2.0
// What memory costs from node to node as a table of coloured cells: a row for each node whose CPUs
// measured, a column for each node whose memory was measured.
#pragma once
#include "analysis/stats/node_costs.h"
#include "base/buf.h"

enum { NODE_TABLE_MAX = 48 };  // nodes each way; larger tables: the first
#define NODE_TABLE_MBPS 1000.0 // MB/s of one GB/s

struct node_table {
    const struct node_costs *costs; // borrowed
    enum node_cost_kind kind;
    int n_rows, n_cols; // indices of the topology's nodes
    int rows[NODE_TABLE_MAX], cols[NODE_TABLE_MAX];
    int left_out;       // nodes beyond the limit
    double least, most; // of the values
    double lo, hi;      // of the colours
    double cell_w, cell_h;
    bool texts; // values stand in the cells
    double width, height;
};

// In a width of `most`, if that can be.
struct node_table node_table_of(const struct node_costs *c, enum node_cost_kind kind, double most);
void node_table_draw(const struct node_table *t, double x, double y, struct buf *out);
