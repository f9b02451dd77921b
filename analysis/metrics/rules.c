// SPDX-License-Identifier: Apache-2.0
// The table of metrics, and how a name finds its row. The first row that fits counts, so names
// without holes stand before those with.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "base/cleanup.h"
#include "base/str.h"

const struct metric_rule metric_rules[] = {
    {"latency.[serial.]largest.median_ns", "ns", "latency_largest_seconds",
     "Load latency at the largest working set, whatever holds it; median over ranks"},
    {"latency.[serial.]dram.median_ns", "ns", "latency_memory_seconds",
     "Load latency of memory, at the largest working set if that is beyond the caches; median over "
     "ranks"},
    {"latency.[serial.]local.dram.median_ns", "ns", "latency_local_memory_seconds",
     "Load latency of memory on the own NUMA node, at the largest working set if that is beyond "
     "the caches; median over ranks"},
    {"latency.[serial.]{level}.median_ns", "ns", "latency_cache_seconds",
     "Load latency of a cache level, at the largest working set well inside it; median over ranks"},
    {"latency.[serial.]{level}.median_cycles", "cycles", "latency_cache_cycles",
     "The same in cycles of each rank's core: a change of the clock does not show"},
    {"latency.[serial.]{initiator}.{target}.median_ns", "ns", "latency_node_seconds",
     "Load latency of memory from CPUs of one NUMA node to memory of another; median over such "
     "ranks"},
    {"contention.max_ratio", "", "contention_max_ratio",
     "Latency with all ranks at once over one rank alone: the worst rank and size"},
    {"contention.median_ratio", "", "contention_median_ratio",
     "Latency with all ranks at once over one rank alone, at the largest working set; median over "
     "ranks"},
    {"matrix.median_ns", "ns", "matrix_seconds",
     "Idle latency of memory; median over all pairs of NUMA nodes"},
    {"matrix.local.median_ns", "ns", "matrix_local_seconds",
     "Idle latency of memory of the own NUMA node; median over nodes"},
    {"matrix.remote.median_ns", "ns", "matrix_remote_seconds",
     "Idle latency of memory of other NUMA nodes; median over pairs"},
    {"matrix.remote.ratio", "", "matrix_remote_ratio", "Remote idle latency over local"},
    {"matrix.worst_ns", "ns", "matrix_worst_seconds",
     "Idle latency of memory: the slowest pair of NUMA nodes"},
    {"matrix.{initiator}.{target}.median_ns", "ns", "matrix_node_seconds",
     "Idle latency from CPUs of one NUMA node to memory of another"},
    {"bandwidth.{kernel}.peak.gbps", "GB/s", "bandwidth_peak_bytes_per_second",
     "Bandwidth of a kernel: the highest over nodes and numbers of threads"},
    {"bandwidth.{kernel}.least.gbps", "GB/s", "bandwidth_least_bytes_per_second",
     "Bandwidth of a kernel: the lowest over pairs of NUMA nodes"},
    {"bandwidth.{kernel}.single.gbps", "GB/s", "bandwidth_single_bytes_per_second",
     "Bandwidth of a kernel by one thread, on the target where it is highest"},
    {"bandwidth.{kernel}.{initiator}.{target}.gbps", "GB/s", "bandwidth_node_bytes_per_second",
     "Bandwidth of a kernel by all ranks of one NUMA node on memory of another"},
    {"bandwidth.{kernel}.level.{cache}.gbps", "GB/s", "bandwidth_level_bytes_per_second",
     "Bandwidth of a kernel in a cache (l1, l2, l3) or in memory, all ranks together"},
    {"bandwidth.{kernel}.level.{cache}.single.gbps", "GB/s",
     "bandwidth_level_single_bytes_per_second",
     "Bandwidth of a kernel in a cache (l1, l2, l3) or in memory, one rank"},
    {"bandwidth.{kernel}.from.{source}.{target}.gbps", "GB/s", "bandwidth_copy_bytes_per_second",
     "Bandwidth of copies from one NUMA node to another, reads and writes counted"},
    {"pingpong.latency.median_us", "us", "pingpong_latency_seconds",
     "MPI latency of the smallest message, half of the round trip; median over pairs of cores"},
    {"pingpong.latency.{class}.us", "us", "pingpong_latency_class_seconds",
     "MPI latency of the smallest message; median over pairs of cores that share as much: "
     "siblings, "
     "same_l3, same_node, same_socket, other_socket"},
    {"pingpong.bandwidth.median.gbps", "GB/s", "pingpong_bandwidth_bytes_per_second",
     "MPI bandwidth at the largest message; median over pairs of cores"},
    {"pingpong.bandwidth.{class}.gbps", "GB/s", "pingpong_bandwidth_class_bytes_per_second",
     "MPI bandwidth at the largest message; median over pairs of cores that share as much"},
    {"c2c.{definition}.median_ns", "ns", "c2c_seconds",
     "Transfer of a cache line between two cores: round trip, or one way (hitm, hit); median over "
     "pairs"},
    {"c2c.{definition}.{class}.median_ns", "ns", "c2c_class_seconds",
     "Transfer of a cache line; median over pairs of cores that share as much"},
    {"c2c.{definition}.lines.ratio", "", "c2c_lines_ratio",
     "Transfer of a cache line: the slowest line of a pair over its fastest; median over pairs"},
    {"firsttouch.own.median_ns", "ns", "firsttouch_own_seconds",
     "Access to memory that the rank touched first itself; median over ranks"},
    {"firsttouch.shared.ratio", "", "firsttouch_shared_ratio",
     "Access of all ranks to memory that the first one touched, over access to their own"},
    {"firsttouch.crossed.ratio", "", "firsttouch_crossed_ratio",
     "Access to memory that the next rank touched, over access to the own"},
    {"loaded.idle_ns", "ns", "loaded_idle_seconds",
     "Latency of memory while the node's other ranks rest; median over nodes"},
    {"loaded.busy_ns", "ns", "loaded_busy_seconds",
     "Latency of memory where the load moves 80 % of the most that it moves; median over nodes"},
    {"loaded.full_ns", "ns", "loaded_full_seconds",
     "Latency of memory at full load; median over nodes"},
    {"loaded.full_gbps", "GB/s", "loaded_full_bytes_per_second",
     "What the load moves at full speed; median over nodes"},
    {"loaded.knee_ns", "ns", "loaded_knee_seconds",
     "Latency at the knee of the curve of latency over bandwidth; median over nodes that have one"},
    {"loaded.knee_gbps", "GB/s", "loaded_knee_bytes_per_second",
     "Bandwidth at that knee; beyond it latency grows faster than what it buys"},
    {"loaded.{mix}.idle_ns", "ns", "loaded_mix_idle_seconds",
     "Latency of memory while the node's other ranks rest, of a mix of reads and writes; median "
     "over nodes"},
    {"loaded.{mix}.busy_ns", "ns", "loaded_mix_busy_seconds",
     "Latency of memory where the load moves 80 % of the most that it moves, of a mix of reads and "
     "writes; median over nodes"},
    {"loaded.{mix}.full_ns", "ns", "loaded_mix_full_seconds",
     "Latency of memory at full load, of a mix of reads and writes; median over nodes"},
    {"loaded.{mix}.full_gbps", "GB/s", "loaded_mix_full_bytes_per_second",
     "What the load moves at full speed, of a mix of reads and writes; median over nodes"},
    {"loaded.{mix}.knee_ns", "ns", "loaded_mix_knee_seconds",
     "Latency at the knee of the curve of latency over bandwidth, of a mix of reads and writes; "
     "median over nodes that have one"},
    {"loaded.{mix}.knee_gbps", "GB/s", "loaded_mix_knee_bytes_per_second",
     "Bandwidth at that knee, of a mix of reads and writes; median over nodes that have one"},
    {"loaded.{initiator}.{target}.idle_ns", "ns", "loaded_path_idle_seconds",
     "Latency of memory while the node's other ranks rest, from CPUs of one NUMA node on memory of "
     "another"},
    {"loaded.{initiator}.{target}.busy_ns", "ns", "loaded_path_busy_seconds",
     "Latency of memory where the load moves 80 % of the most that it moves, from CPUs of one NUMA "
     "node on memory of another"},
    {"loaded.{initiator}.{target}.full_ns", "ns", "loaded_path_full_seconds",
     "Latency of memory at full load, from CPUs of one NUMA node on memory of another"},
    {"loaded.{initiator}.{target}.full_gbps", "GB/s", "loaded_path_full_bytes_per_second",
     "What the load moves at full speed, from CPUs of one NUMA node on memory of another"},
    {"loaded.{mix}.{initiator}.{target}.idle_ns", "ns", "loaded_mix_path_idle_seconds",
     "Latency of memory while the node's other ranks rest, of a mix of reads and writes, from CPUs "
     "of one NUMA node on memory of another"},
    {"loaded.{mix}.{initiator}.{target}.busy_ns", "ns", "loaded_mix_path_busy_seconds",
     "Latency of memory where the load moves 80 % of the most that it moves, of a mix of reads and "
     "writes, from CPUs of one NUMA node on memory of another"},
    {"loaded.{mix}.{initiator}.{target}.full_ns", "ns", "loaded_mix_path_full_seconds",
     "Latency of memory at full load, of a mix of reads and writes, from CPUs of one NUMA node on "
     "memory of another"},
    {"loaded.{mix}.{initiator}.{target}.full_gbps", "GB/s", "loaded_mix_path_full_bytes_per_second",
     "What the load moves at full speed, of a mix of reads and writes, from CPUs of one NUMA node "
     "on memory of another"},
    {"pagefault.collapse.single_ns", "ns", "pagefault_collapse_single_seconds",
     "Making a huge page of touched 4 KiB pages, by one thread, on the target where it takes "
     "least"},
    {"pagefault.collapse.all_ns", "ns", "pagefault_collapse_all_seconds",
     "Making a huge page of touched 4 KiB pages with all threads at once, per page of one thread"},
    {"pagefault.migrate.single_ns", "ns", "pagefault_migrate_single_seconds",
     "Moving a 4 KiB page to another NUMA node, by one thread, on the path where it takes least"},
    {"pagefault.migrate.all_ns", "ns", "pagefault_migrate_all_seconds",
     "Moving a 4 KiB page to another NUMA node with all threads at once, per page of one thread"},
    {"pagefault.{pages}.single_ns", "ns", "pagefault_single_seconds",
     "First touch of a page by one thread, on the target where it takes least"},
    {"pagefault.{pages}.all_ns", "ns", "pagefault_all_seconds",
     "First touch of a page with all threads at once, per page of one thread, on the target where "
     "it takes least"},
    {"pagefault.{pages}.peak.gbps", "GB/s", "pagefault_peak_bytes_per_second",
     "Memory that the kernel zeroes on first touch: the highest over targets and numbers of "
     "threads"},
    {"hierarchy.memory_ns", "ns", "hierarchy_memory_seconds",
     "Load latency of memory of the nearest node, one rank alone; median over ranks"},
    {"hierarchy.hop_ns", "ns", "hierarchy_hop_seconds",
     "What memory of another node takes more; median over ranks and nodes"},
    {"hierarchy.parallel.loads", "loads", "hierarchy_parallel_loads",
     "Loads of memory that a core has under way at once; median over ranks"},
    {"hierarchy.parallel.access_ns", "ns", "hierarchy_parallel_access_seconds",
     "Time per load of memory with as many under way; median over ranks"},
    {"hierarchy.cycle_ns", "ns", "hierarchy_cycle_seconds",
     "A cycle of the core, by dependent instructions; median over ranks"},
    {"hierarchy.{level}.ns", "ns", "hierarchy_level_seconds",
     "Load latency of a level found in the curve; median over ranks"},
    {"hierarchy.{level}.bytes", "bytes", "hierarchy_level_bytes",
     "Capacity of a level found in the curve; median over ranks"},
    {"hierarchy.tlb.{pages}.{level}.entries", "entries", "hierarchy_tlb_entries",
     "Pages whose translations a level of the TLB holds; median over ranks"},
    {"hierarchy.tlb.{pages}.{level}.miss_ns", "ns", "hierarchy_tlb_miss_seconds",
     "What a load takes more that misses this level of the TLB; median over ranks"},
    {"hierarchy.stride.{stride}.ns", "ns", "hierarchy_stride_seconds",
     "Dependent load in address order, by stride in bytes; median over ranks"},
    {"scan.l2_ns", "ns", "scan_l2_seconds",
     "Load latency in the second-level cache, all ranks at once; median over ranks"},
    {"scan.memory_ns", "ns", "scan_memory_seconds",
     "Load latency of the own memory, all ranks at once; median over ranks"},
    {"scan.bandwidth.gbps", "GB/s", "scan_bandwidth_bytes_per_second",
     "What a rank reads of its own memory while all do; median over ranks"},
    {"scan.{unit}.worst_ratio", "", "scan_worst_ratio",
     "The slowest core, last-level cache, node or pair over the median of its peers, in time"},
    {"scan.odd", "units", "scan_odd",
     "Cores, last-level caches, nodes and pairs that are slower than their peers; absent if none"},
    {"scan.alike_ratio", "share", "scan_alike_ratio",
     "Share of the comparisons with peers in which nothing was odd: 1 on a healthy node"},
    {"atomics.{operation}.single_ns", "ns", "atomics_single_seconds",
     "Atomic operation, or a lock taken and given back, by one rank"},
    {"atomics.{operation}.all_ns", "ns", "atomics_all_seconds",
     "The same with all ranks at once on one cache line, per operation of a rank"},
    {"atomics.{operation}.handover_ns", "ns", "atomics_handover_seconds",
     "Time from one holder of a lock to the next, all ranks at once"},
    {"atomics.{operation}.unfairness.ratio", "", "atomics_unfairness_ratio",
     "One over Jain's index, all ranks at once: 1 is fair, the number of ranks if one gets all"},
    {"{benchmark}.disturbed_ratio", "", "disturbed_ratio",
     "Share of the samples that something disturbed, so that they were left out; 0.01 stands for "
     "less"},
    {"{benchmark}.off_cpu.worst_ratio", "", "off_cpu_worst_ratio",
     "Share of the measuring time that a rank was off its CPU: of the rank that lost most; 0.01 "
     "stands for less"},
    {"{benchmark}.clock.median_ghz", "GHz", "clock_median_hertz",
     "Clock of the cores while they measured; median over ranks"},
    {"{benchmark}.clock.least_ghz", "GHz", "clock_least_hertz",
     "Clock of the slowest core while it measured"},
    {"metrics.omitted", "metrics", "metrics_omitted",
     "Number of metrics of pairs of nodes that a run has no room for: it keeps 4096"},
    {0},
};

static const struct {
    const char *unit;
    double factor;
    bool more_is_better;
} units[] = {{"ns", 1e-9, false},   {"us", 1e-6, false}, {"GB/s", 1e9, true}, {"bytes", 1, true},
             {"entries", 1, true},  {"loads", 1, true},  {"GHz", 1e9, true},  {"cycles", 1, false},
             {"metrics", 1, false}, {"share", 1, true}};

double metric_base_factor(const char *unit)
{
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (strcmp(units[i].unit, unit) == 0)
            return units[i].factor;
    return 1;
}

bool metric_more_is_better(const char *unit)
{
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (strcmp(units[i].unit, unit) == 0)
            return units[i].more_is_better;
    return false;
}

bool metric_is_loss(const char *name)
{
    const char *of = strchr(name, '.'); // behind the benchmark
    return of && (strcmp(of, ".disturbed_ratio") == 0 || strcmp(of, ".off_cpu.worst_ratio") == 0);
}

double metric_one(const char *name)
{
    return metric_is_loss(name);
}

static void add_label(struct metric_labels *l, const char *name, size_t name_n, const char *value,
                      size_t value_n)
{
    if (!l || l->n == METRIC_LABELS_MAX)
        return;
    struct metric_label *k = &l->list[l->n++];
    snprintf(k->name, sizeof k->name, "%.*s", (int)name_n, name);
    snprintf(k->value, sizeof k->value, "%.*s", (int)value_n, value);
}

// Holes that hold a letter and a number; others hold a word.
static const struct {
    const char *hole;
    char letter;
} numbered[] = {{"{initiator}", 'n'}, {"{target}", 'n'}, {"{source}", 'n'}, {"{level}", 'l'}};

// Length of what fits the hole, 0: nothing. *skip: the letter is not part of a label's value.
static size_t rules_fits(const char *hole, const char *name, size_t *skip)
{
    *skip = 0;
    for (size_t i = 0; i < COUNT_OF(numbered); i++)
        if (str_starts(hole, "{target}") && strchr("iw", *name)) { // interleaved memory
            *skip = 0;
            return 1 + strspn(name + 1, "0123456789-_");
        } else if (str_starts(hole, numbered[i].hole)) {
            size_t digits = *name == numbered[i].letter ? strspn(name + 1, "0123456789") : 0;
            *skip = numbered[i].letter == 'n';
            return digits ? digits + 1 : 0;
        }
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

static const char serial_hole[] = "[serial.]";

static bool matches(const char *pattern, const char *name, struct metric_labels *labels)
{
    while (*pattern) {
        if (str_starts(pattern, serial_hole)) {
            bool serial = str_starts(name, "serial.");
            const char *mode = serial ? "serial" : "concurrent";
            add_label(labels, "mode", 4, mode, strlen(mode));
            name += serial ? strlen("serial.") : 0;
            pattern += strlen(serial_hole);
        } else if (*pattern == '{') {
            size_t skip, n = rules_fits(pattern, name, &skip), hole = strcspn(pattern, "}");
            if (!n)
                return false;
            add_label(labels, pattern + 1, hole - 1, name + skip, n - skip);
            name += n;
            pattern += hole + 1;
        } else if (*pattern++ != *name++) {
            return false;
        }
    }
    return !*name;
}

const struct metric_rule *metric_rule_find(const char *name, struct metric_labels *labels)
{
    for (const struct metric_rule *r = metric_rules; r->pattern; r++) {
        struct metric_labels found = {0};
        if (!matches(r->pattern, name, &found))
            continue;
        if (labels)
            *labels = found;
        return r;
    }
    return NULL;
}
