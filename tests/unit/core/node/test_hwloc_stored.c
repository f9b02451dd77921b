// SPDX-License-Identifier: Apache-2.0
// Topologies of another time, which any client may have made.
#include "tests/unit/core/node/machines.h"

// What a run stored is read back as it was, whatever machine reads it.
static void stored_topology(void)
{
    struct topology was CLEANUP(topology_fini) = {0};
    struct topology now CLEANUP(topology_fini) = {0};
    CLEANUP_MEM char *xml = NULL;
    struct err err = {0};
    setenv("HWLOC_SYNTHETIC", "package:2 numa:2 l3:2(size=33554432) l2:4(size=524288) pu:2", 1);
    bool ok = probe_topology(&was, &xml, &err) == 0;
    unsetenv("HWLOC_SYNTHETIC");
    CHECK(ok && probe_topology_stored(&now, xml, &err) == 0, "stored XML is read: %s", err.text);
    CHECK(!now.this_system && strcmp(now.source, "stored") == 0, "and is not this machine");
    CHECK(now.n_cpus == was.n_cpus && now.n_caches == was.n_caches && now.n_nodes == was.n_nodes,
          "as many CPUs, caches and nodes as there were");
    bool same = true;
    for (int i = 0; i < was.n_cpus && i < now.n_cpus; i++)
        same = same && now.cpus[i].l3 == was.cpus[i].l3 && now.cpus[i].node == was.cpus[i].node &&
               now.cpus[i].core == was.cpus[i].core;
    CHECK(same, "each CPU with its cache, core and node");
    struct topology bad = {0};
    CHECK(probe_topology_stored(&bad, "<topology", &err) < 0 && !bad.cpus, "nonsense is refused");
    // hwloc 2.9 reads where nothing is when this is missing.
    char *cut = strstr(xml, " complete_nodeset="), *end = cut ? strchr(cut + 19, '"') : NULL;
    CHECK(end != NULL, "there is something to leave out");
    if (end)
        memmove(cut, end + 1, strlen(end));
    CHECK(probe_topology_stored(&bad, xml, &err) < 0 && !bad.cpus,
          "and what brings hwloc down is too: %s", err.text);
}

// Kinds of cores, a memory-side cache and special memory come through XML.
static void stored_topology_of_kinds(void)
{
    struct topology t CLEANUP(topology_fini) = {0};
    struct err err = {0};
    CHECK_INT(probe_topology_stored(&t, hybrid_xml, &err), 0, "XML with kinds is read: %s",
              err.text);
    if (t.n_cpus != 4 || t.n_nodes != 2 || t.n_kinds != 2) {
        CHECK(false, "%d CPUs, %d nodes, %d kinds", t.n_cpus, t.n_nodes, t.n_kinds);
        return;
    }
    CHECK(t.cpus[0].kind == 0 && t.cpus[1].kind == 1 && t.cpus[2].kind == 0 && t.cpus[3].kind == 1,
          "each CPU has its kind");
    CHECK(t.kinds[1].efficiency > t.kinds[0].efficiency && t.kinds[1].max_mhz == 5000 &&
              !strcmp(t.kinds[0].type, "IntelAtom"),
          "and each kind what is known of it");
    CHECK(t.nodes[0].cache_bytes == 256 << 20 && t.nodes[1].cache_bytes == 0,
          "node 0 is behind a memory-side cache");
    CHECK(!strcmp(t.nodes[1].kind, "gpumemory") && topology_node_is_special(&t.nodes[1]) &&
              !topology_node_is_special(&t.nodes[0]),
          "node 1 is a GPU's");
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    topology_write_members(&t, &w);
    jsonw_end(&w);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, &err);
    const struct json *node = json_first(json_get(j, "nodes"));
    const struct json *kind = json_first(json_get(j, "kinds"));
    CHECK(json_get_i64(json_next(json_first(json_get(j, "cpus"))), "kind", -1) == 1 &&
              json_get_i64(json_next(kind), "max_mhz", 0) == 5000 &&
              json_is_null(json_get(kind, "capacity")) &&
              json_get_i64(node, "memory_side_cache_bytes", 0) == 256 << 20 &&
              json_get_bool(json_next(node), "only_if_named", false),
          "and JSON says so");
}

// hwloc takes this machine where it cannot understand which other one is meant.
static void another_machine_that_cannot_be_read(void)
{
    static const struct {
        const char *name, *value, *says; // NULL: this machine, and rightly so
    } cases[] = {
        {"HWLOC_SYNTHETIC", "pack:2 [numa(memory=256GB)] numa:4(memory=64GB) core:4",
         "does not underst"},
        {"HWLOC_SYNTHETIC", "garbage", "HWLOC_SYNTHETIC: hwloc does not understand \"garbage\""},
        {"HWLOC_SYNTHETIC", "pack:2 core:", "does not underst"},
        {"HWLOC_SYNTHETIC", " ", "does not underst"},
        {"HWLOC_SYNTHETIC", "", NULL},
        {"HWLOC_XMLFILE", "/nonexistent.xml", "hwloc cannot read"},
        {"HWLOC_XMLFILE", "/etc/passwd", "hwloc cannot read"},
        {"HWLOC_XMLFILE", "/", "hwloc cannot read"},
        {"HWLOC_XMLFILE", "", NULL},
        {"HWLOC_FSROOT", "/nonexistent", "HWLOC_FSROOT: hwloc cannot read"},
        {"HWLOC_FSROOT", "/etc", "HWLOC_FSROOT: hwloc cannot read"},
        {"HWLOC_FSROOT", "/etc/passwd", "HWLOC_FSROOT: hwloc cannot read"},
        {"HWLOC_FSROOT", "", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct topology t CLEANUP(topology_fini) = {0};
        struct err err = {0};
        CLEANUP_MEM char *xml = NULL;
        setenv(cases[i].name, cases[i].value, 1);
        int rc = probe_machine(&t, &xml, &err);
        unsetenv(cases[i].name);
        CHECK(cases[i].says ? rc < 0 && strstr(err.text, cases[i].says)
                            : rc == 0 && t.this_system && !strcmp(t.source, "linux"),
              "%s=\"%s\": %s", cases[i].name, cases[i].value, err.text);
    }
}

static long largest_child_kib(void)
{
    struct rusage u;
    return getrusage(RUSAGE_CHILDREN, &u) == 0 ? u.ru_maxrss : LONG_MAX;
}

// hwloc makes a set of as many bits as the largest index has: 512 MiB for this one.
static void stored_topology_of_huge_indexes(void)
{
    enum { LIMIT_KIB = 256 << 10 };
    struct topology t CLEANUP(topology_fini) = {0};
    struct err err = {0};
    CLEANUP_BUF struct buf xml = BUF_INIT;
    CLEANUP_MEM char *good = NULL;
    setenv("HWLOC_SYNTHETIC", "package:2 [numa] pu:2", 1);
    bool ok = probe_topology(&t, &good, &err) == 0;
    unsetenv("HWLOC_SYNTHETIC");
    const char *pu = ok ? strstr(good, "\"PU\" os_index=\"3\"") : NULL;
    CHECK(pu != NULL && largest_child_kib() < LIMIT_KIB, "there is a last CPU");
    if (!pu)
        return;
    buf_add(&xml, good, (size_t)(pu - good));
    buf_fmt(&xml, "\"PU\" os_index=\"4294967294\"%s", pu + strlen("\"PU\" os_index=\"3\""));
    topology_fini(&t);
    probe_topology_stored(&t, buf_text(&xml), &err);
    CHECK(largest_child_kib() < LIMIT_KIB, "reading a stranger's XML takes %ld KiB at most",
          largest_child_kib());
}

int main(void)
{
    stored_topology();
    stored_topology_of_kinds();
    another_machine_that_cannot_be_read();
    stored_topology_of_huge_indexes();
    return tap_done();
}
