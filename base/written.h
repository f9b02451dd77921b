// SPDX-License-Identifier: Apache-2.0
// Whether a program's output is where it belongs: a first part may have failed, and the last not.
#pragma once
#include <stdbool.h>
#include <stdio.h>

static inline bool all_written(FILE *out)
{
    return fflush(out) == 0 && !ferror(out);
}
