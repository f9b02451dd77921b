// SPDX-License-Identifier: Apache-2.0
// Findings about a node that distort measurements.
#include "tests/unit/core/node/machines.h"

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
    CHECK_INT(seen, 4, "what is wrong is found, with its remedy");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    dir_write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    dir_write(root, "proc/sys/kernel/numa_balancing", "0\n");
    dir_write(root, "proc/loadavg", "0.01 0.1 0.2 1/100 1\n");
    n = machine_findings(&t, root, f, 24);
    seen = 0;
    for (size_t k = 0; k < COUNT_OF(want); k++)
        for (int i = 0; i < n; i++)
            seen += !strcmp(f[i].name, want[k]);
    CHECK_INT(seen, 0, "and nothing where all is well");
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
        {"corrected_errors", "sys/devices/system/edac/mc/mc1/ce_count", "12\n", "0\n",
         "mc1 has corrected 12 errors", "", false},
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

// A virtual machine's balloon says whether the host gets memory that is free.
static void findings_of_a_balloon(void)
{
    char root[64];
    dir_make(root);
    struct topology t CLEANUP(topology_fini) = synthetic("Package:1 [NUMANode] Core:2 PU:1");
    static const struct {
        const char *first, *second, *features;
        bool takes;
    } cases[] = {
        {"0x0002\n", "0x0005\n", "0110010100\n", true},
        {"0x0002\n", "0x0005\n", "0110000100\n", false},
        {"0x0002\n", "0x0005\n", "0110\n", false},
        {"0x0002\n", "0x0015\n", "0110010100\n", false},
    };
    dir_write(root, "proc/cpuinfo", "flags : fpu hypervisor lm\n");
    dir_write(root, "sys/bus/virtio/devices/virtio0/features", "1111111111\n");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dir_write(root, "sys/bus/virtio/devices/virtio0/device", cases[i].first);
        dir_write(root, "sys/bus/virtio/devices/virtio1/device", cases[i].second);
        dir_write(root, "sys/bus/virtio/devices/virtio1/features", cases[i].features);
        const struct finding *f = found(root, &t, "virtual_machine");
        CHECK(f && !strstr(f->text, "takes free memory") == !cases[i].takes, "%s: %s",
              cases[i].features, f ? f->text : "not found");
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

int main(void)
{
    findings();
    findings_one_by_one();
    findings_of_a_balloon();
    findings_elsewhere();
    return tap_done();
}
