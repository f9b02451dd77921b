// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/core/dir.h"

bool fuzz_accepted;

const struct fuzz_target fuzz_targets[] = {
    {"request", fuzz_request_begin, fuzz_request, true, 20000},
    {"http", NULL, fuzz_http, false, 50000},
    {"api", fuzz_api_begin, fuzz_api, false, 1500},
    {"records", fuzz_records_begin, fuzz_records, true, 10000},
    {"config", fuzz_config_begin, fuzz_config, true, 5000},
    {"tokens", fuzz_tokens_begin, fuzz_tokens, true, 5000},
    {"import", NULL, fuzz_import, true, 5000},
    {"client", fuzz_client_begin, fuzz_client, false, 10000},
    {"client_config", fuzz_client_config_begin, fuzz_client_config, true, 5000},
    {"smbios", NULL, fuzz_smbios, false, 20000},
    {"summary", NULL, fuzz_summary, true, 5000},
    {"feed", fuzz_feed_begin, fuzz_feed, true, 5000},
    {"topology", NULL, fuzz_topology, true, 1000},
    {"nodeset", NULL, fuzz_nodeset, true, 5000},
    {"sd", NULL, fuzz_sd, true, 5000},
    {"srv", NULL, fuzz_srv, true, 20000},
    {"fleet_config", fuzz_config_begin, fuzz_fleet_config, true, 5000},
    {"groups", fuzz_groups_begin, fuzz_groups, true, 5000},
    {"facts", NULL, fuzz_facts, true, 20000},
    {"reference", NULL, fuzz_reference, true, 10000},
    {"readings", fuzz_readings_begin, fuzz_readings, false, 1000},
    {0},
};

const struct fuzz_target *fuzz_find(const char *name)
{
    for (const struct fuzz_target *t = fuzz_targets; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

static char dir[256];

static void remove_dir(void)
{
    dir_remove(dir);
}

void fuzz_begin(const struct fuzz_target *t)
{
    const char *below = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dir, sizeof dir, "%s/numaprobe-fuzz-XXXXXX", below);
    fuzz_hold(mkdtemp(dir) != NULL);
    atexit(remove_dir);
    if (t->begin)
        t->begin(dir);
}

_Noreturn void fuzz_broken(const char *promise, const char *file, int line)
{
    fprintf(stderr, "%s:%d: broken: %s\n", file, line, promise);
    abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_hold(text != NULL);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

void fuzz_write(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_hold(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}
