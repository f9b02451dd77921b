// SPDX-License-Identifier: Apache-2.0
// Everything is read between opening a process file descriptor and seeing that its process still
// lives, so that all of it is of one process.
#include "core/node/batch_place.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/topology.h"

enum { ANCESTORS_MAX = 64, STEP_ROOM = 64 };

// From the root of the hierarchy, where only root makes directories. A user's own cgroups are below
// user.slice, whatever their names are.
static const char *const job_groups[] = {
    "/system.slice/*slurmstepd.scope/job_[0-9]*", // v2
    "/slurm*/uid_[0-9]*/job_[0-9]*",              // v1
};

// --- a process

struct process {
    uid_t real, effective, saved;
    int parent;
    uint64_t start; // ticks since boot
};

static bool read_parent(const char *root, int pid, struct process *p)
{
    char text[1024];
    unsigned long long start;
    if (file_read_fmt(text, sizeof text, "%s/proc/%d/stat", root, pid) < 0)
        return false;
    const char *after = strrchr(text, ')'); // a program's name may have any characters
    if (!after || sscanf(after + 1,
                         " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                         "%*d %llu",
                         &p->parent, &start) != 2)
        return false;
    p->start = start;
    return true;
}

static void read_ids(struct id_set *s, const char *line, const char *name)
{
    char list[8192];
    int *ids, n;
    if (!str_starts(line, name))
        return;
    snprintf(list, sizeof list, "%s", line + strlen(name) + strspn(line + strlen(name), " \t"));
    list[strcspn(list, " \n")] = '\0';
    if (str_to_ids(list, false, TOPOLOGY_CPUS_MAX, "", &ids, &n, NULL) < 0)
        return;
    free(s->ids);
    *s = (struct id_set){ids, n};
}

// `cpus` and `mems` may be NULL.
static bool read_status(const char *root, int pid, struct process *p, struct id_set *cpus,
                        struct id_set *mems)
{
    char path[PATH_MAX], line[8192];
    bool found = false;
    snprintf(path, sizeof path, "%s/proc/%d/status", root, pid);
    CLEANUP_FILE FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (str_starts(line, "Uid:"))
            found = sscanf(line + 4, "%u %u %u", &p->real, &p->effective, &p->saved) == 3;
        if (cpus)
            read_ids(cpus, line, "Cpus_allowed_list:");
        if (mems)
            read_ids(mems, line, "Mems_allowed_list:");
    }
    return found;
}

// --- by cgroups

// "/slurm/uid_1000/job_12/step_0/task_0" is cut behind the job. False: it is of no job.
static bool cut_to_job(char *path)
{
    for (size_t i = 0; i < COUNT_OF(job_groups); i++) {
        char *at = path;
        for (int parts = 0; at && parts < 3; parts++)
            at = strchr(at + 1, '/');
        if (at)
            *at = '\0';
        bool found = fnmatch(job_groups[i], path, FNM_PATHNAME | FNM_PERIOD) == 0;
        if (found)
            return true;
        if (at)
            *at = '/';
    }
    return false;
}

static void name_job(struct batch_place *p, const char *digits)
{
    digits += strspn(digits, "0");
    p->job = (struct batch_job){.manager = "Slurm"};
    snprintf(p->job.name, sizeof p->job.name, "%.*s", (int)strspn(digits, "0123456789"), digits);
}

static int64_t limit_in(const char *root, const char *dir, const char *file)
{
    char text[64];
    int64_t bytes;
    return file_read_fmt(text, sizeof text, "%s%s/%s", root, dir, file) == 0 &&
                   str_to_i64(text, &bytes)
               ? bytes
               : -1;
}

// A line "4:memory:/slurm/uid_1000/job_12/step_0".
static void take_job_group(struct batch_place *p, const char *root, char *line)
{
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : 0;
    if (!path)
        return;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    controllers++;
    if (!cut_to_job(path))
        return;
    name_job(p, strrchr(path, '_') + 1);
    snprintf(p->dir, sizeof p->dir, "/sys/fs/cgroup%s%.*s%s", *controllers ? "/" : "",
             (int)strcspn(controllers, ","), controllers, path);
    int64_t bytes = limit_in(root, p->dir, *controllers ? "memory.limit_in_bytes" : "memory.max");
    p->memory_bytes = bytes >= 0 ? bytes : p->memory_bytes;
}

static bool find_by_cgroup(struct batch_place *p, const char *root, int pid)
{
    char path[PATH_MAX], line[4200];
    snprintf(path, sizeof path, "%s/proc/%d/cgroup", root, pid);
    CLEANUP_FILE FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        take_job_group(p, root, line);
    return *p->dir;
}

// --- by ancestors

// Any process may call itself slurmstepd, and root's may do so for an account that runs su under
// that name. The program cannot be chosen: a link to another one has that one's name, or is one of
// several.
static bool is_stepd(const char *root, int pid)
{
    char path[PATH_MAX], program[PATH_MAX];
    struct process p;
    struct stat st;
    snprintf(path, sizeof path, "%s/proc/%d/exe", root, pid);
    ssize_t n = readlink(path, program, sizeof program - 1);
    if (n <= 0 || !read_status(root, pid, &p, NULL, NULL))
        return false;
    program[n] = '\0';
    const char *name = strrchr(program, '/');
    bool named = name && (strcmp(name, "/slurmstepd") == 0 || strcmp(name, "/slurmstepd-wlm") == 0);
    return named && !p.real && !p.effective && !p.saved && stat(path, &st) == 0 && st.st_nlink == 1;
}

static bool find_by_ancestors(struct batch_place *p, const char *root, int pid)
{
    struct process process;
    char text[256];
    int outermost = 0;
    for (int i = 0; i < ANCESTORS_MAX && pid > 1 && read_parent(root, pid, &process); i++) {
        if (is_stepd(root, pid)) {
            outermost = pid;
            p->step_start = process.start;
        }
        pid = process.parent;
    }
    if (!outermost || file_read_fmt(text, sizeof text, "%s/proc/%d/cmdline", root, outermost) < 0 ||
        !str_starts(text, "slurmstepd: ["))
        return false;
    p->step = outermost;
    name_job(p, strchr(text, '[') + 1);
    return true;
}

// --- all

static bool lives(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 0) == 0; // it becomes readable when the process ends
}

static bool find_place(struct batch_place *p, const char *root, pid_t pid, uid_t uid)
{
    struct process who;
    if (!read_status(root, pid, &who, &p->cpus, &p->mems) ||
        (who.real != uid && who.effective != uid))
        return false;
    return (find_by_cgroup(p, root, pid) || find_by_ancestors(p, root, pid)) && *p->job.name;
}

bool batch_place_find(struct batch_place *out, const char *root, pid_t pid, uid_t uid)
{
    struct batch_place p = {
        .memory_bytes = -1, .cpus.n = READING_UNKNOWN, .mems.n = READING_UNKNOWN};
    CLEANUP_FD int pidfd = -1;
    if (pid <= 0)
        return false;
    if (!*root) { // a recorded machine has no processes
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0)
            return false;
    }
    if (!find_place(&p, root, pid, uid) || (!*root && !lives(pidfd))) {
        batch_place_fini(&p);
        return false;
    }
    *out = p;
    return true;
}

void batch_place_fini(struct batch_place *p)
{
    free(p->cpus.ids);
    free(p->mems.ids);
    *p = (struct batch_place){0};
}

bool batch_place_exists(const struct batch_place *p, const char *root)
{
    char path[PATH_MAX];
    struct process now;
    struct stat st;
    if (!*p->dir)
        return read_parent(root, p->step, &now) && now.start == p->step_start;
    snprintf(path, sizeof path, "%s%s", root, p->dir);
    return stat(path, &st) == 0;
}

bool batch_place_is(const struct batch_place *p, const struct batch_job *job)
{
    return p && strcmp(p->job.manager, job->manager) == 0 && strcmp(p->job.name, job->name) == 0;
}
