// SPDX-License-Identifier: Apache-2.0
// The types of a comparison: what goes in, the differences of cells and groups, and the verdict.
// compare.h has the functions, and the method.
#pragma once
#include <stdbool.h>

#include "model/fingerprint.h"
#include "model/matrix.h"
#include "model/record.h"
#include "model/spec.h"

enum verdict { VERDICT_SAME, VERDICT_SLOWER, VERDICT_FASTER, VERDICT_INCONCLUSIVE, VERDICTS };
extern const char *const verdict_names[VERDICTS];

// `p` is corrected. Differences are of B against A, in per cent of A, whatever is better; lo…hi
// covers 95 %. The verdict knows what is better: less bandwidth is slower.
struct difference {
    bool exists; // of pairs of ranks, each is measured once: half of the cells do not exist
    double a, b; // medians; for groups geometric means
    double percent, lo, hi;
    double p;           // NaN: cannot be known
    double error, df;   // of the log of the ratio, and its degrees of freedom; NaN: not known
    bool known;         // false: single values, no statement about this cell alone
    int cells;          // that took part
    int slower, faster; // cells of the group with that verdict
    bool within_noise;  // beyond the threshold, but no more than options.noise_percent: the same
    enum verdict verdict;
};

// Groups that a comparison has follow from its axes.
enum compare_by {
    COMPARE_OVERALL,
    COMPARE_SIZE,     // working set in bytes
    COMPARE_RANK,     // of A; between ranks: all pairs that the rank is in
    COMPARE_NODE,     // memory node of a rank; between ranks: both on it
    COMPARE_LOCALITY, // 0: a node and its own memory, or two ranks of a node; 1: others
    COMPARE_TARGET,
    COMPARE_INITIATOR,
    COMPARE_SOURCE,
    COMPARE_THREADS,
    COMPARE_PAIR,    // axis_pair of A's ranks
    COMPARE_MESSAGE, // bytes
    COMPARE_OPERATION,
    COMPARE_LINE, // 1 is the fastest of a pair's
    COMPARE_ACCESS,
    COMPARE_LOAD, // per cent
    COMPARE_PATH, // axis_pair of nodes: with CPUs, with memory
    COMPARE_PART, // none of these alone: a rank from a size on, a node's ranks and a target …
    COMPARE_BYS
};

struct compare_group {
    enum compare_by by;
    int64_t value; // 0 for overall
    struct difference d;
};
// A part of the table that moved by itself: a row, a column, a block, or a single cell. Parts have
// no cell in common.
struct compare_part {
    enum compare_by by; // COMPARE_PART: `value` says nothing
    int64_t value;
    char name[96]; // "memory of node 3", "rank 5 from 64MB on"
    struct difference d;
};

struct compare_side {
    const struct matrix *matrix;
    const char *method;            // NULL or "": not known
    const struct spec *spec;       // what was requested; NULL: not known
    const char *launcher;          // "mpi", "processes"; NULL: not known
    const char *node;              // host name; NULL: not known
    const struct rank_info *ranks; // in any order; NULL: not known
    int n_ranks;
    const struct fingerprint *fingerprint; // NULL: not known
};

struct compare_options {
    double threshold_percent; // differences that are significantly smaller do not matter
    double noise_percent;     // what whole runs differ by, as a factor: less is the same; 0 or NaN:
                              // unknown
    double level;             // false discovery rate of cells, and of groups
    bool allow_different;     // compare although the two ask different questions; warns instead
};
#define COMPARE_DEFAULTS ((struct compare_options){.threshold_percent = 3, .level = 0.005})

enum { COMPARE_NOTES_MAX = 24, COMPARE_NOTE_ROOM = 240, COMPARE_PARTS_MAX = 10 };

struct comparison {
    int rows, cols;               // aligned
    int *row_a, *row_b;           // rows of A and B that belong together; owned
    int *col_a, *col_b;           // owned
    struct difference *cells;     // rows × cols; owned
    struct compare_group *groups; // overall first; owned
    int n_groups;
    // What all that comes to, and the one verdict on the two matrices: everything that states one
    // states this (docs/VERDICTS.md, "The verdict").
    enum verdict verdict;
    int n_parts; // the worst first
    bool more_parts;
    struct compare_part parts[COMPARE_PARTS_MAX];
    struct difference
        rest;       // of cells in no part; without parts: overall. cells is 0 if there are none
    bool identical; // every value is in both: a run beside itself, or its copy
    // Per cent by which all cells together must be slower to be called so in 80 of 100 such
    // comparisons, of a bandwidth by how many less it must be; NaN: not known, or beyond a factor
    // of ten.
    double detectable;
    bool more_is_better;
    bool single_values; // most cells hold one value only: cells cannot be judged, groups are
    int n_notes;        // what differs, what was aligned, what cannot be known
    char notes[COMPARE_NOTES_MAX][COMPARE_NOTE_ROOM];
};

// Two runs: all matrices that both have.
struct conclusion_part {
    char matrix[24], unit[8];
    struct compare_part part;
};

struct conclusion {
    enum verdict verdict;
    int matrices, slower;           // added; of these slower. 0 matrices: nothing was compared
    bool within_noise;              // of a cell, group or part
    struct conclusion_part worst;   // the worst part that is slower; else `overall`
    struct conclusion_part overall; // all cells of the matrix that is worst
    char text[400];                 // of that matrix
};
