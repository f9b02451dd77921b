// SPDX-License-Identifier: Apache-2.0
// Conditions that distort measurements. Each check looks at one thing and says what it saw, why
// it matters, and the command that fixes it.
#include "core/node/checkup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "core/node/machine.h"
#include "core/node/memory_errors.h"
#include "core/os/program.h"

struct look {
    const struct topology *topology;
    const char *root;
};

typedef bool check(const struct look *l, struct finding *f);

#define SAY(f, ...) snprintf((f)->text, sizeof(f)->text, __VA_ARGS__)
#define MEND(f, ...) snprintf((f)->remedy, sizeof(f)->remedy, __VA_ARGS__)

static bool thp_never(const struct look *l, struct finding *f)
{
    char text[128];
    if (file_read_fmt(text, sizeof text, "%s/sys/kernel/mm/transparent_hugepage/enabled", l->root) <
            0 ||
        !strstr(text, "[never]"))
        return false;
    SAY(f,
        "transparent huge pages are off: large working sets will show the cost of TLB misses too");
    MEND(f, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    return true;
}

static bool governor(const struct look *l, struct finding *f)
{
    char text[64];
    if (file_read_fmt(text, sizeof text, "%s/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                      l->root) < 0 ||
        strcmp(text, "performance") == 0)
        return false;
    SAY(f, "the frequency governor is \"%.30s\": clocks change while we measure", text);
    MEND(f, "cpupower frequency-set -g performance");
    return true;
}

static bool numa_balancing(const struct look *l, struct finding *f)
{
    char text[32];
    if (file_read_fmt(text, sizeof text, "%s/proc/sys/kernel/numa_balancing", l->root) < 0 ||
        strcmp(text, "0") == 0)
        return false;
    SAY(f, "automatic NUMA balancing is on: its page faults disturb (the probe's own memory is "
           "bound and stays)");
    MEND(f, "sysctl kernel.numa_balancing=0");
    return true;
}

// By its features, a digit each. Devices of a bus are numbered from 0 on.
static bool host_takes_free_memory(const char *root)
{
    enum { DEVICES = 64, BALLOON = 5, REPORTING = 5 }; // of the virtio standard
    for (int i = 0; i < DEVICES; i++) {
        char kind[16], features[160];
        if (file_read_fmt(kind, sizeof kind, "%s/sys/bus/virtio/devices/virtio%d/device", root, i) <
            0)
            return false;
        if (strtol(kind, NULL, 16) == BALLOON &&
            file_read_fmt(features, sizeof features, "%s/sys/bus/virtio/devices/virtio%d/features",
                          root, i) == 0)
            return strlen(features) > REPORTING && features[REPORTING] == '1';
    }
    return false;
}

static bool virtual_machine(const struct look *l, struct finding *f)
{
    char path[512], line[4096];
    bool seen = false;
    snprintf(path, sizeof path, "%s/proc/cpuinfo", l->root);
    FILE *file = fopen(path, "re");
    while (file && !seen && fgets(line, sizeof line, file))
        seen = str_starts(line, "flags") && strstr(line, " hypervisor");
    if (file)
        fclose(file);
    if (seen)
        SAY(f,
            "this is a virtual machine: the host may take the CPU away (steal) and hides the "
            "real topology%s",
            host_takes_free_memory(l->root)
                ? ". It takes free memory back too: the first touch of memory can take ten times "
                  "as long after a pause"
                : "");
    return seen;
}

static bool checkup_load(const struct look *l, struct finding *f)
{
    char text[128];
    double one = 0;
    if (file_read_fmt(text, sizeof text, "%s/proc/loadavg", l->root) < 0 ||
        sscanf(text, "%lf", &one) != 1 || one < 0.5 + 0.05 * l->topology->n_cpus)
        return false;
    SAY(f, "load is %.2f on %d CPUs: other processes are computing", one, l->topology->n_cpus);
    f->serious = one > 0.5 * l->topology->n_cpus;
    return true;
}

static bool checkup_pressure(const struct look *l, struct finding *f)
{
    char text[256];
    double some = 0;
    if (file_read_fmt(text, sizeof text, "%s/proc/pressure/memory", l->root) < 0 ||
        sscanf(text, "some avg10=%lf", &some) != 1 || some < 1)
        return false;
    SAY(f, "tasks waited for memory %.1f %% of the last 10 s", some);
    f->serious = true;
    return true;
}

static bool swap(const struct look *l, struct finding *f)
{
    char text[2048];
    if (file_read_fmt(text, sizeof text, "%s/proc/swaps", l->root) < 0 || !strchr(text, '\n'))
        return false;
    SAY(f, "swap is on: a page that is swapped out costs a millisecond within a chain");
    MEND(f, "swapoff -a");
    return true;
}

static bool frequency_cap(const struct look *l, struct finding *f)
{
    char now[32], possible[32];
    int64_t cap, most;
    if (file_read_fmt(now, sizeof now, "%s/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
                      l->root) < 0 ||
        file_read_fmt(possible, sizeof possible,
                      "%s/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", l->root) < 0 ||
        !str_to_i64(now, &cap) || !str_to_i64(possible, &most) || cap >= most)
        return false;
    SAY(f, "CPU frequency is limited to %lld of %lld MHz", (long long)cap / 1000,
        (long long)most / 1000);
    MEND(f, "cpupower frequency-set -u %lldMHz", (long long)most / 1000);
    return true;
}

static bool hyperthreads(const struct look *l, struct finding *f)
{
    for (int i = 0; i < l->topology->n_cpus; i++)
        if (l->topology->cpus[i].thread > 0) {
            SAY(f, "cores have several hardware threads: work on a sibling slows a rank down (we "
                   "use one per core)");
            return true;
        }
    return false;
}

static bool no_mpirun(const struct look *l, struct finding *f)
{
    char path[256];
    (void)l;
    if (program_find("mpirun", path, sizeof path))
        return false;
    SAY(f, "mpirun is missing: ranks are started without MPI, and pingpong cannot run");
    MEND(f, "apt-get install openmpi-bin");
    return true;
}

static bool no_numactl(const struct look *l, struct finding *f)
{
    char path[256];
    (void)l;
    if (program_find("numactl", path, sizeof path))
        return false;
    SAY(f, "numactl is missing: ranks are started without MPI, and pingpong cannot run");
    MEND(f, "apt-get install numactl");
    return true;
}

static bool cgroup_small(const struct look *l, struct finding *f)
{
    int64_t room = memory_cgroup_room_bytes(l->root);
    if (room < 0 || room > (int64_t)2 << 30)
        return false;
    SAY(f, "the cgroup leaves %lld MiB: large working sets will be refused",
        (long long)(room >> 20));
    MEND(f, "systemctl set-property numaprobed.service MemoryMax=infinity");
    return true;
}

// Errors that ECC corrected, of all memory controllers since boot.
static bool corrected_errors(const struct look *l, struct finding *f)
{
    struct memory_errors errors;
    int worst = 0;
    memory_errors_read(&errors, l->root);
    for (int i = 1; i < errors.n; i++)
        if (errors.list[i].corrected > errors.list[worst].corrected)
            worst = i;
    if (!errors.n || !errors.list[worst].corrected)
        return false;
    SAY(f,
        "the memory controller mc%d has corrected %lld error%s since boot: a DIMM may be failing, "
        "and each correction takes time",
        errors.list[worst].controller, (long long)errors.list[worst].corrected,
        str_plural(errors.list[worst].corrected));
    return true;
}

static bool not_this_machine(const struct look *l, struct finding *f)
{
    if (l->topology->this_system)
        return false;
    SAY(f, "the topology is not of this machine (%s): it can be shown, not probed",
        l->topology->source);
    f->serious = true;
    return true;
}

static const struct {
    const char *name;
    check *look;
} checks[] = {
    {"topology_not_live", not_this_machine},
    {"mpirun_missing", no_mpirun},
    {"numactl_missing", no_numactl},
    {"load", checkup_load},
    {"memory_pressure", checkup_pressure},
    {"thp_never", thp_never},
    {"governor", governor},
    {"frequency_cap", frequency_cap},
    {"numa_balancing", numa_balancing},
    {"swap", swap},
    {"corrected_errors", corrected_errors},
    {"virtual_machine", virtual_machine},
    {"hyperthreads", hyperthreads},
    {"cgroup_memory", cgroup_small},
};

int machine_findings(const struct topology *t, const char *root, struct finding *out, int most)
{
    const struct look l = {t, root};
    int n = 0;
    for (size_t i = 0; i < COUNT_OF(checks) && n < most; i++) {
        out[n] = (struct finding){.name = checks[i].name};
        n += checks[i].look(&l, &out[n]);
    }
    return n;
}

void findings_write_json(const struct finding *list, int n, struct jsonw *w, const char *key)
{
    jsonw_array(w, key);
    for (int i = 0; i < n; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "name", list[i].name);
        jsonw_text(w, "text", list[i].text);
        jsonw_text(w, "remedy", *list[i].remedy ? list[i].remedy : NULL);
        jsonw_bool(w, "serious", list[i].serious);
        jsonw_end(w);
    }
    jsonw_end(w);
}
