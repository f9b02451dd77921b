// SPDX-License-Identifier: Apache-2.0
// A module is mcN/dimmM or, of drivers of another kind, mcN/rankM. Its file dimm_location is a list
// of layers from the controller down, such as "channel 3 slot 0", "csrow 1 channel 0" or
// "branch 0 channel 1 slot 0".
#include "core/node/memory_channels.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "core/node/memory_controllers.h"

enum {
    CHANNELS_MAX = 256, // of a controller
    BRANCH_CHANNELS = 16,
};

// The number after a layer's name; -1: there is no such layer.
static long layer_of(const char *location, const char *name)
{
    const char *at = strstr(location, name);
    char *end;
    long value = at ? strtol(at + strlen(name), &end, 10) : -1;
    return at && end > at + strlen(name) ? value : -1;
}

// -1: no module, or none that a driver places.
static long channel_of(const char *folder, const char *module)
{
    char location[128], size[32];
    if ((!str_starts(module, "dimm") && !str_starts(module, "rank")) ||
        file_read_fmt(size, sizeof size, "%s/%.40s/size", folder, module) < 0 ||
        strtol(size, NULL, 10) <= 0 ||
        file_read_fmt(location, sizeof location, "%s/%.40s/dimm_location", folder, module) < 0)
        return -1;
    long branch = layer_of(location, "branch "), channel = layer_of(location, "channel ");
    if (channel < 0 || channel >= (branch < 0 ? CHANNELS_MAX : BRANCH_CHANNELS))
        return -1;
    long all = branch < 0 ? channel : branch * BRANCH_CHANNELS + channel;
    return all < CHANNELS_MAX ? all : -1;
}

// Appends ", mc0 0-3". Returns how many channels.
static int controller_write(const char *folder, const char *name, struct buf *out)
{
    bool used[CHANNELS_MAX] = {0};
    int list[CHANNELS_MAX], n = 0;
    char text[CHANNELS_MAX * 4];
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        long channel = channel_of(folder, e->d_name);
        if (channel >= 0)
            used[channel] = true;
    }
    if (dir)
        closedir(dir);
    for (int i = 0; i < CHANNELS_MAX; i++)
        if (used[i])
            list[n++] = i;
    if (n == 0)
        return 0;
    str_from_ids(list, n, text, sizeof text);
    buf_fmt(out, "%s%s %s", out->len ? ", " : "", name, text);
    return n;
}

void memory_channels_describe(const char *root, char *out, size_t room)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    CLEANUP_MEM int *numbers = NULL;
    char folder[600], name[16];
    int n = memory_controllers_list(&numbers, root), channels = 0;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "mc%d", numbers[i]);
        snprintf(folder, sizeof folder, "%s/" MEMORY_CONTROLLERS "/%s", root, name);
        channels += controller_write(folder, name, &text);
    }
    *out = '\0';
    if (channels > 0)
        snprintf(out, room, "%d: %s", channels, buf_text(&text));
}
