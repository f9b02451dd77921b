// SPDX-License-Identifier: Apache-2.0
// Is an idle node ever refused, and what does a decision cost? Asks a thousand times with
// admission = refuse, and prints what was in the way, by kind and each with its reading, and the
// time that decisions took. On a machine where somebody works, refusals are true ones: read what
// is printed, or run it where nobody is (tests/vm).
//
//   idle_checks [CHECKS=1000] [EVERY_MS=60]    this machine, each other check without a reading
//                                              from before
//   idle_checks --large [CHECKS=1000]          a recorded machine in a folder: 512 CPUs on 8 nodes,
//                                              3,000 processes of others, nothing at work
//
// Exit status 1: something was in the way, or half of the decisions took longer than 5 ms.
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/admission/checks.h"
#include "core/admission/monitor.h"
#include "core/launch/planner.h"
#include "core/node/hwloc.h"
#include "tests/unit/core/dir.h"

enum { CPUS = 512, NODES = 8, PROCESSES = 3000, CHECKS_MAX = 100000 };
#define DECISION_MS 5.0

struct tally {
    int kinds[ADMISSION_KINDS];
    int refused, n;
    double *ms, *cpu_ms; // by the clock, and of the CPU: the same where nobody else works
};

// --- the large machine

__attribute__((format(printf, 3, 4))) static void put(const char *root, const char *text,
                                                      const char *fmt, ...)
{
    char path[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    dir_write(root, path, text);
}

static void put_node(const char *root, int node)
{
    char text[800];
    snprintf(text, sizeof text,
             "Node %d MemTotal: 67108864 kB\nNode %d MemFree: 60000000 kB\n"
             "Node %d Active(file): 200000 kB\nNode %d Inactive(file): 400000 kB\n"
             "Node %d Dirty: 100 kB\nNode %d Writeback: 0 kB\nNode %d SReclaimable: 90000 kB\n",
             node, node, node, node, node, node, node);
    put(root, text, "sys/devices/system/node/node%d/meminfo", node);
}

static void put_cpu(const char *root, int cpu)
{
    put(root, "3000000\n", "sys/devices/system/cpu/cpu%d/cpufreq/scaling_max_freq", cpu);
    put(root, "3000000\n", "sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", cpu);
    put(root, "7\n", "sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", cpu);
    put(root, "7\n", "sys/devices/system/cpu/cpu%d/thermal_throttle/package_throttle_count", cpu);
}

static void put_process(const char *root, int pid)
{
    char text[400];
    snprintf(text, sizeof text,
             "%d (service-%d) S 1 1 1 0 -1 4194304 9 0 0 0 20 3 0 0 20 0 1 0 %d 1000 5 "
             "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 %d 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
             pid, pid, pid, pid % CPUS);
    put(root, text, "proc/%d/stat", pid);
}

static void put_stat(const char *root)
{
    static char text[CPUS * 80];
    size_t n = (size_t)snprintf(text, sizeof text, "cpu  1 2 3 4 5 6 7 8 0 0\n");
    for (int i = 0; i < CPUS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "cpu%d 100 0 50 100000 3 0 1 0 0 0\n", i);
    dir_write(root, "proc/stat", text);
}

// Three tasks are always runnable there, so that processes are looked through.
static void build_large(const char *root)
{
    dir_write(root, "proc/loadavg", "3.05 3.10 3.12 4/3412 9123\n");
    dir_write(root, "proc/uptime", "100000.00 7900.00\n");
    dir_write(root, "proc/pressure/cpu", "some avg10=0.00 avg60=0.10 avg300=0.00 total=100\n");
    dir_write(root, "proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=50\n");
    dir_write(root, "proc/vmstat", "nr_free_pages 5\npswpin 100\npswpout 200\n");
    dir_write(root, "proc/meminfo", "MemTotal: 536870912 kB\nMemAvailable: 500000000 kB\n");
    dir_write(root, "proc/self/status", "Cpus_allowed_list:\t0-511\nMems_allowed_list:\t0-7\n");
    dir_write(root, "proc/self/cgroup", "0::/system.slice/numaprobed.service\n");
    dir_write(root, "sys/fs/cgroup/system.slice/numaprobed.service/cpu.max", "max 100000\n");
    put_stat(root);
    for (int i = 0; i < NODES; i++)
        put_node(root, i);
    for (int i = 0; i < CPUS; i++)
        put_cpu(root, i);
    for (int i = 1; i <= PROCESSES; i++)
        put_process(root, i);
}

// --- asking

static void count(struct tally *t, const struct admission *a)
{
    t->refused += a->n > 0;
    for (int i = 0; i < a->n; i++) {
        t->kinds[a->list[i].kind]++;
        printf("# check %d: %s: %s\n", t->n, admission_kinds[a->list[i].kind].name,
               a->list[i].text);
    }
}

static int check_once(struct tally *t, struct monitor *a, const struct plan *p)
{
    struct admission found;
    struct err err;
    uint64_t begin_ns = clock_mono_ns(), cpu_ns = clock_cpu_ns();
    if (monitor_check(a, p, false, NULL, &found, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    t->cpu_ms[t->n] = (double)(clock_cpu_ns() - cpu_ns) / 1e6;
    t->ms[t->n++] = (double)(clock_mono_ns() - begin_ns) / 1e6;
    count(t, &found);
    return 0;
}

static int ask(struct tally *t, const struct plan *p, const struct topology *topology,
               const char *root, int checks, int every_ms)
{
    struct policy policy;
    struct err err;
    policy_defaults(&policy);
    policy.strongest = POLICY_REFUSE;
    policy_finish(&policy, &err);
    struct monitor *lasting = monitor_new(&policy, topology, root, &err);
    int rc = lasting ? 0 : -1;
    while (rc == 0 && t->n < checks) {
        poll(NULL, 0, every_ms);
        struct monitor *fresh = t->n % 2 ? monitor_new(&policy, topology, root, &err) : NULL;
        rc = check_once(t, fresh ? fresh : lasting, p);
        monitor_free(fresh);
    }
    monitor_free(lasting);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *what, double *ms, int n)
{
    qsort(ms, (size_t)n, sizeof *ms, by_value);
    printf("%s: p50 %.3f ms, p99 %.3f ms, max %.3f ms\n", what, ms[n / 2], ms[n * 99 / 100],
           ms[n - 1]);
}

static int report(struct tally *t)
{
    printf("checks %d, refused %d\n", t->n, t->refused);
    for (int i = 0; i < ADMISSION_KINDS; i++)
        if (t->kinds[i])
            printf("  %s %d\n", admission_kinds[i].name, t->kinds[i]);
    print_times("decision", t->ms, t->n);
    print_times("of which on a CPU", t->cpu_ms, t->n);
    return t->refused > 0 || t->ms[t->n / 2] > DECISION_MS;
}

static int run(const char *root, int checks, int every_ms)
{
    struct topology topology CLEANUP(topology_fini) = {0};
    struct plan plan CLEANUP(plan_fini) = {0};
    CLEANUP_MEM double *ms = calloc((size_t)checks, sizeof *ms);
    CLEANUP_MEM double *cpu_ms = calloc((size_t)checks, sizeof *cpu_ms);
    struct tally t = {.ms = ms, .cpu_ms = cpu_ms};
    CLEANUP_MEM char *xml = NULL;
    struct spec s;
    struct err err = {0};
    spec_init(&s, BENCHMARK_LATENCY);
    snprintf(s.size, sizeof s.size, "1-4");
    if (!ms || !cpu_ms || probe_topology(&topology, &xml, &err) < 0 ||
        plan_make(&plan, &s, &topology, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    topology.this_system = true;
    printf("%d CPUs, %d ranks\n", topology.n_cpus, plan.n_ranks);
    return ask(&t, &plan, &topology, root, checks, every_ms) < 0 ? 1 : report(&t);
}

static int run_large(int checks)
{
    char root[64] = "/dev/shm/numaprobe-idle-XXXXXX"; // in memory, as /proc and /sys are
    setenv("HWLOC_SYNTHETIC", "Package:8 [NUMANode(memory=68719476736)] Core:32 PU:2", 1);
    if (!mkdtemp(root)) {
        perror(root);
        return 1;
    }
    build_large(root);
    int rc = run(root, checks, 55);
    dir_remove(root);
    return rc;
}

int main(int argc, char **argv)
{
    bool large = argc > 1 && strcmp(argv[1], "--large") == 0;
    int64_t numbers[2] = {1000, 60};
    for (int i = 1 + large; i < argc; i++)
        if (i > 2 + large || !str_to_i64(argv[i], &numbers[i - 1 - large]) ||
            numbers[i - 1 - large] < 1 || numbers[i - 1 - large] > CHECKS_MAX) {
            fprintf(stderr, "usage: idle_checks [--large] [CHECKS=1000] [EVERY_MS=60]\n");
            return 2;
        }
    setvbuf(stdout, NULL, _IOLBF, 0);
    return large ? run_large((int)numbers[0]) : run("", (int)numbers[0], (int)numbers[1]);
}
