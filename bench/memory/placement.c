// SPDX-License-Identifier: Apache-2.0
// First what was requested: affinity and memory policy of this process. Later what was got: the
// node of sampled pages, by the first method that the kernel permits.
#include "bench/memory/placement.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "bench/memory/affinity.h"
#include "bench/memory/cache.h"
#include "model/target.h"

#ifndef MPOL_WEIGHTED_INTERLEAVE
#define MPOL_WEIGHTED_INTERLEAVE 6 // Linux 6.9
#endif

enum {
    MASK_BITS = 4096, // nodes the kernel may be built for
    MASK_WORDS = MASK_BITS / (8 * (int)sizeof(unsigned long)),
    QUERY_PAGES = 4096,   // of one move_pages call
    CORE_THREADS_MAX = 8, // of any processor: POWER has most
    NODE_NUMBERS = 1024,  // the most that the kernel gives (CONFIG_NODES_SHIFT)
};

static void cpu_wanted(struct place *p)
{
    CLEANUP_MEM int *cpus = NULL;
    int n = affinity_cpus(&cpus, NULL);
    p->cpus = n > 0 ? n : 0;
    p->cpu_wanted = n == 1 ? cpus[0] : -1;
    p->one_core = n > 0 && n <= CORE_THREADS_MAX;
    int core = n > 1 && p->one_core ? cache_cpu_place("", cpus[0]).core : -1;
    for (int i = 1; i < n && p->one_core; i++)
        p->one_core = core >= 0 && cache_cpu_place("", cpus[i]).core == core;
}

// The only node in the mask, or -1.
static int only_node(const unsigned long *mask)
{
    int found = -1;
    for (int node = 0; node < MASK_BITS; node++)
        if (mask[node / 64] >> (node % 64) & 1) {
            if (found >= 0)
                return -1;
            found = node;
        }
    return found;
}

static unsigned low_nodes(const unsigned long *mask)
{
    for (int node = TARGET_NODES; node < MASK_BITS; node++)
        if (mask[node / 64] >> (node % 64) & 1)
            return 0; // beyond what a target holds
    return (unsigned)mask[0];
}

static int policy_node(void)
{
    unsigned long mask[MASK_WORDS] = {0};
    int mode = MPOL_DEFAULT;
    if (get_mempolicy(&mode, mask, MASK_BITS, NULL, 0) < 0)
        return -1;
    if (mode == MPOL_BIND || mode == MPOL_PREFERRED)
        return only_node(mask);
    if ((mode == MPOL_INTERLEAVE || mode == MPOL_WEIGHTED_INTERLEAVE) && low_nodes(mask))
        return target_interleaved(low_nodes(mask), mode == MPOL_WEIGHTED_INTERLEAVE);
    return -1;
}

// Several nodes requested: then the arena keeps that policy.
static bool policy_is_default(void)
{
    int mode = MPOL_DEFAULT;
    return get_mempolicy(&mode, NULL, 0, NULL, 0) < 0 || mode == MPOL_DEFAULT || mode == MPOL_LOCAL;
}

void place_wanted(struct place *p)
{
    *p = (struct place){.mem_wanted = -1, .mem_node = -1};
    cpu_wanted(p);
    p->numa = numa_available() >= 0;
    if (!p->numa)
        return;
    p->mem_wanted = p->mem_node = policy_node();
    int own = place_node_of_cpu(sched_getcpu());
    if (p->mem_wanted < 0 && own >= 0 && policy_is_default() && place_node_has_memory(own))
        p->mem_node = own;
}

// Asked of the kernel itself: numa_node_of_cpu() writes to memory that it did not get.
int place_node_of_cpu(int cpu)
{
    char path[80];
    if (cpu < 0 || numa_available() < 0)
        return -1;
    for (int node = 0; node <= numa_max_node(); node++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpu%d", node, cpu);
        if (access(path, F_OK) == 0)
            return node;
    }
    return -1;
}

int place_node_count(void)
{
    return numa_available() >= 0 ? numa_num_configured_nodes() : 1;
}

// The kernel binds nothing to a node outside the cpuset: its memory would silently be another's.
static bool allowed(int node)
{
    unsigned long mask[MASK_WORDS] = {0};
    if (get_mempolicy(NULL, mask, MASK_BITS, NULL, MPOL_F_MEMS_ALLOWED) < 0)
        return true; // not known
    return node < MASK_BITS && mask[node / 64] >> (node % 64) & 1;
}

const char *place_node_fault(int node)
{
    if (numa_available() < 0)
        return node == 0 ? NULL : "is not there";
    long long bytes = node < 0 ? -1 : numa_node_size64(node, NULL);
    if (bytes <= 0)
        return bytes < 0 ? "is not there" : "has no memory";
    return allowed(node) ? NULL : "is outside the cpuset";
}

bool place_node_has_memory(int node)
{
    return !place_node_fault(node);
}

void place_weights(int weights[])
{
    for (int i = 0; i < TARGET_NODES; i++) {
        int weight = memory_interleave_weight("", i);
        weights[i] = weight > 0 ? weight : 0;
    }
}

int place_nodes(int *nodes, int most)
{
    int n = 0, last = numa_available() >= 0 ? numa_max_node() : 0;
    for (int node = 0; node <= last && n < most; node++)
        if (!place_node_fault(node))
            nodes[n++] = node;
    return n;
}

void place_nodes_text(char *out, size_t room)
{
    int nodes[TARGETS_MAX];
    str_from_ids(nodes, place_nodes(nodes, TARGETS_MAX), out, room);
}

static int refuse_bound_node(int node, const char *fault, struct err *err)
{
    char list[100];
    place_nodes_text(list, sizeof list);
    return err_set(err, ERR_USAGE, "bind", "--bind: node %d %s; nodes with memory are %s", node,
                   fault, list);
}

int place_process(int cpu, int node, struct err *err)
{
    unsigned long mask[MASK_WORDS] = {0};
    if (cpu >= 0 && affinity_set(cpu, err) < 0)
        return -1;
    if (numa_available() < 0)
        return 0;
    if (node < 0) {
        set_mempolicy(MPOL_LOCAL, NULL, 0);
        return 0;
    }
    const char *fault = place_node_fault(node);
    if (fault)
        return refuse_bound_node(node, fault, err);
    mask[node / 64] = 1ul << (node % 64);
    // Some containers refuse; then what was bound is seen in the results, as without.
    set_mempolicy(MPOL_BIND, mask, MASK_BITS);
    return 0;
}

// The policy of a target, and its nodes; -1: no kernel has such nodes.
static int place_policy(int target, unsigned long mask[MASK_WORDS])
{
    if (target_is_interleaved(target)) {
        mask[0] = target_nodes(target);
        return target_is_weighted(target) ? MPOL_WEIGHTED_INTERLEAVE : MPOL_INTERLEAVE;
    }
    if (target < 0 || target >= MASK_BITS)
        return -1;
    mask[target / 64] = 1ul << (target % 64);
    return MPOL_BIND;
}

void *place_map_huge(const struct place *p, uint64_t bytes, uint64_t page)
{
    unsigned long was[MASK_WORDS] = {0}, mask[MASK_WORDS] = {0};
    int mode = MPOL_DEFAULT, wanted = place_policy(p->mem_wanted, mask);
    bool asked = p->numa && wanted >= 0 && get_mempolicy(&mode, was, MASK_BITS, NULL, 0) == 0;
    if (asked)
        set_mempolicy(wanted, mask, MASK_BITS);
    int size = __builtin_ctzll(page) << MAP_HUGE_SHIFT;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size, -1, 0);
    int failed = errno;
    if (asked)
        set_mempolicy(mode, was, MASK_BITS);
    errno = failed;
    return base;
}

bool place_bind(const struct place *p, void *memory, uint64_t bytes)
{
    unsigned long mask[MASK_WORDS] = {0};
    int mode = p->numa ? place_policy(p->mem_node, mask) : -1;
    if (mode < 0)
        return true;
    if (p->mem_wanted < 0)
        mode = MPOL_PREFERRED;
    return mbind(memory, bytes, mode, mask, MASK_BITS, 0) == 0;
}

// Pages to ask about: all, or evenly spread.
struct sample {
    char *base;
    uint64_t page, total, count;
};

// Whole pages: memory of the allocator begins and ends inside of one.
static struct sample sample_of(const void *memory, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), into = (uint64_t)(uintptr_t)memory % page;
    struct sample s = {.base = (char *)(uintptr_t)memory - into, .page = page};
    s.total = (into + bytes + page - 1) / page;
    s.count = s.total < PLACE_EXHAUSTIVE_PAGES ? s.total : PLACE_EXHAUSTIVE_PAGES;
    return s;
}

// Spread over the whole arena with a step that is no power of two, so that a sample of huge pages
// does not always hit the same corner of them.
static void *sample_at(const struct sample *s, uint64_t i)
{
    uint64_t page = (uint64_t)((double)s->total * (double)i / (double)s->count);
    return s->base + (page < s->total ? page : s->total - 1) * s->page;
}

struct counts {
    int64_t pages[NODE_NUMBERS]; // by OS number
    int64_t known;
};

static void count_page(struct counts *c, int node)
{
    if (node < 0 || node >= (int)COUNT_OF(c->pages))
        return;
    c->pages[node]++;
    c->known++;
}

static bool count_by_move_pages(const struct sample *s, struct counts *c)
{
    void *at[QUERY_PAGES];
    int status[QUERY_PAGES];
    for (uint64_t i = 0; i < s->count; i += QUERY_PAGES) {
        uint64_t n = s->count - i < QUERY_PAGES ? s->count - i : QUERY_PAGES;
        for (uint64_t k = 0; k < n; k++)
            at[k] = sample_at(s, i + k);
        if (move_pages(0, n, at, NULL, status, 0) < 0)
            return false;
        for (uint64_t k = 0; k < n; k++)
            count_page(c, status[k]); // below 0: an error for this page
    }
    return c->known > 0;
}

static bool count_by_get_mempolicy(const struct sample *s, struct counts *c)
{
    for (uint64_t i = 0; i < s->count; i++) {
        int node = -1;
        if (get_mempolicy(&node, NULL, 0, sample_at(s, i), MPOL_F_NODE | MPOL_F_ADDR) < 0)
            return false;
        count_page(c, node);
    }
    return c->known > 0;
}

// "… N0=512 N3=20 kernelpagesize_kB=4": adds pages (of the size at the end) by node, in KiB.
static void add_map_line(const char *line, int64_t kib[], int nodes)
{
    int64_t page_kib = 4;
    const char *size = strstr(line, "kernelpagesize_kB=");
    if (size)
        page_kib = strtoll(size + strlen("kernelpagesize_kB="), NULL, 10);
    for (const char *at = strstr(line, " N"); at; at = strstr(at + 2, " N")) {
        int node, used = 0;
        int64_t pages;
        if (sscanf(at, " N%d=%" SCNd64 "%n", &node, &pages, &used) == 2 && node >= 0 &&
            node < nodes)
            kib[node] += pages * page_kib;
    }
}

static const char own_maps[] = "/proc/self/numa_maps";

// Lines of mappings that begin inside [from, to).
static bool add_maps(const char *maps, uint64_t from, uint64_t to, int64_t kib[], int nodes)
{
    CLEANUP_MEM char *line = NULL;
    size_t room = 0;
    FILE *f = fopen(maps, "re");
    if (!f)
        return false;
    while (getline(&line, &room, f) > 0) {
        uint64_t address = strtoull(line, NULL, 16);
        if (address >= from && address < to)
            add_map_line(line, kib, nodes);
    }
    fclose(f);
    return true;
}

static bool count_by_numa_maps(const struct sample *s, struct counts *c)
{
    uint64_t from = (uint64_t)(uintptr_t)s->base;
    if (!add_maps(own_maps, from, from + s->total * s->page, c->pages, COUNT_OF(c->pages)))
        return false;
    for (size_t node = 0; node < COUNT_OF(c->pages); node++) {
        c->pages[node] = c->pages[node] * 1024 / (int64_t)s->page;
        c->known += c->pages[node];
    }
    return c->known > 0;
}

static const struct {
    const char *name;
    bool (*count)(const struct sample *s, struct counts *c);
} methods[] = {
    {"move_pages", count_by_move_pages},
    {"get_mempolicy", count_by_get_mempolicy},
    {"numa_maps", count_by_numa_maps},
};

static void report_counts(const struct counts *c, struct rank_info *info)
{
    int64_t most = 0;
    info->n_nodes = 0;
    info->mem_node = -1;
    for (int node = 0; node < (int)COUNT_OF(c->pages); node++) {
        if (!c->pages[node])
            continue;
        if (c->pages[node] > most) {
            most = c->pages[node];
            info->mem_node = node;
        }
        if (info->n_nodes < RANK_NODES_MAX) {
            info->nodes[info->n_nodes].node = node;
            info->nodes[info->n_nodes++].pages = c->pages[node];
        }
    }
    int64_t right = info->mem_wanted >= 0 && info->mem_wanted < (int64_t)COUNT_OF(c->pages)
                        ? c->pages[info->mem_wanted]
                        : most;
    info->mem_share = c->known ? (double)right / (double)c->known : 0;
    info->pages_checked = c->known;
}

_Static_assert(COUNT_OF(methods) == PLACE_METHODS, "all of them");

void place_verify_from(int first, const void *memory, uint64_t bytes, struct rank_info *info)
{
    struct sample s = sample_of(memory, bytes);
    info->pages_total = (int64_t)s.total;
    for (int i = first; i < PLACE_METHODS; i++) {
        struct counts c = {0};
        if (!methods[i].count(&s, &c))
            continue;
        report_counts(&c, info);
        snprintf(info->mem_method, sizeof info->mem_method, "%s", methods[i].name);
        return;
    }
    info->mem_node = -1;
    info->mem_share = 0;
    info->pages_checked = 0;
    info->n_nodes = 0;
    snprintf(info->mem_method, sizeof info->mem_method, "none");
}

void place_verify(const void *memory, uint64_t bytes, struct rank_info *info)
{
    place_verify_from(0, memory, bytes, info);
}

int place_usage_from(const char *maps, struct rank_info *info)
{
    int64_t kib[NODE_NUMBERS] = {0};
    int left_out = 0;
    if (!add_maps(maps, 0, UINT64_MAX, kib, NODE_NUMBERS))
        return -1;
    for (int node = 0; node < NODE_NUMBERS; node++) {
        int i = 0;
        if (!kib[node])
            continue;
        while (i < info->n_nodes && info->nodes[i].node != node)
            i++;
        if (i == RANK_NODES_MAX) {
            left_out++;
            continue;
        }
        if (i == info->n_nodes)
            info->nodes[info->n_nodes++].node = node;
        if (kib[node] > info->nodes[i].process_kib)
            info->nodes[i].process_kib = kib[node];
    }
    return left_out;
}

int place_usage(struct rank_info *info)
{
    return place_usage_from(own_maps, info);
}

double place_interleaved_share(const struct rank_info *got, int target, double unit)
{
    int weights[TARGET_NODES];
    double known = 0, astray = 0;
    place_weights(weights);
    for (int i = 0; i < got->n_nodes; i++)
        known += (double)got->nodes[i].pages;
    for (int i = 0; i < got->n_nodes; i++) {
        int node = (int)got->nodes[i].node;
        double share = target_share(target, node, weights), pages = (double)got->nodes[i].pages;
        int turn =
            target_is_weighted(target) && node < TARGET_NODES && weights[node] ? weights[node] : 1;
        astray += fmax(0, pages - share * known - (share > 0 ? unit * turn : 0));
    }
    return known > 0 ? 1 - astray / known : 0;
}

int place_move(const void *memory, uint64_t bytes, uint64_t page, int node, struct err *err)
{
    void *at[QUERY_PAGES];
    int to[QUERY_PAGES], status[QUERY_PAGES];
    for (uint64_t done = 0; done < bytes;) {
        unsigned long n = 0;
        for (; n < QUERY_PAGES && done < bytes; n++, done += page) {
            at[n] = (char *)(uintptr_t)memory + done;
            to[n] = node;
        }
        if (move_pages(0, n, at, to, status, MPOL_MF_MOVE) < 0)
            return err_set(err, ERR_UNAVAILABLE, "cost",
                           "is migrate, but the kernel moves no pages to node %d (%s)", node,
                           strerror(errno));
    }
    return 0;
}
