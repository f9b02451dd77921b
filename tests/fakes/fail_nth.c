// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, it makes one call fail: the n-th of a kind, counted from when a test
// says so. The test speaks through a file that both map (tests/system/faults.py has the same
// layout): so one daemon that lives on can be hit thousands of times.
//
// That file is "<program>.faults" or what FAULTS names. A program whose command line does not hold
// `program` is left alone. The daemon is linked with this, because its children get no environment.
#undef _FILE_OFFSET_BITS // both names of each call are ours
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

// In the order of KINDS in faults.py, then of its LIES: those do not fail, what they give is wrong.
enum kind {
    MEMORY,
    MMAP,
    OPEN,
    READ,
    WRITE,
    SEND,
    RECV,
    SYNC,
    TRUNCATE,
    RENAME,
    UNLINK,
    MKDIR,
    STAT,
    LOCK,
    FLUSH,
    PIPE,
    SPAWN,
    SOCKET,
    EPOLL,
    WAIT,
    TIMER,
    SIGNALS,
    RANDOM,
    OTHER,
    GARBLE,
    KINDS
};

struct control {
    uint32_t armed;
    uint32_t kind;
    uint64_t n; // this one fails; 0: none does, all are counted
    uint32_t fired;
    uint32_t spare;
    uint64_t counts[KINDS];
    char program[64];
};

static struct control *control;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAULTS");
    char line[4096] = "", own[4096] = "";
    if (!path && syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", own, sizeof own - 8) > 0)
        path = strcat(own, ".faults");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED
                      : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? 0 : syscall(SYS_read, fd, line, sizeof line - 1);
    close(fd);
    for (long i = 0; i < n; i++)
        line[i] = line[i] ? line[i] : ' ';
    if (at != MAP_FAILED && strstr(line, ((struct control *)at)->program))
        control = at;
}

static bool strikes(enum kind kind, int code)
{
    struct control *c = control;
    if (!c || !__atomic_load_n(&c->armed, __ATOMIC_RELAXED))
        return false;
    uint64_t n = __atomic_add_fetch(&c->counts[kind], 1, __ATOMIC_RELAXED);
    if (c->kind != kind || c->n != n)
        return false;
    __atomic_store_n(&c->fired, 1, __ATOMIC_RELAXED);
    errno = code;
    return true;
}

// ---- memory: glibc's own names stay what they are

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    return strikes(MEMORY, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return strikes(MEMORY, ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return strikes(MEMORY, ENOMEM) ? NULL : __libc_realloc(p, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (strikes(MEMORY, ENOMEM))
        return ENOMEM;
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

// ---- calls

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(kind, type, failed, code, name, params, args)                                         \
    type name params                                                                               \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        if (!real)                                                                                 \
            real = REAL(name);                                                                     \
        return strikes(kind, code) ? failed : real args;                                           \
    }

// Calls that return their error.
#define WRAP_CODE(kind, code, name, params, args)                                                  \
    int name params                                                                                \
    {                                                                                              \
        return strikes(kind, code) ? code : REAL(name) args;                                       \
    }

// With a mode that is there or not.
#define WRAP_OPEN(name)                                                                            \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;                      \
        va_end(ap);                                                                                \
        return strikes(OPEN, EMFILE) ? -1 : REAL(name)(path, flags, mode);                         \
    }
#define WRAP_OPENAT(name)                                                                          \
    int name(int dir, const char *path, int flags, ...)                                            \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;                      \
        va_end(ap);                                                                                \
        return strikes(OPEN, EMFILE) ? -1 : REAL(name)(dir, path, flags, mode);                    \
    }
#define WRAP_FCNTL(name)                                                                           \
    int name(int fd, int command, ...)                                                             \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, command);                                                                     \
        void *arg = va_arg(ap, void *);                                                            \
        va_end(ap);                                                                                \
        return strikes(LOCK, ENOLCK) ? -1 : REAL(name)(fd, command, arg);                          \
    }

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)
WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)
WRAP(OPEN, FILE *, NULL, EMFILE, fopen, (const char *path, const char *mode), (path, mode))
WRAP(OPEN, FILE *, NULL, EMFILE, fopen64, (const char *path, const char *mode), (path, mode))
WRAP(OPEN, DIR *, NULL, EMFILE, opendir, (const char *path), (path))
WRAP(MMAP, void *, MAP_FAILED, ENOMEM, mmap,
     (void *at, size_t n, int prot, int flags, int fd, off_t offset),
     (at, n, prot, flags, fd, offset))
WRAP(MMAP, void *, MAP_FAILED, ENOMEM, mmap64,
     (void *at, size_t n, int prot, int flags, int fd, off64_t offset),
     (at, n, prot, flags, fd, offset))
WRAP(READ, ssize_t, -1, EIO, read, (int fd, void *to, size_t n), (fd, to, n))
WRAP(WRITE, ssize_t, -1, ENOSPC, pwrite, (int fd, const void *from, size_t n, off_t at),
     (fd, from, n, at))
WRAP(WRITE, ssize_t, -1, ENOSPC, pwrite64, (int fd, const void *from, size_t n, off64_t at),
     (fd, from, n, at))
WRAP(SEND, ssize_t, -1, ECONNRESET, send, (int fd, const void *from, size_t n, int flags),
     (fd, from, n, flags))
WRAP(SEND, ssize_t, -1, ECONNRESET, sendmsg, (int fd, const struct msghdr *m, int flags),
     (fd, m, flags))
WRAP(RECV, ssize_t, -1, ECONNRESET, recv, (int fd, void *to, size_t n, int flags),
     (fd, to, n, flags))
WRAP(SYNC, int, -1, EIO, fsync, (int fd), (fd))
WRAP(SYNC, int, -1, EIO, fdatasync, (int fd), (fd))
WRAP(TRUNCATE, int, -1, ENOSPC, ftruncate, (int fd, off_t n), (fd, n))
WRAP(TRUNCATE, int, -1, ENOSPC, ftruncate64, (int fd, off64_t n), (fd, n))
WRAP_CODE(TRUNCATE, ENOSPC, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n))
WRAP_CODE(TRUNCATE, ENOSPC, posix_fallocate64, (int fd, off64_t at, off64_t n), (fd, at, n))
WRAP(RENAME, int, -1, EIO, rename, (const char *from, const char *to), (from, to))
WRAP(UNLINK, int, -1, EIO, unlink, (const char *path), (path))
WRAP(UNLINK, int, -1, EIO, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
WRAP(UNLINK, int, -1, EIO, rmdir, (const char *path), (path))
WRAP(MKDIR, int, -1, ENOSPC, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(MKDIR, int, -1, ENOSPC, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))
WRAP(MKDIR, int, -1, ENOSPC, mkfifo, (const char *path, mode_t mode), (path, mode))
WRAP(STAT, int, -1, EIO, stat, (const char *path, struct stat *st), (path, st))
WRAP(STAT, int, -1, EIO, stat64, (const char *path, struct stat64 *st), (path, st))
WRAP(STAT, int, -1, EIO, lstat, (const char *path, struct stat *st), (path, st))
WRAP(STAT, int, -1, EIO, lstat64, (const char *path, struct stat64 *st), (path, st))
WRAP(STAT, int, -1, EIO, fstat, (int fd, struct stat *st), (fd, st))
WRAP(STAT, int, -1, EIO, fstat64, (int fd, struct stat64 *st), (fd, st))
WRAP(LOCK, int, -1, ENOLCK, flock, (int fd, int what), (fd, what))
WRAP(PIPE, int, -1, EMFILE, pipe2, (int fds[2], int flags), (fds, flags))
WRAP(SPAWN, pid_t, -1, EAGAIN, fork, (void), ())
WRAP_CODE(SPAWN, EAGAIN, posix_spawn,
          (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
           const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]),
          (pid, path, actions, attributes, argv, envp))
WRAP(SOCKET, int, -1, EMFILE, socket, (int domain, int type, int protocol),
     (domain, type, protocol))
WRAP(SOCKET, int, -1, EADDRINUSE, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(SOCKET, int, -1, EADDRINUSE, listen, (int fd, int n), (fd, n))
WRAP(SOCKET, int, -1, EMFILE, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags),
     (fd, a, n, flags))
WRAP(SOCKET, int, -1, ECONNREFUSED, connect, (int fd, const struct sockaddr *a, socklen_t n),
     (fd, a, n))
WRAP(SOCKET, int, -1, EINVAL, setsockopt,
     (int fd, int level, int name, const void *value, socklen_t n), (fd, level, name, value, n))
WRAP(SOCKET, int, -1, EINVAL, getsockopt, (int fd, int level, int name, void *value, socklen_t *n),
     (fd, level, name, value, n))
WRAP(EPOLL, int, -1, EMFILE, epoll_create1, (int flags), (flags))
WRAP(EPOLL, int, -1, EMFILE, eventfd, (unsigned n, int flags), (n, flags))
WRAP(WAIT, int, -1, EINTR, epoll_wait, (int fd, struct epoll_event *e, int n, int ms),
     (fd, e, n, ms))
WRAP(WAIT, int, -1, EINTR, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
WRAP(TIMER, int, -1, EMFILE, timerfd_create, (int clock, int flags), (clock, flags))
WRAP(TIMER, int, -1, EINVAL, timerfd_settime,
     (int fd, int flags, const struct itimerspec *to, struct itimerspec *was), (fd, flags, to, was))
WRAP(SIGNALS, int, -1, EMFILE, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags))
WRAP(RANDOM, ssize_t, -1, ENOSYS, getrandom, (void *to, size_t n, unsigned flags), (to, n, flags))
WRAP(OTHER, int, -1, EPERM, chmod, (const char *path, mode_t mode), (path, mode))
WRAP(OTHER, int, -1, EPERM, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(OTHER, int, -1, EPERM, chown, (const char *path, uid_t u, gid_t g), (path, u, g))
WRAP(OTHER, int, -1, EPERM, fchown, (int fd, uid_t u, gid_t g), (fd, u, g))
WRAP(OTHER, int, -1, EBADF, dup2, (int from, int to), (from, to))
WRAP(OTHER, char *, NULL, ENOENT, realpath, (const char *path, char *out), (path, out))
WRAP(OTHER, ssize_t, -1, EIO, readlink, (const char *path, char *out, size_t n), (path, out, n))

// A page that is read wrong: all zero, while on the disk it is as it was.
// Answers are sent from files in memory, sealed against writing: no pages of the database.
static bool is_sealed(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_WRITE);
}

// A checkpoint copies pages of the log into the database. One that came wrong would be damage on
// the disk, which is another fault.
static bool is_log(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
    return n >= 4 && memcmp(path + n - 4, "-wal", 4) == 0;
}

static ssize_t garbled(int fd, void *to, ssize_t n)
{
    if (n >= 4096 && !is_sealed(fd) && !is_log(fd) && strikes(GARBLE, 0))
        memset(to, 0, (size_t)n);
    return n;
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    return strikes(READ, EIO) ? -1 : garbled(fd, to, REAL(pread)(fd, to, n, at));
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    return strikes(READ, EIO) ? -1 : garbled(fd, to, REAL(pread64)(fd, to, n, at));
}

// A line of the log may be lost: it is how a test hears that the daemon is ready.
ssize_t write(int fd, const void *from, size_t n)
{
    return fd != STDERR_FILENO && strikes(WRITE, ENOSPC) ? -1 : REAL(write)(fd, from, n);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    return fd != STDERR_FILENO && strikes(WRITE, ENOSPC) ? -1 : REAL(writev)(fd, v, n);
}

// To remove a descriptor needs no memory, and libmicrohttpd ends the program where that fails.
int epoll_ctl(int fd, int what, int of, struct epoll_event *e)
{
    return what != EPOLL_CTL_DEL && strikes(EPOLL, ENOMEM) ? -1 : REAL(epoll_ctl)(fd, what, of, e);
}

// The stream is flushed or closed, and yet the disk was full.
#define WRAP_STREAM(name)                                                                          \
    int name(FILE *f)                                                                              \
    {                                                                                              \
        int rc = REAL(name)(f);                                                                    \
        return strikes(FLUSH, ENOSPC) ? EOF : rc;                                                  \
    }
WRAP_STREAM(fflush)
WRAP_STREAM(fclose)

// pidfd_open and others without a wrapper.
long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return strikes(OTHER, EMFILE) ? -1 : real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
