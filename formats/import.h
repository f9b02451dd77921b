// SPDX-License-Identifier: Apache-2.0
// Reading results that were measured elsewhere: the tables that numa_bench prints (with log lines
// around them), the wide CSV "size (MB),0,1,…" with an optional mapping "rank,cpu_id,cpu_numa,
// memory_numa", and our own JSON (a matrix, or an object with "matrices"). Pure: text in, nouns
// out. Cells of tables and CSV hold a median only. Whole runs: formats/intake.h.
#pragma once
#include "formats/log_hints.h"
#include "model/matrix.h"
#include "model/record.h"
#include "model/shape.h"

enum import_format { IMPORT_TABLE, IMPORT_CSV, IMPORT_JSON };

enum {
    IMPORT_MATRICES_MAX = SHAPES_MAX, // of one run
    IMPORT_RANKS_MAX = 1024,          // as SPEC_RANKS_MAX
    IMPORT_SIZES_MAX = 48,            // as SPEC_SIZES_MAX
    IMPORT_LINE_MAX = 1 << 16, // a row of CSV with a value of 16 characters a rank fits four times
    // A table has 50, what a job printed around it some thousands; so many are read in 50 ms.
    IMPORT_LINES_MAX = 100000,
    // Of one document: two modes of 1024 ranks x 48 sizes are 98,304. So many take 1.5 s.
    IMPORT_CELLS_MAX = 1 << 18,
};

#define IMPORT_SIZE_MAX ((uint64_t)1 << 50) // of a working set, in bytes

struct import {
    enum import_format format; // as recognised
    int n_matrices;
    struct matrix matrices[IMPORT_MATRICES_MAX];
    int n_ranks;
    struct rank_info *ranks; // owned; one a row of tables and CSV, -1 for what is not known
    bool placed;             // ranks say where they ran
    bool mode_known;         // not only assumed
    struct hints hints;      // of the log lines; the method of JSON
};

// `mode` names the matrix of a table or CSV: "concurrent" or "serial"; NULL: as log lines say, else
// "concurrent". A text may hold one table a mode, of the same ranks and sizes. The mapping may be
// NULL. ERR_INVALID has "line N" as its member, or "mapping", and says what is wrong there; *out is
// untouched then.
int import_parse(struct import *out, const char *text, size_t len, const char *mapping,
                 size_t mapping_len, const char *mode, struct err *err);
// The same of a matrix, or of an object with "matrices" and perhaps "ranks" and "method".
int import_from_json(struct import *out, const struct json *root, struct err *err);
int import_check_cells(int64_t cells, struct err *err); // ERR_TOO_LARGE
void import_fini(struct import *i);
