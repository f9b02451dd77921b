// SPDX-License-Identifier: Apache-2.0
// hwloc's tree becomes plain arrays, its XML is kept as text, and the tree is freed: a loaded
// topology costs megabytes, and nothing needs it afterwards.
#include "core/node/hwloc.h"

#include <ctype.h>
#include <hwloc.h>
#include <hwloc/cpukinds.h>
#include <hwloc/memattrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

static void topology_destroy(hwloc_topology_t *h)
{
    if (*h)
        hwloc_topology_destroy(*h);
}

// A variable of hwloc's that names another machine; NULL: it does not.
static const char *other_machine(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int refuse_other(const char *name, struct err *err)
{
    return err_set(err, ERR_INVALID, "topology",
                   strcmp(name, "HWLOC_SYNTHETIC") == 0
                       ? "%s: hwloc does not understand \"%.100s\""
                       : "%s: hwloc cannot read a machine from %.100s",
                   name, getenv(name));
}

// hwloc reads these variables too, but where it cannot understand one it says nothing and takes
// this machine instead. *name: of the one that was taken; NULL: none is set.
static int take_environment(hwloc_topology_t h, const char **name, struct err *err)
{
    const char *xml = other_machine("HWLOC_XMLFILE"), *root = other_machine("HWLOC_FSROOT"),
               *synthetic = other_machine("HWLOC_SYNTHETIC");
    char path[512];
    *name = xml ? "HWLOC_XMLFILE" : synthetic ? "HWLOC_SYNTHETIC" : root ? "HWLOC_FSROOT" : NULL;
    int rc = 0;
    if (xml)
        rc = hwloc_topology_set_xml(h, xml);
    else if (synthetic)
        rc = hwloc_topology_set_synthetic(h, synthetic);
    else if (root && snprintf(path, sizeof path, "%s/sys/devices/system/cpu", root) > 0)
        rc = access(path, R_OK | X_OK);
    return rc < 0 ? refuse_other(*name, err) : 0;
}

// `xml` NULL: what the environment says, else this machine.
static int hwloc_load(hwloc_topology_t *out, const char *xml, struct err *err)
{
    hwloc_topology_t h CLEANUP(topology_destroy) = NULL;
    // Its plugins look for GPUs and displays, which are filtered out below, and read XML, which it
    // can without: they would cost a megabyte that stays, and whatever else lies in that directory.
    setenv("HWLOC_PLUGINS_PATH", "", true);
    if (hwloc_topology_init(&h) < 0)
        return err_sys(err, "hwloc cannot start");
    // Else hwloc moves us to each CPU in turn, beside whatever runs there, and binds us afterwards
    // to the CPUs that are on-line then: one that comes back later would be none of ours.
    hwloc_topology_set_flags(h, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                                    HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
    hwloc_topology_set_io_types_filter(h, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(h, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_icache_types_filter(h, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(h, HWLOC_OBJ_MEMCACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
    const char *other = NULL;
    if (!xml && take_environment(h, &other, err) < 0)
        return -1;
    if (xml && hwloc_topology_set_xmlbuffer(h, xml, (int)strlen(xml) + 1) < 0)
        return err_set(err, ERR_INTERNAL, "topology", "hwloc cannot read the stored topology");
    if (hwloc_topology_load(h) < 0)
        return other ? refuse_other(other, err) : err_sys(err, "hwloc cannot read the topology");
    if (other && hwloc_topology_is_thissystem(h) && !other_machine("HWLOC_THISSYSTEM"))
        return refuse_other(other, err);
    *out = steal_ptr(&h);
    return 0;
}

static int count(hwloc_topology_t h, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(h, type);
    return n > 0 ? n : 0;
}

static int cache_level(const struct hwloc_obj *o)
{
    return hwloc_obj_type_is_dcache(o->type) ? (int)o->attr->cache.depth : 0;
}

static int count_caches(hwloc_topology_t h)
{
    int n = 0;
    for (int d = 0; d < hwloc_topology_get_depth(h); d++)
        if (hwloc_obj_type_is_dcache(hwloc_get_depth_type(h, d)))
            n += (int)hwloc_get_nbobjs_by_depth(h, d);
    return n;
}

static void read_caches(hwloc_topology_t h, struct topology *t)
{
    for (int d = 0; d < hwloc_topology_get_depth(h); d++)
        for (hwloc_obj_t o = hwloc_get_obj_by_depth(h, d, 0); o && cache_level(o);
             o = o->next_cousin) {
            t->caches[t->n_caches] =
                (struct topo_cache){.level = cache_level(o),
                                    .bytes = (int64_t)o->attr->cache.size,
                                    .line_bytes = (int)o->attr->cache.linesize,
                                    .n_cpus = hwloc_bitmap_weight(o->cpuset),
                                    .first_cpu = hwloc_bitmap_first(o->cpuset)};
            o->userdata = &t->caches[t->n_caches++];
            if (o->attr->cache.linesize && !t->line_bytes)
                t->line_bytes = (int)o->attr->cache.linesize;
        }
    if (!t->line_bytes)
        t->line_bytes = 64;
}

// The kernel's own word, where the topology was read from a /sys.
static bool kernel_says_cpuless(hwloc_obj_t node)
{
    const char *root = other_machine("HWLOC_FSROOT");
    char map[4096];
    if (other_machine("HWLOC_XMLFILE") || other_machine("HWLOC_SYNTHETIC"))
        return false;
    return file_read_fmt(map, sizeof map, "%s/sys/devices/system/node/node%u/cpumap",
                         root ? root : "", node->os_index) == 0 &&
           *map && !map[strspn(map, "0,")];
}

// hwloc lends a node without CPUs those of its nearest neighbour, and may list it before that one:
// such nodes are marked (userdata set), and no CPU is local to them while it has another.
static void mark_cpuless(hwloc_topology_t h)
{
    for (hwloc_obj_t n = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, NULL); n;
         n = n->next_cousin)
        n->userdata = kernel_says_cpuless(n) ? n : NULL;
}

// The local node of a CPU: of those with CPUs of their own the one that hwloc lists first, which is
// DRAM before HBM and NVM.
static int local_node(hwloc_topology_t h, hwloc_obj_t pu)
{
    int lent = -1;
    for (hwloc_obj_t n = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, NULL); n;
         n = n->next_cousin)
        if (!hwloc_bitmap_isset(n->cpuset, pu->os_index))
            continue;
        else if (!n->userdata)
            return (int)n->os_index;
        else if (lent < 0)
            lent = (int)n->os_index;
    return lent;
}

static int last_level_cache(const struct topology *t, hwloc_obj_t pu)
{
    int best = -1;
    for (hwloc_obj_t o = pu->parent; o; o = o->parent)
        if (cache_level(o) && (best < 0 || cache_level(o) > t->caches[best].level))
            best = (int)((struct topo_cache *)o->userdata - t->caches);
    return best;
}

static int thread_number(hwloc_obj_t core, hwloc_obj_t pu)
{
    int n = 0;
    for (int os = hwloc_bitmap_first(core->cpuset); os >= 0 && os < (int)pu->os_index;
         os = hwloc_bitmap_next(core->cpuset, os))
        n++;
    return n;
}

static int by_cpu(const void *a, const void *b)
{
    return ((const struct topo_cpu *)a)->os - ((const struct topo_cpu *)b)->os;
}

static void hwloc_read_cpus(hwloc_topology_t h, struct topology *t)
{
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(h);
    for (hwloc_obj_t pu = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_PU, NULL); pu;
         pu = pu->next_cousin) {
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_CORE, pu);
        hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_PACKAGE, pu);
        t->cpus[t->n_cpus++] =
            (struct topo_cpu){.os = (int)pu->os_index,
                              .core = core ? (int)core->logical_index : (int)pu->logical_index,
                              .thread = core ? thread_number(core, pu) : 0,
                              .package = package ? (int)package->logical_index : 0,
                              .node = local_node(h, pu),
                              .l3 = last_level_cache(t, pu),
                              .kind = -1,
                              .allowed = hwloc_bitmap_isset(allowed, pu->os_index)};
    }
    qsort(t->cpus, (size_t)t->n_cpus, sizeof *t->cpus, by_cpu);
}

static int hwloc_number_of(const struct hwloc_info_s *infos, unsigned n, const char *name)
{
    int64_t v;
    for (unsigned i = 0; i < n; i++)
        if (strcmp(infos[i].name, name) == 0 && str_to_i64(infos[i].value, &v) && v > 0 &&
            v <= INT32_MAX)
            return (int)v;
    return 0;
}

static const char *hwloc_text_of(const struct hwloc_info_s *infos, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(infos[i].name, name) == 0)
            return infos[i].value;
    return "";
}

// hwloc sorts kinds from the weakest to the strongest where it can compare them.
static void read_kinds(hwloc_topology_t h, struct topology *t)
{
    int n = hwloc_cpukinds_get_nr(h, 0);
    hwloc_bitmap_t set = n > 1 && n <= TOPOLOGY_KINDS_MAX ? hwloc_bitmap_alloc() : NULL;
    for (int k = 0; set && k < n; k++) {
        struct hwloc_info_s *infos = NULL;
        struct topo_kind *kind = &t->kinds[k];
        unsigned n_infos = 0;
        if (hwloc_cpukinds_get_info(h, (unsigned)k, set, &kind->efficiency, &n_infos, &infos, 0) <
            0)
            break;
        kind->capacity = hwloc_number_of(infos, n_infos, "LinuxCapacity");
        kind->max_mhz = hwloc_number_of(infos, n_infos, "FrequencyMaxMHz");
        snprintf(kind->type, sizeof kind->type, "%s", hwloc_text_of(infos, n_infos, "CoreType"));
        for (int i = 0; i < t->n_cpus; i++)
            if (hwloc_bitmap_isset(set, (unsigned)t->cpus[i].os))
                t->cpus[i].kind = k;
        t->n_kinds = k + 1;
    }
    hwloc_bitmap_free(set);
}

// What the memory of a node is read through, when it is DRAM in front of something slower.
static int64_t cache_before(hwloc_obj_t node)
{
    int64_t bytes = 0;
    for (hwloc_obj_t o = node->parent; o && o->type == HWLOC_OBJ_MEMCACHE; o = o->parent)
        bytes += (int64_t)o->attr->cache.size;
    return bytes;
}

static int by_node(const void *a, const void *b)
{
    return ((const struct topo_node *)a)->os - ((const struct topo_node *)b)->os;
}

static void hwloc_read_nodes(hwloc_topology_t h, struct topology *t)
{
    hwloc_const_nodeset_t allowed = hwloc_topology_get_allowed_nodeset(h);
    for (hwloc_obj_t n = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, NULL); n;
         n = n->next_cousin) {
        struct topo_node *node = &t->nodes[t->n_nodes++];
        *node = (struct topo_node){.os = (int)n->os_index,
                                   .logical = (int)n->logical_index,
                                   .memory_bytes = (int64_t)n->attr->numanode.local_memory,
                                   .cache_bytes = cache_before(n),
                                   .allowed = hwloc_bitmap_isset(allowed, n->os_index)};
        snprintf(node->kind, sizeof node->kind, "%s",
                 n->subtype && *n->subtype ? n->subtype : "dram");
        for (char *c = node->kind; *c; c++) // hwloc writes "NVM", "HBM"
            *c = (char)tolower((unsigned char)*c);
        for (int i = 0; i < t->n_cpus; i++)
            node->n_cpus += t->cpus[i].node == node->os;
    }
    qsort(t->nodes, (size_t)t->n_nodes, sizeof *t->nodes, by_node);
}

// hwloc orders distances by its own index; ours are by OS number.
static int read_distances(hwloc_topology_t h, struct topology *t, struct err *err)
{
    struct hwloc_distances_s *d = NULL;
    unsigned nr = 1;
    if (hwloc_distances_get_by_name(h, "NUMALatency", &nr, &d, 0) < 0 || !nr || !d)
        return 0;
    size_t n = (size_t)t->n_nodes;
    t->distance = calloc(n * n, sizeof *t->distance);
    for (unsigned i = 0; t->distance && i < d->nbobjs; i++)
        for (unsigned j = 0; j < d->nbobjs; j++) {
            int a = topology_node_index(t, (int)d->objs[i]->os_index),
                b = topology_node_index(t, (int)d->objs[j]->os_index);
            if (a >= 0 && b >= 0)
                t->distance[a * t->n_nodes + b] = (int)d->values[i * d->nbobjs + j];
        }
    hwloc_distances_release(h, d);
    return t->distance ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for distances");
}

// ---- What the firmware claims -------------------------------------------------------------------

enum { INITIATORS_MAX = 64 }; // of one node's memory
static const double mb_of_mib = 1.048576;

// The first attribute of each quantity that has a value counts.
static const struct {
    hwloc_memattr_id_t id;
    size_t offset;
    double scale;
} claimed[] = {
    {HWLOC_MEMATTR_ID_READ_LATENCY, offsetof(struct topo_claim, latency_ns), 1},
    {HWLOC_MEMATTR_ID_LATENCY, offsetof(struct topo_claim, latency_ns), 1},
    {HWLOC_MEMATTR_ID_READ_BANDWIDTH, offsetof(struct topo_claim, read_mbps), mb_of_mib},
    {HWLOC_MEMATTR_ID_WRITE_BANDWIDTH, offsetof(struct topo_claim, write_mbps), mb_of_mib},
};

static void put_claim(struct topology *t, int initiator, int target, size_t which, double value)
{
    int i = 0;
    while (i < t->n_claims &&
           (t->claims[i].initiator != initiator || t->claims[i].target != target))
        i++;
    if (i == TOPOLOGY_CLAIMS_MAX)
        return;
    if (i == t->n_claims)
        t->claims[t->n_claims++] = (struct topo_claim){.initiator = initiator, .target = target};
    double *room = (double *)(void *)((char *)&t->claims[i] + claimed[which].offset);
    if (!(*room > 0))
        *room = value * claimed[which].scale;
}

static bool has_cpus_of(const struct topology *t, int node, hwloc_const_cpuset_t set)
{
    int n = 0;
    for (int i = 0; i < t->n_cpus; i++) {
        if (t->cpus[i].node != node)
            continue;
        if (!hwloc_bitmap_isset(set, (unsigned)t->cpus[i].os))
            return false;
        n++;
    }
    return n > 0;
}

// An initiator may be several nodes, such as a package: each of them is said to have the value.
static void read_claims_of(hwloc_topology_t h, struct topology *t, hwloc_obj_t target, size_t which)
{
    struct hwloc_location from[INITIATORS_MAX];
    hwloc_uint64_t values[INITIATORS_MAX];
    unsigned n = INITIATORS_MAX;
    if (hwloc_memattr_get_initiators(h, claimed[which].id, target, 0, &n, from, values) < 0)
        return;
    for (unsigned i = 0; i < n && i < INITIATORS_MAX; i++)
        for (int k = 0; k < t->n_nodes && from[i].type == HWLOC_LOCATION_TYPE_CPUSET; k++)
            if (has_cpus_of(t, t->nodes[k].os, from[i].location.cpuset))
                put_claim(t, t->nodes[k].os, (int)target->os_index, which, (double)values[i]);
}

static int by_pair(const void *a, const void *b)
{
    const struct topo_claim *x = a, *y = b;
    return x->initiator != y->initiator ? x->initiator - y->initiator : x->target - y->target;
}

static int read_claims(hwloc_topology_t h, struct topology *t, struct err *err)
{
    t->claims = calloc(TOPOLOGY_CLAIMS_MAX, sizeof *t->claims);
    if (!t->claims)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the claims of the firmware");
    for (hwloc_obj_t node = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, NULL); node;
         node = node->next_cousin)
        for (size_t i = 0; i < COUNT_OF(claimed); i++)
            read_claims_of(h, t, node, i);
    qsort(t->claims, (size_t)t->n_claims, sizeof *t->claims, by_pair);
    return 0;
}

static void read_identity(hwloc_topology_t h, struct topology *t)
{
    hwloc_obj_t package = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_PACKAGE, NULL);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (!model)
        model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(h), "CPUModel");
    snprintf(t->cpu_model, sizeof t->cpu_model, "%s", model ? model : "unknown");
    t->this_system = hwloc_topology_is_thissystem(h);
    const char *source = other_machine("HWLOC_XMLFILE")     ? "xml"
                         : other_machine("HWLOC_SYNTHETIC") ? "synthetic"
                         : other_machine("HWLOC_FSROOT")    ? "recorded"
                                                            : "linux";
    snprintf(t->source, sizeof t->source, "%s", source);
}

static int keep_xml(hwloc_topology_t h, char **out, struct err *err)
{
    char *xml = NULL;
    int len = 0;
    if (hwloc_topology_export_xmlbuffer(h, &xml, &len, 0) < 0)
        return err_sys(err, "hwloc cannot write the topology as XML");
    *out = strdup(xml);
    hwloc_free_xmlbuffer(h, xml);
    return *out ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the topology as XML");
}

static int read_arrays(hwloc_topology_t h, bool stored, struct topology *t, struct err *err)
{
    t->cpus = calloc((size_t)count(h, HWLOC_OBJ_PU) + 1, sizeof *t->cpus);
    t->nodes = calloc((size_t)count(h, HWLOC_OBJ_NUMANODE) + 1, sizeof *t->nodes);
    t->caches = calloc((size_t)count_caches(h) + 1, sizeof *t->caches);
    if (!t->cpus || !t->nodes || !t->caches)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the topology");
    read_caches(h, t);
    if (!stored) // the kernel of today knows nothing of a stored machine
        mark_cpuless(h);
    hwloc_read_cpus(h, t);
    read_kinds(h, t);
    hwloc_read_nodes(h, t);
    read_identity(h, t);
    return read_claims(h, t, err) < 0 ? -1 : read_distances(h, t, err);
}

int probe_topology(struct topology *t, char **xml, struct err *err)
{
    hwloc_topology_t h CLEANUP(topology_destroy) = NULL;
    struct topology got CLEANUP(topology_fini) = {0};
    if (hwloc_load(&h, NULL, err) < 0 || read_arrays(h, false, &got, err) < 0 ||
        keep_xml(h, xml, err) < 0)
        return -1;
    *t = got;
    got = (struct topology){0};
    return 0;
}

int probe_topology_xml(struct topology *t, const char *xml, struct err *err)
{
    hwloc_topology_t h CLEANUP(topology_destroy) = NULL;
    struct topology got CLEANUP(topology_fini) = {0};
    if (hwloc_load(&h, xml, err) < 0 || read_arrays(h, true, &got, err) < 0)
        return -1;
    *t = got;
    got = (struct topology){0};
    return 0;
}

// ---- Values of ours -----------------------------------------------------------------------------

static int find_attribute(hwloc_topology_t h, const struct probe_attribute *a,
                          hwloc_memattr_id_t *id)
{
    unsigned long flags =
        HWLOC_MEMATTR_FLAG_NEED_INITIATOR |
        (a->more_is_better ? HWLOC_MEMATTR_FLAG_HIGHER_FIRST : HWLOC_MEMATTR_FLAG_LOWER_FIRST);
    return hwloc_memattr_get_by_name(h, a->name, id) == 0
               ? 0
               : hwloc_memattr_register(h, a->name, flags, id);
}

static int set_attribute(hwloc_topology_t h, const struct probe_attribute *a, struct err *err)
{
    hwloc_memattr_id_t id;
    if (find_attribute(h, a, &id) < 0)
        return err_sys(err, "hwloc does not take the attribute %s", a->name);
    for (int i = 0; i < a->n; i++) {
        const struct probe_value *v = &a->values[i];
        hwloc_obj_t from = hwloc_get_numanode_obj_by_os_index(h, (unsigned)v->initiator);
        hwloc_obj_t to = hwloc_get_numanode_obj_by_os_index(h, (unsigned)v->target);
        if (!from || !to)
            continue;
        struct hwloc_location initiator = {.type = HWLOC_LOCATION_TYPE_CPUSET,
                                           .location.cpuset = from->cpuset};
        if (hwloc_memattr_set_value(h, id, to, &initiator, 0, v->value) < 0)
            return err_sys(err, "hwloc does not take a value of %s", a->name);
    }
    return 0;
}

int probe_topology_annotate(const char *xml, const struct probe_annotations *with, char **out,
                            struct err *err)
{
    hwloc_topology_t h CLEANUP(topology_destroy) = NULL;
    if (hwloc_load(&h, xml, err) < 0)
        return -1;
    for (int i = 0; i < with->n_attributes; i++)
        if (set_attribute(h, &with->attributes[i], err) < 0)
            return -1;
    for (int i = 0; i < with->n_facts; i++)
        if (hwloc_obj_add_info(hwloc_get_root_obj(h), with->facts[i].name, with->facts[i].value) <
            0)
            return err_sys(err, "hwloc does not take a fact");
    return keep_xml(h, out, err);
}

const char *probe_library(void)
{
    static char text[32];
    unsigned v = hwloc_get_api_version();
    snprintf(text, sizeof text, "%u.%u.%u", v >> 16, v >> 8 & 255, v & 255);
    return text;
}
