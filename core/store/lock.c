// SPDX-License-Identifier: Apache-2.0
// One daemon works with a state directory. Two locks say so: that of the file `lock`, which names
// the process, and that of the directory itself, which no deletion of a file takes away.
// Some file systems lock no directories; there the file has to do.
#include "core/store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/os/dirs.h"
#include "core/store/db.h"

// "/numaprobe.db.damaged-<time>-wal" and its like need room behind it.
_Static_assert(sizeof(((struct store *)0)->path) >= sizeof(((struct store *)0)->dir) + 32,
               "the database's path has room for the directory's");

enum { ORPHAN_MS = 2000, ORPHAN_STEP_MS = 20 };

enum taken { TAKEN_NOW, TAKEN_BEFORE, TAKEN_BY_ANOTHER, TAKEN_NOT };

static bool is_same(int a, int b)
{
    struct stat one, other;
    return a >= 0 && b >= 0 && fstat(a, &one) == 0 && fstat(b, &other) == 0 &&
           file_is_same(&one, &other);
}

int store_dir_make(const char *dir, struct err *err)
{
    if (strlen(dir) >= sizeof(((struct store *)0)->dir))
        return err_set(err, ERR_STORAGE, "state-dir", "the path is too long");
    if (dirs_make(dir, 0750, 0750, err) == 0)
        return 0;
    struct err why = *err;
    return err_set(err, ERR_STORAGE, "state-dir", "%s", why.text);
}

// *fd takes the place of what we hold, unless that is the same file.
static enum taken lock_take(int *held, int *fd)
{
    if (is_same(*held, *fd))
        return TAKEN_BEFORE;
    if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) < 0)
        return *fd >= 0 && errno == EWOULDBLOCK ? TAKEN_BY_ANOTHER : TAKEN_NOT;
    if (*held >= 0)
        close(*held);
    *held = steal_fd(fd);
    return TAKEN_NOW;
}

// A child that a daemon had just forked when it was killed holds its locks until it runs, sees
// that, and ends. The process that the file names works with the directory, or waits for nothing.
static bool holder_is_gone(const char *path)
{
    char holder[32] = "";
    int64_t pid;
    return file_read_text(path, holder, sizeof holder) >= 0 && str_to_i64(holder, &pid) &&
           pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static enum taken take_patiently(int *held, int *fd, const char *path)
{
    enum taken got = lock_take(held, fd);
    for (int ms = 0; got == TAKEN_BY_ANOTHER && ms < ORPHAN_MS && holder_is_gone(path);
         ms += ORPHAN_STEP_MS) {
        poll(NULL, 0, ORPHAN_STEP_MS);
        got = lock_take(held, fd);
    }
    return got;
}

static int refused(const struct store *s, const char *path, struct err *err)
{
    char holder[32] = "";
    file_read_text(path, holder, sizeof holder);
    return err_set(err, ERR_CONFLICT, "state-dir", "another numaprobed (process %s) works with %s",
                   *holder ? holder : "unknown", s->dir);
}

static int lock_take_file(struct store *s, const char *path, struct err *err)
{
    CLEANUP_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return err_set(err, ERR_STORAGE, "state-dir", "%s: %s", path, strerror(errno));
    switch (take_patiently(&s->lock, &fd, path)) {
    case TAKEN_BY_ANOTHER:
        return refused(s, path, err);
    case TAKEN_NOT:
        return err_set(err, ERR_STORAGE, "state-dir", "%s cannot be locked: %s", path,
                       strerror(errno));
    default:
        return 0;
    }
}

// After both: until then the file may name the one that works.
static void sign(const struct store *s)
{
    if (ftruncate(s->lock, 0) == 0)
        dprintf(s->lock, "%d\n", (int)getpid());
}

int store_lock_take(struct store *s, struct err *err)
{
    char path[512];
    snprintf(path, sizeof path, "%s/lock", s->dir);
    if (lock_take_file(s, path, err) < 0)
        return -1;
    CLEANUP_FD int dir = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (take_patiently(&s->dir_lock, &dir, path) == TAKEN_BY_ANOTHER)
        return refused(s, path, err);
    sign(s);
    return 0;
}

void store_lock_drop(struct store *s)
{
    fd_cleanup(&s->lock);
    fd_cleanup(&s->dir_lock);
}

bool store_dir_is_locked(const struct store *s)
{
    return s->dir_lock >= 0;
}
