// SPDX-License-Identifier: Apache-2.0
// Gives every file of a folder to the fuzz target that it is linked with: without the fuzzer, as a
// test.
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/tap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *folder, const char *name)
{
    char path[512];
    static uint8_t data[1 << 20];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        CHECK(false, "%s can be read", name);
        return;
    }
    size_t n = fread(data, 1, sizeof data, f);
    fclose(f);
    CHECK(LLVMFuzzerTestOneInput(data, n) == 0, "%s", name);
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (folder == NULL)
        return 1;
    for (struct dirent *e; (e = readdir(folder)) != NULL;)
        if (e->d_name[0] != '.')
            replay(argv[1], e->d_name);
    closedir(folder);
    CHECK(tap_count > 0, "there is a corpus");
    return tap_done();
}
