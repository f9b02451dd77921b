// SPDX-License-Identifier: Apache-2.0
// What the kernel says in /proc and /sys, as far as we read it ourselves. The input is a list of
// files, cut by 0x1f: a byte that names the file, then what is in it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "core/node/batch_jobs.h"
#include "core/node/checkup.h"
#include "core/node/facts.h"
#include "core/node/hwloc.h"
#include "core/node/load.h"
#include "core/node/machine.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/core/dir.h"

static const char *const paths[] = {
    "proc/loadavg",
    "proc/stat",
    "proc/vmstat",
    "proc/meminfo",
    "proc/uptime",
    "proc/swaps",
    "proc/cpuinfo",
    "proc/cmdline",
    "proc/1/stat",
    "proc/77/stat",
    "proc/77/task/77/stat",
    "proc/self/status",
    "proc/self/cgroup",
    "proc/pressure/cpu",
    "proc/pressure/memory",
    "sys/fs/cgroup/a/cpu.max",
    "sys/fs/cgroup/a/cpu.pressure",
    "sys/fs/cgroup/b/cpu.pressure",
    "sys/fs/cgroup/a/memory.max",
    "sys/fs/cgroup/a/memory.current",
    "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us",
    "sys/fs/cgroup/cpu/a/cpu.cfs_period_us",
    "sys/class/thermal/cooling_device0/type",
    "sys/class/thermal/cooling_device0/cur_state",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
    "sys/devices/system/node/node0/meminfo",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/devices/system/cpu/vulnerabilities/x",
};

static char root[256];
static struct topology machine;

static void forget_machine(void)
{
    topology_fini(&machine);
}

void fuzz_readings_begin(const char *dir)
{
    char *xml = NULL;
    snprintf(root, sizeof root, "%s", dir);
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        dir_write(root, paths[i], "");
    setenv("HWLOC_SYNTHETIC", "pack:1 [numa] core:2 pu:1", 1);
    fuzz_hold(probe_topology(&machine, &xml, NULL) == 0);
    free(xml);
    unsetenv("HWLOC_SYNTHETIC");
    atexit(forget_machine);
}

static void write_files(const uint8_t *data, size_t size, bool there[COUNT_OF(paths)])
{
    char path[400];
    for (size_t at = 0; at < size;) {
        const uint8_t *cut = memchr(data + at, 0x1f, size - at);
        size_t end = cut ? (size_t)(cut - data) : size;
        if (end > at) {
            size_t which = data[at] % COUNT_OF(paths);
            snprintf(path, sizeof path, "%s/%s", root, paths[which]);
            fuzz_write(path, data + at + 1, end - at - 1);
            there[which] = true;
        }
        at = end + 1;
    }
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        snprintf(path, sizeof path, "%s/%s", root, paths[i]);
        if (!there[i])
            unlink(path);
    }
}

static void take_readings(void)
{
    static const int cpus[] = {0, 1};
    static struct group_readings groups;
    struct readings r CLEANUP(readings_fini) = {0};
    if (readings_take(&r, root, 1000, cpus, COUNT_OF(cpus), NULL) == 0) {
        fuzz_hold(r.n_busy <= READINGS_BUSY_MAX && r.n_jobs <= READINGS_JOBS_MAX);
        fuzz_hold(r.n_cpus >= 0 && (r.cpu || !r.n_cpus));
        for (int i = 0; i < r.n_busy; i++)
            fuzz_hold(memchr(r.busy[i].name, '\0', sizeof r.busy[i].name));
    }
    readings_frequency_share(root, 0);
    readings_take_groups(&groups, root, 1000);
    fuzz_hold(groups.n >= 0 && groups.n <= READINGS_GROUPS_MAX);
}

void fuzz_readings(const uint8_t *data, size_t size)
{
    enum { FINDINGS = 16 };
    struct finding findings[FINDINGS];
    static struct fingerprint print;
    bool there[COUNT_OF(paths)] = {0};
    write_files(data, size, there);
    take_readings();
    int n = machine_findings(&machine, root, findings, FINDINGS);
    fuzz_hold(n >= 0 && n <= FINDINGS);
    fingerprint_read(&print, &machine, root);
}
