// SPDX-License-Identifier: Apache-2.0
// Each function reads one kind of file and fills its part of struct readings; what cannot be read
// stays READING_UNKNOWN. The files are parsed by hand where a large machine would cost
// milliseconds.
#include "core/node/load.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/own_cgroups.h"
#include "base/str.h"
#include "core/node/batch_jobs.h"
#include "core/node/busy_tasks.h"
#include "core/os/cgroup.h"
#include "model/topology.h"

enum {
    PATH_ROOM = 1200,
    RUNNABLE_LOOKS = 24,  // of 5 to 50 us each: what is runnable in all of them is no passing tick
    THROTTLE_SAMPLE = 16, // CPUs: two files of 10 us each
    COOLING_MAX = 64,
};

// --- load and pressure

static void read_load(struct readings *r, const char *root)
{
    char text[128];
    r->load = READING_UNKNOWN;
    if (file_read_fmt(text, sizeof text, "%s/proc/loadavg", root) == 0 &&
        sscanf(text, "%lf", &r->load) != 1)
        r->load = READING_UNKNOWN;
}

// "0.00 0.01 0.05 3/412 9123": three tasks want a CPU, we are one of them and not counted. Taken
// many times in about a millisecond, so that a task that only passes by is not counted.
static int runnable_tasks(const char *root)
{
    char path[PATH_ROOM], text[128];
    int least = READING_UNKNOWN;
    snprintf(path, sizeof path, "%s/proc/loadavg", root);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < RUNNABLE_LOOKS && least != 1; i++) {
        int now;
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        if (n <= 0)
            break;
        text[n] = '\0';
        if (sscanf(text, "%*s %*s %*s %d/", &now) == 1 && (least < 0 || now < least))
            least = now;
    }
    return least > 0 ? least - 1 : least;
}

static double pressure_share(const char *text)
{
    double some;
    return sscanf(text, "some avg10=%lf", &some) == 1 ? some : READING_UNKNOWN;
}

static double load_pressure(const char *root, const char *what)
{
    char text[256];
    if (file_read_fmt(text, sizeof text, "%s/proc/pressure/%s", root, what) < 0)
        return READING_UNKNOWN;
    return pressure_share(text);
}

static int64_t pressure_total(const char *text)
{
    const char *total = strstr(text, "total=");
    return str_starts(text, "some ") && total ? strtoll(total + 6, NULL, 10) : READING_UNKNOWN;
}

// --- CPUs

// "12 1 2 3 4 5 6 7 8 …": the CPU, and its eight times; -1: it is no such line. By hand: with 512
// of them sscanf takes a millisecond.
static long load_read_times(const char *at, uint64_t t[static 8])
{
    char *end;
    if (*at < '0' || *at > '9')
        return -1;
    long cpu = strtol(at, &end, 10);
    for (int i = 0; i < 8; i++) {
        at = end;
        t[i] = strtoull(at, &end, 10);
        if (end == at)
            return -1;
    }
    return cpu;
}

static int load_read_cpus(struct readings *r, const char *root, struct err *err)
{
    char path[PATH_ROOM], line[512];
    snprintf(path, sizeof path, "%s/proc/stat", root);
    CLEANUP_FILE FILE *f = fopen(path, "re");
    r->cpu = calloc(TOPOLOGY_CPUS_MAX, sizeof *r->cpu); // pages that are not touched cost nothing
    if (!r->cpu)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the CPUs");
    while (f && fgets(line, sizeof line, f) && str_starts(line, "cpu")) {
        uint64_t t[8] = {0};
        long cpu = load_read_times(line + strlen("cpu"), t);
        if (cpu < 0 || cpu >= TOPOLOGY_CPUS_MAX)
            continue; // "cpu " is the sum
        uint64_t busy = t[0] + t[1] + t[2] + t[5] + t[6], idle = t[3] + t[4], steal = t[7];
        r->cpu[cpu] = (struct cpu_time){busy, busy + idle + steal, steal};
        r->n_cpus = cpu >= r->n_cpus ? (int)cpu + 1 : r->n_cpus;
    }
    return 0;
}

// Counters are believed as they are; invalid ones make no overflow.
static int64_t sum(int64_t a, int64_t b)
{
    int64_t both;
    return __builtin_add_overflow(a, b, &both) ? INT64_MAX : both;
}

static void read_swap(struct readings *r, const char *root)
{
    char path[PATH_ROOM], line[128];
    int64_t in = 0, out = 0;
    int found = 0;
    snprintf(path, sizeof path, "%s/proc/vmstat", root);
    CLEANUP_FILE FILE *f = fopen(path, "re");
    while (f && found < 2 && fgets(line, sizeof line, f)) {
        found += sscanf(line, "pswpin %" SCNd64, &in) == 1;
        found += sscanf(line, "pswpout %" SCNd64, &out) == 1;
    }
    r->swapped_pages = found == 2 ? sum(in, out) : READING_UNKNOWN;
}

static int64_t load_number(const char *root, int cpu, const char *file)
{
    char text[64];
    int64_t v;
    return file_read_fmt(text, sizeof text, "%s/sys/devices/system/cpu/cpu%d/%s", root, cpu,
                         file) == 0 &&
                   str_to_i64(text, &v)
               ? v
               : READING_UNKNOWN;
}

static void read_throttling(struct readings *r, const char *root, const int *cpus, int n)
{
    int step = n > THROTTLE_SAMPLE ? n / THROTTLE_SAMPLE : 1;
    r->throttle_events = READING_UNKNOWN;
    for (int i = 0; i < n; i += step) {
        int64_t core = load_number(root, cpus[i], "thermal_throttle/core_throttle_count");
        int64_t package = load_number(root, cpus[i], "thermal_throttle/package_throttle_count");
        if (core < 0)
            return; // this machine does not count
        if (r->throttle_events < 0)
            r->throttle_events = 0;
        r->throttle_events = sum(r->throttle_events, sum(core, package > 0 ? package : 0));
    }
}

static void read_cooling(struct readings *r, const char *root)
{
    for (int i = 0; i < COOLING_MAX; i++) {
        char type[64], state[32];
        int64_t now;
        if (file_read_fmt(type, sizeof type, "%s/sys/class/thermal/cooling_device%d/type", root,
                          i) < 0)
            return;
        bool processor = str_starts(type, "Processor") || strstr(type, "cpufreq") ||
                         strcmp(type, "intel_powerclamp") == 0;
        if (processor &&
            file_read_fmt(state, sizeof state, "%s/sys/class/thermal/cooling_device%d/cur_state",
                          root, i) == 0 &&
            str_to_i64(state, &now) && now > 0)
            r->cooling++;
    }
}

double readings_frequency_share(const char *root, int cpu)
{
    int64_t cap = load_number(root, cpu, "cpufreq/scaling_max_freq");
    int64_t most = load_number(root, cpu, "cpufreq/cpuinfo_max_freq");
    return cap > 0 && most > 0 ? 100.0 * (double)cap / (double)most : READING_UNKNOWN;
}

// --- what is allowed to us

bool id_set_has(const struct id_set *s, int id)
{
    for (int i = 0; i < s->n; i++)
        if (s->ids[i] == id)
            return true;
    return s->n < 0;
}

static void read_set(struct id_set *s, char *line, const char *name)
{
    if (!str_starts(line, name))
        return;
    char *list = line + strlen(name);
    list += strspn(list, " \t");
    list[strcspn(list, " \n")] = '\0';
    int *ids, n;
    if (str_to_ids(list, false, TOPOLOGY_CPUS_MAX, "", &ids, &n, NULL) == 0) {
        free(s->ids);
        *s = (struct id_set){ids, n};
    }
}

void readings_allowed(struct id_set *cpus, struct id_set *mems, const char *root)
{
    char path[PATH_ROOM], line[8192];
    *cpus = *mems = (struct id_set){.n = READING_UNKNOWN};
    snprintf(path, sizeof path, "%s/proc/self/status", root);
    CLEANUP_FILE FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        read_set(cpus, line, "Cpus_allowed_list:");
        read_set(mems, line, "Mems_allowed_list:");
    }
}

static double lesser(double a, double b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

// cpu.max is "max 100000" or "150000 100000"; v1 has two files and -1 for no limit.
static double quota_of(const char *root, const char *mount, const char *path)
{
    char text[64], period[64];
    double quota, of;
    if (file_read_fmt(text, sizeof text, "%s%s%s/cpu.max", root, mount, path) == 0)
        return sscanf(text, "%lf %lf", &quota, &of) == 2 && of > 0 ? quota / of : READING_UNKNOWN;
    if (file_read_fmt(text, sizeof text, "%s%s%s/cpu.cfs_quota_us", root, mount, path) == 0 &&
        file_read_fmt(period, sizeof period, "%s%s%s/cpu.cfs_period_us", root, mount, path) == 0 &&
        sscanf(text, "%lf", &quota) == 1 && quota > 0 && sscanf(period, "%lf", &of) == 1 && of > 0)
        return quota / of;
    return READING_UNKNOWN;
}

// The least of our groups and all above them.
static void read_quota(struct readings *r, const char *root)
{
    struct own_cgroups g CLEANUP(own_cgroups_close);
    r->quota_cpus = READING_UNKNOWN;
    own_cgroups_open(&g, root);
    while (own_cgroups_next(&g)) {
        const char *mount = *g.controllers ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup";
        if (*g.controllers && !own_cgroups_has(&g, "cpu"))
            continue;
        do
            r->quota_cpus = lesser(r->quota_cpus, quota_of(root, mount, g.path));
        while (own_cgroups_up(&g));
    }
}

static void read_processes(struct readings *r, const char *root)
{
    struct processes_found p;
    processes_find(&p, root, r->runnable != 0);
    r->sees_others = busy_tasks_visible(root);
    r->n_busy = p.n_busy;
    memcpy(r->busy, p.busy, sizeof r->busy);
    r->n_jobs = batch_jobs_find(root, &p, r->jobs, READINGS_JOBS_MAX);
}

int readings_take(struct readings *r, const char *root, int64_t at_ms, const int *cpus, int n_cpus,
                  struct err *err)
{
    struct readings got CLEANUP(readings_fini) = {.at_ms = at_ms};
    if (load_read_cpus(&got, root, err) < 0)
        return -1;
    got.runnable = runnable_tasks(root);
    read_load(&got, root);
    got.cpu_some = load_pressure(root, "cpu");
    got.memory_some = load_pressure(root, "memory");
    read_swap(&got, root);
    read_throttling(&got, root, cpus, n_cpus);
    read_cooling(&got, root);
    memory_errors_read(&got.errors, root);
    readings_allowed(&got.cpus, &got.mems, root);
    read_quota(&got, root);
    read_processes(&got, root);
    *r = got;
    got = (struct readings){0};
    return 0;
}

void readings_fini(struct readings *r)
{
    free(r->cpu);
    free(r->cpus.ids);
    free(r->mems.ids);
    *r = (struct readings){0};
}

// --- what others feel

static void load_add_group(struct group_readings *r, const char *dir, const char *name)
{
    char path[PATH_ROOM], text[256];
    if (r->n == READINGS_GROUPS_MAX ||
        file_read_fmt(text, sizeof text, "%s/%s/cpu.pressure", dir, name) < 0)
        return;
    int64_t total = pressure_total(text);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (total < 0)
        return;
    struct group_pressure *g = &r->group[r->n++];
    *g = (struct group_pressure){
        .key = hash_text(path), .total_us = total, .usual = pressure_share(text)};
    snprintf(g->name, sizeof g->name, "%s", name);
}

static void add_siblings(struct group_readings *r, const char *dir, const char *ours, size_t n)
{
    CLEANUP_DIR DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
            !str_starts(e->d_name, RUN_GROUP_PREFIX) &&
            !(strlen(e->d_name) == n && strncmp(e->d_name, ours, n) == 0))
            load_add_group(r, dir, e->d_name);
}

// Groups beside each on the way from the top to ours: what is below those is others' work. Our own
// group, what is below it, and that of our run beside it, is the daemon and its run.
static void read_groups(struct group_readings *r, const char *root, const char *mount)
{
    char path[PATH_ROOM];
    struct own_cgroups g CLEANUP(own_cgroups_close);
    own_cgroups_open(&g, root);
    if (!own_cgroups_next_v2(&g))
        return;
    int used = snprintf(path, sizeof path, "%s%s", root, mount);
    for (const char *at = g.path; *at == '/' && at[1];) {
        size_t n = strcspn(at + 1, "/");
        add_siblings(r, path, at + 1, n);
        used += snprintf(path + used, sizeof path - (size_t)used, "/%.*s", (int)n, at + 1);
        if (used >= (int)sizeof path)
            return;
        at += 1 + n;
    }
}

void readings_take_groups(struct group_readings *r, const char *root, int64_t at_ms)
{
    char text[256];
    *r = (struct group_readings){.at_ms = at_ms, .memory_us = READING_UNKNOWN};
    r->runnable = runnable_tasks(root);
    if (file_read_fmt(text, sizeof text, "%s/proc/pressure/memory", root) == 0) {
        r->memory_us = pressure_total(text);
        r->memory_usual = pressure_share(text);
    }
    read_groups(r, root, "/sys/fs/cgroup");
}
