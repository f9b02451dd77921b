// SPDX-License-Identifier: Apache-2.0
// The file is opened for reading only, and made only where there is none. The lock belongs to the
// open file, so a supervisor that inherits it keeps it when the daemon is gone.
#include "core/os/host_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/str.h"

// Reading is all that a lock needs. A file of another process in a directory that everyone may
// write to must not be opened for making (fs.protected_regular), hence the two steps.
static int open_lock(const char *path)
{
    enum { FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };
    int fd = open(path, FLAGS);
    if (fd < 0 && errno == ENOENT) {
        fd = open(path, FLAGS | O_CREAT | O_EXCL, 0644);
        // Whatever the umask. Only what we made: a file that was there may be a hard link to
        // something of ours that others must not read.
        if (fd >= 0)
            fchmod(fd, 0644);
    }
    if (fd < 0 && errno == EEXIST)
        fd = open(path, FLAGS);
    return fd;
}

int host_lock_take(const char *path)
{
    struct stat st;
    CLEANUP_FD int fd = open_lock(path);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return HOST_LOCK_NONE;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? HOST_LOCK_TAKEN : HOST_LOCK_NONE;
    return steal_fd(&fd);
}

bool host_lock_is_named(int lock, const char *path)
{
    struct stat ours, named;
    return fstat(lock, &ours) == 0 && lstat(path, &named) == 0 && file_is_same(&ours, &named);
}
