// SPDX-License-Identifier: Apache-2.0
// The cgroups of this process, as /proc/self/cgroup has them: "0::/a/b" (v2) or
// "4:cpu,cpuacct:/a/b" (v1), one per line.
#pragma once
#include <stdbool.h>
#include <stdio.h>

struct own_cgroups {
    FILE *f; // NULL: there is no such file
    char line[4200];
    const char *controllers; // "" is v2
    char *path;              // "/a/b"; "" is the root of the mount. May be cut
};

void own_cgroups_open(struct own_cgroups *g, const char *root);
void own_cgroups_close(struct own_cgroups *g);
// The next line: fills `controllers` and `path`. False: no more, or it cannot be read (ferror).
bool own_cgroups_next(struct own_cgroups *g);
// The next line of v2.
bool own_cgroups_next_v2(struct own_cgroups *g);
// A line of v1 has this controller: "cpuset,memory" has memory, "name=memory" has not.
bool own_cgroups_has(const struct own_cgroups *g, const char *controller);
// Cuts `path` to the group above. False: it was the root of the mount.
bool own_cgroups_up(struct own_cgroups *g);
