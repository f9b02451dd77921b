// SPDX-License-Identifier: Apache-2.0
// Whether a program's output is where it belongs: a first part may have failed, and the last not.
#pragma once
#include <stdbool.h>
#include <stdio.h>

static inline bool all_written(FILE *out)
{
    return fflush(out) == 0 && !ferror(out);
}

// The exit status of a program that has written to its standard output. A failure is reported.
static inline int written_status(const char *program)
{
    if (all_written(stdout))
        return 0;
    fprintf(stderr, "%s: the output could not be written\n", program);
    return 1;
}
