// SPDX-License-Identifier: Apache-2.0
// Processes come and go while /proc is read, so a pass may miss one: callers repeat it until it
// finds none.
#include "core/os/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

enum { GONE_MS = 2000 }; // from SIGKILL to the end of a process

struct process {
    pid_t pid, parent;
    int threads;
    bool below, zombie;
};

struct processes {
    struct process *list;
    size_t n, room;
};

static void processes_fini(struct processes *p)
{
    free(p->list);
}

// The next process of /proc; 0: no more.
static pid_t next_pid(DIR *proc)
{
    for (struct dirent *e; (e = readdir(proc));) {
        int64_t pid;
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && str_to_i64(e->d_name, &pid))
            return (pid_t)pid;
    }
    return 0;
}

// /proc/N/stat is "N (name) S ppid …"; the name may hold anything, so look from its end. The number
// of threads is 16 words behind the parent.
static bool read_process(struct process *p, pid_t pid)
{
    char text[512], state;
    int parent, threads;
    if (file_read_fmt(text, sizeof text, "/proc/%d/stat", (int)pid) < 0)
        return false;
    char *tail = strrchr(text, ')');
    if (!tail ||
        sscanf(tail + 1, " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
               &state, &parent, &threads) != 3)
        return false;
    *p = (struct process){
        .pid = pid, .parent = parent, .threads = threads, .zombie = state == 'Z' || state == 'X'};
    return true;
}

static void processes_read_all(struct processes *all)
{
    CLEANUP_DIR DIR *proc = opendir("/proc");
    for (pid_t pid; proc && (pid = next_pid(proc));) {
        struct process p;
        if (!read_process(&p, pid))
            continue;
        if (all->n == all->room) {
            size_t room = all->room ? 2 * all->room : 512;
            struct process *list = realloc(all->list, room * sizeof *list);
            if (!list)
                return;
            all->list = list;
            all->room = room;
        }
        all->list[all->n++] = p;
    }
}

int64_t proc_tasks_of(uid_t uid)
{
    CLEANUP_DIR DIR *proc = opendir("/proc");
    int64_t n = 0;
    for (pid_t pid; proc && (pid = next_pid(proc));) {
        struct process p;
        char name[16];
        struct stat st;
        snprintf(name, sizeof name, "%d", (int)pid);
        if (fstatat(dirfd(proc), name, &st, 0) == 0 && st.st_uid == uid && read_process(&p, pid))
            n += p.threads;
    }
    return n;
}

static bool is_below(const struct processes *all, pid_t pid)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->list[i].pid == pid)
            return all->list[i].below;
    return false;
}

static void mark_below(struct processes *all, pid_t top)
{
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < all->n; i++) {
            struct process *p = &all->list[i];
            if (!p->below && (p->parent == top || is_below(all, p->parent)))
                p->below = found = true;
        }
    }
}

int proc_kill_below(int signo)
{
    struct processes all CLEANUP(processes_fini) = {0};
    int n = 0;
    processes_read_all(&all);
    mark_below(&all, getpid());
    for (size_t i = 0; i < all.n; i++)
        if (all.list[i].below && !all.list[i].zombie && kill(all.list[i].pid, signo) == 0)
            n++;
    return n;
}

// Of one thread. The list may be cut: one that lives is enough.
static enum proc_children children_of_thread(pid_t pid, pid_t thread)
{
    char text[4096];
    if (file_read_fmt(text, sizeof text, "/proc/%d/task/%d/children", (int)pid, (int)thread) < 0)
        return CHILDREN_UNKNOWN;
    enum proc_children found = CHILDREN_NONE;
    char *rest = text;
    for (char *word; (word = strtok_r(rest, " \n", &rest));) {
        struct process p;
        int64_t child;
        if (str_to_i64(word, &child) && read_process(&p, (pid_t)child) && !p.zombie)
            return CHILDREN_LIVE;
        found = CHILDREN_ENDED;
    }
    return found;
}

enum proc_children proc_children_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    CLEANUP_DIR DIR *threads = opendir(path);
    enum proc_children found = CHILDREN_UNKNOWN;
    for (pid_t thread; found != CHILDREN_LIVE && threads && (thread = next_pid(threads));) {
        enum proc_children here = children_of_thread(pid, thread);
        found = here > found ? here : found;
    }
    return found;
}

// The words of /proc/N/<name>, each with its NUL, at most `room` bytes with a last NUL.
// Environments are at most a few pages here: ours are built from nothing.
static size_t processes_read_words(pid_t pid, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t have = 0;
    for (ssize_t n; fd >= 0 && have < room - 1 && (n = read(fd, text + have, room - 1 - have)) > 0;)
        have += (size_t)n;
    text[have] = 0;
    return have;
}

// The run's supervisor itself: its directory is among its arguments, its environment is empty.
static bool supervises(pid_t pid, const char *nonce)
{
    char text[2048], tail[80];
    size_t have = processes_read_words(pid, "cmdline", text, sizeof text);
    size_t option = strlen(text) + 1;
    size_t dir = option < have ? option + strlen(text + option) + 1 : have;
    if (dir >= have || strcmp(text + option, "--supervise") != 0)
        return false;
    int n = snprintf(tail, sizeof tail, "-%s", nonce);
    size_t len = strlen(text + dir);
    return len > (size_t)n && strcmp(text + dir + len - (size_t)n, tail) == 0;
}

static bool belongs_to(pid_t pid, const char *nonce)
{
    char text[32768], entry[80];
    size_t have = processes_read_words(pid, "environ", text, sizeof text);
    snprintf(entry, sizeof entry, "NUMAPROBE_NONCE=%s", nonce);
    for (size_t at = 0; at < have; at += strlen(text + at) + 1)
        if (strcmp(text + at, entry) == 0)
            return true;
    return supervises(pid, nonce);
}

// nonce NULL: whatever it is. By pidfd: the number may belong to another process by the time of the
// signal.
static bool kill_and_wait(pid_t pid, const char *nonce, int64_t ms)
{
    CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0 || (nonce && !belongs_to(pid, nonce)) ||
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0)
        return false;
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};
    poll(&gone, 1, ms < 0 ? 0 : (int)ms);
    return true;
}

// A process that was killed frees its memory first, and on a busy node that takes a while.
// Meanwhile it has no environment any more (proc_kill_nonce), but is there.
int proc_end_below(int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    int n = proc_kill_below(SIGKILL);
    for (bool left = n > 0; left && clock_mono_ms() < until_ms;) {
        struct processes all CLEANUP(processes_fini) = {0};
        processes_read_all(&all);
        mark_below(&all, getpid());
        left = false;
        for (size_t i = 0; i < all.n; i++)
            if (all.list[i].below && !all.list[i].zombie)
                left |= kill_and_wait(all.list[i].pid, NULL, until_ms - clock_mono_ms());
    }
    return n;
}

int proc_kill_nonce(const char *nonce)
{
    int total = 0;
    for (int round = 0, n = 1; n > 0 && round < 10; round++) {
        CLEANUP_DIR DIR *proc = opendir("/proc");
        n = 0;
        for (pid_t pid; proc && (pid = next_pid(proc));)
            if (pid != getpid() && belongs_to(pid, nonce) && kill_and_wait(pid, nonce, GONE_MS))
                n++;
        total += n;
    }
    return total;
}

static int remove_at(int parent, const char *name);

static int remove_inside(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    CLEANUP_DIR DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return -1;
    }
    int rc = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc |= remove_at(dirfd(d), e->d_name);
    return rc;
}

static int remove_at(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    // A round for what appeared while we looked.
    for (int round = 0; round < 3; round++) {
        remove_inside(parent, name);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
    }
    return -1;
}

int tree_remove(const char *path, struct err *err)
{
    return remove_at(AT_FDCWD, path) == 0 ? 0 : err_sys(err, "removing %s", path);
}
