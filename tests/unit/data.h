// SPDX-License-Identifier: Apache-2.0
// Files of the project that unit tests read: documents, recorded machines, published results,
// fakes.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// The path of a file of the project. The build has its folder (SOURCE_ROOT), so a test can be
// started anywhere; NUMAPROBE_SOURCE replaces it. A file that is missing ends the test.
static void source_path(char *out, size_t room, const char *name)
{
    const char *source = getenv("NUMAPROBE_SOURCE");
    snprintf(out, room, "%s/%s", source ? source : SOURCE_ROOT, name);
    if (access(out, F_OK) == 0)
        return;
    printf("Bail out! %s is missing: set NUMAPROBE_SOURCE to the folder of the project\n", out);
    exit(1);
}

// The path of tests/data/NAME.
__attribute__((unused)) static void data_path(char *out, size_t room, const char *name)
{
    char within[300];
    snprintf(within, sizeof within, "tests/data/%s", name);
    source_path(out, room, within);
}
