// SPDX-License-Identifier: Apache-2.0
// Recorded /sys trees: unpacked into a directory of their own and read through hwloc.
#pragma once
#include <dirent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/node/hwloc.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/data.h"

extern char **environ;

__attribute__((unused)) static bool unpack(const char *archive, const char *dir)
{
    const char *argv[] = {"tar", "-xjf", archive, "-C", dir, "--no-same-owner", NULL};
    pid_t pid;
    int status = -1;
    if (posix_spawnp(&pid, "tar", NULL, NULL, (char **)(void *)argv, environ) == 0)
        waitpid(pid, &status, 0);
    return status == 0;
}

// The machine of tests/data/topologies/NAME.tar.bz2; false when it cannot be read.
__attribute__((unused)) static bool recorded_topology(const char *name, struct topology *t)
{
    char file[100], archive[600], root[700], dir[64];
    snprintf(file, sizeof file, "topologies/%s.tar.bz2", name);
    data_path(archive, sizeof archive, file);
    // In memory where that is to be had: thousands of tiny files are slow on some disks.
    snprintf(dir, sizeof dir, "%s/numaprobe-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(dir))
        return false;
    bool ok = unpack(archive, dir);
    struct dirent **list = NULL;
    int n = ok ? scandir(dir, &list, NULL, alphasort) : 0;
    snprintf(root, sizeof root, "%s", dir);
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.')
            snprintf(root, sizeof root, "%s/%s", dir, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    setenv("HWLOC_FSROOT", root, 1);
    setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    char *xml = NULL;
    ok = ok && probe_topology(t, &xml, NULL) == 0;
    unsetenv("HWLOC_FSROOT");
    unsetenv("HWLOC_COMPONENTS");
    free(xml);
    dir_remove(dir);
    return ok;
}
