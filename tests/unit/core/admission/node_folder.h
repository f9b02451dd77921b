// SPDX-License-Identifier: Apache-2.0
// A node as a folder: what a kernel would say on an idle one, written by the tests of admission.
#pragma once
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/admission/checks.h"
#include "core/admission/monitor.h"
#include "core/launch/planner.h"
#include "core/node/hwloc.h"
#include "core/os/host_lock.h"
#include "model/condition.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

__attribute__((unused)) static char root[64];

__attribute__((unused)) static struct topology topology;

__attribute__((unused)) static struct plan plan; // CPUs 0 and 1; 4 is the sibling of 0, 5 of 1

__attribute__((unused)) static struct policy policy;

__attribute__((unused)) static void production(void)
{
    policy_defaults(&policy);
    policy.strongest = POLICY_REFUSE;
    policy_finish(&policy, NULL);
}

__attribute__((unused)) static void put(const char *path, const char *text)
{
    dir_write(root, path, text);
}

__attribute__((unused)) static void put_cpus(const char *path_end, const char *text)
{
    for (int i = 0; i < 8; i++) {
        char path[100];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/%s", i, path_end);
        put(path, text);
    }
}

// /proc/stat with so many ticks of work and of steal on one CPU since a boot 1000 s ago.
__attribute__((unused)) static void put_stat(int cpu, int busy, int steal, int more)
{
    char text[4096];
    int n = snprintf(text, sizeof text, "cpu  1 2 3 4 5 6 7 8 0 0\n");
    for (int i = 0; i < 8; i++) {
        int own = i == cpu ? busy : 0, lost = i == cpu ? steal : 0;
        n += snprintf(text + n, sizeof text - (size_t)n, "cpu%d %d 0 0 %d 0 0 0 %d 0 0\n", i,
                      100 + own, 100000 + more - own - lost, lost);
    }
    snprintf(text + n, sizeof text - (size_t)n, "intr 1 2 3\nctxt 4\n");
    put("proc/stat", text);
}

// A process of /proc: state, ticks used, start (ticks after boot), CPU.
__attribute__((unused)) static void put_process(int pid, int tid, const char *name, char state,
                                                int used, int start, int cpu)
{
    char path[64], text[400];
    if (tid)
        snprintf(path, sizeof path, "proc/%d/task/%d/stat", pid, tid);
    else
        snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(
        text, sizeof text,
        "%d (%s) %c 1 1 1 0 -1 4194304 9 0 0 0 %d 0 0 0 20 0 1 0 %d 1000 5 18446744073709551615 "
        "1 1 0 0 0 0 0 0 0 0 0 0 17 %d 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        tid ? tid : pid, name, state, used, start, cpu);
    put(path, text);
}

// An idle node: two packages of two cores with two threads each.
__attribute__((unused)) static void idle(void)
{
    dir_remove(root);
    mkdir(root, 0755);
    put("proc/loadavg", "0.05 0.10 0.12 1/412 9123\n");
    put("proc/uptime", "1000.00 7900.00\n");
    put_stat(-1, 0, 0, 0);
    put("proc/pressure/cpu",
        "some avg10=0.00 avg60=0.10 avg300=0.00 total=100\nfull avg10=0.00 avg60=0.00 total=0\n");
    put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=50\n");
    put("proc/vmstat", "nr_free_pages 5\npswpin 100\npswpout 200\n");
    put("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 16000000 kB\n");
    put("proc/self/status",
        "Name:\tnumaprobed\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n");
    put("proc/self/cgroup", "0::/system.slice/numaprobed.service\n");
    put("sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 8000000 kB\n");
    put("sys/devices/system/node/node1/meminfo",
        "Node 1 MemTotal: 8388608 kB\nNode 1 MemFree: 8000000 kB\n");
    put_cpus("cpufreq/scaling_max_freq", "3000000\n");
    put_cpus("cpufreq/cpuinfo_max_freq", "3000000\n");
    put_cpus("thermal_throttle/core_throttle_count", "7\n");
    put_cpus("thermal_throttle/package_throttle_count", "7\n");
    put("sys/class/thermal/cooling_device0/type", "Processor\n");
    put("sys/class/thermal/cooling_device0/cur_state", "0\n");
    put("sys/fs/cgroup/system.slice/numaprobed.service/cpu.max", "max 100000\n");
    put_process(1, 0, "systemd", 'S', 500, 1, 2);
    put_process(700, 0, "a shell", 'R', 20, 60000, 0); // runs, and hardly ever
}

struct look {
    struct readings now, earlier;
    struct admission a;
    bool have_earlier;
    double own_load, own_pressure;
    bool other_instance, force;
    int64_t idle_ms;
    int day, minute;
    const struct batch_place *within;
};

__attribute__((unused)) static struct look *fresh(void)
{
    static struct look l;
    readings_fini(&l.now);
    readings_fini(&l.earlier);
    l = (struct look){.idle_ms = -1};
    return &l;
}

__attribute__((unused)) static void take(struct readings *r, int64_t at_ms)
{
    int cpus[] = {0, 1};
    struct err err;
    if (readings_take(r, root, at_ms, cpus, 2, &err) < 0)
        abort();
}

__attribute__((unused)) static void judge(struct look *l)
{
    readings_fini(&l->now);
    take(&l->now, 3000);
    const struct admission_input in = {.policy = &policy,
                                       .plan = &plan,
                                       .topology = &topology,
                                       .root = root,
                                       .now = &l->now,
                                       .earlier = l->have_earlier ? &l->earlier : NULL,
                                       .own_load = l->own_load,
                                       .own_pressure = l->own_pressure,
                                       .other_instance = l->other_instance,
                                       .force = l->force,
                                       .within = l->within,
                                       .idle_ms = l->idle_ms,
                                       .day = l->day,
                                       .minute = l->minute};
    admission_judge(&l->a, &in);
}

__attribute__((unused)) static void free_now(struct look *l, const char *what)
{
    judge(l);
    CHECK(l->a.n == 0 && l->a.n_warnings == 0, "%s: nothing is in the way", what);
    for (int i = 0; i < l->a.n; i++)
        printf("# %s\n", l->a.list[i].text);
    for (int i = 0; i < l->a.n_warnings; i++)
        printf("# warning: %s\n", l->a.warnings[i].text);
}

// Exactly this one.
__attribute__((unused)) static void blocked(struct look *l, enum admission_kind kind,
                                            double measured, const char *what)
{
    judge(l);
    const struct blocker *b = &l->a.list[0];
    double off = b->measured - measured;
    CHECK(l->a.n == 1 && b->kind == kind && off < 0.06 && off > -0.06, "%s: %s (%g, limit %g)",
          what, b->text, b->measured, b->limit);
    for (int i = 1; i < l->a.n; i++)
        printf("# and %s\n", l->a.list[i].text);
    CHECK(l->a.retry_after_s >= admission_kinds[kind].retry_s, "%s: ask again in %d s", what,
          l->a.retry_after_s);
}

__attribute__((unused)) static struct monitor *new_monitor(void)
{
    struct err err;
    struct monitor *a = monitor_new(&policy, &topology, root, &err);
    if (!a)
        abort();
    return a;
}

__attribute__((unused)) static void put_group(const char *group, double usual, long total)
{
    char path[100], text[200];
    snprintf(path, sizeof path, "sys/fs/cgroup/%s/cpu.pressure", group);
    snprintf(text, sizeof text, "some avg10=%.2f avg60=0.00 avg300=0.00 total=%ld\n", usual, total);
    put(path, text);
}

// Busy, so that the clock moves; returns how long it took.
__attribute__((unused)) static long spend_us(void)
{
    uint64_t begin_ns = clock_mono_ns();
    while (clock_mono_ns() - begin_ns < 30000000)
        continue;
    return (long)((clock_mono_ns() - begin_ns) / 1000);
}

__attribute__((unused)) static void test_disturbing(void)
{
    struct err err;
    struct blocker b;
    long user = 0, ours = 0, database = 0;
    idle();
    put_group("user.slice", 0, 0);
    put_group("system.slice", 0, 0);
    put_group("system.slice/db.service", 90, 0);
    put_group("system.slice/numaprobed.service", 0, 0);
    put("proc/self/cgroup", "0::/system.slice/numaprobed.service/numaprobed\n");
    put_group("system.slice/numaprobed.service/numaprobed", 0, 0);
    put_group("system.slice/numaprobed.service/numaprobe-run-1", 0, 0);
    struct monitor *a = new_monitor();
    CHECK_INT(monitor_begin(a, &plan, false, &err), 0, "a run begins");
    for (int i = 0; i < 2; i++) {
        long us = spend_us();
        put_group("system.slice", 0, ours += us);
        put_group("system.slice/numaprobed.service", 0, ours);
        put_group("system.slice/numaprobed.service/numaprobe-run-1", 0, ours);
        put_group("system.slice/db.service", 90, database += us);
        CHECK(!monitor_disturbs(a, &b), "our own waiting, and what always waits, is nobody's pain");
    }
    put_group("user.slice", 0, user += 3 * spend_us());
    CHECK(!monitor_disturbs(a, &b), "once may be chance");
    put_group("user.slice", 0, user += 3 * spend_us());
    CHECK(monitor_disturbs(a, &b) && b.measured > 25 && strstr(b.named, "user.slice waited") &&
              !strstr(b.text, "user.slice"),
          "twice is not: %s", b.text);
    spend_us();
    CHECK(!monitor_disturbs(a, &b), "it is over");
    spend_us();
    put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=100000000000\n");
    monitor_disturbs(a, &b);
    spend_us();
    put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=200000000000\n");
    CHECK(monitor_disturbs(a, &b) && strstr(b.text, "memory"), "memory: %s", b.text);
    monitor_end(a);
    CHECK(!monitor_disturbs(a, &b), "without a run there is nothing to stop");
    monitor_free(a);
}

// Before all tests: a machine of two packages, and a plan for CPUs 0 and 1. False: there is none.
__attribute__((unused)) static bool set_up(void)
{
    struct err err = {0};
    struct spec s;
    CLEANUP_MEM char *xml = NULL;
    setenv("HWLOC_SYNTHETIC",
           "Package:2 [NUMANode(memory=8589934592)] Core:2 PU:2(indexes=2*4:4*1)", 1);
    spec_init(&s, BENCHMARK_LATENCY);
    snprintf(s.cpus, sizeof s.cpus, "0,1");
    snprintf(s.size, sizeof s.size, "1-4");
    if (probe_topology(&topology, &xml, &err) < 0 || plan_make(&plan, &s, &topology, &err) < 0) {
        printf("Bail out! %s\n", err.text);
        return false;
    }
    topology.this_system = true;
    production();
    dir_make(root);
    return true;
}

__attribute__((unused)) static int tear_down(void)
{
    fresh();
    dir_remove(root);
    plan_fini(&plan);
    topology_fini(&topology);
    return tap_done();
}
