// SPDX-License-Identifier: Apache-2.0
// A process that is killed leaves its directory. Its lock is gone with it, so the next process
// can lock such a directory, and none that is in use.
#include "client/fleet/socket_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

#define DIR_PREFIX "numaprobe-ssh-"

enum { ATTEMPTS = 8 }; // another process may remove it before it is locked

static const char folder_of_all[] = "/tmp";

// ssh reads ':' in the option and "%" and "$" in the path.
static bool folder_suits(const char *path)
{
    size_t n =
        path ? strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")
             : 0;
    return n > 0 && !path[n] && *path == '/' &&
           n + sizeof "/" DIR_PREFIX "XXXXXX" <= sizeof((struct socket_dir *)0)->path &&
           access(path, W_OK | X_OK) == 0;
}

static void dir_empty(int fd)
{
    CLEANUP_FD int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_DIR DIR *dir = again < 0 ? NULL : fdopendir(again);
    if (dir)
        again = -1; // closedir() closes it
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (*e->d_name != '.')
            unlinkat(fd, e->d_name, 0);
}

static int dir_lock(int parent, const char *name)
{
    struct stat is, there;
    CLEANUP_FD int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) < 0 || is.st_uid != geteuid() ||
        flock(fd, LOCK_EX | LOCK_NB) < 0 ||
        fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) < 0 || !file_is_same(&is, &there))
        return -1;
    return steal_fd(&fd);
}

static void dirs_sweep(const char *folder)
{
    CLEANUP_DIR DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!str_starts(e->d_name, DIR_PREFIX))
            continue;
        CLEANUP_FD int fd = dir_lock(dirfd(dir), e->d_name);
        if (fd < 0)
            continue;
        dir_empty(fd);
        unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
    }
}

int socket_dir_make(struct socket_dir *d, struct err *err)
{
    const char *own = getenv("XDG_RUNTIME_DIR"), *folder = folder_suits(own) ? own : folder_of_all;
    dirs_sweep(folder);
    for (int i = 0; i < ATTEMPTS; i++) {
        struct socket_dir made = SOCKET_DIR_NONE;
        snprintf(made.path, sizeof made.path, "%s/" DIR_PREFIX "XXXXXX", folder);
        if (!mkdtemp(made.path))
            return err_sys(err, "cannot make a directory in %.100s", folder);
        made.fd = dir_lock(AT_FDCWD, made.path);
        if (made.fd >= 0) {
            *d = made;
            return 0;
        }
    }
    return err_set(err, ERR_UNAVAILABLE, "", "cannot lock a directory in %.100s", folder);
}

void socket_dir_remove(struct socket_dir *d)
{
    if (d->fd < 0)
        return;
    dir_empty(d->fd);
    rmdir(d->path);
    fd_cleanup(&d->fd);
}
