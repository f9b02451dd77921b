// SPDX-License-Identifier: Apache-2.0
// The two published LUMI-G tables (tests/data/README.md).
#pragma once
#include <stdio.h>

#include "formats/import.h"
#include "tests/unit/data.h"

static int published_load(struct import *i, const char *mode)
{
    static char text[1 << 16];
    char name[64], path[512];
    snprintf(name, sizeof name, "results/lumig-8ranks-%s.txt", mode);
    data_path(path, sizeof path, name);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return -1;
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    return import_parse(i, text, n, NULL, 0, mode, NULL);
}
