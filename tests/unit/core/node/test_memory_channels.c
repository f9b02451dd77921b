// SPDX-License-Identifier: Apache-2.0
// What EDAC says of channels: recorded layouts of several drivers, and what is no module.
#include "core/node/memory_channels.h"

#include <stdio.h>

#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

static char root[64];

static void add(const char *module, const char *size, const char *location)
{
    char path[200];
    snprintf(path, sizeof path, "sys/devices/system/edac/mc/%s/size", module);
    dir_write(root, path, size);
    snprintf(path, sizeof path, "sys/devices/system/edac/mc/%s/dimm_location", module);
    dir_write(root, path, location);
}

static void is(const char *expected, const char *what)
{
    char text[200];
    memory_channels_describe(root, text, sizeof text);
    CHECK_STR(text, expected, "%s", what);
}

int main(void)
{
    dir_make(root);
    is("", "no driver");
    dir_write(root, "sys/devices/system/edac/mc/uevent", "");
    is("", "a driver without controllers");
    add("mc0/dimm0", "32768\n", "channel 0 slot 0 \n");
    add("mc0/dimm1", "32768\n", "channel 0 slot 1 \n");
    add("mc0/dimm2", "0\n", "channel 1 slot 0 \n");
    add("mc0/dimm4", "32768\n", "channel 2 slot 0 \n");
    is("2: mc0 0,2", "two modules on a channel are one channel, an empty slot is none");
    add("mc10/rank0", "16384\n", "csrow 0 channel 11 \n");
    add("mc2/rank3", "16384\n", "csrow 1 channel 0 \n");
    is("4: mc0 0,2, mc2 0, mc10 11", "ranks, and controllers in the order of their numbers");
    add("mc2/dimm7", "16384\n", "branch 1 channel 1 slot 0 \n");
    is("5: mc0 0,2, mc2 0,17, mc10 11", "channel 1 of another branch is another channel");
    add("mc3/dimm0", "16384\n", "channel 256 slot 0 \n");
    add("mc3/dimm1", "16384\n", "channel -1 slot 0 \n");
    add("mc3/dimm2", "16384\n", "channel slot\n");
    add("mc3/csrow0", "16384\n", "channel 1 slot 0 \n");
    add("mcx/dimm0", "16384\n", "channel 1 slot 0 \n");
    is("5: mc0 0,2, mc2 0,17, mc10 11", "what no driver writes counts for nothing");
    dir_remove(root);
    return tap_done();
}
