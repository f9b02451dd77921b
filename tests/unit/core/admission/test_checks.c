// SPDX-License-Identifier: Apache-2.0
// Every kind of blocker, on machines that are folders: each test writes what a kernel would say on
// an idle node, sees that nothing blocks, changes one thing, and sees that it does.
#include "model/target.h"
#include "tests/unit/core/admission/node_folder.h"

// As things were two seconds ago.
static void remember(struct look *l)
{
    if (l->have_earlier)
        readings_fini(&l->earlier);
    take(&l->earlier, 1000);
    l->have_earlier = true;
}

static void test_busy(void)
{
    idle();
    struct look *l = fresh();
    free_now(l, "an idle node");
    put("proc/loadavg", "0.05 0.10 0.12 2/412 9123\n");
    free_now(l, "a shell that happens to run");
    put_process(900, 0, "xhpl (1) R", 'R', 90000, 10000, 4);
    blocked(l, ADMIT_BUSY_CPUS, 100, "a process computes beside a CPU of the run");
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
    blocked(l, ADMIT_BUSY_CPUS, 300, "a thread of it computes");
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
    blocked(l, ADMIT_BUSY_CPUS, 70, "70 % of a sibling");
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

static void test_memory_errors(void)
{
    static const char of[] = "sys/devices/system/edac/mc/mc%d/ce_count";
    char mc0[64], mc10[64];
    snprintf(mc0, sizeof mc0, of, 0);
    snprintf(mc10, sizeof mc10, of, 10);
    idle();
    struct look *l = fresh();
    put(mc0, "7\n");
    remember(l);
    free_now(l, "what was before is no matter");
    put(mc0, "8\n");
    put(mc10, "500\n");
    judge(l);
    CHECK(l->a.n == 0 && l->a.n_warnings == 1 && l->a.warnings[0].kind == ADMIT_MEMORY_ERRORS &&
              l->a.warnings[0].measured == 1,
          "one more is noted; the other controller has just appeared");
    CHECK(strstr(l->a.warnings[0].text, "ECC corrected 1 error in memory in the last 2.0 s, most "
                                        "of them at the memory controller mc0"),
          "with where: %s", l->a.warnings[0].text);
    remember(l);
    put(mc0, "9\n");
    put(mc10, "512\n");
    judge(l);
    CHECK(l->a.n_warnings == 1 && l->a.warnings[0].measured == 13 &&
              strstr(l->a.warnings[0].text, "mc10"),
          "of two the one with most is named");
    remember(l);
    put(mc10, "0\n");
    free_now(l, "a driver that was loaded again counts from 0");
    remember(l);
    snprintf(policy.text[ADMIT_MEMORY_ERRORS], sizeof policy.text[0], "refuse:10");
    CHECK_INT(policy_finish(&policy, NULL), 0, "a site may refuse");
    put(mc10, "10\n");
    free_now(l, "ten are allowed");
    put(mc10, "11\n");
    blocked(l, ADMIT_MEMORY_ERRORS, 11, "and eleven not");
    production();
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
    blocked(l, ADMIT_BUSY_CPUS, 90, "six tasks that cannot be seen on four other CPUs");
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
        {"sys/fs/cgroup/kubepods.slice/kubepods-podab.slice/x", "kubepods-podab",
         ADMIT_KUBERNETES_PODS},
        {"sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab.slice/x",
         "kubepods-burstable-podab", ADMIT_KUBERNETES_PODS},
        {"sys/fs/cgroup/kubepods/besteffort/podab/x", "podab", ADMIT_KUBERNETES_PODS},
        {"sys/fs/cgroup/cpu/kubepods/podab/tasks", "podab", ADMIT_KUBERNETES_PODS},
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

// Job 12 is on the node; it or another one requests the run.
static void test_job_that_requests(void)
{
    struct batch_place place = {.job = {.manager = "Slurm", .name = "12"}, .memory_bytes = -1};
    struct look *l = fresh();
    idle();
    put("sys/fs/cgroup/system.slice/slurmstepd.scope/job_12/cgroup.procs", "");
    blocked(l, ADMIT_BATCH_JOB, 1, "a job is in the way of a run from outside");
    l->within = &place;
    free_now(l, "but not of its own run");
    put("sys/fs/cgroup/system.slice/slurmstepd.scope/job_120/cgroup.procs", "");
    blocked(l, ADMIT_BATCH_JOB, 1, "another job is in the way of both");
    snprintf(place.job.name, sizeof place.job.name, "1");
    blocked(l, ADMIT_BATCH_JOB, 2, "and both, of a third one's");
    idle();
    place.memory_bytes = admission_plan_bytes(&plan);
    judge(l);
    CHECK(l->a.n == 1 && l->a.list[0].kind == ADMIT_CGROUP_MEMORY &&
              strstr(l->a.list[0].text, "of its job may be taken"),
          "a job's memory: %s", l->a.list[0].text);
    place.memory_bytes *= 2;
    free_now(l, "enough of it");
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
    CHECK_INT(l->a.n_notes, 0, "everything can be seen");
    snprintf(path, sizeof path, "%s/proc/1/stat", root);
    unlink(path);
    judge(l);
    CHECK(l->a.n_notes == 1 && strstr(l->a.notes[0], "hidden"), "hidepid: %s", l->a.notes[0]);
    remember(l);
    judge(l);
    CHECK_INT(l->a.n_notes, 0, "the CPUs' times tell of everybody");
    idle();
    l = fresh();
    put("proc/self/ns/x", "");
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", root);
    CHECK_INT(symlink("pid:[4026531836]", path), 0, "the first PID namespace");
    judge(l);
    CHECK_INT(l->a.n_notes, 0, "has everybody");
    unlink(path);
    CHECK_INT(symlink("pid:[4026532000]", path), 0, "a container's");
    judge(l);
    CHECK_INT(l->a.n_notes, 1, "has not");
}

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

static void spoil_memory(struct look *l)
{
    put("sys/devices/system/edac/mc/mc1/ce_count", "3\n");
    remember(l);
    put("sys/devices/system/edac/mc/mc1/ce_count", "4\n");
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

static void spoil_reserved(struct look *l)
{
    (void)l;
    plan.reserved_page_bytes = 2 << 20;
}

// What stands in the way of a run on an otherwise idle node: one thing a kind. A kind without a
// line here fails.
static const struct {
    const char *path, *text; // of the machine, or
    void (*spoil)(struct look *l);
    const char *rule, *hours; // where the default does not refuse
    bool elsewhere;           // it is looked for during a run: test_disturbing
} spoilers[ADMISSION_KINDS] = {
    [ADMIT_BUSY_CPUS] = {.spoil = spoil_busy},
    [ADMIT_LOAD] = {"proc/loadavg", "8.00 0.10 0.12 1/412 9123\n"},
    [ADMIT_CPU_PRESSURE] = {"proc/pressure/cpu", "some avg10=42.00 avg60=0.10 total=1\n"},
    [ADMIT_MEMORY_PRESSURE] = {"proc/pressure/memory", "some avg10=6.00 avg60=0.10 total=1\n"},
    [ADMIT_BATCH_JOB] = {"var/spool/slurmd/n1_12.0", ""},
    [ADMIT_KUBERNETES_PODS] = {"sys/fs/cgroup/kubepods.slice/kubepods-podab.slice/x", ""},
    [ADMIT_OTHER_INSTANCE] = {.spoil = spoil_instance},
    [ADMIT_CPU_QUOTA] = {"sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n"},
    [ADMIT_FREQUENCY_CAPPED] = {"sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq", "1500000\n",
                                .rule = "refuse:90"},
    [ADMIT_THROTTLED] = {"sys/class/thermal/cooling_device0/cur_state", "3\n"},
    [ADMIT_STEAL] = {.spoil = spoil_steal},
    [ADMIT_SWAP] = {.spoil = spoil_swap},
    [ADMIT_MEMORY_ERRORS] = {.spoil = spoil_memory, .rule = "refuse:0"},
    [ADMIT_OUTSIDE_HOURS] = {.spoil = NULL, .hours = "Tue 10:00-11:00"},
    [ADMIT_TOO_SOON] = {.spoil = spoil_soon, .rule = "refuse:60"},
    [ADMIT_DISTURBING] = {.elsewhere = true},
    [ADMIT_TOPOLOGY_NOT_LIVE] = {.spoil = spoil_source},
    [ADMIT_MEMORY] = {.spoil = spoil_node},
    [ADMIT_CGROUP_MEMORY] = {.spoil = spoil_group},
    [ADMIT_RESERVED_PAGES] = {.spoil = spoil_reserved},
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
        CHECK_INT(policy_finish(&policy, NULL), 0, "%s: the policy", name);
        if (spoilers[kind].path)
            put(spoilers[kind].path, spoilers[kind].text);
        if (spoilers[kind].spoil)
            spoilers[kind].spoil(l);
        judge(l);
        topology.this_system = true;
        plan.reserved_page_bytes = 0;
        CHECK(l->a.n == 1 && (int)l->a.list[0].kind == kind, "%s alone stands in the way: %s", name,
              l->a.list[0].text);
    }
    production();
}

// Reserved huge pages are a pool of their own: what ordinary memory is free does not matter, and
// both numbers are told.
static void test_reserved(void)
{
    static const char free_pages[] =
        "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages";
    struct look *l = fresh();
    struct err err = {0};
    idle();
    plan.reserved_page_bytes = 2 << 20;
    judge(l);
    CHECK(l->a.n == 1 && strstr(l->a.list[0].text, "node 0 has no reserved huge pages of 2M") &&
              admission_error(&l->a, &err) < 0 && err.code == ERR_NO_MEMORY_NODE &&
              strcmp(err.member, "pages") == 0,
          "a kernel without them: %s", l->a.list[0].text);
    int64_t need = 0;
    for (int i = 0; i < plan.n_ranks; i++)
        need += plan_rank_bytes(&plan, i) >> 21;
    char text[40], want[80];
    snprintf(text, sizeof text, "%lld\n", (long long)need - 1);
    snprintf(want, sizeof want, "%lld huge pages of 2M are needed on node 0, %lld are free there.",
             (long long)need, (long long)need - 1);
    put(free_pages, text);
    judge(l);
    CHECK(l->a.n == 1 && l->a.list[0].kind == ADMIT_RESERVED_PAGES &&
              strstr(l->a.list[0].text, want) &&
              strstr(l->a.list[0].text, "hugepages-2048kB/nr_hugepages"),
          "one too few: %s", l->a.list[0].text);
    snprintf(text, sizeof text, "%lld\n", (long long)need);
    put(free_pages, text);
    judge(l);
    CHECK(l->a.n == 0, "as many as are needed: %s", l->a.list[0].text);
    plan.reserved_page_bytes = 0;
    production();
}

// Interleaved memory of both nodes beside memory of node 0: one after the other, or at once.
static void test_targets(void)
{
    const struct plan kept = plan;
    struct look *l = fresh();
    int64_t ranks = admission_plan_bytes(&plan);
    idle();
    put("sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 4194304 kB\n");
    plan.bytes_per_rank = 0;
    plan.bytes_per_target = (int64_t)5 << 29; // 2.5 of 4 GiB
    plan.n_targets = 2;
    plan.targets[0] = 0;
    plan.targets[1] = target_interleaved(3, false);
    plan.targets_at_once = 1;
    free_now(l, "one after the other");
    CHECK(admission_plan_bytes(&plan) < ranks + plan.bytes_per_target, "one counts");
    plan.targets_at_once = 2;
    judge(l);
    CHECK(l->a.n == 1 && l->a.list[0].kind == ADMIT_MEMORY &&
              strstr(l->a.list[0].text, "3968 MiB on node 0") &&
              strstr(l->a.list[0].text, " and the arrays measured there need ") &&
              !strstr(l->a.list[0].text, "of up to") &&
              admission_plan_bytes(&plan) > 2 * plan.bytes_per_target,
          "at once, whole and half: %s", l->a.list[0].text);
    plan = kept;
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
    CHECK(l->a.n == 0 && l->a.n_warnings == 1 && l->a.warnings[0].kind == ADMIT_FREQUENCY_CAPPED &&
              l->a.warnings[0].measured == 50,
          "a capped frequency is noted: %s", l->a.warnings[0].text);
    snprintf(policy.text[ADMIT_FREQUENCY_CAPPED], sizeof policy.text[0], "refuse:40");
    CHECK_INT(policy_finish(&policy, NULL), 0, "with a limit of 40 %%");
    free_now(l, "50 % is enough");
    production();
}

static void test_times(void)
{
    idle();
    struct look *l = fresh();
    snprintf(policy.hours_text, sizeof policy.hours_text, "Mon-Fri 20:00-06:00");
    snprintf(policy.text[ADMIT_TOO_SOON], sizeof policy.text[0], "refuse:60");
    CHECK_INT(policy_finish(&policy, NULL), 0, "nights, and a minute between runs");
    l->minute = 19 * 60;
    blocked(l, ADMIT_OUTSIDE_HOURS, 60, "Monday, 19:00");
    CHECK_INT(l->a.retry_after_s, 3600, "ask again in an hour");
    l->minute = 23 * 60;
    free_now(l, "Monday, 23:00");
    l->idle_ms = 20000;
    blocked(l, ADMIT_TOO_SOON, 20, "20 s after a run");
    CHECK_INT(l->a.retry_after_s, 41, "ask again when the minute is over");
    l->idle_ms = 60000;
    free_now(l, "a minute after it");
    production();
}

int main(void)
{
    if (!set_up())
        return 1;
    test_busy();
    test_window();
    test_hidden();
    test_memory_errors();
    test_averages();
    test_jobs();
    test_job_that_requests();
    test_job_processes();
    test_notes();
    test_each_kind();
    test_reserved();
    test_targets();
    test_limits();
    test_clocks();
    test_times();
    return tear_down();
}
