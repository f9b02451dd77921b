// SPDX-License-Identifier: Apache-2.0
// Limits of memory, CPU time and tasks, other jobs of the node and the cgroups of a run are all
// found from here. Inside a container the path may lead out of what is mounted: then the root of
// the mount, which own_cgroups_up() reaches last, is the group.
#include "base/own_cgroups.h"

#include <string.h>

#include "base/cleanup.h"

void own_cgroups_open(struct own_cgroups *g, const char *root)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    g->f = fopen(path, "re");
}

void own_cgroups_close(struct own_cgroups *g)
{
    file_cleanup(&g->f);
}

bool own_cgroups_next(struct own_cgroups *g)
{
    while (g->f && fgets(g->line, sizeof g->line, g->f)) {
        g->line[strcspn(g->line, "\n")] = '\0';
        char *controllers = strchr(g->line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        g->controllers = controllers + 1;
        g->path = strcmp(path, "/") == 0 ? path + 1 : path;
        return true;
    }
    return false;
}

bool own_cgroups_next_v2(struct own_cgroups *g)
{
    while (own_cgroups_next(g))
        if (!*g->controllers)
            return true;
    return false;
}

bool own_cgroups_has(const struct own_cgroups *g, const char *controller)
{
    size_t n = strlen(controller);
    for (const char *at = g->controllers; *at; at += *at == ',') {
        size_t here = strcspn(at, ",");
        if (here == n && strncmp(at, controller, n) == 0)
            return true;
        at += here;
    }
    return false;
}

bool own_cgroups_up(struct own_cgroups *g)
{
    char *cut = strrchr(g->path, '/');
    if (cut)
        *cut = '\0';
    return cut;
}
