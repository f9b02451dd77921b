// SPDX-License-Identifier: Apache-2.0
// Control groups that are folders: what a kernel would be told stands in their files. What a kernel
// does with it is asked in tests/booted.
#include "core/os/cgroup.h"

#include "base/log.h"
#include "base/str.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

#define UNIT "sys/fs/cgroup/system.slice/numaprobed.service"

static char root[64];

static void put(const char *path, const char *text)
{
    dir_write(root, path, text);
}

static const char *get(const char *path)
{
    static char text[256];
    char full[300];
    snprintf(full, sizeof full, "%s/%s", root, path);
    *text = '\0';
    file_read_text(full, text, sizeof text);
    return text;
}

// As systemd delegates it: the daemon is alone in there. Files that a kernel would make with a
// folder are made before.
static void delegated(void)
{
    char pid[24];
    dir_remove(root);
    mkdir(root, 0755);
    snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    put("proc/self/cgroup", "0::/system.slice/numaprobed.service\n");
    put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    put(UNIT "/cgroup.procs", pid);
    put(UNIT "/cgroup.subtree_control", "");
    put(UNIT "/numaprobed/cgroup.procs", "");
    put(UNIT "/numaprobe-run-7/memory.max", "");
    put(UNIT "/numaprobe-run-7/memory.swap.max", "");
    put(UNIT "/numaprobe-run-7/memory.oom.group", "");
    put(UNIT "/numaprobe-run-7/cpu.weight", "");
}

static void test_made(void)
{
    struct run_groups g;
    char path[RUN_GROUP_PATH_ROOM], why[200], pid[24];
    delegated();
    run_groups_open(&g, root);
    CHECK(*g.base && g.memory && g.cpu, "below what was delegated: %s", g.base);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    CHECK_STR(get(UNIT "/numaprobed/cgroup.procs"), pid, "the daemon makes room");
    CHECK(strstr(get(UNIT "/cgroup.subtree_control"), "+cpu"), "controllers are turned on");
    CHECK(run_group_make(&g, 7, (int64_t)1 << 30, path, why), "a group for run 7: %s", path);
    CHECK_STR(get(UNIT "/numaprobe-run-7/memory.max"), "1744830464", "1 GiB, an eighth, 512 MiB");
    CHECK_STR(get(UNIT "/numaprobe-run-7/memory.swap.max"), "0", "nothing is swapped");
    CHECK_STR(get(UNIT "/numaprobe-run-7/memory.oom.group"), "1", "it dies as a whole");
    CHECK_STR(get(UNIT "/numaprobe-run-7/cpu.weight"), "10", "the daemon comes first");
    put(UNIT "/numaprobe-run-7/cgroup.procs", "");
    CHECK(run_group_enter(path), "a process enters");
    CHECK_STR(get(UNIT "/numaprobe-run-7/cgroup.procs"), "0", "which the kernel takes for itself");
    CHECK(!run_group_enter("/nonexistent"), "not what is not there");
    CHECK(run_group_make(&g, 8, 0, path, why) && access(path, F_OK) == 0, "a folder of its own");
    run_group_remove(path);
    CHECK(access(path, F_OK) < 0, "is removed");
}

static void test_beside_version_1(void)
{
    struct run_groups g;
    delegated();
    put("proc/self/cgroup", "4:memory:/a\n0::/system.slice/numaprobed.service\n");
    run_groups_open(&g, root);
    CHECK(*g.base, "version 2 in its place, beside controllers of version 1: %s", g.base);
}

static void test_left_behind(void)
{
    struct run_groups g;
    char path[200];
    delegated();
    put(UNIT "/numaprobe-run-7/cgroup.kill", "");
    put(UNIT "/numaprobe-run-7/cgroup.events", "populated 0\nfrozen 0\n");
    snprintf(path, sizeof path, "%s/" UNIT "/numaprobe-run-6", root);
    mkdir(path, 0755);
    run_groups_open(&g, root);
    CHECK_STR(get(UNIT "/numaprobe-run-7/cgroup.kill"), "1", "what a former daemon left is killed");
    CHECK(access(path, F_OK) < 0, "and what is empty is removed");
}

static void none(const char *what, const char *words)
{
    struct run_groups g;
    char path[RUN_GROUP_PATH_ROOM], why[200];
    run_groups_open(&g, root);
    CHECK(!run_group_make(&g, 7, 0, path, why) && !*path && strstr(why, words), "%s: %s", what,
          why);
    CHECK_STR(get(UNIT "/numaprobed/cgroup.procs"), "", "and nothing is touched");
}

static void test_none(void)
{
    char file[200];
    delegated();
    put("proc/self/cgroup", "4:memory:/a\n");
    none("version 1", "version 1");
    delegated();
    snprintf(file, sizeof file, "%s/sys/fs/cgroup/cgroup.controllers", root);
    unlink(file);
    none("version 2 that is mounted elsewhere", "version 1");
    delegated();
    put(UNIT "/cgroup.procs", "1\n");
    none("the group of somebody else", "shares");
    char text[64];
    snprintf(text, sizeof text, "%d\n%d\n", (int)getpid(), 1);
    put(UNIT "/cgroup.procs", text);
    none("a session with its shell", "shares");
    delegated();
    snprintf(text, sizeof text, "%s/proc/self/cgroup", root);
    unlink(text);
    none("no groups at all", "no cgroups");
    run_group_kill("", 0);
    run_group_remove("");
}

int main(void)
{
    log_init(LOG_LVL_ERROR, 0);
    dir_make(root);
    test_made();
    test_beside_version_1();
    test_left_behind();
    test_none();
    dir_remove(root);
    return tap_done();
}
