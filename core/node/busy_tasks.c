// SPDX-License-Identifier: Apache-2.0
// One pass through /proc, newest processes first, that ends when its CPU time is used up. A process
// is looked at by its stat file; its threads only if it has used enough time and does not run
// itself.
#include "core/node/busy_tasks.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

enum { PATH_ROOM = 1200, THREADS_MAX = 64, PROCESSES_MAX = 1 << 22 }; // 2^22: the kernel's most

// PROC_PID_INIT_INO of the kernel; namespaces made later have smaller numbers.
#define FIRST_PID_NAMESPACE "pid:[4026531836]"

struct task {
    char name[16];
    char state;
    int cpu;
    double used_s, started_s; // CPU time; after boot
};

// "N (name) S ppid … utime(14) stime(15) … starttime(22) … processor(39)": the name may hold
// anything, so look from its end.
static bool read_stat(struct task *t, const char *path)
{
    char text[1024];
    unsigned long long utime, stime, start;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    if (file_read_text(path, text, sizeof text) < 0)
        return false;
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close ||
        sscanf(close + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d "
               "%llu %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %d",
               &t->state, &utime, &stime, &start, &t->cpu) != 5)
        return false;
    *close = '\0';
    snprintf(t->name, sizeof t->name, "%s", open + 1);
    t->used_s = (double)(utime + stime) / ticks;
    t->started_s = (double)start / ticks;
    return true;
}

static double uptime(const char *root)
{
    char text[64];
    double s = 0;
    if (file_read_fmt(text, sizeof text, "%s/proc/uptime", root) == 0)
        sscanf(text, "%lf", &s);
    return s;
}

bool busy_tasks_visible(const char *root)
{
    char path[PATH_ROOM], space[64];
    snprintf(path, sizeof path, "%s/proc/1/stat", root);
    if (access(path, R_OK) < 0)
        return false;
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", root);
    ssize_t n = readlink(path, space, sizeof space - 1);
    space[n > 0 ? n : 0] = '\0';
    return n <= 0 || strcmp(space, FIRST_PID_NAMESPACE) == 0;
}

static int newest_first(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

// Numbers of processes, the newest first. free()
static int *busy_tasks_list(const char *dir, int most, int *n)
{
    CLEANUP_DIR DIR *d = opendir(dir);
    int *pids = NULL, room = 0;
    *n = 0;
    for (struct dirent *e; d && *n < most && (e = readdir(d));) {
        int64_t pid;
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || !str_to_i64(e->d_name, &pid))
            continue;
        if (*n == room) {
            room = room ? 2 * room : 512;
            int *more = realloc(pids, (size_t)room * sizeof *pids);
            if (!more)
                break;
            pids = more;
        }
        pids[(*n)++] = (int)pid;
    }
    if (*n)
        qsort(pids, (size_t)*n, sizeof *pids, newest_first);
    return pids;
}

// The state of a process is that of its first thread; others may run while it waits for them.
static bool runs(struct task *t, const char *root, int pid)
{
    char dir[PATH_ROOM], path[PATH_ROOM + 32];
    int n = 0;
    if (t->state == 'R')
        return true;
    snprintf(dir, sizeof dir, "%s/proc/%d/task", root, pid);
    CLEANUP_MEM int *threads = busy_tasks_list(dir, THREADS_MAX, &n);
    for (int i = 0; i < n; i++) {
        struct task thread;
        snprintf(path, sizeof path, "%s/%d/stat", dir, threads[i]);
        if (read_stat(&thread, path) && thread.state == 'R') {
            t->cpu = thread.cpu;
            return true;
        }
    }
    return false;
}

static bool computes(struct busy_task *b, struct task *t, const char *root, int pid, double now_s)
{
    char path[PATH_ROOM];
    struct stat st;
    double life_s = now_s - t->started_s;
    double share = life_s > 0 ? 100 * t->used_s / life_s : 0;
    // What lives for less than a tick or two has no share that means anything.
    if (t->used_s < 0.1 || share < BUSY_SHARE || !runs(t, root, pid))
        return false;
    *b = (struct busy_task){.pid = pid, .cpu = t->cpu, .share = share};
    snprintf(path, sizeof path, "%s/proc/%d", root, pid);
    b->uid = stat(path, &st) == 0 ? st.st_uid : 0;
    snprintf(b->name, sizeof b->name, "%s", t->name);
    for (char *c = b->name; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c; // people name processes as they like
    return true;
}

void processes_find(struct processes_found *out, const char *root, bool any_busy)
{
    char path[PATH_ROOM];
    uint64_t end = clock_cpu_ns() + PROCESSES_TIME_US * UINT64_C(1000);
    double now_s = uptime(root);
    int n = 0;
    *out = (struct processes_found){0};
    snprintf(path, sizeof path, "%s/proc", root);
    CLEANUP_MEM int *pids = busy_tasks_list(path, PROCESSES_MAX, &n);
    for (int i = 0; i < n && clock_cpu_ns() < end; i++) {
        struct task t;
        snprintf(path, sizeof path, "%s/proc/%d/stat", root, pids[i]);
        if (pids[i] == getpid() || !read_stat(&t, path))
            continue;
        if (strcmp(t.name, "slurmstepd") == 0 && out->n_steps < STEPS_MAX)
            out->steps[out->n_steps++] = pids[i];
        if (any_busy && out->n_busy < READINGS_BUSY_MAX)
            out->n_busy += computes(&out->busy[out->n_busy], &t, root, pids[i], now_s);
    }
}
