// SPDX-License-Identifier: Apache-2.0
// A directory is made with a new nonce, and its FIFO inside; at the start of a daemon, directories
// of former runs are removed with the processes that have their nonce in the environment.
#include "core/run/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "core/os/dirs.h"
#include "core/os/processes.h"

int run_dir_base_make(const char *base, struct err *err)
{
    if (*base != '/' || strlen(base) >= 300)
        return err_set(err, ERR_USAGE, "run_dir", "must be an absolute path of at most 299 bytes");
    if (dirs_make(base, 0755, 0755, err) < 0)
        return -1;
    struct stat st;
    if (lstat(base, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return err_set(err, ERR_USAGE, "run_dir", "%s is not a directory of this account", base);
    return chmod(base, 0711) < 0 ? err_sys(err, "mode of %s", base) : 0;
}

static int make_nonce(char nonce[static NONCE_LEN + 1])
{
    unsigned char bytes[NONCE_LEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -1;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

// Opened for both ways: so it never reports a hang-up while the bench is not there yet or already
// gone; whether all was said is known from the records. Given away last.
static int make_fifo(const char *dir, const struct account *a)
{
    char path[420];
    snprintf(path, sizeof path, "%s/records", dir);
    if (mkfifo(path, 0600) < 0)
        return -1;
    CLEANUP_FD int fd = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0600) < 0)
        return -1;
    if (a->uid != geteuid() && (fchown(fd, a->uid, a->gid) < 0 || lchown(dir, a->uid, a->gid) < 0))
        return -1;
    return steal_fd(&fd);
}

int run_dir_make(struct run_dir *d, const char *base, int64_t id, const struct account *a,
                 struct err *err)
{
    struct run_dir got = {.fifo = -1};
    if (make_nonce(got.nonce) < 0)
        return err_sys(err, "getrandom");
    snprintf(got.path, sizeof got.path, "%s/%" PRId64 "-%s", base, id, got.nonce);
    int rc = mkdir(got.path, 0700);
    if (rc < 0 && errno == ENOENT && run_dir_base_make(base, err) == 0) // removed since the start
        rc = mkdir(got.path, 0700);
    if (rc < 0)
        return err_sys(err, "making %s", got.path);
    got.fifo = make_fifo(got.path, a);
    if (got.fifo < 0) {
        err_sys(err, "making the channel in %s", got.path);
        tree_remove(got.path, NULL);
        return -1;
    }
    *d = got;
    return 0;
}

// The nonce in "17-0123…"; NULL: not a run's directory.
static const char *nonce_of(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    const char *nonce = name + digits + 1;
    if (digits == 0 || name[digits] != '-' || strlen(nonce) != NONCE_LEN ||
        strspn(nonce, "0123456789abcdef") != NONCE_LEN)
        return NULL;
    return nonce;
}

static int lock_patiently(const char *base, int most_ms, struct err *err)
{
    enum { STEP_MS = 20 };
    CLEANUP_FD int fd = open(base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "opening %s", base);
    int rc = flock(fd, LOCK_EX | LOCK_NB);
    for (int ms = 0; rc < 0 && errno == EWOULDBLOCK && ms < most_ms; ms += STEP_MS) {
        poll(NULL, 0, STEP_MS);
        rc = flock(fd, LOCK_EX | LOCK_NB);
    }
    if (rc < 0 && errno == EWOULDBLOCK)
        return err_set(err, ERR_CONFLICT, "run_dir",
                       "another numaprobed has its runs in %s: use another --run-dir", base);
    return steal_fd(&fd); // some file systems lock no directories
}

// A child that a daemon had just forked when it was killed holds its lock until it runs and ends.
int run_dir_lock(const char *base, struct err *err)
{
    enum { ORPHAN_MS = 2000 };
    return lock_patiently(base, ORPHAN_MS, err);
}

int run_dir_lock_again(int held, const char *base, struct err *err)
{
    struct stat ours, named;
    if (fstat(held, &ours) == 0 && stat(base, &named) == 0 && file_is_same(&ours, &named))
        return held;
    int fd = lock_patiently(base, 0, err);
    if (fd >= 0 && held >= 0)
        close(held);
    return fd;
}

int run_dir_sweep(const char *base)
{
    int n = 0;
    DIR *d = opendir(base);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *nonce = nonce_of(e->d_name);
        char path[700];
        struct err err;
        if (!nonce)
            continue;
        int killed = proc_kill_nonce(nonce);
        snprintf(path, sizeof path, "%s/%s", base, e->d_name);
        if (tree_remove(path, &err) < 0)
            log_error("runner.sweep", &err);
        log_event(LOG_LVL_WARN, "runner.swept", "dir=%s killed=%d", path, killed);
        n++;
    }
    if (d)
        closedir(d);
    return n;
}
