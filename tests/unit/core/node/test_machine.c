// SPDX-License-Identifier: Apache-2.0
// Reading machines: recorded ones, this one, and what comes and goes.
#include "core/node/cpu_instructions.h"
#include "tests/unit/core/node/machines.h"

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
    int n_facts = 0;
    while (facts_info(n_facts))
        n_facts++;
    int without = (m.topology.n_kinds < 2) + (m.topology.nodes[0].cache_bytes == 0) +
                  (m.topology.found.bytes == 0);
    int n = m.fingerprint.machine_class.n + m.fingerprint.config.n;
    // Not every account may read the tables of the firmware, nor has every kernel a driver.
    enum { OF_MODULES = 3 };
    CHECK(n <= n_facts - without && n >= n_facts - without - OF_MODULES,
          "every fact of the table is there, kinds and further caches where there are any");
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

// Of the architecture that this program is built for. A word is a whole word, however long the
// line.
static void cpu_sets(void)
{
    char root[64], line[6000];
    static const struct {
        const char *words;
        unsigned x86, arm;
    } all[] = {
        {"flags\t\t: fpu sse2 avx2 fma avx512f\n", CPU_SSE2 | CPU_AVX2 | CPU_AVX512, 0},
        {"flags\t\t: fpu sse2 avx2 avx512fp\n", CPU_SSE2, 0},
        {"flags\t\t: sse2 avx2 avx512f\n", CPU_SSE2, 0}, // both need fma too
        {"Features\t: fp asimd atomics sve\n", 0, CPU_NEON | CPU_LSE | CPU_SVE | CPU_LLSC},
        {"Features\t: fp asimd sve2\n", 0, CPU_NEON | CPU_LLSC},
    };
    dir_make(root);
    CHECK_INT(cpu_instructions_read(root), 0, "no file");
    dir_write(root, "proc/cpuinfo", "processor\t: 0\nmodel name\t: flags\n");
    CHECK_INT(cpu_instructions_read(root), 0, "no list");
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        unsigned want = CPU_KNOWN;
#if defined __x86_64__
        want |= all[i].x86;
#elif defined __aarch64__
        want |= all[i].arm;
#endif
        const char *list = strchr(all[i].words, ':') + 1;
        snprintf(line, sizeof line, "processor\t: 0\n%.*s%5000s%s", (int)(list - all[i].words),
                 all[i].words, "", list);
        dir_write(root, "proc/cpuinfo", line);
        CHECK_INT(cpu_instructions_read(root), want, "%s", list);
    }
    dir_remove(root);
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
    expect(&t, "", "one-per-numa", "local", "1@1/0 3@2/2");
    t.distance[1 * 3 + 0] = 0; // not known is not near
    expect(&t, "", "one-per-numa", "local", "1@1/2 3@2/2");
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
    CHECK_INT(machine_read(&m, root, &err), 0, "%s", err.text);
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node1/meminfo", root);
    CHECK(unlink(path) == 0 && refreshed(&m, root, 0) && m.topology.n_nodes == 3,
          "what cannot be read has not changed");
    write_memory(root, 1, 1048576);
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/online", root);
    CHECK(unlink(path) == 0 && mkdir(path, 0755) == 0 && refreshed(&m, root, 0), "nor a directory");
    CHECK_INT(rmdir(path), 0, "it goes");
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
    CHECK_INT(machine_read(&m, "", &err), 0, "%s", err.text);
    CPU_ZERO(&one);
    CPU_SET(m.topology.cpus[0].os, &one);
    machine_fini(&m);
    if (sched_setaffinity(0, sizeof one, &one) < 0) {
        printf("# not allowed here\n");
        return;
    }
    CHECK_INT(machine_read(&m, "", &err), 0, "%s", err.text);
    sched_getaffinity(0, sizeof after, &after);
    CHECK(CPU_EQUAL(&one, &after), "reading the machine leaves our CPUs alone");
    for (int i = 0; i < m.topology.n_cpus; i++)
        CHECK(m.topology.cpus[i].allowed == (i == 0), "a CPU we are not bound to is not for us");
    machine_fini(&m);
    sched_setaffinity(0, sizeof before, &before);
}

int main(void)
{
    recorded_machines();
    this_machine();
    cpu_sets();
    without_cpus();
    memory_comes_and_goes();
    cpus_come_and_go();
    refresh_without_files();
    reading_binds_nobody();
    reading_leaves_our_cpus();
    return tap_done();
}
