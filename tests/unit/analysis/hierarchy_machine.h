// SPDX-License-Identifier: Apache-2.0
// The matrices of a hierarchy run on a machine whose terms are known: 4 GHz, caches of 32 KiB, 1
// MiB and 32 MiB, TLBs of 64 and 1,536 entries (32 of huge pages), 12 loads at once, two nodes.
#pragma once
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/shape.h"

enum { HIERARCHY_PARTS = 8, HIERARCHY_COLUMNS_MAX = 128 };

static double hierarchy_time(const char *matrix, double x)
{
    if (strcmp(matrix, "latency") == 0)
        return x <= 32768      ? 1.25
               : x <= 1 << 20  ? 3.5
               : x <= 32 << 20 ? 12.5
                               : 98 - 85.5 * (32 << 20) / x;
    if (strcmp(matrix, "base_pages") == 0)
        return 1.25 + (x > 512) * 2.25 + (x > 64) * 2 + (x > 1536) * 20;
    if (strcmp(matrix, "packed") == 0)
        return 1.25 + (x > 512) * 2.25;
    if (strcmp(matrix, "huge_pages") == 0)
        return 1.25 + (x > 512) * 2.25 + (x > 32) * 3;
    if (strcmp(matrix, "parallel") == 0)
        return 96 / fmin(x, 12);
    if (strcmp(matrix, "stride") == 0)
        return x < 4096 ? 8 : 48;
    if (strcmp(matrix, "cycle") == 0)
        return 0.25;
    return x > 0 ? 159 : 96;
}

static int hierarchy_columns(const char *axis, int64_t values[HIERARCHY_COLUMNS_MAX])
{
    int n = 0;
    if (strcmp(axis, "working_set") == 0)
        for (double at = 4096; at < 1.01 * (512 << 20); at *= exp2(0.25))
            values[n++] = (int64_t)(at / 64 + 0.5) * 64;
    else if (strcmp(axis, "pages") == 0)
        for (double at = 16; at < 1.01 * 16384; at *= exp2(0.125)) {
            values[n] = (int64_t)(at + 0.5);
            n += !n || values[n] > values[n - 1];
        }
    else if (strcmp(axis, "chains") == 0)
        for (int i = 1; i <= 32; i++)
            values[n++] = i;
    else if (strcmp(axis, "stride") == 0)
        for (int i = 64; i <= 4096; i *= 2)
            values[n++] = i;
    else
        for (int i = 0; i < 2; i++)
            values[n++] = i;
    return n;
}

// Rows of `ranks`, all alike. Each cell has its interval of 1 %.
static int hierarchy_matrices(struct matrix m[HIERARCHY_PARTS], int ranks)
{
    struct spec s;
    struct shape list[SHAPES_MAX];
    spec_init(&s, BENCHMARK_HIERARCHY);
    int n = shape_list(&s, list);
    for (int i = 0; i < n; i++) {
        int64_t values[HIERARCHY_COLUMNS_MAX];
        int columns = hierarchy_columns(list[i].cols, values);
        columns = strcmp(list[i].name, "cycle") == 0 ? 1 : columns;
        if (shape_make(&m[i], &list[i], ranks, columns, NULL) < 0)
            return -1;
        for (int c = 0; c < columns; c++)
            m[i].col.values[c] = values[c];
        for (int k = 0; k < ranks * columns; k++) {
            double v = hierarchy_time(list[i].name, (double)values[k % columns]);
            m[i].cells[k].v[CELL_N] = 16;
            m[i].cells[k].v[CELL_DISTURBED] = 0;
            m[i].cells[k].v[CELL_MEDIAN] = v;
            m[i].cells[k].v[CELL_LO] = 0.99 * v;
            m[i].cells[k].v[CELL_HI] = 1.01 * v;
        }
    }
    return n;
}
