// SPDX-License-Identifier: Apache-2.0
// The facts of a fingerprint, on recorded machines and in the documents.
#include "tests/unit/core/node/machines.h"
#include "tests/unit/data.h"

static const char *fact(const struct fingerprint *f, const char *name)
{
    const struct facts *sets[] = {&f->machine_class, &f->config};
    for (size_t k = 0; k < COUNT_OF(sets); k++)
        for (int i = 0; i < sets[k]->n; i++)
            if (strcmp(sets[k]->list[i].name, name) == 0)
                return sets[k]->list[i].value;
    return "(no such fact)";
}

// A kernel command line longer than a value: its end counts, secrets do not, and what only sounds
// like one stays.
static void command_lines(const struct topology *t, const char *root)
{
    static struct fingerprint a, b;
    char line[2048], filler[700];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    dir_write(root, "proc/cmdline",
              "quiet iommu.passthrough=1 rd.luks.key=abc MY_TOKEN=x keymap=de pass=\n");
    fingerprint_read(&a, t, root);
    CHECK_STR(fact(&a, "cmdline"),
              "quiet iommu.passthrough=1 rd.luks.key=* MY_TOKEN=* keymap=de pass=",
              "secrets are blanked, settings are not");
    snprintf(line, sizeof line, "%s mitigations=auto\n", filler);
    dir_write(root, "proc/cmdline", line);
    fingerprint_read(&a, t, root);
    snprintf(line, sizeof line, "%s mitigations=off\n", filler);
    dir_write(root, "proc/cmdline", line);
    fingerprint_read(&b, t, root);
    CHECK(strcmp(a.config.hash, b.config.hash) != 0 && strstr(fact(&a, "cmdline"), "... sha256:"),
          "a change behind what fits is a change");
    CHECK_STR(a.machine_class.hash, b.machine_class.hash, "of the configuration only");
}

// A module of 4 MiB in SMBIOS 2.1, and one more slot.
static void modules(const struct topology *t, const char *root)
{
    static const unsigned char table[] = {17, 21, 0,    0, 0, 0, 0, 0,  0,  0, 0, 0, 4, 0, 0, 0,
                                          0,  0,  0x18, 0, 0, 0, 0, 17, 21, 1, 0, 0, 0, 0, 0, 0,
                                          0,  0,  0,    0, 0, 0, 0, 0,  0,  0, 0, 0, 0, 0};
    static struct fingerprint a, b;
    char path[200];
    fingerprint_read(&a, t, root);
    CHECK_STR(fact(&a, "dimms"), "(no such fact)", "tables that cannot be read are no fact");
    dir_write(root, "sys/firmware/dmi/tables/DMI", "");
    snprintf(path, sizeof path, "%s/sys/firmware/dmi/tables/DMI", root);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(table, 1, sizeof table, f) == sizeof table && fclose(f) == 0, "a table");
    fingerprint_read(&b, t, root);
    CHECK_STR(fact(&b, "dimms"), "1x4M DDR3; slots 0 of 2", "modules and their slots");
    CHECK_STR(fact(&b, "dimm_speed"), "(no such fact)", "a speed that the table has not");
    CHECK(strcmp(a.machine_class.hash, b.machine_class.hash) != 0 &&
              strcmp(a.config.hash, b.config.hash) == 0,
          "modules are part of the kind of machine");
    unlink(path);
    fingerprint_read(&b, t, root);
    CHECK_STR(b.machine_class.hash, a.machine_class.hash, "without them the hash is as before");
}

static void recorded_facts(void)
{
    static struct fingerprint f;
    char root[64];
    dir_make(root);
    struct topology t CLEANUP(topology_fini) = synthetic("Package:1 [NUMANode] Core:2 PU:1");
    fingerprint_read(&f, &t, root);
    CHECK(!strcmp(fact(&f, "microcode"), "unknown") && !strcmp(fact(&f, "mitigations"), "unknown"),
          "nothing to read: unknown");
    dir_write(root, "sys/devices/system/cpu/vulnerabilities/l1tf", "Not affected\n");
    dir_write(root, "proc/cpuinfo",
              "processor\t: 0\nCPU implementer\t: 0x41\nCPU "
              "architecture: 8\nCPU part\t: 0xd0c\nCPU revision\t: 1\n");
    dir_write(root, "sys/class/dmi/id/product_name", "Box\xff 1\n");
    fingerprint_read(&f, &t, root);
    CHECK_STR(fact(&f, "mitigations"), "none", "a CPU that nothing concerns");
    CHECK_STR(fact(&f, "cpu_id"), "0x41/8/0xd0c/1", "a CPU without a vendor's name");
    CHECK_STR(fact(&f, "product"), "Box? 1", "firmware that writes no UTF-8");
    CHECK_STR(fact(&f, "core_kinds"), "(no such fact)", "cores that are alike have no kinds");
    CHECK_STR(fact(&f, "thp_sizes"), "none", "one size of transparent huge pages");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
              "always [inherit] madvise never\n");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
              "always inherit [madvise] never\n");
    dir_write(root, "sys/kernel/mm/transparent_hugepage/hugepages-32kB/enabled",
              "always inherit madvise [never]\n");
    dir_write(root, "sys/kernel/mm/mempolicy/weighted_interleave/node0", "3\n");
    dir_write(root, "sys/kernel/mm/mempolicy/weighted_interleave/node1", "1\n");
    dir_write(root, "sys/class/net/mlx0/device/numa_node", "1\n");
    dir_write(root, "sys/class/net/lo/type", "772\n");
    dir_write(root, "proc/mounts", "resctrl /sys/fs/resctrl resctrl rw 0 0\n");
    t.nodes[0].cache_bytes = 256 << 20;
    t.found = (struct found_memory){.run = 12, .found = 90 << 20, .bytes = 96 << 20};
    t.n_kinds = 2;
    t.kinds[0] = (struct topo_kind){.efficiency = 0, .max_mhz = 2400, .type = "IntelAtom"};
    t.kinds[1] = (struct topo_kind){.efficiency = 1, .max_mhz = 5000, .type = "IntelCore"};
    t.cpus[0].kind = 1;
    t.cpus[1].kind = 0;
    fingerprint_read(&f, &t, root);
    CHECK_STR(fact(&f, "thp_sizes"), "64K madvise, 2M inherit", "sizes that are not off");
    CHECK_STR(fact(&f, "weighted_interleave"), "node0:3, node1:1", "weights of nodes");
    CHECK_STR(fact(&f, "network_nodes"), "mlx0:1", "interfaces that say their node");
    CHECK_STR(fact(&f, "gpu_nodes"), "none", "no graphics device");
    CHECK_STR(fact(&f, "resctrl"), "mounted", "resctrl is mounted");
    CHECK_STR(fact(&f, "memory_side_caches"), "0:256M", "a cache in front of memory");
    CHECK_STR(fact(&f, "found_cache"), "96M", "a cache that was measured");
    CHECK_STR(fact(&f, "core_kinds"), "1 IntelCore 5000 MHz, 1 IntelAtom 2400 MHz",
              "kinds of cores, the strongest first");
    command_lines(&t, root);
    modules(&t, root);
    dir_remove(root);
}

static void documented(void)
{
    static char text[65536];
    char path[600];
    source_path(path, sizeof path, "docs/FACTS.md");
    CHECK_INT(file_read_text(path, text, sizeof text), 0, "docs/FACTS.md is there");
    const struct fact_info *f;
    for (int i = 0; (f = facts_info(i)); i++) {
        char line[300];
        snprintf(line, sizeof line, "| `%s` | %s | %s |", f->name,
                 f->of_class ? "hardware" : "config", f->meaning);
        CHECK(strstr(text, line), "docs/FACTS.md has: %s", line);
    }
}

// A fact without a considered weight would be listed anywhere among what changed.
static void suspicion(void)
{
    for (int i = 0; facts_info(i); i++)
        CHECK(changes_weight(facts_info(i)->name) >= 0,
              "%s: has a weight (analysis/compare/fact_changes.c)", facts_info(i)->name);
    CHECK(changes_weight("thp_enabled") > changes_weight("kernel") &&
              changes_weight("kernel") > changes_weight("hwloc"),
          "huge pages are more suspicious than the kernel, and that than a library");
    CHECK(changes_weight("no such fact") < 0, "a fact of another version has none");
}

int main(void)
{
    recorded_facts();
    documented();
    suspicion();
    return tap_done();
}
