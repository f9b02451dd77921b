// SPDX-License-Identifier: Apache-2.0
// A machine as hwloc makes it from a synthetic description.
#pragma once
#include <stdlib.h>

#include "base/cleanup.h"
#include "core/node/hwloc.h"
#include "tests/unit/tap.h"

__attribute__((unused)) static struct topology synthetic(const char *text)
{
    struct topology t = {0};
    CLEANUP_MEM char *xml = NULL;
    struct err err = {0};
    setenv("HWLOC_SYNTHETIC", text, 1);
    if (probe_topology(&t, &xml, &err) < 0)
        printf("# %s\n", err.text);
    unsetenv("HWLOC_SYNTHETIC");
    return t;
}

// Large machines as hwloc's text for them: 192 cores in 24 nodes, 512 CPUs, 448 cores in 16
// sockets.
__attribute__((unused)) static const struct server_machine {
    const char *name, *text;
} servers[] = {
    {"2 sockets, 24 nodes, 192 cores",
     "pack:2 group:12 [numa(memory=34359738368)] l3:1(size=33554432) core:8 pu:1"},
    {"512 CPUs, 8 nodes",
     "pack:2 group:4 [numa(memory=68719476736)] l3:4(size=33554432) core:16 pu:1"},
    {"16 sockets, 16 nodes, 448 cores",
     "pack:16 [numa(memory=68719476736)] l3:1(size=40370176) core:28 pu:1"},
};
