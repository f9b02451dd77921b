// SPDX-License-Identifier: Apache-2.0
// The types of a picture: the matrix that is drawn, with its heading and marks, and its limits.
#pragma once
#include "model/matrix.h"
#include "model/record.h"
#include "model/run.h"
#include "model/spec.h"
#include "model/topology.h"

enum {
    PLOT_LINES_MAX = 12,  // rows with a line each; more are drawn as a band a node
    PLOT_GROUPS_MAX = 8,  // colours that can be distinguished; more nodes: one band for all
    PLOT_ODD_MAX = 4,     // rows drawn over the bands, those that lie apart most
    PLOT_DOTS_MAX = 64,   // values of a line up to which each has a dot with its numbers
    PLOT_TILES_MAX = 256, // each way; larger heat maps show the median of several cells in a tile
    PLOT_TIPS_MAX = 4096, // tiles of a heat map up to which each has its value as its title
    PLOT_TEXTS_MAX = 24,  // rows and columns up to which the values stand in a heat map's cells
    PLOT_MARKS_MAX = 8,
    PLOT_TEXT_WIDTH_MIN = 48, // axis, names and some twenty columns between
    PLOT_TEXT_WIDTH_MAX = 160,
    // The largest: 256 x 256 tiles of at most 17 bytes ("M255 255h1v1h-1z") are 1.1 MB; lines have
    // at most 12 x 64 dots of 250 bytes and 13 paths of 1024 points of 16 bytes, 0.4 MB.
    PLOT_BYTES_MAX = 2 << 20,
};

struct plot_mark { // a capacity on the axis of working sets
    char label[24];
    int64_t bytes;
};

struct plot_curve { // of one mix of reads and writes; borrowed
    const char *name;
    const struct matrix *latency, *bandwidth;
};

struct plot {
    const struct matrix *matrix;
    const struct matrix
        *bandwidth; // of the same ranks and loads: latency is drawn against it; NULL
    int n_family;   // curves of several mixes, drawn together; 0 or 1: the matrix alone
    struct plot_curve family[SPEC_MIXES_MAX];
    const struct rank_info *ranks; // may be NULL or lack ranks
    int n_ranks;
    const struct run *run; // what the heading says: node, number, date, benchmark, method
    int n_marks;
    struct plot_mark marks[PLOT_MARKS_MAX];
};

// For a terminal: a picture of characters.
struct plot_text {
    int width, height; // characters: of the whole, from PLOT_TEXT_WIDTH_MIN to …MAX; of the lines
    bool unicode;      // else ASCII
    bool colour;       // ANSI sequences
};
