// SPDX-License-Identifier: Apache-2.0
// The configuration files of both daemons. What is taken prints as a file that reads as the same,
// and all sources of a collector can be listed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "daemon/config.h"
#include "fleet/settings/config.h"
#include "tests/fuzz/fuzz.h"

struct daemon_settings {
    const char *program;
    void *printed, *again, *used; // what is read of a file: to print it, of that print, to start
    int (*read)(void *settings, int argc, char **argv, struct err *err);
    void (*print)(const void *settings, FILE *out);
};

static char path[300], option[320];

void fuzz_config_begin(const char *dir)
{
    snprintf(path, sizeof path, "%s/conf", dir);
    snprintf(option, sizeof option, "--config=%s", path);
}

static char *print(const struct daemon_settings *d, const void *settings)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    fuzz_hold(out != NULL);
    d->print(settings, out);
    fclose(out);
    return text;
}

static int read_as(const struct daemon_settings *d, const char *wish, void *settings,
                   struct err *err)
{
    char program[40], action[40];
    char *argv[] = {program, option, action, NULL};
    snprintf(program, sizeof program, "%s", d->program);
    snprintf(action, sizeof action, "%s", wish);
    return d->read(settings, *wish ? 3 : 2, argv, err);
}

static void hold_settings(const struct daemon_settings *d, const uint8_t *data, size_t size)
{
    struct err err = {0};
    fuzz_write(path, data, size);
    fuzz_accepted = read_as(d, "--print-config", d->printed, &err) == 0;
    if (!fuzz_accepted) {
        fuzz_hold(err.code != ERR_NONE && *err.text);
        fuzz_hold(!str_control(err.text, strlen(err.text)));
        fuzz_hold(read_as(d, "", d->used, &err) < 0);
        return;
    }
    fuzz_hold(read_as(d, "", d->used, &err) == 0);
    char *first = print(d, d->printed);
    fuzz_write(path, first, strlen(first));
    fuzz_hold(read_as(d, "--print-config", d->again, &err) == 0);
    char *second = print(d, d->again);
    fuzz_hold(strcmp(first, second) == 0);
    free(first);
    free(second);
}

// ---- numaprobed ---------------------------------------------------------------------------------

static int node_read(void *settings, int argc, char **argv, struct err *err)
{
    enum settings_action action;
    return config_read(settings, argc, argv, &action, err);
}

static void node_print(const void *settings, FILE *out)
{
    config_print(settings, out);
}

void fuzz_config(const uint8_t *data, size_t size)
{
    static struct config printed, again, used;
    const struct daemon_settings d = {"numaprobed", &printed, &again, &used, node_read, node_print};
    hold_settings(&d, data, size);
}

// ---- numaprobe-fleetd ---------------------------------------------------------------------------

static int any_store(const char *where, struct err *err)
{
    (void)where;
    (void)err;
    return 0;
}

static int fleet_read(void *settings, int argc, char **argv, struct err *err)
{
    enum settings_action action;
    return fleetd_config_read(settings, argc, argv, any_store, &action, err);
}

static void fleet_print(const void *settings, FILE *out)
{
    fleetd_config_print(settings, out);
}

// A URL is shown without its query, which may be a key.
static void hold_sources(const struct fleetd_config *c)
{
    static char list[FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX], shown[FLEETD_SOURCE_MAX];
    int n = fleetd_sources(c, list, NULL);
    fuzz_hold(n >= 0 && n <= FLEETD_SOURCES_MAX);
    for (int i = 0; i < n; i++) {
        fleetd_source_shown(list[i], shown);
        fuzz_hold(!str_starts(shown, "http_sd:") || !strchr(shown, '=') || !strchr(list[i], '?') ||
                  strchr(shown, '=') < strchr(shown, '?'));
    }
}

void fuzz_fleet_config(const uint8_t *data, size_t size)
{
    static struct fleetd_config printed, again, used;
    const struct daemon_settings d = {"numaprobe-fleetd", &printed,   &again, &used,
                                      fleet_read,         fleet_print};
    hold_settings(&d, data, size);
    if (fuzz_accepted)
        hold_sources(&used);
}
