// SPDX-License-Identifier: Apache-2.0
// One table for each quantity: a row for each node whose CPUs measured, a column for each node
// whose memory was measured.
#include "client/topo_measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/print.h"

enum { COLUMN_WIDTH = 8 };
static const double mbps_per_gbps = 1000;

static const struct json *element(const struct json *array, int index)
{
    const struct json *k = json_first(array);
    for (int i = 0; k && i < index; i++)
        k = json_next(k);
    return k;
}

static double grid_value_at(const struct json *values, int row, int col)
{
    double v;
    return json_number(element(element(values, row), col), &v) ? v : NAN;
}

// Does the row or column have a value?
static bool line_has_value(const struct json *values, int nodes, int line, bool is_row)
{
    for (int i = 0; i < nodes; i++)
        if (isfinite(is_row ? grid_value_at(values, line, i) : grid_value_at(values, i, line)))
            return true;
    return false;
}

static void print_quantity(const struct json *topology, const struct json *quantity)
{
    const struct json *nodes = json_get(topology, "nodes"), *values = json_get(quantity, "values");
    CLEANUP_BUF struct buf title = BUF_INIT;
    int n = json_count(nodes);
    bool more = json_get_bool(quantity, "more_is_better", false);
    buf_plain(&title, json_get_text(quantity, "title", "?"));
    printf("\n%s (%s), CPUs of a node (row) to memory of a node (column)\nNODE  ", buf_text(&title),
           more ? "GB/s" : "ns");
    for (int j = 0; j < n; j++)
        if (line_has_value(values, n, j, false))
            printf("%*lld", COLUMN_WIDTH, (long long)json_get_i64(element(nodes, j), "node", -1));
    putchar('\n');
    for (int i = 0; i < n; i++) {
        if (!line_has_value(values, n, i, true))
            continue;
        printf("%-6lld", (long long)json_get_i64(element(nodes, i), "node", -1));
        for (int j = 0; j < n; j++) {
            double v = grid_value_at(values, i, j);
            if (!line_has_value(values, n, j, false))
                continue;
            if (isfinite(v))
                printf("%*.1f", COLUMN_WIDTH, more ? v / mbps_per_gbps : v);
            else
                printf("%*s", COLUMN_WIDTH, "-");
        }
        putchar('\n');
    }
}

static void print_run(const struct json *run)
{
    CLEANUP_BUF struct buf what = BUF_INIT;
    buf_plain(&what, json_get_text(run, "benchmark", "?"));
    buf_str(&what, ", ");
    buf_plain(&what, json_get_text(run, "measured", "at an unknown time"));
    printf("run %lld: %s; cells that count: %lld", (long long)json_get_i64(run, "run", 0),
           buf_text(&what), (long long)json_get_i64(run, "cells", 0));
    long long disturbed = (long long)json_get_i64(run, "disturbed", 0),
              unverified = (long long)json_get_i64(run, "not_verified", 0);
    if (disturbed || unverified)
        printf(", left out: %lld disturbed, %lld not verified", disturbed, unverified);
    putchar('\n');
}

void topo_measured_print(const struct json *topology)
{
    const struct json *measured = json_get(topology, "measured");
    for (const struct json *q = json_first(json_get(measured, "quantities")); q; q = json_next(q))
        print_quantity(topology, q);
    putchar('\n');
    for (const struct json *r = json_first(json_get(measured, "runs")); r; r = json_next(r))
        print_run(r);
}
