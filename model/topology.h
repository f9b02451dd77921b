// SPDX-License-Identifier: Apache-2.0
// The machine as the probe sees it: plain arrays, no hwloc. Numbers named `os` are the kernel's.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/jsonw.h"
#include "base/memory.h"

enum {
    TOPOLOGY_CPUS_MAX = 4096,
    TOPOLOGY_NODES_MAX = 256,
    TOPOLOGY_CACHES_MAX = 4096 * 4,
    TOPOLOGY_LEVELS_MAX = 5, // of caches: 1 to 5
    TOPOLOGY_WEIGHTS = 28,   // nodes that memory can be interleaved over are below this
    TOPOLOGY_KINDS_MAX = 16, // of cores; a machine of today has five at most
    TOPOLOGY_CLAIMS_MAX = 4096,
};

struct topo_cpu {
    int os;
    int core;     // index of the core, unique on the machine
    int thread;   // 0 for the first hardware thread of its core, 1 for its sibling, …
    int package;  // index
    int node;     // NUMA node (os) it is local to; -1 none
    int l3;       // index into caches[] of its last-level cache; -1 none
    int kind;     // index into kinds[]; -1: all cores are alike, or it is not known
    bool allowed; // in the cpuset of this process
};

struct topo_node {
    int os;
    int logical;          // hwloc's index
    int64_t memory_bytes; // 0: a node without memory
    int n_cpus;           // 0: a node without CPUs (a target, never an initiator)
    bool allowed;         // in the mems of this process
    char kind[16];        // "dram", "hbm", "cxl", "nvm"… if the machine says; else "dram"
    int64_t cache_bytes;  // of a memory-side cache in front of it; 0: none
};

// Of cores, the weakest first where hwloc can compare them.
struct topo_kind {
    int efficiency; // 0, 1, …: the higher the stronger; -1: cannot be compared
    int capacity;   // as Linux gives it to the scheduler, at most 1024; 0: not known
    int max_mhz;    // 0: not known
    char type[24];  // "IntelAtom", "IntelCore"; "": not known
};

struct topo_cache {
    int level; // 1…TOPOLOGY_LEVELS_MAX; data and unified only
    int64_t bytes;
    int line_bytes;
    int n_cpus;    // sharing it
    int first_cpu; // os number of the first
};

// What the firmware says of the way from a node's CPUs to a node's memory (HMAT). 0: nothing.
struct topo_claim {
    int initiator, target;        // OS numbers
    double latency_ns;            // of reads
    double read_mbps, write_mbps; // MB/s of 1,000,000 bytes
};

// What a stored run of `hierarchy` found on this machine (core/results/found_memory.h).
struct found_memory {
    int64_t run;   // its number; 0: there is none
    int64_t found; // bytes: the largest cache of its curve; 0: none
    int64_t bytes; // of a cache beyond those that the kernel lists; 0: there is none
};

// Speeds that stored runs measured, in place of assumed ones (model/speed.h).
enum speed {
    SPEED_LOAD,         // a load from local memory
    SPEED_BASE_PAGE,    // the first touch of a page of 4 KiB
    SPEED_HUGE_PAGE,    // of one of 2 MiB
    SPEED_MESSAGE,      // half of a round trip of an empty message
    SPEED_MESSAGE_BYTE, // what each byte of a message adds to that
    SPEEDS
};

struct found_speed {
    int64_t run;  // 0: none, the speed is assumed
    double times; // something takes so many times as long as is assumed; 0 without a run
};

// Instructions that a run can choose. Without CPU_KNOWN nothing is known.
enum cpu_instructions {
    CPU_KNOWN = 1,
    CPU_SSE2 = 2,
    CPU_AVX2 = 4,
    CPU_AVX512 = 8,
    CPU_NEON = 16,
    CPU_SVE = 32,
    CPU_LLSC = 64,
    CPU_LSE = 128,
};

struct topology {
    int n_cpus, n_nodes, n_caches;
    struct topo_cpu *cpus;     // ascending os; owned
    struct topo_node *nodes;   // ascending os; owned
    struct topo_cache *caches; // owned
    int n_kinds;               // 0: cores are alike, or it is not known
    struct topo_kind kinds[TOPOLOGY_KINDS_MAX];
    int *distance; // n_nodes × n_nodes, SLIT values, NULL if unknown; owned
    int n_claims;
    struct topo_claim *claims;     // by initiator and target; owned
    int line_bytes;                // of the machine
    struct page_sizes pages;       // all zero: not known
    int weights[TOPOLOGY_WEIGHTS]; // of nodes, in weighted interleave; all 0: the kernel has none
    bool this_system;              // false: from an XML file, a synthetic text or a recorded /sys
    unsigned instructions;         // bits of enum cpu_instructions; 0: of another system
    char cpu_model[96];
    char source[24];                   // "linux", "xml", "synthetic", "recorded", "stored"
    struct found_memory found;         // measured, not read: in no document
    struct found_speed speeds[SPEEDS]; // likewise (core/results/found_speeds.h)
};

void topology_fini(struct topology *t);
const struct topo_cpu *topology_cpu(const struct topology *t, int os);   // NULL: none
const struct topo_node *topology_node(const struct topology *t, int os); // NULL: none
// Memory that is measured only when its node is named: see docs/METHOD.md, "Kinds of memory".
bool topology_node_is_special(const struct topo_node *n);
int topology_node_index(const struct topology *t, int os); // -1: none
int64_t topology_cache_bytes(const struct topology *t,
                             int level); // the smallest of that level; 0: none
// Those that are usual where the machine's are not known.
const struct page_sizes *topology_pages(const struct topology *t);
int64_t topology_llc_bytes(const struct topology *t); // of one last-level cache; 0 unknown

// What two CPUs share, the nearest first.
enum pair_class {
    PAIR_SIBLINGS, // two threads of a core
    PAIR_L3,       // the same last-level cache
    PAIR_NODE,
    PAIR_SOCKET,
    PAIR_REMOTE, // another socket
    PAIR_CLASSES
};
extern const char *const pair_class_names[PAIR_CLASSES];
// PAIR_CLASSES where one of them is NULL. What is not known (-1) is not shared.
enum pair_class topology_pair_class(const struct topo_cpu *a, const struct topo_cpu *b);

void topology_write_members(const struct topology *t, struct jsonw *w); // into an open object
