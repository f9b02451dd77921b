// SPDX-License-Identifier: Apache-2.0
// Files of tests/data: recorded machines and published results.
#pragma once
#include <stdio.h>
#include <stdlib.h>

// The path of tests/data/NAME. meson gives the project's folder as NUMAPROBE_SOURCE; a test that is
// started by hand there needs nothing.
static void data_path(char *out, size_t room, const char *name)
{
    const char *source = getenv("NUMAPROBE_SOURCE");
    snprintf(out, room, "%s/tests/data/%s", source ? source : ".", name);
}
