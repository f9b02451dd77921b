// SPDX-License-Identifier: Apache-2.0
// The user's configuration file of the command line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/config.h"
#include "tests/fuzz/fuzz.h"

static char path[300];

void fuzz_client_config_begin(const char *dir)
{
    setenv("XDG_CONFIG_HOME", dir, 1);
    snprintf(path, sizeof path, "%s/numaprobe", dir);
    fuzz_hold(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/numaprobe/config", dir);
}

void fuzz_client_config(const uint8_t *data, size_t size)
{
    struct cli c = {0};
    struct err err = {0};
    fuzz_write(path, data, size);
    fuzz_accepted = config_load(&c, &err) == 0;
    if (!fuzz_accepted)
        fuzz_hold(err.code != ERR_NONE && *err.text);
    else
        fuzz_hold(c.timeout_s >= 1 && c.timeout_s <= 3600 && c.output >= OUTPUT_TABLE &&
                  c.output <= OUTPUT_CSV && memchr(c.url, '\0', sizeof c.url));
}
