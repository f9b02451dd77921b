// SPDX-License-Identifier: Apache-2.0
// The daemon's configuration file. What is taken prints as a file that reads as the same.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config.h"
#include "tests/fuzz/fuzz.h"

static char path[300], option[320];

void fuzz_config_begin(const char *dir)
{
    snprintf(path, sizeof path, "%s/conf", dir);
    snprintf(option, sizeof option, "--config=%s", path);
}

static char *print(const struct config *c)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    fuzz_hold(out != NULL);
    config_print(c, out);
    fclose(out);
    return text;
}

static int read_as(const char *wish_option, struct config *c, struct err *err)
{
    char program[] = "numaprobed", check[40];
    char *argv[] = {program, option, check, NULL};
    enum settings_action action;
    snprintf(check, sizeof check, "%s", wish_option);
    return config_read(c, *wish_option ? 3 : 2, argv, &action, err);
}

void fuzz_config(const uint8_t *data, size_t size)
{
    static struct config c, again, used;
    struct err err = {0};
    fuzz_write(path, data, size);
    fuzz_accepted = read_as("--print-config", &c, &err) == 0;
    if (!fuzz_accepted) {
        fuzz_hold(err.code != ERR_NONE && *err.text);
        fuzz_hold(read_as("", &used, &err) < 0);
        return;
    }
    fuzz_hold(read_as("", &used, &err) == 0);
    char *first = print(&c);
    fuzz_write(path, first, strlen(first));
    fuzz_hold(read_as("--print-config", &again, &err) == 0);
    char *second = print(&again);
    fuzz_hold(strcmp(first, second) == 0);
    free(first);
    free(second);
}
