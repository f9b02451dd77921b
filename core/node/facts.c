// SPDX-License-Identifier: Apache-2.0
// The facts of a machine, one table: name, key, how it is read, and what it means (docs/FACTS.md
// says the same, a test holds them together). What cannot be read is "unknown", never an error.
// Facts must not change from boot to boot unless the machine did: no ids, no counters, no free
// memory.
#include "core/node/facts.h"
#include "core/node/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "core/node/dimms.h"
#include "core/node/hwloc.h"
#include "core/node/memory_channels.h"

struct source {
    const struct topology *topology;
    const char *root;
};

typedef void reader(const struct source *s, const char *arg, char *out, size_t room);

static void squeeze(char *text)
{
    char *to = text;
    for (char *from = text; *from; from++)
        if (!isspace((unsigned char)*from) || (to > text && to[-1] != ' '))
            *to++ = isspace((unsigned char)*from) ? ' ' : *from;
    while (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

// The whole of a small file on one line.
static void from_file(const struct source *s, const char *path, char *out, size_t room)
{
    if (file_read_fmt(out, room, "%s%s", s->root, path) < 0 || !*out)
        snprintf(out, room, "unknown");
    squeeze(out);
}

// "rd.luks.key", "API_TOKEN", "authkey": a secret's name. "iommu.passthrough" and "keymap" are
// none, and what they say matters.
static bool secret_name(const char *name, size_t n)
{
    static const char *const anywhere[] = {"token", "secret", "passw", "passphrase"};
    static const char *const part_ends[] = {"key", "pass", "auth"};
    char lower[64];
    snprintf(lower, sizeof lower, "%.*s", (int)n, name);
    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (size_t i = 0; i < COUNT_OF(anywhere); i++)
        if (strstr(lower, anywhere[i]))
            return true;
    for (const char *part = lower; *part; part += strspn(part, "._-")) {
        size_t length = strcspn(part, "._-");
        for (size_t i = 0; i < COUNT_OF(part_ends); i++) {
            size_t end = strlen(part_ends[i]);
            if (length >= end && memcmp(part + length - end, part_ends[i], end) == 0)
                return true;
        }
        part += length;
    }
    return false;
}

// A word like "token=abc" keeps its name only, and not the length of its value.
static void blank_secrets(char *line)
{
    char *to = line;
    for (const char *word = line; *word;) {
        size_t n = strcspn(word, " "), name = strcspn(word, "= "), rest = strspn(word + n, " ");
        bool secret = name + 1 < n && secret_name(word, name);
        memmove(to, word, secret ? name + 1 : n + rest);
        to += secret ? name + 1 : n + rest;
        if (secret) {
            *to++ = '*';
            memmove(to, word + n, rest);
            to += rest;
        }
        word += n + rest;
    }
    *to = '\0';
}

static void command_line(const struct source *s, const char *path, char *out, size_t room)
{
    from_file(s, path, out, room);
    blank_secrets(out);
}

// The bracketed word of "always [madvise] never".
static void chosen_word(const struct source *s, const char *path, char *out, size_t room)
{
    char text[256];
    from_file(s, path, text, sizeof text);
    char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    if (close)
        *close = '\0';
    snprintf(out, room, "%s", close ? open + 1 : text);
}

// "name : value" of /proc/cpuinfo, first CPU.
static void from_cpuinfo(const struct source *s, const char *name, char *out, size_t room)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/proc/cpuinfo", s->root);
    snprintf(out, room, "unknown");
    FILE *f = fopen(path, "re");
    size_t n = strlen(name);
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, name, n) != 0 || !strchr("\t :", line[n]))
            continue;
        snprintf(out, room, "%s", colon + 1);
        squeeze(out);
        break;
    }
    if (f)
        fclose(f);
}

static void cpu_model(const struct source *s, const char *arg, char *out, size_t room)
{
    (void)arg;
    snprintf(out, room, "%s", s->topology->cpu_model);
    squeeze(out);
}

static void family_model(const struct source *s, const char *arg, char *out, size_t room)
{
    char vendor[64], family[64], model[64], stepping[64];
    (void)arg;
    from_cpuinfo(s, "vendor_id", vendor, sizeof vendor);
    bool arm = strcmp(vendor, "unknown") == 0; // or another that names no vendor
    if (arm)
        from_cpuinfo(s, "CPU implementer", vendor, sizeof vendor);
    from_cpuinfo(s, arm ? "CPU architecture" : "cpu family", family, sizeof family);
    from_cpuinfo(s, arm ? "CPU part" : "model", model, sizeof model);
    from_cpuinfo(s, arm ? "CPU revision" : "stepping", stepping, sizeof stepping);
    snprintf(out, room, "%s/%s/%s/%s", vendor, family, model, stepping);
}

static void machine_name(const struct source *s, const char *arg, char *out, size_t room)
{
    struct utsname u;
    (void)s, (void)arg;
    snprintf(out, room, "%s", uname(&u) == 0 ? u.machine : "unknown");
}

static void kernel(const struct source *s, const char *arg, char *out, size_t room)
{
    struct utsname u;
    (void)s, (void)arg;
    if (uname(&u) == 0)
        snprintf(out, room, "%s %s", u.release, u.version);
    else
        snprintf(out, room, "unknown");
}

static int highest(const struct topology *t, size_t offset)
{
    int most = -1;
    for (int i = 0; i < t->n_cpus; i++) {
        int v = *(const int *)(const void *)((const char *)&t->cpus[i] + offset);
        most = v > most ? v : most;
    }
    return most;
}

static void facts_counts(const struct source *s, const char *arg, char *out, size_t room)
{
    const struct topology *t = s->topology;
    (void)arg;
    snprintf(out, room, "%d packages, %d cores, %d CPUs, %d NUMA nodes",
             highest(t, offsetof(struct topo_cpu, package)) + 1,
             highest(t, offsetof(struct topo_cpu, core)) + 1, t->n_cpus, t->n_nodes);
}

// Rounded to GiB on a log scale of eighths, so that a few MB that firmware keeps for itself do not
// make another class. On a machine with one node the total counts: hot-plugged memory comes to the
// node only when it is used.
static double rounded_gib(double bytes)
{
    double gib = bytes / (1 << 30), step = 0.125;
    while (step * 8 < gib)
        step *= 2;
    return (double)(int64_t)(gib / step + 0.5) * step;
}

static int64_t total_memory(const struct source *s)
{
    char text[256];
    long long kib = 0;
    if (file_read_fmt(text, sizeof text, "%s/proc/meminfo", s->root) == 0)
        sscanf(text, "MemTotal: %lld kB", &kib);
    return kib * 1024;
}

static void node_memory(const struct source *s, const char *arg, char *out, size_t room)
{
    const struct topology *t = s->topology;
    size_t used = 0;
    (void)arg;
    snprintf(out, room, "unknown");
    for (int i = 0; i < t->n_nodes && used < room; i++) {
        int64_t bytes = t->nodes[i].memory_bytes;
        if (t->n_nodes == 1 && t->this_system && total_memory(s) > bytes)
            bytes = total_memory(s);
        used += (size_t)snprintf(out + used, room - used, "%s%d:%.10g GiB %s", used ? ", " : "",
                                 t->nodes[i].os, rounded_gib((double)bytes), t->nodes[i].kind);
    }
}

static void distances(const struct source *s, const char *arg, char *out, size_t room)
{
    const struct topology *t = s->topology;
    size_t used = 0;
    (void)arg;
    snprintf(out, room, "unknown");
    for (int i = 0; t->distance && i < t->n_nodes * t->n_nodes && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%d",
                                 !i               ? ""
                                 : i % t->n_nodes ? " "
                                                  : "; ",
                                 t->distance[i]);
}

static void caches(const struct source *s, const char *arg, char *out, size_t room)
{
    const struct topology *t = s->topology;
    size_t used = 0;
    (void)arg;
    snprintf(out, room, "unknown");
    for (int level = 1; level <= TOPOLOGY_LEVELS_MAX; level++) {
        int n = 0;
        const struct topo_cache *last = NULL;
        for (int i = 0; i < t->n_caches; i++)
            if (t->caches[i].level == level) {
                last = &t->caches[i];
                n++;
            }
        char size[24];
        if (!last || used >= room)
            continue;
        str_from_bytes((uint64_t)last->bytes, size, sizeof size);
        used += (size_t)snprintf(out + used, room - used, "%sL%d %dx%s", used ? ", " : "", level, n,
                                 size);
    }
}

static void vulnerabilities(const struct source *s, const char *arg, char *out, size_t room)
{
    char path[512], text[512];
    struct dirent **list = NULL;
    snprintf(path, sizeof path, "%s%s", s->root, arg);
    int n = scandir(path, &list, NULL, alphasort);
    size_t used = 0;
    snprintf(out, room, n > 0 ? "none" : "unknown");
    for (int i = 0; i < n; i++) {
        char file[400];
        snprintf(file, sizeof file, "%s/%s", arg, list[i]->d_name);
        if (list[i]->d_name[0] != '.' && used < room) {
            from_file(s, file, text, sizeof text);
            if (strcmp(text, "Not affected") != 0)
                used += (size_t)snprintf(out + used, room - used, "%s%s: %s", used ? "; " : "",
                                         list[i]->d_name, text);
        }
        free(list[i]);
    }
    free(list);
}

static void huge_pages(const struct source *s, const char *arg, char *out, size_t room)
{
    static const char *const sizes[] = {"2048kB", "1048576kB", "65536kB", "32768kB", "524288kB"};
    size_t used = 0;
    snprintf(out, room, "none");
    for (size_t i = 0; i < COUNT_OF(sizes) && used < room; i++) {
        char path[256], text[64];
        snprintf(path, sizeof path, "%s/hugepages-%s/nr_hugepages", arg, sizes[i]);
        from_file(s, path, text, sizeof text);
        if (strcmp(text, "unknown") != 0 && strcmp(text, "0") != 0)
            used += (size_t)snprintf(out + used, room - used, "%s%s x %s", used ? ", " : "",
                                     sizes[i], text);
    }
}

// Of transparent huge pages that are smaller than the usual: "64K madvise, 2M inherit".
static void small_huge_pages(const struct source *s, const char *arg, char *out, size_t room)
{
    char path[512], word[64], size[24];
    struct dirent **list = NULL;
    snprintf(path, sizeof path, "%s%s", s->root, arg);
    int n = scandir(path, &list, NULL, versionsort);
    size_t used = 0;
    snprintf(out, room, "none");
    for (int i = 0; i < n; i++) {
        long long kib;
        if (sscanf(list[i]->d_name, "hugepages-%lldkB", &kib) == 1 && used < room) {
            snprintf(path, sizeof path, "%s/%.60s/enabled", arg, list[i]->d_name);
            chosen_word(s, path, word, sizeof word);
            str_from_bytes((uint64_t)kib << 10, size, sizeof size);
            if (strcmp(word, "never") != 0 && strcmp(word, "unknown") != 0)
                used += (size_t)snprintf(out + used, room - used, "%s%s %s", used ? ", " : "", size,
                                         word);
        }
        free(list[i]);
    }
    free(list);
}

static void base_page(const struct source *s, const char *arg, char *out, size_t room)
{
    (void)arg;
    str_from_bytes(memory_page_sizes(s->root).base, out, room);
}

// Memory-side caches are in front of a node's memory: HBM, Optane's memory mode, CXL.
static void memory_caches(const struct source *s, const char *arg, char *out, size_t room)
{
    const struct topology *t = s->topology;
    char size[24];
    size_t used = 0;
    (void)arg, *out = '\0';
    for (int i = 0; i < t->n_nodes && used < room; i++) {
        if (t->nodes[i].cache_bytes <= 0)
            continue;
        str_from_bytes((uint64_t)t->nodes[i].cache_bytes, size, sizeof size);
        used += (size_t)snprintf(out + used, room - used, "%s%d:%s", used ? ", " : "",
                                 t->nodes[i].os, size);
    }
}

static void found_cache(const struct source *s, const char *arg, char *out, size_t room)
{
    (void)arg, *out = '\0';
    if (s->topology->found.bytes)
        str_from_bytes((uint64_t)s->topology->found.bytes, out, room);
}

// Of cores: how many, and how strong they are.
static void core_kinds(const struct source *s, const char *arg, char *out, size_t room)
{
    const struct topology *t = s->topology;
    size_t used = 0;
    (void)arg, *out = '\0';
    for (int k = t->n_kinds - 1; t->n_kinds > 1 && k >= 0 && used < room; k--) {
        int cores = 0;
        for (int i = 0; i < t->n_cpus; i++)
            cores += t->cpus[i].kind == k && t->cpus[i].thread == 0;
        const struct topo_kind *kind = &t->kinds[k];
        used += (size_t)snprintf(out + used, room - used, "%s%d %s%s%d MHz", used ? ", " : "",
                                 cores, kind->type, *kind->type ? " " : "", kind->max_mhz);
    }
}

// Of the entries of a folder, those whose file has a number: "node0:3, node1:1".
static void numbers_below(const struct source *s, const char *folder, const char *file, char *out,
                          size_t room)
{
    char path[512], text[64];
    struct dirent **list = NULL;
    size_t used = 0;
    snprintf(path, sizeof path, "%s%s", s->root, folder);
    int n = scandir(path, &list, NULL, versionsort);
    snprintf(out, room, "none");
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%.100s%s", folder, list[i]->d_name, file);
        if (list[i]->d_name[0] != '.' && used < room) {
            from_file(s, path, text, sizeof text);
            if (isdigit((unsigned char)*text))
                used += (size_t)snprintf(out + used, room - used, "%s%s:%s", used ? ", " : "",
                                         list[i]->d_name, text);
        }
        free(list[i]);
    }
    free(list);
}

static void numbers_of(const struct source *s, const char *arg, char *out, size_t room)
{
    numbers_below(s, arg, "", out, room);
}

// Of network interfaces, InfiniBand and GPUs; one without a node says -1.
static void device_nodes(const struct source *s, const char *arg, char *out, size_t room)
{
    numbers_below(s, arg, "/device/numa_node", out, room);
}

static void resctrl(const struct source *s, const char *arg, char *out, size_t room)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s%s", s->root, arg);
    snprintf(out, room, "not mounted");
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, " resctrl "))
            snprintf(out, room, "mounted");
    if (f)
        fclose(f);
}

static void hypervisor(const struct source *s, const char *arg, char *out, size_t room)
{
    char flags[4096], type[64];
    (void)arg;
    from_file(s, "/sys/hypervisor/type", type, sizeof type);
    from_cpuinfo(s, "flags", flags, sizeof flags);
    bool virtual = strstr(flags, " hypervisor") != NULL;
    snprintf(out, room, "%s", strcmp(type, "unknown") != 0 ? type : virtual ? "yes" : "none seen");
}

static void cpuset(const struct source *s, const char *arg, char *out, size_t room)
{
    char path[512], line[4096];
    snprintf(path, sizeof path, "%s/proc/self/status", s->root);
    snprintf(out, room, "unknown");
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (str_starts(line, arg)) {
            snprintf(out, room, "%s", line + strlen(arg));
            squeeze(out);
        }
    if (f)
        fclose(f);
}

static void hwloc_version(const struct source *s, const char *arg, char *out, size_t room)
{
    (void)s, (void)arg;
    snprintf(out, room, "%s", probe_library());
}

// Root may read the tables of the firmware. Others get them from systemd, which reads them for the
// service before it starts (LoadCredential=dmi:/sys/firmware/dmi/tables/DMI).
static FILE *open_tables(const struct source *s)
{
    char path[512];
    snprintf(path, sizeof path, "%s/sys/firmware/dmi/tables/DMI", s->root);
    FILE *f = fopen(path, "re");
    const char *credentials = f || *s->root ? NULL : getenv("CREDENTIALS_DIRECTORY");
    if (!credentials)
        return f;
    snprintf(path, sizeof path, "%s/dmi", credentials);
    return fopen(path, "re");
}

static void memory_channels(const struct source *s, const char *arg, char *out, size_t room)
{
    (void)arg;
    memory_channels_describe(s->root, out, room);
}

// "" where they cannot be read: such a machine keeps the hash that it had before this was a fact.
static void memory_modules(const struct source *s, const char *arg, char *out, size_t room)
{
    char modules[DIMMS_TEXT_ROOM], speed[DIMMS_TEXT_ROOM];
    CLEANUP_FILE FILE *f = open_tables(s);
    CLEANUP_MEM unsigned char *table = f ? malloc(DIMMS_TABLE_MAX) : NULL;
    *out = '\0';
    if (!table)
        return;
    dimms_describe(table, fread(table, 1, DIMMS_TABLE_MAX, f), modules, speed);
    snprintf(out, room, "%s", strcmp(arg, "speed") == 0 ? speed : modules);
}

#define CPU0 "/sys/devices/system/cpu/cpu0/cpufreq/"
#define CPUIDLE "/sys/devices/system/cpu/cpuidle/"
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define DMI "/sys/class/dmi/id/"

static const struct {
    struct fact_info info;
    reader *read;
    const char *arg;
} table[] = {
    {{"cpu_model", true, "CPU as its firmware names it"}, cpu_model, ""},
    {{"cpu_id", true, "vendor/family/model/stepping"}, family_model, ""},
    {{"architecture", true, "machine type of the kernel"}, machine_name, ""},
    {{"shape", true, "packages, cores, CPUs and NUMA nodes"}, facts_counts, ""},
    {{"memory", true, "memory and its kind of each node, rounded to an eighth"}, node_memory, ""},
    {{"dimms", true, "memory modules: number, size, kind, speed, ranks, and their slots"},
     memory_modules,
     ""},
    {{"distances", true, "SLIT, row by row"}, distances, ""},
    {{"caches", true, "number and size a level, data and unified"}, caches, ""},
    {{"core_kinds", true, "kinds of cores, the strongest first"}, core_kinds, ""},
    {{"memory_side_caches", true, "node and size of caches in front of memory"}, memory_caches, ""},
    {{"hypervisor", true, "whether this is a virtual machine"}, hypervisor, ""},
    {{"product", true, "model of the machine"}, from_file, DMI "product_name"},
    {{"bios_vendor", false, "firmware"}, from_file, DMI "bios_vendor"},
    {{"bios_version", false, "firmware"}, from_file, DMI "bios_version"},
    {{"bios_date", false, "firmware"}, from_file, DMI "bios_date"},
    {{"dimm_speed", false, "speed that the memory modules are set up for"},
     memory_modules,
     "speed"},
    {{"dimm_channels", false, "channels of memory controllers that have modules"},
     memory_channels,
     ""},
    {{"microcode", false, "of CPU 0"}, from_cpuinfo, "microcode"},
    {{"kernel", false, "release and build"}, kernel, ""},
    {{"cmdline", false, "of the kernel"}, command_line, "/proc/cmdline"},
    {{"thp_enabled", false, "transparent huge pages"}, chosen_word, THP "enabled"},
    {{"thp_defrag", false, "when huge pages are made"}, chosen_word, THP "defrag"},
    {{"page_size", false, "base page of the kernel"}, base_page, ""},
    {{"thp_sizes", false, "transparent huge pages of other sizes than the usual"},
     small_huge_pages,
     "/sys/kernel/mm/transparent_hugepage"},
    {{"huge_pages", false, "reserved huge pages"}, huge_pages, "/sys/kernel/mm/hugepages"},
    {{"found_cache", false, "cache beyond the kernel's list, by a run of hierarchy"},
     found_cache,
     ""},
    {{"cpufreq_driver", false, "frequency scaling"}, from_file, CPU0 "scaling_driver"},
    {{"cpufreq_governor", false, "frequency scaling, CPU 0"}, from_file, CPU0 "scaling_governor"},
    {{"cpufreq_min_khz", false, "limit, CPU 0"}, from_file, CPU0 "scaling_min_freq"},
    {{"cpufreq_max_khz", false, "limit, CPU 0"}, from_file, CPU0 "scaling_max_freq"},
    {{"energy_preference", false, "energy or performance, CPU 0"},
     from_file,
     CPU0 "energy_performance_preference"},
    {{"cpuidle_driver", false, "idle states"}, from_file, CPUIDLE "current_driver"},
    {{"cpuidle_governor", false, "idle states"}, from_file, CPUIDLE "current_governor_ro"},
    {{"boost", false, "1: above the nominal frequency allowed"},
     from_file,
     "/sys/devices/system/cpu/cpufreq/boost"},
    {{"no_turbo", false, "Intel's own switch, 1: off"},
     from_file,
     "/sys/devices/system/cpu/intel_pstate/no_turbo"},
    {{"smt", false, "simultaneous multithreading"},
     from_file,
     "/sys/devices/system/cpu/smt/control"},
    {{"numa_balancing", false, "1: the kernel moves pages by itself"},
     from_file,
     "/proc/sys/kernel/numa_balancing"},
    {{"demotion", false, "true: reclaim moves pages to slower nodes"},
     from_file,
     "/sys/kernel/mm/numa/demotion_enabled"},
    {{"weighted_interleave", false, "weight of each node"},
     numbers_of,
     "/sys/kernel/mm/mempolicy/weighted_interleave"},
    {{"resctrl", false, "may limit caches and bandwidth of groups"}, resctrl, "/proc/mounts"},
    {{"zone_reclaim_mode", false, "reclaim before going to another node"},
     from_file,
     "/proc/sys/vm/zone_reclaim_mode"},
    {{"swappiness", false, "of the virtual memory"}, from_file, "/proc/sys/vm/swappiness"},
    {{"overcommit_memory", false, "of the virtual memory"},
     from_file,
     "/proc/sys/vm/overcommit_memory"},
    {{"perf_event_paranoid", false, "above 2: counters of the CPU need CAP_PERFMON"},
     from_file,
     "/proc/sys/kernel/perf_event_paranoid"},
    {{"isolated_cpus", false, "isolcpus="}, from_file, "/sys/devices/system/cpu/isolated"},
    {{"nohz_full", false, "CPUs without a tick"}, from_file, "/sys/devices/system/cpu/nohz_full"},
    {{"mitigations", false, "vulnerabilities that concern this CPU"},
     vulnerabilities,
     "/sys/devices/system/cpu/vulnerabilities"},
    {{"clocksource", false, "of the kernel"},
     from_file,
     "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
    {{"cpus_allowed", false, "cpuset of the daemon"}, cpuset, "Cpus_allowed_list:"},
    {{"mems_allowed", false, "nodes that the daemon may use"}, cpuset, "Mems_allowed_list:"},
    {{"network_nodes", false, "NUMA node of network interfaces"}, device_nodes, "/sys/class/net"},
    {{"gpu_nodes", false, "NUMA node of graphics devices"}, device_nodes, "/sys/class/drm"},
    {{"hwloc", false, "library that reads the topology"}, hwloc_version, ""},
};

const struct fact_info *facts_info(int i)
{
    return i < (int)COUNT_OF(table) ? &table[i].info : NULL;
}

// A value has less room than a kernel's command line, or what 16 nodes' distances need. The hash of
// the whole stands for what is cut off, so that a change there is still a change. Firmware writes
// what it likes: what is no UTF-8 would make the JSON invalid.
static void fit(char *value, size_t room)
{
    if (!str_utf8_valid(value, strlen(value)))
        for (char *c = value; *c; c++)
            *c = (unsigned char)*c < 0x80 ? *c : '?';
    if (strlen(value) < FACT_VALUE_MAX)
        return;
    char hash[65];
    size_t cut = FACT_VALUE_MAX - sizeof "... sha256:" - 64;
    text_hash(value, hash);
    while (cut && ((unsigned char)value[cut] & 0xc0) == 0x80)
        cut--;
    snprintf(value + cut, room - cut, "... sha256:%s", hash);
}

void fingerprint_read(struct fingerprint *f, const struct topology *t, const char *root)
{
    const struct source s = {t, root};
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        char value[8192];
        table[i].read(&s, table[i].arg, value, sizeof value);
        fit(value, sizeof value);
        if (!*value) // most machines have nothing of that kind: no part of their hash
            continue;
        facts_add(table[i].info.of_class ? &f->machine_class : &f->config, table[i].info.name, "%s",
                  value);
    }
    facts_seal(&f->machine_class);
    facts_seal(&f->config);
}
