// SPDX-License-Identifier: Apache-2.0
// Signs are a table of paths with a pattern for the name of the job. A sign that names a job of our
// own path of cgroups is skipped, because the daemon itself may run in a job.
#include "core/node/batch_jobs.h"

#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/own_cgroups.h"
#include "base/str.h"

#define CGROUP "/sys/fs/cgroup/"

enum { SIGN_PATH = 1200 };

// The same job may show in several places, and in each controller of cgroups v1: it is recognised
// by its number, or by its name where that is all there is.
static const struct {
    const char *manager, *pattern;
    bool pod;
} signs[] = {
    {"Slurm", CGROUP "system.slice/*slurmstepd.scope/job_[0-9]*", false},
    {"Slurm", CGROUP "*/slurm*/uid_*/job_[0-9]*", false},
    {"Slurm", "/var/spool/slurmd/job[0-9]*", false},
    {"Slurm", "/var/spool/slurmd/*_[0-9]*.[0-9]*", false},
    {"Slurm", "/var/spool/slurm/d/job[0-9]*", false},
    {"Slurm", "/var/spool/slurm/d/*_[0-9]*.[0-9]*", false},
    {"Slurm", "/var/lib/slurm/slurmd/job[0-9]*", false},
    {"Slurm", "/var/lib/slurm/slurmd/*_[0-9]*.[0-9]*", false},
    {"PBS", CGROUP "pbs_jobs.service/jobid/[0-9]*", false},
    {"PBS", CGROUP "*/pbs_jobs.service/jobid/[0-9]*", false},
    {"PBS", "/var/spool/pbs/mom_priv/jobs/[0-9]*.JB", false},
    {"Torque", CGROUP "*/torque/[0-9]*", false},
    {"Torque", "/var/spool/torque/mom_priv/jobs/[0-9]*.JB", false},
    {"LSF", CGROUP "*/lsf/*/job.[0-9]*", false},
    {"Kubernetes", CGROUP "kubepods.slice/kubepods-pod*.slice", true},
    {"Kubernetes", CGROUP "kubepods.slice/kubepods-*.slice/kubepods-*-pod*.slice", true},
    {"Kubernetes", CGROUP "kubepods/pod*", true},
    {"Kubernetes", CGROUP "kubepods/*/pod*", true},
    {"Kubernetes", CGROUP "*/kubepods.slice/kubepods-pod*.slice", true},
    {"Kubernetes", CGROUP "*/kubepods.slice/kubepods-*.slice/kubepods-*-pod*.slice", true},
    {"Kubernetes", CGROUP "*/kubepods/pod*", true},
    {"Kubernetes", CGROUP "*/kubepods/*/pod*", true},
};

// "job_12", "job00012", "n1_12.0", "12.server.JB": 12.
static void short_name(const char *base, bool pod, char *out, size_t room)
{
    const char *from = strrchr(base, '_');
    if (pod) {
        snprintf(out, room, "%s", base);
        return;
    }
    from = from ? from + 1 : base + strcspn(base, "0123456789");
    from += strspn(from, "0");
    snprintf(out, room, "%.*s", (int)strspn(from, "0123456789"), from);
}

// A whole component of one of our own cgroups.
static bool ours(const char *own, const char *base)
{
    size_t n = strlen(base);
    for (const char *at = own; (at = strstr(at, base)); at += n)
        if (at > own && at[-1] == '/' && (at[n] == '/' || at[n] == '\n' || !at[n]))
            return true;
    return false;
}

static bool known(const struct batch_job *list, int n, const struct batch_job *job)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].manager, job->manager) == 0 && strcmp(list[i].name, job->name) == 0)
            return true;
    return false;
}

struct found {
    struct batch_job *list;
    int n, most;
    char own[4096]; // our cgroups, a line each
};

static void batch_jobs_add(struct found *f, const struct batch_job *job)
{
    if (*job->name && f->n < f->most && !known(f->list, f->n, job))
        f->list[f->n++] = *job;
}

static bool has_manager(const struct found *f, const char *manager)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->list[i].manager, manager) == 0)
            return true;
    return false;
}

// --- by processes

// Slurm's step daemon calls itself "slurmstepd: [12.0]".
static void add_step(struct found *f, const char *root, int pid)
{
    char text[256], base[80];
    struct batch_job job = {.manager = "Slurm"};
    if (file_read_fmt(text, sizeof text, "%s/proc/%d/cmdline", root, pid) < 0 ||
        !str_starts(text, "slurmstepd: ["))
        return;
    const char *number = strchr(text, '[') + 1;
    snprintf(job.name, sizeof job.name, "%.*s", (int)strspn(number, "0123456789"), number);
    snprintf(base, sizeof base, "job_%s", job.name);
    if (!ours(f->own, base))
        batch_jobs_add(f, &job);
}

// The daemon that starts jobs waits as long as it has none: a child of it is one. Its lock file
// holds its number.
static void find_children(struct found *f, const char *root, const char *manager, const char *lock)
{
    char text[64];
    struct batch_job job = {.manager = manager};
    int64_t pid;
    if (has_manager(f, manager) || file_read_fmt(text, sizeof text, "%s%s", root, lock) < 0)
        return;
    text[strcspn(text, " \n")] = '\0';
    if (!str_to_i64(text, &pid) || pid < 1)
        return;
    if (file_read_fmt(text, sizeof text, "%s/proc/%lld/task/%lld/children", root, (long long)pid,
                      (long long)pid) < 0 ||
        !*text)
        return;
    snprintf(job.name, sizeof job.name, "process %.*s", (int)strspn(text, "0123456789"), text);
    batch_jobs_add(f, &job);
}

// --- by what they leave

// One thing of that name below a folder that matches a sign's last part.
static void add_sign(struct found *f, size_t sign, const char *base)
{
    struct batch_job job = {.manager = signs[sign].manager, .pod = signs[sign].pod};
    short_name(base, job.pod, job.name, sizeof job.name);
    if (!ours(f->own, base))
        batch_jobs_add(f, &job);
}

// What matches `pattern` below `path`, which has room for SIGN_PATH. By hand: the C library's
// glob() frees twice where memory runs out.
static void find_sign(struct found *f, size_t sign, char *path, const char *pattern)
{
    size_t used = strlen(path), n = strcspn(pattern, "/");
    char part[NAME_MAX + 1];
    snprintf(part, sizeof part, "%.*s", (int)n, pattern);
    if (pattern[n] && !part[strcspn(part, "*[")]) {
        snprintf(path + used, SIGN_PATH - used, "/%s", part);
        find_sign(f, sign, path, pattern + n + 1);
        path[used] = '\0';
        return;
    }
    CLEANUP_DIR DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (fnmatch(part, e->d_name, FNM_PERIOD) != 0)
            continue;
        if (!pattern[n]) {
            add_sign(f, sign, e->d_name);
        } else if (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) {
            snprintf(path + used, SIGN_PATH - used, "/%s", e->d_name);
            find_sign(f, sign, path, pattern + n + 1);
            path[used] = '\0';
        }
    }
}

static void find_signs(struct found *f, const char *root)
{
    char path[SIGN_PATH];
    for (size_t i = 0; i < COUNT_OF(signs); i++) {
        snprintf(path, sizeof path, "%s", root);
        find_sign(f, i, path, signs[i].pattern + 1);
    }
}

static void find_own(struct found *f, const char *root)
{
    struct own_cgroups g CLEANUP(own_cgroups_close);
    own_cgroups_open(&g, root);
    for (size_t used = 0; used < sizeof f->own && own_cgroups_next(&g);)
        used += (size_t)snprintf(f->own + used, sizeof f->own - used, "%s\n", g.path);
}

int batch_jobs_find(const char *root, const struct processes_found *p, struct batch_job *out,
                    int most)
{
    struct found f = {.list = out, .most = most};
    find_own(&f, root);
    find_signs(&f, root);
    for (int i = 0; i < p->n_steps; i++)
        add_step(&f, root, p->steps[i]);
    find_children(&f, root, "PBS", "/var/spool/pbs/mom_priv/mom.lock");
    find_children(&f, root, "Torque", "/var/spool/torque/mom_priv/mom.lock");
    return f.n;
}
