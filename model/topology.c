// SPDX-License-Identifier: Apache-2.0
// Numbers of CPUs and nodes may have gaps, so they are looked up, never used as an index.
#include "model/topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void topology_fini(struct topology *t)
{
    free(t->cpus);
    free(t->nodes);
    free(t->caches);
    free(t->distance);
    free(t->claims);
    *t = (struct topology){0};
}

static int topology_by_os(const void *os, const void *cpu)
{
    return *(const int *)os - ((const struct topo_cpu *)cpu)->os;
}

const struct topo_cpu *topology_cpu(const struct topology *t, int os)
{
    return t->n_cpus ? bsearch(&os, t->cpus, (size_t)t->n_cpus, sizeof *t->cpus, topology_by_os)
                     : NULL;
}

int topology_node_index(const struct topology *t, int os)
{
    for (int i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].os == os)
            return i;
    return -1;
}

const struct topo_node *topology_node(const struct topology *t, int os)
{
    int i = topology_node_index(t, os);
    return i < 0 ? NULL : &t->nodes[i];
}

// What hwloc calls nodes whose memory is not simply there to be used: a GPU's is the GPU job's, NVM
// wears by being written, and SPM is reserved by the firmware for programs that request it. HBM and
// CXL memory are the machine's own.
bool topology_node_is_special(const struct topo_node *n)
{
    static const char *const kinds[] = {"gpumemory", "nvm", "cxl-nvm", "spm", "cxl-spm"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(n->kind, kinds[i]) == 0)
            return true;
    return false;
}

const char *const pair_class_names[PAIR_CLASSES] = {"siblings", "same L3", "same node",
                                                    "same socket", "other socket"};

enum pair_class topology_pair_class(const struct topo_cpu *a, const struct topo_cpu *b)
{
    if (!a || !b)
        return PAIR_CLASSES;
    if (a->core >= 0 && a->core == b->core)
        return PAIR_SIBLINGS;
    if (a->l3 >= 0 && a->l3 == b->l3)
        return PAIR_L3;
    if (a->node >= 0 && a->node == b->node)
        return PAIR_NODE;
    return a->package >= 0 && a->package == b->package ? PAIR_SOCKET : PAIR_REMOTE;
}

static int llc_level(const struct topology *t)
{
    int level = 0;
    for (int i = 0; i < t->n_caches; i++)
        if (t->caches[i].level > level)
            level = t->caches[i].level;
    return level;
}

int64_t topology_cache_bytes(const struct topology *t, int level)
{
    int64_t least = 0;
    for (int i = 0; i < t->n_caches; i++)
        if (t->caches[i].level == level && (!least || t->caches[i].bytes < least))
            least = t->caches[i].bytes;
    return least;
}

const struct page_sizes *topology_pages(const struct topology *t)
{
    return t->pages.base ? &t->pages : &page_sizes_usual;
}

int64_t topology_llc_bytes(const struct topology *t)
{
    int level = llc_level(t);
    int64_t most = 0;
    for (int i = 0; i < t->n_caches; i++)
        if (t->caches[i].level == level && t->caches[i].bytes > most)
            most = t->caches[i].bytes;
    return most;
}

static int64_t topology_llc_total(const struct topology *t)
{
    int level = llc_level(t);
    int64_t sum = 0;
    for (int i = 0; i < t->n_caches; i++)
        if (t->caches[i].level == level)
            sum += t->caches[i].bytes;
    return sum;
}

static void topology_write_number(struct jsonw *w, const char *key, int64_t n, bool known)
{
    if (known)
        jsonw_i64(w, key, n);
    else
        jsonw_null(w, key);
}

static void write_cpus(const struct topology *t, struct jsonw *w)
{
    jsonw_array(w, "cpus");
    for (int i = 0; i < t->n_cpus; i++) {
        const struct topo_cpu *c = &t->cpus[i];
        jsonw_object(w, NULL);
        jsonw_i64(w, "cpu", c->os);
        jsonw_i64(w, "core", c->core);
        jsonw_i64(w, "thread", c->thread);
        jsonw_i64(w, "package", c->package);
        topology_write_number(w, "node", c->node, c->node >= 0);
        topology_write_number(w, "llc", c->l3, c->l3 >= 0);
        topology_write_number(w, "kind", c->kind, c->kind >= 0);
        jsonw_bool(w, "allowed", c->allowed);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_node_cpus(const struct topology *t, int node, struct jsonw *w)
{
    jsonw_array(w, "cpus");
    for (int i = 0; i < t->n_cpus; i++)
        if (t->cpus[i].node == node)
            jsonw_i64(w, NULL, t->cpus[i].os);
    jsonw_end(w);
}

static void write_nodes(const struct topology *t, struct jsonw *w)
{
    jsonw_array(w, "nodes");
    for (int i = 0; i < t->n_nodes; i++) {
        const struct topo_node *n = &t->nodes[i];
        jsonw_object(w, NULL);
        jsonw_i64(w, "node", n->os);
        jsonw_i64(w, "logical", n->logical);
        jsonw_text(w, "kind", n->kind);
        jsonw_i64(w, "memory_bytes", n->memory_bytes);
        jsonw_i64(w, "memory_side_cache_bytes", n->cache_bytes);
        jsonw_bool(w, "only_if_named", topology_node_is_special(n));
        jsonw_bool(w, "allowed", n->allowed);
        write_node_cpus(t, n->os, w);
        jsonw_array(w, "distances");
        for (int j = 0; t->distance && j < t->n_nodes; j++)
            jsonw_i64(w, NULL, t->distance[i * t->n_nodes + j]);
        jsonw_end(w);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_caches(const struct topology *t, struct jsonw *w)
{
    jsonw_array(w, "caches");
    for (int i = 0; i < t->n_caches; i++) {
        const struct topo_cache *c = &t->caches[i];
        jsonw_object(w, NULL);
        jsonw_i64(w, "level", c->level);
        jsonw_i64(w, "bytes", c->bytes);
        jsonw_i64(w, "line_bytes", c->line_bytes);
        jsonw_i64(w, "cpus_sharing", c->n_cpus);
        jsonw_i64(w, "first_cpu", c->first_cpu);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_kinds(const struct topology *t, struct jsonw *w)
{
    jsonw_array(w, "kinds");
    for (int i = 0; i < t->n_kinds; i++) {
        const struct topo_kind *k = &t->kinds[i];
        jsonw_object(w, NULL);
        jsonw_i64(w, "kind", i);
        topology_write_number(w, "efficiency", k->efficiency, k->efficiency >= 0);
        topology_write_number(w, "capacity", k->capacity, k->capacity > 0);
        topology_write_number(w, "max_mhz", k->max_mhz, k->max_mhz > 0);
        jsonw_text(w, "type", *k->type ? k->type : NULL);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_claims(const struct topology *t, struct jsonw *w)
{
    jsonw_array(w, "claims");
    for (int i = 0; i < t->n_claims; i++) {
        const struct topo_claim *c = &t->claims[i];
        jsonw_object(w, NULL);
        jsonw_i64(w, "initiator", c->initiator);
        jsonw_i64(w, "target", c->target);
        jsonw_fixed(w, "latency_ns", c->latency_ns > 0 ? c->latency_ns : NAN, 1);
        jsonw_fixed(w, "read_mbps", c->read_mbps > 0 ? c->read_mbps : NAN, 0);
        jsonw_fixed(w, "write_mbps", c->write_mbps > 0 ? c->write_mbps : NAN, 0);
        jsonw_end(w);
    }
    jsonw_end(w);
}

void topology_write_members(const struct topology *t, struct jsonw *w)
{
    jsonw_text(w, "cpu_model", t->cpu_model);
    jsonw_text(w, "source", t->source);
    jsonw_bool(w, "this_system", t->this_system);
    jsonw_i64(w, "line_bytes", t->line_bytes);
    jsonw_i64(w, "llc_bytes", topology_llc_bytes(t));
    jsonw_i64(w, "llc_total_bytes", topology_llc_total(t));
    write_nodes(t, w);
    write_cpus(t, w);
    write_caches(t, w);
    write_kinds(t, w);
    write_claims(t, w);
}
