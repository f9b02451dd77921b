// SPDX-License-Identifier: Apache-2.0
// Plans for recorded and synthetic machines, and whether they may run there.
#include "tests/unit/core/node/machines.h"

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
    expect(&t, "", "one-per-numa", "local", "1@0/0 3@1/1");
    expect(&t, "", "one-per-numa", "1", "1@0/1 3@1/1");
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
    expect(&t, "", "one-per-l3", "local", "7@0/0 15@0/0 23@1/1 31@1/1 39@2/2 47@2/2 55@3/3 63@3/3");
}

// The one note of a plan of all cores and local memory.
static void expect_note(const struct topology *t, const char *says)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(plan(&p, t, "", "all-cores", "local", &err) == 0 && p.n_notes == 1, "one note");
    CHECK_STR(p.n_notes ? p.notes[0] : "", says, "whose node has no memory for them");
}

static void without_memory(void)
{
    struct topology t CLEANUP(topology_fini) =
        synthetic("Package:2 [NUMANode(memory=8589934592)] Core:2 PU:1");
    t.nodes[0].memory_bytes = 0;
    expect(&t, "", "all-cores", "local", "0@0/1 1@0/1 2@1/1 3@1/1");
    expect_note(&t, "2 ranks are on CPUs whose node has no memory for them, such as CPU 0: node 0 "
                    "has no memory. The nearest node that has some is used, 1 for this CPU");
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
    expect_note(&t, "2 ranks are on CPUs whose node has no memory for them, such as CPU 2: node 1 "
                    "is outside the mems of the daemon. The nearest node that has some is used, 0 "
                    "for this CPU");
    t.nodes[1].allowed = true;
    t.cpus[3].allowed = false;
    snprintf(t.nodes[1].kind, sizeof t.nodes[1].kind, "nvm");
    expect_note(&t, "1 rank is on CPUs whose node has no memory for them, such as CPU 2: node 1 "
                    "has memory of the kind nvm only. The nearest node that has some is used, 0 "
                    "for this CPU");
}

// What a plan was made of, and what has become of it.
static void plans_that_lost_something(void)
{
    struct topology t CLEANUP(topology_fini) =
        synthetic("Package:2 [NUMANode(memory=8589934592)] Core:2 PU:1");
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK_INT(plan(&p, &t, "1", "all-cores", "1", &err), 0, "CPU 1 with memory of node 1");
    p.n_targets = 1;
    p.targets[0] = 0;
    snprintf(p.load_cpus, sizeof p.load_cpus, "3");
    CHECK_INT(plan_check_there(&p, &t, &err), 0, "all is there: %s", err.text);
    t.cpus[2].allowed = false;
    CHECK_INT(plan_check_there(&p, &t, &err), 0, "what it does not use may go");
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
    memory_beside(&a, &p, &t, root, NULL);
    CHECK(a.n == 0, "beside a run of ours they do: what it holds will be free again");
    p.bytes_per_rank = (int64_t)4 << 30;
    memory_beside(&a, &p, &t, root, NULL);
    CHECK(a.n == 1 && strstr(a.list[0].text, "80 % of its memory"), "2 x 4 GiB never do: %s",
          a.list[0].text);
    p.bytes_per_rank = 400 << 20;
    p.bytes_per_loader = 200 << 20;
    snprintf(p.load_cpus, sizeof p.load_cpus, "1");
    memory_only(&a, &p, &t, root);
    CHECK(a.n == 1 && strstr(a.list[0].text, "node 0") && strstr(a.list[0].text, "make the load"),
          "nor do they with 200 MiB that make a load there: %s", a.list[0].text);
    CHECK(admission_plan_bytes(&p) == ((int64_t)2 * 464 + 200) << 20, "all together");
    snprintf(p.load_cpus, sizeof p.load_cpus, "3");
    memory_only(&a, &p, &t, root);
    CHECK(a.n == 1 &&
              !strncmp(a.list[0].text, "those that make the load need 200 MiB on node 1", 47),
          "only the load is on node 1: %s", a.list[0].text);
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
    CHECK(a.list[0].kind == ADMIT_TOPOLOGY_NOT_LIVE, "a recorded machine cannot be probed");
    dir_remove(root);
}

int main(void)
{
    two_sockets();
    published_machine();
    without_memory();
    plans_that_lost_something();
    admission();
    return tap_done();
}
