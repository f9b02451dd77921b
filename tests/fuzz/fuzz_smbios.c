// SPDX-License-Identifier: Apache-2.0
// Any bytes as the tables of the firmware. Texts stay in their room, and can be printed.
#include <stdlib.h>
#include <string.h>

#include "core/node/dimms.h"
#include "tests/fuzz/fuzz.h"

void fuzz_smbios(const uint8_t *data, size_t size)
{
    char modules[DIMMS_TEXT_ROOM], speed[DIMMS_TEXT_ROOM];
    unsigned char *exact = malloc(size ? size : 1); // no NUL behind it
    fuzz_hold(exact != NULL);
    if (size)
        memcpy(exact, data, size);
    dimms_describe(exact, size, modules, speed);
    fuzz_hold(strlen(modules) < sizeof modules && strlen(speed) < sizeof speed);
    for (const char *c = modules; *c; c++)
        fuzz_hold(*c >= ' ' && *c <= '~');
    fuzz_hold(!*modules == !strstr(modules, "slots") || strlen(modules) == sizeof modules - 1);
    free(exact);
}
