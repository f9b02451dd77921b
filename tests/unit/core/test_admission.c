// SPDX-License-Identifier: Apache-2.0
// Every kind of blocker, on machines that are folders: each test writes what a kernel would say on
// an idle node, sees that nothing is in the way, changes one thing, and sees that it is.
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

static char root[64];
static struct topology topology;
static struct plan plan; // CPUs 0 and 1; 4 is the sibling of 0, 5 of 1
static struct policy policy;

static void production(void)
{
    policy_defaults(&policy);
    policy.strongest = POLICY_REFUSE;
    policy_finish(&policy, NULL);
}

static void put(const char *path, const char *text)
{
    dir_write(root, path, text);
}

static void put_cpus(const char *path_end, const char *text)
{
    for (int i = 0; i < 8; i++) {
        char path[100];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/%s", i, path_end);
        put(path, text);
    }
}

// /proc/stat with so many ticks of work and of steal on one CPU since a boot 1000 s ago.
static void put_stat(int cpu, int busy, int steal, int more)
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
static void put_process(int pid, int tid, const char *name, char state, int used, int start,
                        int cpu)
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
static void idle(void)
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
};

static struct look *fresh(void)
{
    static struct look l;
    readings_fini(&l.now);
    readings_fini(&l.earlier);
    l = (struct look){.idle_ms = -1};
    return &l;
}

static void take(struct readings *r, int64_t at_ms)
{
    int cpus[] = {0, 1};
    struct err err;
    if (readings_take(r, root, at_ms, cpus, 2, &err) < 0)
        abort();
}

// As things were two seconds ago.
static void remember(struct look *l)
{
    take(&l->earlier, 1000);
    l->have_earlier = true;
}

static void judge(struct look *l)
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
                                       .idle_ms = l->idle_ms,
                                       .day = l->day,
                                       .minute = l->minute};
    admission_judge(&l->a, &in);
}

static void free_now(struct look *l, const char *what)
{
    judge(l);
    CHECK(l->a.n == 0 && l->a.n_warnings == 0, "%s: nothing is in the way", what);
    for (int i = 0; i < l->a.n; i++)
        printf("# %s\n", l->a.list[i].text);
    for (int i = 0; i < l->a.n_warnings; i++)
        printf("# warning: %s\n", l->a.warnings[i].text);
}

// Exactly this one.
static void blocked(struct look *l, enum admission_kind kind, double measured, const char *what)
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

static void test_busy(void)
{
    idle();
    struct look *l = fresh();
    free_now(l, "an idle node");
    put("proc/loadavg", "0.05 0.10 0.12 2/412 9123\n");
    free_now(l, "a shell that happens to run");
    put_process(900, 0, "xhpl (1) R", 'R', 90000, 10000, 4);
    blocked(l, ADMIT_BUSY, 100, "a process computes beside a CPU of the run");
    CHECK(strstr(l->a.list[0].named, "process 900 (xhpl (1) R, user"), "and is named");
    CHECK(!strstr(l->a.list[0].text, "900") && !strstr(l->a.list[0].text, "xhpl") &&
              !strstr(l->a.list[0].text, "user"),
          "but not to everybody: %s", l->a.list[0].text);
    put_process(900, 0, "xhpl", 'R', 90000, 10000, 3);
    free_now(l, "on a core that the run does not use");
    put_process(900, 0, "omp", 'S', 90000, 10000, 3);
    free_now(l, "a process that waits");
    put_process(900, 0, "omp", 'S', 270000, 10000, 3);
    put_process(900, 900, "omp", 'S', 1, 10000, 3);
    put_process(900, 901, "omp", 'R', 90000, 10000, 1);
    blocked(l, ADMIT_BUSY, 300, "a thread of it computes");
    put("proc/loadavg", "0.05 0.10 0.12 1/412 9123\n");
    free_now(l, "nobody is runnable, so processes are not looked through");
}

static void test_window(void)
{
    idle();
    struct look *l = fresh();
    remember(l);
    put_stat(1, 20, 0, 200);
    free_now(l, "10 % of a CPU of the run");
    put_stat(5, 140, 0, 200);
    blocked(l, ADMIT_BUSY, 70, "70 % of a sibling");
    put_stat(2, 140, 0, 200);
    free_now(l, "of another core");
    put_stat(1, 0, 120, 200);
    blocked(l, ADMIT_STEAL, 7.5, "steal: 120 of 1600 ticks");
    put_stat(1, 0, 60, 200);
    free_now(l, "3.75 % of steal");
    put("proc/vmstat", "nr_free_pages 5\npswpin 130\npswpout 210\n");
    blocked(l, ADMIT_SWAP, 20, "40 pages in 2 s");
    put("proc/vmstat", "nr_free_pages 5\npswpin 110\npswpout 200\n");
    free_now(l, "5 pages a second");
    put("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "9\n");
    blocked(l, ADMIT_THROTTLED, 2, "a CPU was throttled");
}

static void test_hidden(void)
{
    idle();
    struct look *l = fresh();
    char path[100];
    snprintf(path, sizeof path, "%s/proc/1/stat", root);
    unlink(path);
    put("proc/loadavg", "0.90 0.10 0.12 2/412 9123\n");
    free_now(l, "one task that may run on one of four other CPUs");
    put("proc/loadavg", "0.90 0.10 0.12 7/412 9123\n");
    blocked(l, ADMIT_BUSY, 90, "six tasks that cannot be seen on four other CPUs");
    put("proc/loadavg", "0.10 0.10 0.12 7/412 9123\n");
    free_now(l, "of this moment only");
}

static void test_averages(void)
{
    idle();
    struct look *l = fresh();
    put("proc/loadavg", "8.00 0.10 0.12 1/412 9123\n");
    blocked(l, ADMIT_LOAD, 1, "load 8 on 8 CPUs");
    l->own_load = 5;
    free_now(l, "of which our own run left 5");
    l = fresh();
    idle();
    put("proc/pressure/cpu", "some avg10=42.00 avg60=0.10 avg300=0.00 total=100\n");
    blocked(l, ADMIT_CPU_PRESSURE, 42, "waiting for CPUs");
    l->own_pressure = 30;
    free_now(l, "of which our own run may have left 30 %");
    l = fresh();
    idle();
    put("proc/pressure/memory", "some avg10=6.00 avg60=0.10 avg300=0.00 total=100\n");
    blocked(l, ADMIT_MEMORY_PRESSURE, 6, "waiting for memory");
    idle();
    char path[100];
    snprintf(path, sizeof path, "%s/proc/pressure/memory", root);
    unlink(path);
    free_now(l, "a kernel without PSI");
}

static void test_jobs(void)
{
    static const struct {
        const char *path, *name;
        enum admission_kind kind;
    } signs[] = {
        {"sys/fs/cgroup/system.slice/slurmstepd.scope/job_12/step_0/cgroup.procs",
         "Slurm on this node, such as 12", ADMIT_BATCH_JOB},
        {"sys/fs/cgroup/system.slice/n1_slurmstepd.scope/job_120/x",
         "Slurm on this node, such as 120", ADMIT_BATCH_JOB},
        {"sys/fs/cgroup/memory/slurm/uid_1000/job_12/tasks", "Slurm on this node, such as 12",
         ADMIT_BATCH_JOB},
        {"sys/fs/cgroup/cpuset/slurm_n1/uid_1000/job_12/tasks", "Slurm on this node, such as 12",
         ADMIT_BATCH_JOB},
        {"var/spool/slurmd/job00012/slurm_script", "Slurm on this node, such as 12",
         ADMIT_BATCH_JOB},
        {"var/spool/slurmd/n1_12.0", "Slurm on this node, such as 12", ADMIT_BATCH_JOB},
        {"var/lib/slurm/slurmd/job00012/slurm_script", "Slurm on this node, such as 12",
         ADMIT_BATCH_JOB},
        {"sys/fs/cgroup/pbs_jobs.service/jobid/77.server/cgroup.procs",
         "PBS on this node, such as 77", ADMIT_BATCH_JOB},
        {"sys/fs/cgroup/cpuset/pbs_jobs.service/jobid/77.server/tasks",
         "PBS on this node, such as 77", ADMIT_BATCH_JOB},
        {"var/spool/pbs/mom_priv/jobs/77.server.JB", "PBS on this node, such as 77",
         ADMIT_BATCH_JOB},
        {"var/spool/torque/mom_priv/jobs/77.server.JB", "Torque on this node, such as 77",
         ADMIT_BATCH_JOB},
        {"sys/fs/cgroup/cpuset/torque/77.server/tasks", "Torque on this node, such as 77",
         ADMIT_BATCH_JOB},
        {"sys/fs/cgroup/cpu/lsf/cluster1/job.88.1/tasks", "LSF on this node, such as 88",
         ADMIT_BATCH_JOB},
        {"sys/fs/cgroup/kubepods.slice/kubepods-podab.slice/x", "kubepods-podab", ADMIT_PODS},
        {"sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab.slice/x",
         "kubepods-burstable-podab", ADMIT_PODS},
        {"sys/fs/cgroup/kubepods/besteffort/podab/x", "podab", ADMIT_PODS},
        {"sys/fs/cgroup/cpu/kubepods/podab/tasks", "podab", ADMIT_PODS},
    };
    for (size_t i = 0; i < COUNT_OF(signs); i++) {
        idle();
        put(signs[i].path, "");
        struct look *l = fresh();
        blocked(l, signs[i].kind, 1, signs[i].path);
        CHECK(strstr(l->a.list[0].named, signs[i].name), "%s: %s", signs[i].path, signs[i].name);
    }
    idle();
    put("sys/fs/cgroup/cpuset/slurm/uid_1000/job_12/tasks", "");
    put("sys/fs/cgroup/memory/slurm/uid_1000/job_12/tasks", "");
    put("var/spool/slurmd/job00012/slurm_script", "");
    blocked(fresh(), ADMIT_BATCH_JOB, 1, "a job that shows in three places is one");
    idle();
    put("proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n");
    put("sys/fs/cgroup/system.slice/slurmstepd.scope/job_12/cgroup.procs", "");
    free_now(fresh(), "the job that we are in ourselves");
    put("sys/fs/cgroup/system.slice/slurmstepd.scope/job_1/cgroup.procs", "");
    blocked(fresh(), ADMIT_BATCH_JOB, 1, "another whose number begins alike");
}

static void test_job_processes(void)
{
    struct look *l = fresh();
    idle();
    put_process(800, 0, "slurmstepd", 'S', 5, 60000, 2);
    put("proc/800/cmdline", "slurmd");
    free_now(l, "what only has the name");
    put("proc/800/cmdline", "slurmstepd: [12.batch]");
    blocked(l, ADMIT_BATCH_JOB, 1, "the process of a step of Slurm");
    CHECK(strstr(l->a.list[0].named, "Slurm on this node, such as 12"), "with its number");
    put_process(801, 0, "slurmstepd", 'S', 5, 60000, 2);
    put("proc/801/cmdline", "slurmstepd: [12.0]");
    put("var/spool/slurmd/job00012/slurm_script", "");
    blocked(l, ADMIT_BATCH_JOB, 1, "two steps and a folder are one job");
    idle();
    put_process(800, 0, "slurmstepd", 'S', 5, 60000, 2);
    put("proc/800/cmdline", "slurmstepd: [12.0]");
    put("proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n");
    free_now(l, "a step that we are in ourselves");
    static const struct {
        const char *lock, *manager;
    } moms[] = {{"var/spool/pbs/mom_priv/mom.lock", "PBS"},
                {"var/spool/torque/mom_priv/mom.lock", "Torque"}};
    for (size_t i = 0; i < COUNT_OF(moms); i++) {
        idle();
        put(moms[i].lock, "600\n");
        put("proc/600/task/600/children", "");
        free_now(l, "pbs_mom without a job");
        put("proc/600/task/600/children", "4711 4712 ");
        blocked(l, ADMIT_BATCH_JOB, 1, "children of pbs_mom");
        CHECK(strstr(l->a.list[0].text, moms[i].manager) &&
                  strstr(l->a.list[0].named, "process 4711") && !strstr(l->a.list[0].text, "4711"),
              "%s", l->a.list[0].named);
    }
}

// What was said when nobody was seen.
static void test_notes(void)
{
    char path[100];
    struct look *l = fresh();
    idle();
    judge(l);
    CHECK(l->a.n_notes == 0, "everything can be seen");
    snprintf(path, sizeof path, "%s/proc/1/stat", root);
    unlink(path);
    judge(l);
    CHECK(l->a.n_notes == 1 && strstr(l->a.notes[0], "hidden"), "hidepid: %s", l->a.notes[0]);
    remember(l);
    judge(l);
    CHECK(l->a.n_notes == 0, "the CPUs' times tell of everybody");
    idle();
    l = fresh();
    put("proc/self/ns/x", "");
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", root);
    CHECK(symlink("pid:[4026531836]", path) == 0, "the first PID namespace");
    judge(l);
    CHECK(l->a.n_notes == 0, "has everybody");
    unlink(path);
    CHECK(symlink("pid:[4026532000]", path) == 0, "a container's");
    judge(l);
    CHECK(l->a.n_notes == 1, "has not");
}

// --- each kind

static void spoil_busy(struct look *l)
{
    (void)l;
    put("proc/loadavg", "0.05 0.10 0.12 2/412 9123\n");
    put_process(900, 0, "xhpl", 'R', 90000, 10000, 1);
}

static void spoil_instance(struct look *l)
{
    l->other_instance = true;
}

static void spoil_steal(struct look *l)
{
    remember(l);
    put_stat(1, 0, 800, 1000);
}

static void spoil_swap(struct look *l)
{
    remember(l);
    put("proc/vmstat", "pswpin 100\npswpout 2000\n");
}

static void spoil_soon(struct look *l)
{
    l->idle_ms = 1000;
}

static void spoil_source(struct look *l)
{
    (void)l;
    topology.this_system = false;
}

static void spoil_node(struct look *l)
{
    (void)l;
    put("sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 80000 kB\n");
}

static void spoil_group(struct look *l)
{
    (void)l;
    put("sys/fs/cgroup/system.slice/numaprobed.service/memory.current", "0\n");
    put("sys/fs/cgroup/system.slice/numaprobed.service/memory.max", "100000000\n");
}

// What stands in the way of a run on an otherwise idle node: one thing a kind. A kind without a
// line here fails.
static const struct {
    const char *path, *text; // of the machine, or
    void (*spoil)(struct look *l);
    const char *rule, *hours; // where the default does not refuse
    bool elsewhere;           // it is looked for during a run: test_disturbing
} spoilers[ADMISSION_KINDS] = {
    [ADMIT_BUSY] = {.spoil = spoil_busy},
    [ADMIT_LOAD] = {"proc/loadavg", "8.00 0.10 0.12 1/412 9123\n"},
    [ADMIT_CPU_PRESSURE] = {"proc/pressure/cpu", "some avg10=42.00 avg60=0.10 total=1\n"},
    [ADMIT_MEMORY_PRESSURE] = {"proc/pressure/memory", "some avg10=6.00 avg60=0.10 total=1\n"},
    [ADMIT_BATCH_JOB] = {"var/spool/slurmd/n1_12.0", ""},
    [ADMIT_PODS] = {"sys/fs/cgroup/kubepods.slice/kubepods-podab.slice/x", ""},
    [ADMIT_INSTANCE] = {.spoil = spoil_instance},
    [ADMIT_CPU_QUOTA] = {"sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n"},
    [ADMIT_FREQUENCY] = {"sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq", "1500000\n",
                         .rule = "refuse:90"},
    [ADMIT_THROTTLED] = {"sys/class/thermal/cooling_device0/cur_state", "3\n"},
    [ADMIT_STEAL] = {.spoil = spoil_steal},
    [ADMIT_SWAP] = {.spoil = spoil_swap},
    [ADMIT_HOURS] = {.spoil = NULL, .hours = "Tue 10:00-11:00"},
    [ADMIT_TOO_SOON] = {.spoil = spoil_soon, .rule = "refuse:60"},
    [ADMIT_DISTURBING] = {.elsewhere = true},
    [ADMIT_NOT_LIVE] = {.spoil = spoil_source},
    [ADMIT_MEMORY] = {.spoil = spoil_node},
    [ADMIT_CGROUP_MEMORY] = {.spoil = spoil_group},
    [ADMIT_CPUSET] = {"proc/self/status", "Cpus_allowed_list:\t0,2-7\nMems_allowed_list:\t0-1\n"},
    [ADMIT_MEMS] = {"proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t1\n"},
};

static void test_each_kind(void)
{
    for (int kind = 0; kind < ADMISSION_KINDS; kind++) {
        const char *name = admission_kinds[kind].name;
        struct look *l = fresh();
        if (spoilers[kind].elsewhere)
            continue;
        production();
        idle();
        free_now(l, name);
        if (spoilers[kind].rule)
            snprintf(policy.text[kind], sizeof policy.text[0], "%s", spoilers[kind].rule);
        if (spoilers[kind].hours)
            snprintf(policy.hours_text, sizeof policy.hours_text, "%s", spoilers[kind].hours);
        CHECK(policy_finish(&policy, NULL) == 0, "%s: the policy", name);
        if (spoilers[kind].path)
            put(spoilers[kind].path, spoilers[kind].text);
        if (spoilers[kind].spoil)
            spoilers[kind].spoil(l);
        judge(l);
        topology.this_system = true;
        CHECK(l->a.n == 1 && (int)l->a.list[0].kind == kind, "%s alone stands in the way: %s", name,
              l->a.list[0].text);
    }
    production();
}

static void test_limits(void)
{
    idle();
    struct look *l = fresh();
    put("proc/self/status", "Cpus_allowed_list:\t0,2-7\nMems_allowed_list:\t0-1\n");
    blocked(l, ADMIT_CPUSET, 1, "CPU 1 was taken away");
    put("proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t1\n");
    blocked(l, ADMIT_MEMS, 1, "node 0 was taken away");
    idle();
    put("sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
    blocked(l, ADMIT_CPU_QUOTA, 75, "1.5 CPUs for two ranks, in a group above ours");
    CHECK(!admission_may_pass(&l->a), "waiting does not help");
    put("sys/fs/cgroup/system.slice/cpu.max", "200000 100000\n");
    free_now(l, "two CPUs");
    put("proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/\n");
    put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
    put("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    blocked(l, ADMIT_CPU_QUOTA, 25, "half a CPU by cgroups v1");
    put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
    free_now(l, "no quota there");
}

static void test_clocks(void)
{
    idle();
    struct look *l = fresh();
    put("sys/class/thermal/cooling_device0/cur_state", "3\n");
    blocked(l, ADMIT_THROTTLED, 1, "a cooling device is at work");
    put("sys/class/thermal/cooling_device0/type", "Fan\n");
    free_now(l, "a fan may turn");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq", "1500000\n");
    judge(l);
    CHECK(l->a.n == 0 && l->a.n_warnings == 1 && l->a.warnings[0].kind == ADMIT_FREQUENCY &&
              l->a.warnings[0].measured == 50,
          "a capped frequency is noted: %s", l->a.warnings[0].text);
    snprintf(policy.text[ADMIT_FREQUENCY], sizeof policy.text[0], "refuse:40");
    CHECK(policy_finish(&policy, NULL) == 0, "with a limit of 40 %%");
    free_now(l, "50 % is enough");
    production();
}

static void test_times(void)
{
    idle();
    struct look *l = fresh();
    snprintf(policy.hours_text, sizeof policy.hours_text, "Mon-Fri 20:00-06:00");
    snprintf(policy.text[ADMIT_TOO_SOON], sizeof policy.text[0], "refuse:60");
    CHECK(policy_finish(&policy, NULL) == 0, "nights, and a minute between runs");
    l->minute = 19 * 60;
    blocked(l, ADMIT_HOURS, 60, "Monday, 19:00");
    CHECK(l->a.retry_after_s == 3600, "ask again in an hour");
    l->minute = 23 * 60;
    free_now(l, "Monday, 23:00");
    l->idle_ms = 20000;
    blocked(l, ADMIT_TOO_SOON, 20, "20 s after a run");
    CHECK(l->a.retry_after_s == 41, "ask again when the minute is over");
    l->idle_ms = 60000;
    free_now(l, "a minute after it");
    production();
}

static void test_policy(void)
{
    policy_defaults(&policy);
    CHECK(policy.strongest == POLICY_REFUSE, "by default a node that is not free refuses");
    production();
    struct err err;
    idle();
    struct look *l = fresh();
    put("proc/loadavg", "8.00 0.10 0.12 1/412 9123\n");
    l->force = true;
    judge(l);
    CHECK(l->a.n == 0 && l->a.n_warnings == 1 && l->a.warnings[0].forced, "force overrules a load");
    put("proc/self/status", "Cpus_allowed_list:\t0\nMems_allowed_list:\t0-1\n");
    judge(l);
    CHECK(l->a.n == 1 && l->a.list[0].kind == ADMIT_CPUSET, "but not a cpuset");
    idle();
    put("proc/loadavg", "8.00 0.10 0.12 1/412 9123\n");
    l = fresh();
    policy.strongest = POLICY_WARN;
    policy_finish(&policy, &err);
    judge(l);
    CHECK(l->a.n == 0 && l->a.n_warnings == 1 && !l->a.warnings[0].forced,
          "--admission=warn only notes");
    policy.strongest = POLICY_IGNORE;
    policy_finish(&policy, &err);
    free_now(l, "--admission=ignore");
    production();
    snprintf(policy.text[ADMIT_LOAD], sizeof policy.text[0], "refuse:2");
    policy_finish(&policy, &err);
    free_now(l, "a limit of two tasks a CPU");
    static const char *const wrong[] = {"perhaps", "refuse:", "refuse:-1",
                                        "warn:1x", "",        "refuse 1"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        production();
        snprintf(policy.text[ADMIT_LOAD], sizeof policy.text[0], "%s", wrong[i]);
        CHECK(policy_finish(&policy, &err) < 0 && !strcmp(err.member, "admit_load"),
              "\"%s\" is refused: %s", wrong[i], err.text);
    }
    production();
    l->other_instance = true;
    idle();
    blocked(l, ADMIT_INSTANCE, 1, "another daemon measures");
    CHECK(admission_may_pass(&l->a), "which will be over");
}

static void test_hours(void)
{
    struct hours h;
    struct err err;
    static const struct {
        const char *text;
        int day, minute, wait;
    } asks[] = {
        {"", 3, 700, 0},
        {"08:00-09:00", 3, 480, 0},
        {"08:00-09:00", 3, 540, 23 * 60},
        {"20:00-06:00", 0, 359, 0},
        {"20:00-06:00", 0, 360, 14 * 60},
        {"Mon 20:00-06:00", 1, 10, 0},
        {"Mon 20:00-06:00", 0, 10, 20 * 60 - 10},
        {"Sun 20:00-06:00", 0, 10, 0},
        {"Sat-Sun 00:00-24:00", 4, 1439, 1},
        {"Sat-Mon 00:00-24:00", 0, 5, 0},
        {"Mon-Fri 20:00-06:00, sat-sun 00:00-24:00", 6, 700, 0},
        {"Tue 10:00-11:00", 1, 661, 7 * 24 * 60 - 61},
    };
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        int rc = hours_parse(&h, asks[i].text, &err);
        int wait = rc < 0 ? -1 : hours_wait_min(&h, asks[i].day, asks[i].minute);
        CHECK(wait == asks[i].wait, "\"%s\", day %d, minute %d: %d min", asks[i].text, asks[i].day,
              asks[i].minute, wait);
    }
    static const char *const wrong[] = {"8-9",
                                        "08:00",
                                        "08:00-25:00",
                                        "24:00-06:00",
                                        "08:00-08:00",
                                        "Foo 08:00-09:00",
                                        "Mon08:00-09:00",
                                        "08:00-09:00,",
                                        "Mon- 08:00-09:00",
                                        "08:60-09:00"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        CHECK(hours_parse(&h, wrong[i], &err) < 0 && !strcmp(err.member, "hours"),
              "\"%s\" is refused", wrong[i]);
}

static void test_lock(void)
{
    char path[100], link[110];
    idle();
    snprintf(path, sizeof path, "%s/lock", root);
    snprintf(link, sizeof link, "%s/link", root);
    int mine = host_lock_take(path);
    CHECK(mine >= 0, "the lock");
    CHECK(host_lock_take(path) == HOST_LOCK_TAKEN, "is taken");
    close(mine);
    mine = host_lock_take(path);
    CHECK(mine >= 0, "and given back");
    close(mine);
    CHECK(symlink(path, link) == 0 && host_lock_take(link) == HOST_LOCK_NONE,
          "a link is not followed");
    struct stat st;
    char secret[110];
    snprintf(secret, sizeof secret, "%s/secret", root);
    put("secret", "");
    chmod(secret, 0600);
    unlink(link);
    CHECK(linkat(AT_FDCWD, secret, AT_FDCWD, link, 0) == 0,
          "somebody makes the lock a second name of a secret of ours");
    mine = host_lock_take(link);
    CHECK(mine >= 0 && stat(secret, &st) == 0 && (st.st_mode & 0777) == 0600, "it stays secret");
    close(mine);
    CHECK(host_lock_take("/nonexistent/lock") == HOST_LOCK_NONE, "without a place for it");
}

static struct monitor *new_monitor(void)
{
    struct err err;
    struct monitor *a = monitor_new(&policy, &topology, root, &err);
    if (!a)
        abort();
    return a;
}

static void test_monitor(void)
{
    struct admission a;
    struct err err = {0};
    idle();
    put("run/lock/x", "");
    struct monitor *one = new_monitor(), *two = new_monitor();
    CHECK(monitor_check(one, &plan, false, &a, &err) == 0 && a.n == 0, "the node is free");
    CHECK(monitor_begin(one, &plan, false, &err) == 0, "a run begins");
    CHECK(monitor_check(two, &plan, false, &a, &err) == 0 && a.n == 1 &&
              a.list[0].kind == ADMIT_INSTANCE,
          "another daemon sees it: %s", a.list[0].text);
    CHECK(monitor_begin(two, &plan, false, &err) < 0 && err.code == ERR_BUSY, "and cannot begin");
    put("proc/loadavg", "8.00 0.10 0.12 5/412 9123\n");
    CHECK(monitor_check(one, &plan, false, &a, &err) == 0 && a.n == 0,
          "while it is going on, the node's load is our own");
    monitor_end(one);
    CHECK(monitor_check(one, &plan, false, &a, &err) == 0 && a.n == 1 &&
              a.list[0].kind == ADMIT_LOAD,
          "a load of 8 is not what a run of two ranks leaves within a moment");
    monitor_free(two);
    two = new_monitor();
    idle();
    put("run/lock/x", "");
    CHECK(monitor_begin(two, &plan, false, &err) == 0, "the lock was given back");
    monitor_free(two);
    monitor_free(one);
}

// Somebody deletes the lock's file, and another daemon locks a new one: the run tells of it.
static void test_lock_deleted(void)
{
    struct err err;
    struct blocker told[4];
    char path[100];
    idle();
    put("run/lock/x", "");
    snprintf(path, sizeof path, "%s%s", root, policy.host_lock);
    struct monitor *a = new_monitor();
    CHECK(monitor_begin(a, &plan, false, &err) == 0 && monitor_suffered(a, told, 4) == 0,
          "a run begins, with nothing to tell");
    CHECK(unlink(path) == 0 && monitor_suffered(a, told, 4) == 1 &&
              told[0].kind == ADMIT_INSTANCE && strstr(told[0].text, "deleted"),
          "its lock is gone: %s", told[0].text);
    CLEANUP_FD int other = host_lock_take(path);
    CHECK(other >= 0 && monitor_suffered(a, told, 4) == 1, "somebody else has that name");
    monitor_end(a);
    CHECK(monitor_suffered(a, told, 4) == 0, "after the run it is nobody's business");
    monitor_free(a);
}

static void put_group(const char *group, double usual, long total)
{
    char path[100], text[200];
    snprintf(path, sizeof path, "sys/fs/cgroup/%s/cpu.pressure", group);
    snprintf(text, sizeof text, "some avg10=%.2f avg60=0.00 avg300=0.00 total=%ld\n", usual, total);
    put(path, text);
}

// Busy, so that the clock moves; returns how long it took.
static long spend_us(void)
{
    uint64_t begin_ns = clock_mono_ns();
    while (clock_mono_ns() - begin_ns < 30000000)
        continue;
    return (long)((clock_mono_ns() - begin_ns) / 1000);
}

static void test_disturbing(void)
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
    CHECK(monitor_begin(a, &plan, false, &err) == 0, "a run begins");
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

// A machine whose groups tell nothing: more tasks than CPUs.
static void test_crowd(void)
{
    struct err err;
    struct blocker b;
    idle();
    struct monitor *a = new_monitor();
    CHECK(monitor_begin(a, &plan, false, &err) == 0, "a run begins");
    put("proc/loadavg", "8.00 0.10 0.12 9/412 9123\n");
    CHECK(!monitor_disturbs(a, &b), "eight tasks besides us on eight CPUs");
    put("proc/loadavg", "8.00 0.10 0.12 11/412 9123\n");
    CHECK(!monitor_disturbs(a, &b) && monitor_disturbs(a, &b) && strstr(b.text, "2 tasks more"),
          "ten, twice: %s", b.text);
    monitor_free(a);
}

static void test_suffered(void)
{
    struct err err;
    struct blocker list[4];
    idle();
    struct monitor *a = new_monitor();
    CHECK(monitor_begin(a, &plan, false, &err) == 0, "a run begins");
    spend_us();
    CHECK(monitor_suffered(a, list, 4) == 0, "nothing happened");
    put_stat(1, 0, 800, 1000);
    put("proc/loadavg", "8.00 0.10 0.12 11/412 9123\n");
    CHECK(monitor_suffered(a, list, 4) == 1 && list[0].kind == ADMIT_STEAL, "steal: %s",
          list[0].text);
    monitor_free(a);
}

// Each kind has a line in the manual that names it, its default and its option.
static void test_documented(void)
{
    static char page[65536], manual[65536];
    char path[600];
    const char *source = getenv("NUMAPROBE_SOURCE");
    snprintf(path, sizeof path, "%s/docs/ADMISSION.md", source);
    CHECK(file_read_text(path, page, sizeof page) == 0, "docs/ADMISSION.md");
    snprintf(path, sizeof path, "%s/docs/man/numaprobed.8", source);
    CHECK(file_read_text(path, manual, sizeof manual) == 0, "numaprobed.8");
    for (int i = 0; i < ADMISSION_KINDS; i++) {
        char line[100], option[100];
        const char *def = i < POLICY_KINDS ? policy_table.params[i].def : "always refuses";
        snprintf(line, sizeof line, "| `%s` | %s%s%s |", admission_kinds[i].name,
                 i < POLICY_KINDS ? "`" : "", def, i < POLICY_KINDS ? "`" : "");
        CHECK(strstr(page, line), "docs/ADMISSION.md has %s", line);
        CHECK(condition_find(admission_kinds[i].name) != CONDITION_OTHER, "a condition of kind %s",
              admission_kinds[i].name);
        if (i >= POLICY_KINDS)
            continue;
        CHECK(!strcmp(policy_table.params[i].name + strlen("admit_"), admission_kinds[i].name),
              "option of %s", admission_kinds[i].name);
        snprintf(option, sizeof option, ".B %s\n%s", admission_kinds[i].name, def);
        CHECK(strstr(manual, option), "numaprobed.8 has %s and its default %s",
              admission_kinds[i].name, def);
    }
}

int main(void)
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
        return 1;
    }
    topology.this_system = true;
    production();
    dir_make(root);
    test_busy();
    test_window();
    test_hidden();
    test_averages();
    test_jobs();
    test_job_processes();
    test_notes();
    test_each_kind();
    test_limits();
    test_clocks();
    test_times();
    test_policy();
    test_hours();
    test_lock();
    test_monitor();
    test_lock_deleted();
    test_disturbing();
    test_crowd();
    test_suffered();
    test_documented();
    fresh();
    dir_remove(root);
    plan_fini(&plan);
    topology_fini(&topology);
    return tap_done();
}
