// SPDX-License-Identifier: Apache-2.0
// The name of the file beside is known to the handler of signals, which deletes it and lets the
// signal do what it does by itself.
#include "client/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/interrupts.h"

static char out_part[PATH_MAX]; // "": none
static struct interrupts out_before;

// The signal comes again when this returns, and ends the program.
static void out_on_signal(int signo)
{
    unlink(out_part);
    signal(signo, SIG_DFL);
    raise(signo);
}

static void out_watch(const char *part)
{
    memcpy(out_part, part, sizeof out_part);
    interrupts_take(&out_before, out_on_signal);
}

static void out_unwatch(void)
{
    interrupts_give_back(&out_before);
    out_part[0] = '\0';
}

// As open() would make it.
static int out_set_mode(int fd, mode_t mode)
{
    mode_t mask = umask(0);
    umask(mask);
    return fchmod(fd, mode & ~mask);
}

static int out_sys(const struct out_file *o, struct err *err)
{
    return err_sys(err, "cannot write %.150s", o->path);
}

// A file beside it; -1 and errno.
static int out_make_part(struct out_file *o)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); // no signal comes before its name is known
    int fd = mkostemp(o->part, O_CLOEXEC), failed = errno;
    if (fd < 0)
        o->part[0] = '\0';
    else
        out_watch(o->part);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return fd;
}

int out_file_open(struct out_file *o, const char *path, mode_t mode, bool replace, struct err *err)
{
    struct stat st;
    *o = (struct out_file){0};
    if (!*path)
        return err_set(err, ERR_USAGE, "", "the name of the file is empty");
    if (!replace && lstat(path, &st) == 0)
        return err_set(err, ERR_USAGE, "", "%.180s exists; --force replaces it", path);
    const char *whole = realpath(path, o->path) ? o->path : path; // it is new
    if (snprintf(o->part, sizeof o->part, "%s.XXXXXX", whole) >= (int)sizeof o->part)
        return err_set(err, ERR_USAGE, "", "the name of the file is too long");
    if (whole == path)
        memcpy(o->path, path, strlen(path) + 1);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        o->part[0] = '\0';
    CLEANUP_FD int fd = *o->part ? out_make_part(o) : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || (*o->part && out_set_mode(fd, mode) < 0))
        return out_sys(o, err);
    o->file = fdopen(fd, *o->part ? "w+" : "w");
    if (!o->file)
        return out_sys(o, err);
    steal_fd(&fd);
    return 0;
}

int out_file_write(struct out_file *o, const char *data, size_t n, struct err *err)
{
    return fwrite(data, 1, n, o->file) == n ? 0 : out_sys(o, err);
}

int out_file_keep(struct out_file *o, struct err *err)
{
    FILE *file = steal_ptr(&o->file);
    bool lost = ferror(file);
    if (fclose(file) != 0 || lost || (*o->part && rename(o->part, o->path) < 0))
        return out_sys(o, err);
    if (*o->part)
        out_unwatch();
    o->part[0] = '\0';
    return 0;
}

void out_file_close(struct out_file *o)
{
    if (o->file)
        fclose(o->file);
    if (!*o->part)
        return;
    unlink(o->part);
    out_unwatch();
    *o = (struct out_file){0};
}
