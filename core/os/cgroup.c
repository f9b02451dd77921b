// SPDX-License-Identifier: Apache-2.0
// At the start the daemon moves itself into a group below its own, because a group with processes
// cannot have controllers for its children. Where the group is not ours alone, nothing is changed
// and `why` says so.
#include "core/os/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own_cgroups.h"
#include "base/str.h"

#define OWN_NAME "numaprobed"
#define MOUNT "/sys/fs/cgroup"

enum {
    SWEEP_MS = 2000,
    // Above what a run is expected to use, so that only one that runs away meets it: an eighth,
    // and shared libraries, page tables and files of Open MPI.
    SPARE_SHARE = 8,
    SPARE_MIB = 512,
};

static bool cgroup_write_file(const char *dir, const char *name, const char *text)
{
    char path[RUN_GROUP_PATH_ROOM + 64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

// --- where

// Version 2 is what is mounted where it belongs, even beside controllers of version 1. A
// container sees the root.
static bool cgroup_find_own(const char *root, char *out, size_t room, char *why, size_t why_room)
{
    char path[400];
    struct own_cgroups g CLEANUP(own_cgroups_close);
    own_cgroups_open(&g, root);
    if (!g.f) {
        snprintf(why, why_room, "the kernel has no cgroups");
        return false;
    }
    snprintf(path, sizeof path, "%s" MOUNT "/cgroup.controllers", root);
    if (!own_cgroups_next_v2(&g) || access(path, F_OK) < 0) {
        snprintf(why, why_room, "cgroups are of version 1 here, or of both");
        return false;
    }
    int n = snprintf(out, room, "%s" MOUNT "%s", root, g.path);
    return n > 0 && (size_t)n < room;
}

// A session's group has its shell in it, and the topmost has all processes: those are not ours to
// divide.
static bool ours_alone(const char *dir)
{
    char text[256];
    int64_t pid;
    if (file_read_fmt(text, sizeof text, "%s/cgroup.procs", dir) < 0)
        return false;
    char *end = text + strcspn(text, "\n");
    bool one = strcmp(end, "\n") == 0 || !*end;
    *end = '\0';
    return one && str_to_i64(text, &pid) && pid == getpid();
}

static bool writable(const char *dir)
{
    char path[RUN_GROUP_PATH_ROOM + 64];
    snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
    if (access(path, W_OK) < 0 || access(dir, W_OK) < 0)
        return false;
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    return access(path, W_OK) == 0;
}

static void cgroup_sweep(const char *base)
{
    CLEANUP_DIR DIR *d = opendir(base);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[RUN_GROUP_PATH_ROOM + 260];
        if (!str_starts(e->d_name, RUN_GROUP_PREFIX))
            continue;
        snprintf(path, sizeof path, "%s/%s", base, e->d_name);
        run_group_kill(path, SWEEP_MS);
        run_group_remove(path);
    }
}

static bool cgroup_settle(struct run_groups *g, const char *dir)
{
    char own[RUN_GROUP_PATH_ROOM], pid[24];
    if (snprintf(own, sizeof own, "%s/" OWN_NAME, dir) >= (int)sizeof own)
        return false;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    if ((mkdir(own, 0755) < 0 && errno != EEXIST) || !cgroup_write_file(own, "cgroup.procs", pid))
        return false;
    g->memory = cgroup_write_file(dir, "cgroup.subtree_control", "+memory");
    g->cpu = cgroup_write_file(dir, "cgroup.subtree_control", "+cpu");
    snprintf(g->base, sizeof g->base, "%s", dir);
    return true;
}

void run_groups_open(struct run_groups *g, const char *root)
{
    char dir[RUN_GROUP_PATH_ROOM];
    *g = (struct run_groups){0};
    if (!cgroup_find_own(root, dir, sizeof dir, g->why, sizeof g->why))
        return;
    if (!ours_alone(dir))
        snprintf(g->why, sizeof g->why, "the daemon shares its cgroup with others");
    else if (!writable(dir))
        snprintf(g->why, sizeof g->why, "the daemon's cgroup is not its own to divide (Delegate=)");
    else if (!cgroup_settle(g, dir))
        snprintf(g->why, sizeof g->why, "the daemon's cgroup cannot be divided: %s",
                 strerror(errno));
    if (*g->base)
        cgroup_sweep(g->base);
    log_event(LOG_LVL_INFO, "runner.groups", "base=\"%s\" memory=%d cpu=%d text=\"%s\"",
              log_quote(g->base).text, g->memory, g->cpu, log_quote(g->why).text);
}

// --- a run's

static void set_limits(const struct run_groups *g, const char *path, int64_t bytes)
{
    char text[32];
    int64_t most = bytes + bytes / SPARE_SHARE + ((int64_t)SPARE_MIB << 20);
    if (g->memory) {
        snprintf(text, sizeof text, "%" PRId64, most);
        cgroup_write_file(path, "memory.max", text);
        cgroup_write_file(path, "memory.swap.max", "0"); // a working set in swap is no memory
        cgroup_write_file(path, "memory.oom.group", "1");
    }
    if (g->cpu) {
        snprintf(text, sizeof text, "%d", RUN_GROUP_CPU_WEIGHT);
        cgroup_write_file(path, "cpu.weight", text);
    }
}

bool run_group_make(const struct run_groups *g, int64_t run_id, int64_t bytes,
                    char path[static RUN_GROUP_PATH_ROOM], char why[static 200])
{
    char made[RUN_GROUP_PATH_ROOM];
    *path = '\0';
    snprintf(why, 200, "%s", g->why);
    if (!*g->base)
        return false;
    int n = snprintf(made, sizeof made, "%s/" RUN_GROUP_PREFIX "%" PRId64, g->base, run_id);
    if (n >= (int)sizeof made || (mkdir(made, 0755) < 0 && errno != EEXIST)) {
        snprintf(why, 200, "a cgroup cannot be made: %s", strerror(errno));
        return false;
    }
    set_limits(g, made, bytes);
    memcpy(path, made, sizeof made);
    return true;
}

bool run_group_enter(const char *path)
{
    return cgroup_write_file(path, "cgroup.procs", "0");
}

// "populated 0": no process is in it or below it. The kernel reports a change by POLLPRI.
static bool is_empty(int events)
{
    char text[128];
    ssize_t n = pread(events, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return n <= 0 || !strstr(text, "populated 1");
}

void run_group_kill(const char *path, int wait_ms)
{
    char file[RUN_GROUP_PATH_ROOM + 64];
    int64_t end_ms = clock_mono_ms() + wait_ms;
    if (!*path || !cgroup_write_file(path, "cgroup.kill", "1"))
        return;
    snprintf(file, sizeof file, "%s/cgroup.events", path);
    CLEANUP_FD int events = open(file, O_RDONLY | O_CLOEXEC);
    for (int64_t left = wait_ms; events >= 0 && left > 0 && !is_empty(events);
         left = end_ms - clock_mono_ms()) {
        struct pollfd changed = {.fd = events, .events = POLLPRI};
        poll(&changed, 1, (int)left);
    }
}

void run_group_remove(const char *path)
{
    if (*path && rmdir(path) < 0 && errno != ENOENT) {
        struct err err;
        err_sys(&err, "removing %.200s", path);
        log_error("runner.group", &err);
    }
}
