// SPDX-License-Identifier: Apache-2.0
// Whose job a process is in, on recorded nodes, and what an account may not pretend.
#include "core/node/batch_place.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

static char root[64];

static void put(const char *name, const char *text)
{
    dir_write(root, name, text);
}

// A process of an account, whose parent is another one.
static void put_process(int pid, int parent, int uid, const char *cgroup)
{
    char name[64], text[400];
    snprintf(name, sizeof name, "proc/%d/stat", pid);
    snprintf(text, sizeof text,
             "%d (a) b) S %d 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 1000 100", pid, parent,
             pid * 10);
    put(name, text);
    snprintf(name, sizeof name, "proc/%d/status", pid);
    snprintf(text, sizeof text,
             "Name:\ta\nUid:\t%d\t%d\t%d\t%d\nCpus_allowed_list:\t0-1,4\nMems_allowed_list:\t1\n",
             uid, uid, uid, uid);
    put(name, text);
    snprintf(name, sizeof name, "proc/%d/cgroup", pid);
    put(name, cgroup);
}

// Its program, a file of this name, and how it calls itself.
static void put_program(int pid, const char *program, const char *cmdline)
{
    char name[64], path[200], link_path[200];
    put(program, "");
    snprintf(path, sizeof path, "%s/%s", root, program);
    snprintf(link_path, sizeof link_path, "%s/proc/%d/exe", root, pid);
    unlink(link_path);
    if (symlink(path, link_path) < 0)
        abort();
    snprintf(name, sizeof name, "proc/%d/cmdline", pid);
    put(name, cmdline);
}

// The number of the job; "": none.
static const char *job_of(int pid, uid_t uid)
{
    static char name[80];
    struct batch_place p CLEANUP(batch_place_fini) = {0};
    *name = '\0';
    if (batch_place_find(&p, root, pid, uid))
        snprintf(name, sizeof name, "%s %s", p.job.manager, p.job.name);
    return name;
}

static void check_groups(void)
{
    struct batch_place p CLEANUP(batch_place_fini) = {0};
    const struct batch_job same = {.manager = "Slurm", .name = "12"}, other = {"Slurm", false, "1"};
    put_process(50, 1, 1000, "0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n");
    put("sys/fs/cgroup/system.slice/slurmstepd.scope/job_12/memory.max", "1073741824\n");
    CHECK(batch_place_find(&p, root, 50, 1000), "a process in a cgroup of a job");
    CHECK_STR(p.job.name, "12", "its number");
    CHECK(p.cpus.n == 3 && p.cpus.ids[2] == 4 && p.mems.n == 1 && p.mems.ids[0] == 1,
          "the CPUs and nodes that it may use");
    CHECK_INT(p.memory_bytes, 1 << 30, "the memory of the job");
    CHECK(batch_place_is(&p, &same) && !batch_place_is(&p, &other) && !batch_place_is(NULL, &same),
          "it is that job and no other");
    CHECK(batch_place_exists(&p, root), "the job is there");
    char dir[200];
    snprintf(dir, sizeof dir, "%s/sys/fs/cgroup/system.slice/slurmstepd.scope/job_12", root);
    dir_remove(dir);
    CHECK(!batch_place_exists(&p, root), "and not, when its cgroup has gone");
    put_process(51, 1, 1000, "0::/system.slice/n1_slurmstepd.scope/job_0077\n");
    CHECK_STR(job_of(51, 1000), "Slurm 77", "several slurmd on a host, a step outside of its task");
    put("sys/fs/cgroup/memory/slurm/uid_1000/job_9/memory.limit_in_bytes", "4096\n");
    put_process(52, 1, 1000,
                "4:memory:/slurm/uid_1000/job_9/step_0\n3:cpuset:/slurm/uid_1000/job_9/step_0\n"
                "1:name=systemd:/system.slice/slurmd.service\n0::/\n");
    CHECK_STR(job_of(52, 1000), "Slurm 9", "cgroups v1");
}

static void check_strangers(void)
{
    static const char *const forged[] = {
        "0::/user.slice/user-1000.slice/user@1000.service/system.slice/slurmstepd.scope/job_12\n",
        "0::/user.slice/slurmstepd.scope/job_12\n",
        "0::/system.slice/slurmstepd.scope/job_x\n",
        "0::/system.slice/slurmstepd.scope/system\n",
        "0::/system.slice/slurmstepd.service/job_12\n",
        "0::/user.slice/slurm/uid_1000/job_12\n",
        "0::/\n",
        "nonsense\n",
        "",
    };
    put_process(60, 1, 1000, "0::/system.slice/slurmstepd.scope/job_12/step_0\n");
    CHECK_STR(job_of(60, 1000), "Slurm 12", "its own account");
    CHECK_STR(job_of(60, 1001), "", "a number that another account's process has got is no proof");
    CHECK_STR(job_of(61, 1000), "", "a process that has gone is in no job");
    CHECK_STR(job_of(0, 1000), "", "nor is one of another PID namespace");
    for (size_t i = 0; i < COUNT_OF(forged); i++) {
        put_process(62, 1, 1000, forged[i]);
        CHECK_STR(job_of(62, 1000), "", "no job: %.*s", (int)strcspn(forged[i], "\n"), forged[i]);
    }
}

static void check_ancestors(void)
{
    struct batch_place p CLEANUP(batch_place_fini) = {0};
    put_process(70, 1, 0, "0::/system.slice/slurmd.service\n");
    put_program(70, "usr/sbin/slurmstepd", "slurmstepd: [33.0]");
    put_process(71, 70, 1000, "0::/system.slice/slurmd.service\n");
    put_process(72, 71, 1000, "0::/system.slice/slurmd.service\n");
    CHECK(batch_place_find(&p, root, 72, 1000) && strcmp(p.job.name, "33") == 0 && !*p.dir,
          "without cgroups: below a step");
    CHECK(batch_place_exists(&p, root), "the step is there");
    put_process(73, 72, 0, "0::/\n");
    put_program(73, "usr/sbin/slurmstepd", "slurmstepd: [99.0]");
    put_process(74, 73, 1000, "0::/\n");
    CHECK_STR(job_of(74, 1000), "Slurm 33", "the outermost step counts");
    p.step_start++;
    CHECK(!batch_place_exists(&p, root), "another process with its number is not the step");
    put_process(80, 1, 1000, "0::/\n");
    put_program(80, "home/u/slurmstepd", "slurmstepd: [33.0]");
    put_process(81, 80, 1000, "0::/\n");
    CHECK_STR(job_of(81, 1000), "", "a program of the account itself");
    put_process(82, 1, 0, "0::/\n");
    put_program(82, "usr/bin/su", "slurmstepd: [33.0]");
    put_process(83, 82, 1000, "0::/\n");
    CHECK_STR(job_of(83, 1000), "", "root's su under that name");
    put_process(88, 1, 0, "0::/\n");
    put_program(88, "usr/sbin/slurmstepd-wlm", "slurmstepd: [34.batch]");
    put_process(89, 88, 1000, "0::/\n");
    CHECK_STR(job_of(89, 1000), "Slurm 34", "Debian's name of the program");
    put_process(84, 1, 0, "0::/\n");
    put_program(84, "usr/sbin/slurmstepd2", "slurmstepd: [33.0]");
    put_process(85, 84, 1000, "0::/\n");
    CHECK_STR(job_of(85, 1000), "", "another program's name");
    put_process(86, 87, 1000, "0::/\n");
    put_process(87, 86, 1000, "0::/\n");
    CHECK_STR(job_of(86, 1000), "", "a circle ends");
}

// The real /proc: this process is in a job only if the test runs in one.
static void check_live(void)
{
    struct batch_place p CLEANUP(batch_place_fini) = {0};
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    bool found = batch_place_find(&p, "", getpid(), getuid());
    CHECK(found == (p.job.manager != NULL), "this process");
    batch_place_fini(&p);
    siginfo_t info;
    waitid(P_PID, (id_t)gone, &info, WEXITED | WNOWAIT); // it has ended and keeps its number
    CHECK(!batch_place_find(&p, "", gone, getuid()), "a process that has ended is in no job");
    waitpid(gone, NULL, 0);
}

int main(void)
{
    dir_make(root);
    check_groups();
    check_strangers();
    check_ancestors();
    check_live();
    dir_remove(root);
    return tap_done();
}
