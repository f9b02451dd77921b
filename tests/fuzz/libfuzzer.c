// SPDX-License-Identifier: Apache-2.0
// The main that libFuzzer brings along; NUMAPROBE_FUZZ names the target.
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("NUMAPROBE_FUZZ");
    (void)argc, (void)argv;
    target = name ? fuzz_find(name) : NULL;
    if (!target) {
        fputs("NUMAPROBE_FUZZ must name a target:", stderr);
        for (const struct fuzz_target *t = fuzz_targets; t->name; t++)
            fprintf(stderr, " %s", t->name);
        fputs("\n", stderr);
        _Exit(2);
    }
    fuzz_begin(target);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    target->run(data, size);
    return 0;
}
