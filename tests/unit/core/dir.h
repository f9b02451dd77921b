// SPDX-License-Identifier: Apache-2.0
// A directory for one test, removed with all that is in it.
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((unused)) static void dir_make(char path[static 64])
{
    snprintf(path, 64, "/tmp/numaprobe-test-XXXXXX");
    if (!mkdtemp(path))
        abort();
}

// Writes a file below `dir`, and the directories on the way to it.
__attribute__((unused)) static void dir_write(const char *dir, const char *path, const char *text)
{
    char full[600];
    snprintf(full, sizeof full, "%s/%s", dir, path);
    for (char *c = full + strlen(dir) + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            mkdir(full, 0755);
            *c = '/';
        }
    FILE *f = fopen(full, "w");
    if (!f)
        abort();
    fputs(text, f);
    fclose(f);
}

__attribute__((unused)) static void dir_remove_at(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(fd, e->d_name, 0) < 0)
            dir_remove_at(fd, e->d_name);
    if (d)
        closedir(d);
    unlinkat(parent, name, AT_REMOVEDIR);
}

__attribute__((unused)) static void dir_remove(const char *path)
{
    dir_remove_at(AT_FDCWD, path);
}
