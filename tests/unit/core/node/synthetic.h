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
