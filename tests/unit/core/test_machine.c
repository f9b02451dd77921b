// SPDX-License-Identifier: Apache-2.0
// Recorded and invented machines: what the probe sees, and what the planner makes of it.
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analysis/compare/fact_changes.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "core/launch/plan_check.h"
#include "core/launch/planner.h"
#include "core/node/checkup.h"
#include "core/node/facts.h"
#include "core/node/hwloc.h"
#include "core/node/hwloc_stored.h"
#include "core/node/machine.h"
#include "model/condition.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/core/hybrid_xml.h"
#include "tests/unit/core/memory_only.h"
#include "tests/unit/core/recorded.h"
#include "tests/unit/tap.h"

static struct topology synthetic(const char *text)
{
    struct topology t = {0};
    CLEANUP_MEM char *xml = NULL;
    struct err err = {0};
    setenv("HWLOC_SYNTHETIC", text, 1);
    if (probe_topology(&t, &xml, &err) < 0)
        printf("# %s\n", err.text);
    unsetenv("HWLOC_SYNTHETIC");
    return t;
}

static int plan(struct plan *p, const struct topology *t, const char *cpus, const char *ranks,
                const char *numa, struct err *err)
{
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    snprintf(s.cpus, sizeof s.cpus, "%s", cpus);
    snprintf(s.ranks, sizeof s.ranks, "%s", ranks);
    snprintf(s.numa, sizeof s.numa, "%s", numa);
    return plan_make(p, &s, t, err);
}

// "0@0/1 2@0/1": CPU @ its node / memory's node of each rank.
static void expect(const struct topology *t, const char *cpus, const char *ranks, const char *numa,
                   const char *want)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CLEANUP_BUF struct buf got = BUF_INIT;
    if (plan(&p, t, cpus, ranks, numa, &err) < 0)
        buf_fmt(&got, "%s: %s", err.member, err.text);
    for (int i = 0; i < p.n_ranks; i++)
        buf_fmt(&got, "%s%d@%d/%d", i ? " " : "", p.ranks[i].cpu, p.ranks[i].cpu_node,
                p.ranks[i].mem_node);
    bool ok = strcmp(buf_text(&got), want) == 0;
    CHECK(ok, "cpus \"%s\" ranks %s numa %s", cpus, ranks, numa);
    if (!ok)
        printf("# got  %s\n# want %s\n", buf_text(&got), want);
}

static void refuse(const struct topology *t, const char *cpus, const char *ranks, const char *numa,
                   const char *member, const char *word)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    int rc = plan(&p, t, cpus, ranks, numa, &err);
    bool ok =
        rc < 0 && err.code == ERR_INVALID && !strcmp(err.member, member) && strstr(err.text, word);
    CHECK(ok, "cpus \"%s\" ranks %s numa %s is refused: %s: %s", cpus, ranks, numa, err.member,
          err.text);
}

// Two sockets of two cores with two threads; OS numbers as Linux gives them (siblings are n and
// n+4).
static void two_sockets(void)
{
    struct topology t CLEANUP(topology_fini) =
        synthetic("Package:2 [NUMANode(memory=8589934592)] L3:1 Core:2 PU:2(indexes=2*4:4*1)");
    CHECK(t.n_cpus == 8 && t.n_nodes == 2 && !t.this_system,
          "eight CPUs, two nodes, not this system");
    CHECK(topology_cpu(&t, 4)->thread == 1 &&
              topology_cpu(&t, 4)->core == topology_cpu(&t, 0)->core,
          "CPU 4 is the sibling of CPU 0");
    expect(&t, "", "all-cores", "local", "0@0/0 1@0/0 2@1/1 3@1/1");
    expect(&t, "", "one-per-numa", "local", "0@0/0 2@1/1");
    expect(&t, "", "one-per-numa", "1", "0@0/1 2@1/1");
    expect(&t, "", "all-cores", "auto", "0@0/0 1@0/1 2@1/0 3@1/1");
    expect(&t, "3,0", "all-cores", "0,1", "3@1/0 0@0/1");
    expect(&t, "", "2", "local", "0@0/0 1@0/0 2@1/1 3@1/1");
    refuse(&t, "", "3", "local", "ranks", "2 cores");
    refuse(&t, "8", "all-cores", "local", "cpus", "0-7");
    refuse(&t, "0", "all-cores", "2", "numa", "0-1");
    refuse(&t, "", "all-cores", "0,1", "numa", "2 nodes for 4 ranks");
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(plan(&p, &t, "0,4", "all-cores", "local", &err) == 0 && p.n_notes == 1 &&
              strstr(p.notes[0], "share a core"),
          "ranks on siblings are pointed out");
    t.cpus[0].allowed = false; // its sibling, CPU 4, is the core's first that may be used
    expect(&t, "", "all-cores", "local", "4@0/0 1@0/0 2@1/1 3@1/1");
}

// The machine of the published tables: 4 nodes of 2 L3 of 8 cores of 2 threads.
static void published_machine(void)
{
    struct topology t CLEANUP(topology_fini) =
        synthetic("Package:1 Group:4 [NUMANode(memory=137438953472)] L3:2(size=33554432) Core:8 "
                  "PU:2(indexes=2*64:64*1)");
    CHECK(t.n_cpus == 128 && t.n_nodes == 4 && topology_llc_bytes(&t) == 32 << 20,
          "128 CPUs, 4 nodes, 32 MiB of L3");
    expect(&t, "1,9,17,25,33,41,49,57", "all-cores", "0,0,1,1,2,2,3,3",
           "1@0/0 9@0/0 17@1/1 25@1/1 33@2/2 41@2/2 49@3/3 57@3/3");
    expect(&t, "", "one-per-l3", "local", "0@0/0 8@0/0 16@1/1 24@1/1 32@2/2 40@2/2 48@3/3 56@3/3");
}

static void without_memory(void)
{
    struct topology t CLEANUP(topology_fini) =
        synthetic("Package:2 [NUMANode(memory=8589934592)] Core:2 PU:1");
    t.nodes[0].memory_bytes = 0;
    expect(&t, "", "all-cores", "local", "0@0/1 1@0/1 2@1/1 3@1/1");
    expect(&t, "", "all-cores", "auto", "0@0/1 1@0/1 2@1/1 3@1/1");
    refuse(&t, "0", "all-cores", "0", "numa", "has no memory");
    t.nodes[1].allowed = false;
    refuse(&t, "", "all-cores", "local", "numa", "no node");
    refuse(&t, "2", "all-cores", "1", "numa", "outside the mems");
    t.nodes[0].allowed = false; // the kernel's mems never have a node without memory
    refuse(&t, "2", "all-cores", "0", "numa", "has no memory");
    t.nodes[0].allowed = true;
    t.nodes[0].memory_bytes = 1 << 30;
    t.cpus[1].allowed = false;
    refuse(&t, "1", "all-cores", "local", "cpus", "outside the cpuset");
    expect(&t, "", "all-cores", "local", "0@0/0 2@1/0 3@1/0");
}

// Whatever is asked for: CPUs exist and are allowed, memory is where memory is.
static void check_properties(const struct topology *t, const char *name)
{
    static const char *const ranks[] = {"all-cores", "one-per-numa", "one-per-l3", "1"};
    static const char *const numa[] = {"local", "auto"};
    bool ok = true;
    for (size_t i = 0; i < COUNT_OF(ranks); i++)
        for (size_t k = 0; k < COUNT_OF(numa); k++) {
            struct plan p CLEANUP(plan_fini) = {0};
            struct err err = {0};
            if (plan(&p, t, "", ranks[i], numa[k], &err) < 0) {
                printf("# %s %s: %s\n", ranks[i], numa[k], err.text);
                ok = false;
            }
            for (int r = 0; r < p.n_ranks; r++) {
                const struct topo_cpu *cpu = topology_cpu(t, p.ranks[r].cpu);
                const struct topo_node *node = topology_node(t, p.ranks[r].mem_node);
                ok &= cpu && cpu->allowed && node && node->allowed && node->memory_bytes > 0;
            }
        }
    CHECK(ok, "%s: every plan stands on CPUs and memory that are there", name);
}

static void recorded_machines(void)
{
    static const struct {
        const char *name;
        int cpus, nodes, with_cpus, with_memory;
    } all[] = {
        {"16amd64-8n2c", 16, 8, 8, 8},
        {"16amd64-8n2c-cpusets", 15, 8, 8, 8},
        {"20em64t-hybrid-1p6c2t+2ca4co1t", 20, 1, 1, 1},
        {"2arm-2c", 2, 1, 1, 1},
        {"48amd64-4pa2n6c-sparse", 48, 8, 8, 8},
        {"64amd64-4s2n4ca2co", 64, 8, 8, 8},
        {"96em64t-4no4pa3ca2co", 96, 4, 4, 4},
        {"fakememinitiators-1np2c+1npp+gi", 8, 11, 4, 6},
        {"offline-cpu0-node0", 17, 1, 1, 1},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct topology t CLEANUP(topology_fini) = {0};
        CHECK(recorded_topology(all[i].name, &t), "%s can be read", all[i].name);
        int with_cpus = 0, with_memory = 0;
        for (int n = 0; n < t.n_nodes; n++) {
            with_cpus += t.nodes[n].n_cpus > 0;
            with_memory += t.nodes[n].memory_bytes > 0;
        }
        CHECK(t.n_cpus == all[i].cpus && t.n_nodes == all[i].nodes, "%s: %d CPUs, %d nodes",
              all[i].name, t.n_cpus, t.n_nodes);
        CHECK(with_cpus == all[i].with_cpus && with_memory == all[i].with_memory,
              "%s: %d initiators, %d targets", all[i].name, with_cpus, with_memory);
        check_properties(&t, all[i].name);
    }
}

static void this_machine(void)
{
    struct machine m = {0}, again = {0};
    struct err err = {0};
    CHECK(machine_read(&m, "", &err) == 0 && machine_read(&again, "", &err) == 0,
          "this machine can be read");
    CHECK(m.topology.this_system && m.topology.n_cpus >= 1 && m.topology.n_nodes >= 1 &&
              strstr(m.topology_xml, "<topology"),
          "it has CPUs, nodes and an XML text");
    CHECK(!strcmp(m.fingerprint.machine_class.hash, again.fingerprint.machine_class.hash) &&
              !strcmp(m.fingerprint.config.hash, again.fingerprint.config.hash) &&
              strlen(m.fingerprint.config.hash) == 64,
          "two readings give one fingerprint");
    const int n_facts = m.fingerprint.machine_class.n + m.fingerprint.config.n;
    CHECK(facts_info(n_facts - 1) && !facts_info(n_facts), "every fact of the table is there");
    CHECK(memory_node_available_bytes("", m.topology.nodes[0].os) > 0, "memory is available");
    check_properties(&m.topology, "this machine");
    machine_fini(&m);
    machine_fini(&again);
}

// A /sys of two CPUs a node; nodes without CPUs have an empty map.
static void write_node(const char *root, int node, const char *cpumap, const char *distances)
{
    char path[200], text[100];
    snprintf(path, sizeof path, "sys/devices/system/node/node%d/cpumap", node);
    dir_write(root, path, cpumap);
    snprintf(path, sizeof path, "sys/devices/system/node/node%d/distance", node);
    dir_write(root, path, distances);
    snprintf(path, sizeof path, "sys/devices/system/node/node%d/meminfo", node);
    snprintf(text, sizeof text, "Node %d MemTotal: 1048576 kB\n", node);
    dir_write(root, path, text);
}

static void write_cpus(const char *root, int n)
{
    for (int i = 0; i < n; i++) {
        static const char *const files[] = {"core_id", "thread_siblings", "physical_package_id",
                                            "core_siblings"};
        for (size_t k = 0; k < COUNT_OF(files); k++) {
            char path[200], text[24];
            snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/%s", i, files[k]);
            snprintf(text, sizeof text, "%x\n", k == 0 ? i : k == 1 ? 1 << i : k == 2 ? 0 : 0xf);
            dir_write(root, path, text);
        }
    }
    dir_write(root, "sys/devices/system/cpu/online", "0-3\n");
    dir_write(root, "sys/devices/system/cpu/possible", "0-3\n");
    dir_write(root, "proc/cpuinfo", "processor\t: 0\nmodel name\t: Test CPU\n");
}

// Node 0 has memory and no CPUs, and node 1 is its nearest: hwloc lists node 0 first, with the CPUs
// of node 1.
static void without_cpus(void)
{
    char root[64];
    struct topology t CLEANUP(topology_fini) = {0};
    struct err err = {0};
    char *xml = NULL;
    dir_make(root);
    write_cpus(root, 4);
    dir_write(root, "sys/devices/system/node/online", "0-2\n");
    write_node(root, 0, "0\n", "10 17 28\n");
    write_node(root, 1, "3\n", "17 10 20\n");
    write_node(root, 2, "c\n", "28 20 10\n");
    setenv("HWLOC_FSROOT", root, 1);
    setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    CHECK(probe_topology(&t, &xml, &err) == 0 && t.n_nodes == 3 && t.n_cpus == 4,
          "three nodes, four CPUs");
    unsetenv("HWLOC_FSROOT");
    unsetenv("HWLOC_COMPONENTS");
    free(xml);
    CHECK(t.nodes[0].n_cpus == 0 && t.nodes[1].n_cpus == 2 && t.nodes[2].n_cpus == 2,
          "a node without CPUs has none");
    expect(&t, "", "all-cores", "local", "0@1/1 1@1/1 2@2/2 3@2/2");
    expect(&t, "", "all-cores", "auto", "0@1/0 1@1/1 2@2/2 3@2/0");
    expect(&t, "0", "all-cores", "0", "0@1/0");
    t.nodes[1].memory_bytes = 0;
    expect(&t, "", "one-per-numa", "local", "0@1/0 2@2/2");
    t.distance[1 * 3 + 0] = 0; // not known is not near
    expect(&t, "", "one-per-numa", "local", "0@1/2 2@2/2");
    dir_remove(root);
}

// A machine of four CPUs and three nodes, the last of them of memory alone.
static void write_machine(char *root)
{
    dir_make(root);
    write_cpus(root, 4);
    dir_write(root, "sys/devices/system/node/online", "0-2\n");
    dir_write(root, "sys/devices/system/node/has_memory", "0-2\n");
    write_node(root, 0, "3\n", "10 20 17\n");
    write_node(root, 1, "c\n", "20 10 28\n");
    write_node(root, 2, "0\n", "17 28 10\n");
    dir_write(root, "proc/self/status", "Cpus_allowed_list:\t0-3\nMems_allowed_list:\t0-2\n");
    setenv("HWLOC_FSROOT", root, 1);
    setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
}

static void forget_machine(const char *root)
{
    unsetenv("HWLOC_FSROOT");
    unsetenv("HWLOC_COMPONENTS");
    unsetenv("HWLOC_THISSYSTEM");
    dir_remove(root);
}

static void write_memory(const char *root, int node, long long kib)
{
    char path[100], text[100];
    snprintf(path, sizeof path, "sys/devices/system/node/node%d/meminfo", node);
    snprintf(text, sizeof text, "Node %d MemTotal: %lld kB\nNode %d MemFree: %d kB\n", node, kib,
             node, rand());
    dir_write(root, path, text);
}

static bool refreshed(struct machine *m, const char *root, int want)
{
    struct err err = {0};
    struct machine was CLEANUP(machine_fini) = {0};
    int got = machine_refresh(m, &was, root, &err);
    if (got != want)
        printf("# %d: %s\n", got, err.text);
    return got == want && machine_refresh(m, &was, root, &err) == 0; // and no more
}

static void memory_comes_and_goes(void)
{
    char root[64];
    struct machine m = {0};
    struct err err = {0};
    write_machine(root);
    CHECK(machine_read(&m, root, &err) == 0 && m.topology.n_nodes == 3, "%s", err.text);
    CHECK(refreshed(&m, root, 0), "nothing changed");
    write_memory(root, 2, 1048576);
    CHECK(refreshed(&m, root, 0), "memory that is used is not gone");
    write_memory(root, 2, 524288);
    CHECK(refreshed(&m, root, 1) && topology_node(&m.topology, 2)->memory_bytes == 512 << 20,
          "a part of a node's memory");
    expect(&m.topology, "0", "all-cores", "2", "0@0/2");
    write_memory(root, 2, 0);
    dir_write(root, "sys/devices/system/node/has_memory", "0-1\n");
    CHECK(refreshed(&m, root, 1) && topology_node(&m.topology, 2)->memory_bytes == 0,
          "all of it: the node is there, and has none");
    struct plan p = {0};
    CHECK(plan(&p, &m.topology, "0", "all-cores", "2", &err) < 0 && !strcmp(err.member, "numa") &&
              !strcmp(err.text, "node 2 has no memory; nodes with memory are 0-1"),
          "is refused by name: %s", err.text);
    write_memory(root, 2, 1048576);
    dir_write(root, "sys/devices/system/node/has_memory", "0-2\n");
    CHECK(refreshed(&m, root, 1) && topology_node(&m.topology, 2)->memory_bytes == 1 << 30,
          "and back");
    expect(&m.topology, "0", "all-cores", "2", "0@0/2");
    machine_fini(&m);
    forget_machine(root);
}

static void cpus_come_and_go(void)
{
    char root[64];
    struct machine m = {0}, was = {0};
    struct err err = {0};
    write_machine(root);
    CHECK(machine_read(&m, root, &err) == 0 && m.topology.n_cpus == 4, "%s", err.text);
    dir_write(root, "sys/devices/system/cpu/online", "0-2\n");
    write_node(root, 1, "4\n", "20 10 28\n");
    CHECK(machine_refresh(&m, &was, root, &err) == 1 && m.topology.n_cpus == 3, "one less");
    CHECK(was.topology.n_cpus == 4 && was.topology_xml && strcmp(was.topology_xml, m.topology_xml),
          "what it was is handed out");
    machine_fini(&was);
    dir_write(root, "sys/devices/system/cpu/online", "0-3\n");
    write_node(root, 1, "c\n", "20 10 28\n");
    CHECK(refreshed(&m, root, 1) && topology_cpu(&m.topology, 3), "and back");
    // What a cpuset takes, and gives back.
    dir_write(root, "proc/self/status", "Cpus_allowed_list:\t0,2-3\nMems_allowed_list:\t0,2\n");
    CHECK(refreshed(&m, root, 1) && !topology_cpu(&m.topology, 1)->allowed &&
              topology_cpu(&m.topology, 2)->allowed && !topology_node(&m.topology, 1)->allowed,
          "what the kernel does not let us use");
    expect(&m.topology, "", "all-cores", "0", "0@0/0 2@1/0 3@1/0");
    dir_write(root, "proc/self/status", "Cpus_allowed_list:\t0-3\nMems_allowed_list:\t0-2\n");
    CHECK(refreshed(&m, root, 1) && topology_cpu(&m.topology, 1)->allowed &&
              topology_node(&m.topology, 1)->allowed,
          "needs no restart to be ours again");
    machine_fini(&m);
    forget_machine(root);
}

// Files that cannot be read for a moment, or never were there.
static void refresh_without_files(void)
{
    char root[64], path[160];
    struct machine m = {0};
    struct err err = {0};
    write_machine(root);
    CHECK(machine_read(&m, root, &err) == 0, "%s", err.text);
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node1/meminfo", root);
    CHECK(unlink(path) == 0 && refreshed(&m, root, 0) && m.topology.n_nodes == 3,
          "what cannot be read has not changed");
    write_memory(root, 1, 1048576);
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/online", root);
    CHECK(unlink(path) == 0 && mkdir(path, 0755) == 0 && refreshed(&m, root, 0), "nor a directory");
    CHECK(rmdir(path) == 0, "it goes");
    dir_write(root, "sys/devices/system/cpu/online", "0-3\n");
    m.topology.this_system = false;
    dir_write(root, "sys/devices/system/cpu/online", "0-1\n");
    CHECK(refreshed(&m, root, 0), "a recorded machine stays as it is");
    machine_fini(&m);
    forget_machine(root);
    dir_make(root);
    dir_write(root, "sys/devices/system/cpu/online", "0-3\n");
    CHECK(machine_read(&m, root, &err) == 0 && m.topology.this_system && refreshed(&m, root, 0),
          "a kernel without NUMA has no files of nodes");
    dir_write(root, "sys/devices/system/cpu/online", "0-2\n");
    CHECK(refreshed(&m, root, 1), "and its CPUs come and go all the same");
    machine_fini(&m);
    dir_remove(root);
}

static int *moves; // how often somebody was bound, also in a child

// In the C library's place, for libraries too.
int sched_setaffinity(pid_t pid, size_t n, const cpu_set_t *set)
{
    if (moves)
        ++*moves;
    return (int)syscall(SYS_sched_setaffinity, pid, n, set);
}

// hwloc binds its process to one CPU after the other if it may, and afterwards to those that are
// on-line: it would run beside whatever is measured there, and lose a CPU that comes back.
static void reading_binds_nobody(void)
{
    struct machine m = {0};
    struct err err = {0};
    moves = mmap(NULL, sizeof *moves, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(moves != MAP_FAILED && machine_read(&m, "", &err) == 0, "%s", err.text);
    CHECK(*moves == 0, "reading the machine binds nobody, not even its child: %d times", *moves);
    munmap(steal_ptr(&moves), sizeof *moves);
    machine_fini(&m);
}

static void reading_leaves_our_cpus(void)
{
    struct machine m = {0};
    struct err err = {0};
    cpu_set_t before, one, after;
    sched_getaffinity(0, sizeof before, &before);
    CHECK(machine_read(&m, "", &err) == 0, "%s", err.text);
    CPU_ZERO(&one);
    CPU_SET(m.topology.cpus[0].os, &one);
    machine_fini(&m);
    if (sched_setaffinity(0, sizeof one, &one) < 0) {
        printf("# not allowed here\n");
        return;
    }
    CHECK(machine_read(&m, "", &err) == 0, "%s", err.text);
    sched_getaffinity(0, sizeof after, &after);
    CHECK(CPU_EQUAL(&one, &after), "reading the machine leaves our CPUs alone");
    for (int i = 0; i < m.topology.n_cpus; i++)
        CHECK(m.topology.cpus[i].allowed == (i == 0), "a CPU we are not bound to is not for us");
    machine_fini(&m);
    sched_setaffinity(0, sizeof before, &before);
}

// What a plan was made of, and what has become of it.
static void plans_that_lost_something(void)
{
    struct topology t CLEANUP(topology_fini) =
        synthetic("Package:2 [NUMANode(memory=8589934592)] Core:2 PU:1");
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(plan(&p, &t, "1", "all-cores", "1", &err) == 0, "CPU 1 with memory of node 1");
    p.n_targets = 1;
    p.targets[0] = 0;
    snprintf(p.load_cpus, sizeof p.load_cpus, "3");
    CHECK(plan_check_there(&p, &t, &err) == 0, "all is there: %s", err.text);
    t.cpus[2].allowed = false;
    CHECK(plan_check_there(&p, &t, &err) == 0, "what it does not use may go");
    static const struct {
        int cpu, node; // that goes; -1: none
        bool taken;    // out of the cpuset
        const char *member, *says;
    } cases[] = {
        {1, -1, false, "cpus", "CPU 1 went off-line during the run"},
        {1, -1, true, "cpus", "CPU 1 was taken out of the cpuset"},
        {3, -1, false, "load_cpus", "CPU 3 went off-line"},
        {-1, 1, false, "numa", "the memory of node 1 went off-line during the run"},
        {-1, 1, true, "numa", "the memory of node 1 was taken out of the mems"},
        {-1, 0, false, "targets", "the memory of node 0 went off-line"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct topo_cpu cpus[4];
        struct topo_node nodes[2];
        struct topology now = t;
        memcpy(cpus, t.cpus, sizeof cpus);
        memcpy(nodes, t.nodes, sizeof nodes);
        now.cpus = cpus;
        now.nodes = nodes;
        if (cases[i].cpu >= 0 && cases[i].taken)
            cpus[cases[i].cpu].allowed = false;
        else if (cases[i].cpu >= 0)
            cpus[cases[i].cpu].os = 100;
        else if (cases[i].taken)
            nodes[cases[i].node].allowed = false;
        else
            nodes[cases[i].node].memory_bytes = 0;
        CHECK(plan_check_there(&p, &now, &err) < 0 && err.code == ERR_UNAVAILABLE &&
                  strstr(err.text, cases[i].says),
              "%s", err.text);
        CHECK_STR(err.member, cases[i].member, "and names the member");
    }
}

static void admission(void)
{
    char root[64];
    dir_make(root);
    struct topology t CLEANUP(topology_fini) =
        synthetic("Package:2 [NUMANode(memory=8589934592)] Core:2 PU:1");
    t.this_system = true;
    dir_write(root, "sys/devices/system/node/node0/meminfo",
              "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 1310720 kB\n");
    dir_write(root, "sys/devices/system/node/node1/meminfo",
              "Node 1 MemTotal: 8388608 kB\nNode 1 MemFree: 131072 kB\n");
    struct plan p CLEANUP(plan_fini) = {0};
    struct admission a;
    struct err err = {0};
    plan(&p, &t, "", "one-per-numa", "0", &err);
    p.bytes_per_rank = 400 << 20;
    memory_only(&a, &p, &t, root);
    CHECK(a.n == 0 && admission_error(&a, &err) == 0, "2 x (400 + 64) MiB fit into 80 %% of 1280");
    p.bytes_per_rank = 500 << 20;
    memory_only(&a, &p, &t, root);
    CHECK(a.n == 1 && admission_error(&a, &err) < 0 && err.code == ERR_NO_MEMORY_NODE &&
              strstr(err.text, "node 0"),
          "2 x (500 + 64) do not: %s", err.text);
    p.bytes_per_rank = 400 << 20;
    p.bytes_per_loader = 200 << 20;
    snprintf(p.load_cpus, sizeof p.load_cpus, "1");
    memory_only(&a, &p, &t, root);
    CHECK(a.n == 1 && strstr(a.list[0].text, "node 0") && strstr(a.list[0].text, "make the load"),
          "nor do they with 200 MiB that make a load there: %s", a.list[0].text);
    CHECK(admission_plan_bytes(&p) == ((int64_t)2 * 464 + 200) << 20, "all together");
    snprintf(p.load_cpus, sizeof p.load_cpus, "3");
    memory_only(&a, &p, &t, root);
    CHECK(a.n == 1 && strstr(a.list[0].text, "node 1"), "on node 1: %s", a.list[0].text);
    *p.load_cpus = '\0';
    p.bytes_per_rank = 100 << 20;
    dir_write(root, "proc/self/cgroup", "0::/a\n");
    dir_write(root, "sys/fs/cgroup/a/memory.max", "209715200\n");
    dir_write(root, "sys/fs/cgroup/a/memory.current", "0\n");
    memory_only(&a, &p, &t, root);
    CHECK(a.n == 1 && a.list[0].kind == ADMIT_CGROUP_MEMORY,
          "a control group's limit stops a run that is too large for it");
    t.this_system = false;
    memory_only(&a, &p, &t, root);
    CHECK(a.list[0].kind == ADMIT_NOT_LIVE, "a recorded machine cannot be probed");
    dir_remove(root);
}

static const char *fact(const struct fingerprint *f, const char *name)
{
    const struct facts *sets[] = {&f->machine_class, &f->config};
    for (size_t k = 0; k < COUNT_OF(sets); k++)
        for (int i = 0; i < sets[k]->n; i++)
            if (strcmp(sets[k]->list[i].name, name) == 0)
                return sets[k]->list[i].value;
    return "(no such fact)";
}

// A kernel command line longer than a value: its end counts, secrets do not, and what only sounds
// like one stays.
static void command_lines(const struct topology *t, const char *root)
{
    static struct fingerprint a, b;
    struct err err = {0};
    char line[2048], filler[700];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    dir_write(root, "proc/cmdline",
              "quiet iommu.passthrough=1 rd.luks.key=abc MY_TOKEN=x keymap=de pass=\n");
    fingerprint_read(&a, t, root, &err);
    CHECK_STR(fact(&a, "cmdline"),
              "quiet iommu.passthrough=1 rd.luks.key=* MY_TOKEN=* keymap=de pass=",
              "secrets are blanked, settings are not");
    snprintf(line, sizeof line, "%s mitigations=auto\n", filler);
    dir_write(root, "proc/cmdline", line);
    fingerprint_read(&a, t, root, &err);
    snprintf(line, sizeof line, "%s mitigations=off\n", filler);
    dir_write(root, "proc/cmdline", line);
    fingerprint_read(&b, t, root, &err);
    CHECK(strcmp(a.config.hash, b.config.hash) != 0 && strstr(fact(&a, "cmdline"), "... sha256:"),
          "a change behind what fits is a change");
    CHECK(strcmp(a.machine_class.hash, b.machine_class.hash) == 0, "of the configuration only");
}

static void recorded_facts(void)
{
    static struct fingerprint f;
    char root[64];
    struct err err = {0};
    dir_make(root);
    struct topology t CLEANUP(topology_fini) = synthetic("Package:1 [NUMANode] Core:2 PU:1");
    CHECK(fingerprint_read(&f, &t, root, &err) == 0 && !strcmp(fact(&f, "microcode"), "unknown") &&
              !strcmp(fact(&f, "mitigations"), "unknown"),
          "nothing to read: unknown");
    dir_write(root, "sys/devices/system/cpu/vulnerabilities/l1tf", "Not affected\n");
    dir_write(root, "proc/cpuinfo",
              "processor\t: 0\nCPU implementer\t: 0x41\nCPU "
              "architecture: 8\nCPU part\t: 0xd0c\nCPU revision\t: 1\n");
    dir_write(root, "sys/class/dmi/id/product_name", "Box\xff 1\n");
    fingerprint_read(&f, &t, root, &err);
    CHECK_STR(fact(&f, "mitigations"), "none", "a CPU that nothing concerns");
    CHECK_STR(fact(&f, "cpu_id"), "0x41/8/0xd0c/1", "a CPU without a vendor's name");
    CHECK_STR(fact(&f, "product"), "Box? 1", "firmware that writes no UTF-8");
    command_lines(&t, root);
    dir_remove(root);
}

static void findings(void)
{
    char root[64];
    dir_make(root);
    struct topology t CLEANUP(topology_fini) = synthetic("Package:1 [NUMANode] Core:2 PU:1");
    t.this_system = true;
    dir_write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    dir_write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    dir_write(root, "proc/sys/kernel/numa_balancing", "1\n");
    dir_write(root, "proc/loadavg", "7.50 3.1 2.2 1/100 1\n");
    struct finding f[24];
    int n = machine_findings(&t, root, f, 24), seen = 0;
    static const char *const want[] = {"thp_never", "governor", "numa_balancing", "load"};
    for (size_t k = 0; k < COUNT_OF(want); k++)
        for (int i = 0; i < n; i++)
            seen +=
                !strcmp(f[i].name, want[k]) && *f[i].text && (k == 3 ? f[i].serious : *f[i].remedy);
    CHECK(seen == 4, "what is wrong is found, with its remedy");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    dir_write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    dir_write(root, "proc/sys/kernel/numa_balancing", "0\n");
    dir_write(root, "proc/loadavg", "0.01 0.1 0.2 1/100 1\n");
    n = machine_findings(&t, root, f, 24);
    seen = 0;
    for (size_t k = 0; k < COUNT_OF(want); k++)
        for (int i = 0; i < n; i++)
            seen += !strcmp(f[i].name, want[k]);
    CHECK(seen == 0, "and nothing where all is well");
    dir_remove(root);
}

// The one finding of that name among all of a machine whose files are below `root`; NULL if none.
static const struct finding *found(const char *root, const struct topology *t, const char *name)
{
    static struct finding f[24];
    int n = machine_findings(t, root, f, 24);
    for (int i = 0; i < n; i++)
        if (!strcmp(f[i].name, name))
            return &f[i];
    return NULL;
}

static void findings_one_by_one(void)
{
    static const struct {
        const char *name, *path, *bad, *good, *says, *remedy;
        bool serious;
    } cases[] = {
        {"memory_pressure", "proc/pressure/memory", "some avg10=2.50 avg60=0.1 total=1\n",
         "some avg10=0.50 avg60=9.1 total=1\n", "2.5 %", "", true},
        {"swap", "proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
         "Filename Type Size Used Priority\n", "swap is on", "swapoff -a", false},
        {"frequency_cap", "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "2000000\n",
         "3500000\n", "2000 of 3500 MHz", "cpupower frequency-set -u 3500MHz", false},
        {"virtual_machine", "proc/cpuinfo", "flags : fpu hypervisor lm\n", "flags : fpu lm\n",
         "virtual machine", "", false},
        {"load", "proc/loadavg", "0.80 0.1 0.1 1/100 1\n", "0.55 0.1 0.1 1/100 1\n",
         "0.80 on 2 CPUs", "", false},
        {"cgroup_memory", "sys/fs/cgroup/memory.max", "1073741824\n", "max\n", "1024 MiB",
         "systemctl set-property numaprobed.service MemoryMax=infinity", false},
    };
    char root[64];
    dir_make(root);
    dir_write(root, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3500000\n");
    dir_write(root, "proc/self/cgroup", "0::/\n");
    dir_write(root, "sys/fs/cgroup/memory.current", "0\n");
    struct topology t CLEANUP(topology_fini) = synthetic("Package:1 [NUMANode] Core:2 PU:1");
    t.this_system = true;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dir_write(root, cases[i].path, cases[i].bad);
        const struct finding *f = found(root, &t, cases[i].name);
        CHECK(f && strstr(f->text, cases[i].says) && f->serious == cases[i].serious, "%s: %s",
              cases[i].name, f ? f->text : "not found");
        CHECK_STR(f ? f->remedy : "?", cases[i].remedy, "%s: its remedy", cases[i].name);
        CHECK(condition_find(cases[i].name) != CONDITION_OTHER, "%s: a kind", cases[i].name);
        dir_write(root, cases[i].path, cases[i].good);
        CHECK(!found(root, &t, cases[i].name), "%s: and when it is well", cases[i].name);
    }
    dir_remove(root);
}

// What hangs on the topology and on the programs, not on files.
static void findings_elsewhere(void)
{
    char root[64];
    dir_make(root);
    struct topology one CLEANUP(topology_fini) = synthetic("Package:1 [NUMANode] Core:2 PU:1");
    struct topology two CLEANUP(topology_fini) = synthetic("Package:1 [NUMANode] Core:2 PU:2");
    const struct finding *f = found(root, &one, "topology_not_live");
    CHECK(f && f->serious && strstr(f->text, "shown, not probed"), "a topology from elsewhere");
    CHECK(found(root, &two, "hyperthreads") && !found(root, &one, "hyperthreads"),
          "hardware threads");
    CLEANUP_MEM char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nonexistent:/proc", 1);
    f = found(root, &one, "mpirun_missing");
    CHECK(f && strstr(f->remedy, "openmpi-bin"), "no mpirun, and the package that has it");
    f = found(root, &one, "numactl_missing");
    CHECK(f && strstr(f->remedy, "numactl"), "no numactl");
    setenv("PATH", path, 1);
    CHECK(machine_findings(&two, root, (struct finding[1]){{0}}, 1) == 1,
          "no more than there is room");
    dir_remove(root);
}

static void documented(void)
{
    const char *source = getenv("NUMAPROBE_SOURCE");
    static char text[65536];
    char path[600];
    snprintf(path, sizeof path, "%s/docs/FACTS.md", source ? source : ".");
    CHECK(file_read_text(path, text, sizeof text) == 0, "docs/FACTS.md is there");
    const struct fact_info *f;
    for (int i = 0; (f = facts_info(i)); i++) {
        char line[300];
        snprintf(line, sizeof line, "| `%s` | %s | %s |", f->name,
                 f->of_class ? "hardware" : "config", f->meaning);
        CHECK(strstr(text, line), "docs/FACTS.md has: %s", line);
    }
}

// A fact without a considered weight would be listed anywhere among what changed.
static void suspicion(void)
{
    for (int i = 0; facts_info(i); i++)
        CHECK(changes_weight(facts_info(i)->name) >= 0,
              "%s: has a weight (analysis/compare/fact_changes.c)", facts_info(i)->name);
    CHECK(changes_weight("thp_enabled") > changes_weight("kernel") &&
              changes_weight("kernel") > changes_weight("hwloc"),
          "huge pages are more suspicious than the kernel, and that than a library");
    CHECK(changes_weight("no such fact") < 0, "a fact of another version has none");
}

// What a run stored is read back as it was, whatever machine reads it.
static void stored_topology(void)
{
    struct topology was CLEANUP(topology_fini) = {0};
    struct topology now CLEANUP(topology_fini) = {0};
    CLEANUP_MEM char *xml = NULL;
    struct err err = {0};
    setenv("HWLOC_SYNTHETIC", "package:2 numa:2 l3:2(size=33554432) l2:4(size=524288) pu:2", 1);
    bool ok = probe_topology(&was, &xml, &err) == 0;
    unsetenv("HWLOC_SYNTHETIC");
    CHECK(ok && probe_topology_stored(&now, xml, &err) == 0, "stored XML is read: %s", err.text);
    CHECK(!now.this_system && strcmp(now.source, "stored") == 0, "and is not this machine");
    CHECK(now.n_cpus == was.n_cpus && now.n_caches == was.n_caches && now.n_nodes == was.n_nodes,
          "as many CPUs, caches and nodes as there were");
    bool same = true;
    for (int i = 0; i < was.n_cpus && i < now.n_cpus; i++)
        same = same && now.cpus[i].l3 == was.cpus[i].l3 && now.cpus[i].node == was.cpus[i].node &&
               now.cpus[i].core == was.cpus[i].core;
    CHECK(same, "each CPU with its cache, core and node");
    struct topology bad = {0};
    CHECK(probe_topology_stored(&bad, "<topology", &err) < 0 && !bad.cpus, "nonsense is refused");
    // hwloc 2.9 reads where nothing is when this is missing.
    char *cut = strstr(xml, " complete_nodeset="), *end = cut ? strchr(cut + 19, '"') : NULL;
    CHECK(end != NULL, "there is something to leave out");
    if (end)
        memmove(cut, end + 1, strlen(end));
    CHECK(probe_topology_stored(&bad, xml, &err) < 0 && !bad.cpus,
          "and what brings hwloc down is too: %s", err.text);
}

// Kinds of cores, a memory-side cache and special memory come through XML.
static void stored_topology_of_kinds(void)
{
    struct topology t CLEANUP(topology_fini) = {0};
    struct err err = {0};
    CHECK(probe_topology_stored(&t, hybrid_xml, &err) == 0, "XML with kinds is read: %s", err.text);
    if (t.n_cpus != 4 || t.n_nodes != 2 || t.n_kinds != 2) {
        CHECK(false, "%d CPUs, %d nodes, %d kinds", t.n_cpus, t.n_nodes, t.n_kinds);
        return;
    }
    CHECK(t.cpus[0].kind == 0 && t.cpus[1].kind == 1 && t.cpus[2].kind == 0 && t.cpus[3].kind == 1,
          "each CPU has its kind");
    CHECK(t.kinds[1].efficiency > t.kinds[0].efficiency && t.kinds[1].max_mhz == 5000 &&
              !strcmp(t.kinds[0].type, "IntelAtom"),
          "and each kind what is known of it");
    CHECK(t.nodes[0].cache_bytes == 256 << 20 && t.nodes[1].cache_bytes == 0,
          "node 0 is behind a memory-side cache");
    CHECK(!strcmp(t.nodes[1].kind, "gpumemory") && topology_node_is_special(&t.nodes[1]) &&
              !topology_node_is_special(&t.nodes[0]),
          "node 1 is a GPU's");
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    topology_write_json(&t, &w, NULL);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, &err);
    const struct json *node = json_first(json_get(j, "nodes"));
    const struct json *kind = json_first(json_get(j, "kinds"));
    CHECK(json_get_i64(json_next(json_first(json_get(j, "cpus"))), "kind", -1) == 1 &&
              json_get_i64(json_next(kind), "max_mhz", 0) == 5000 &&
              json_is_null(json_get(kind, "capacity")) &&
              json_get_i64(node, "memory_side_cache_bytes", 0) == 256 << 20 &&
              json_get_bool(json_next(node), "only_if_named", false),
          "and JSON says so");
}

// hwloc takes this machine where it cannot understand which other one is meant.
static void another_machine_that_cannot_be_read(void)
{
    static const struct {
        const char *name, *value, *says; // NULL: this machine, and rightly so
    } cases[] = {
        {"HWLOC_SYNTHETIC", "pack:2 [numa(memory=256GB)] numa:4(memory=64GB) core:4",
         "does not underst"},
        {"HWLOC_SYNTHETIC", "garbage", "HWLOC_SYNTHETIC: hwloc does not understand \"garbage\""},
        {"HWLOC_SYNTHETIC", "pack:2 core:", "does not underst"},
        {"HWLOC_SYNTHETIC", " ", "does not underst"},
        {"HWLOC_SYNTHETIC", "", NULL},
        {"HWLOC_XMLFILE", "/nonexistent.xml", "hwloc cannot read"},
        {"HWLOC_XMLFILE", "/etc/passwd", "hwloc cannot read"},
        {"HWLOC_XMLFILE", "/", "hwloc cannot read"},
        {"HWLOC_XMLFILE", "", NULL},
        {"HWLOC_FSROOT", "/nonexistent", "HWLOC_FSROOT: hwloc cannot read"},
        {"HWLOC_FSROOT", "/etc", "HWLOC_FSROOT: hwloc cannot read"},
        {"HWLOC_FSROOT", "/etc/passwd", "HWLOC_FSROOT: hwloc cannot read"},
        {"HWLOC_FSROOT", "", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct topology t CLEANUP(topology_fini) = {0};
        struct err err = {0};
        CLEANUP_MEM char *xml = NULL;
        setenv(cases[i].name, cases[i].value, 1);
        int rc = probe_machine(&t, &xml, &err);
        unsetenv(cases[i].name);
        CHECK(cases[i].says ? rc < 0 && strstr(err.text, cases[i].says)
                            : rc == 0 && t.this_system && !strcmp(t.source, "linux"),
              "%s=\"%s\": %s", cases[i].name, cases[i].value, err.text);
    }
}

static long largest_child_kib(void)
{
    struct rusage u;
    return getrusage(RUSAGE_CHILDREN, &u) == 0 ? u.ru_maxrss : LONG_MAX;
}

// hwloc makes a set of as many bits as the largest index has: 512 MiB for this one.
static void stored_topology_of_huge_indexes(void)
{
    enum { LIMIT_KIB = 256 << 10 };
    struct topology t CLEANUP(topology_fini) = {0};
    struct err err = {0};
    CLEANUP_BUF struct buf xml = BUF_INIT;
    CLEANUP_MEM char *good = NULL;
    setenv("HWLOC_SYNTHETIC", "package:2 [numa] pu:2", 1);
    bool ok = probe_topology(&t, &good, &err) == 0;
    unsetenv("HWLOC_SYNTHETIC");
    const char *pu = ok ? strstr(good, "\"PU\" os_index=\"3\"") : NULL;
    CHECK(pu != NULL && largest_child_kib() < LIMIT_KIB, "there is a last CPU");
    if (!pu)
        return;
    buf_add(&xml, good, (size_t)(pu - good));
    buf_fmt(&xml, "\"PU\" os_index=\"4294967294\"%s", pu + strlen("\"PU\" os_index=\"3\""));
    topology_fini(&t);
    probe_topology_stored(&t, buf_text(&xml), &err);
    CHECK(largest_child_kib() < LIMIT_KIB, "reading a stranger's XML takes %ld KiB at most",
          largest_child_kib());
}

int main(void)
{
    two_sockets();
    published_machine();
    without_memory();
    recorded_machines();
    this_machine();
    without_cpus();
    memory_comes_and_goes();
    cpus_come_and_go();
    refresh_without_files();
    reading_binds_nobody();
    reading_leaves_our_cpus();
    plans_that_lost_something();
    admission();
    recorded_facts();
    findings();
    findings_one_by_one();
    findings_elsewhere();
    documented();
    suspicion();
    stored_topology();
    stored_topology_of_kinds();
    another_machine_that_cannot_be_read();
    stored_topology_of_huge_indexes();
    return tap_done();
}
