// SPDX-License-Identifier: Apache-2.0
// Reading results that were measured elsewhere: the table that numa_bench prints (with log lines
// around it), the wide CSV "size (MB),0,1,…" with an optional mapping "rank,cpu_id,cpu_numa,
// memory_numa", and our own JSON (a matrix, or an object with "matrices"). Pure: text in, nouns
// out. Cells of tables and CSV hold a median only.
#pragma once
#include "model/matrix.h"
#include "model/record.h"

enum import_format { IMPORT_TABLE, IMPORT_CSV, IMPORT_JSON };

enum { IMPORT_MATRICES_MAX = 4, IMPORT_RANKS_MAX = 1024, IMPORT_SIZES_MAX = 64 };

struct import {
    enum import_format format; // as recognised
    int n_matrices;
    struct matrix matrices[IMPORT_MATRICES_MAX];
    int n_ranks;
    struct rank_info *ranks; // owned; one a row, -1 for what is not known; NULL: nothing known
    char method[40];         // from JSON; "" else
};

// `mode` names the matrix of a table or CSV: "concurrent" or "serial"; NULL: "concurrent". The
// mapping may be NULL. ERR_INVALID has "line N" as its member and says what is wrong there;
// *out is untouched then.
int import_parse(struct import *out, const char *text, size_t len, const char *mapping,
                 size_t mapping_len, const char *mode, struct err *err);
void import_fini(struct import *i);
