// SPDX-License-Identifier: Apache-2.0
// Two lists of facts are merged by name. A table ranks the names, because a change of page size
// explains a slower memory better than a new version of a library does.
#include "analysis/compare/fact_changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

// Every fact that core/node/facts.c writes (a test holds the two together), most suspicious first.
// What decides where memory is and how its pages are comes first, then clocks, then what software
// does between loads, then what merely shows another installation.
static const struct {
    const char *name;
    int weight;
} weights[] = {
    {"memory", 95},
    {"thp_enabled", 90},
    {"numa_balancing", 90},
    {"shape", 90},
    {"cpufreq_governor", 85},
    {"boost", 85},
    {"no_turbo", 85},
    {"caches", 85},
    {"cpufreq_max_khz", 80},
    {"huge_pages", 80},
    {"mems_allowed", 80},
    {"cpu_model", 80},
    {"cpu_id", 80},
    {"microcode", 75},
    {"bios_version", 75},
    {"thp_defrag", 75},
    {"mitigations", 70},
    {"distances", 70},
    {"cpus_allowed", 65},
    {"smt", 65},
    {"cmdline", 60},
    {"kernel", 60},
    {"cpufreq_driver", 60},
    {"cpufreq_min_khz", 60},
    {"hypervisor", 60},
    {"zone_reclaim_mode", 55},
    {"isolated_cpus", 50},
    {"nohz_full", 50},
    {"clocksource", 40},
    {"bios_date", 40},
    {"architecture", 40},
    {"product", 35},
    {"swappiness", 25},
    {"overcommit_memory", 15},
    {"core_kinds", 85},
    {"dimms", 90},
    {"dimm_speed", 90},
    {"dimm_channels", 90},
    {"memory_side_caches", 85},
    {"found_cache", 85}, // sizes follow from it
    {"page_size", 90},
    {"thp_sizes", 75},
    {"resctrl", 70},
    {"energy_preference", 70},
    {"cpuidle_driver", 55},
    {"cpuidle_governor", 55},
    {"demotion", 60},
    {"weighted_interleave", 30},
    {"network_nodes", 20},
    {"gpu_nodes", 20},
    {"bios_vendor", 15},
    {"perf_event_paranoid", 5},
    {"hwloc", 5},
};
enum { OTHER_WEIGHT = 30 }; // a fact of a newer version, in a database that has both

int changes_weight(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(weights); i++)
        if (strcmp(weights[i].name, name) == 0)
            return weights[i].weight;
    return -1;
}

static int weight_of(const char *name)
{
    int weight = changes_weight(name);
    return weight < 0 ? OTHER_WEIGHT : weight;
}

static const char *fact_changes_value_of(const struct facts *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->list[i].name, name) == 0)
            return f->list[i].value;
    return NULL;
}

static void fact_changes_add(struct changes *out, bool is_class, const char *name, const char *a,
                             const char *b)
{
    if (out->n < CHANGES_MAX)
        out->list[out->n++] = (struct change){is_class, name, a, b, weight_of(name)};
}

static void fact_changes_find(struct changes *out, bool is_class, const struct facts *a,
                              const struct facts *b)
{
    for (int i = 0; i < a->n; i++) {
        const char *other = fact_changes_value_of(b, a->list[i].name);
        if (other == NULL || strcmp(other, a->list[i].value) != 0)
            fact_changes_add(out, is_class, a->list[i].name, a->list[i].value, other);
    }
    for (int i = 0; i < b->n; i++)
        if (fact_changes_value_of(a, b->list[i].name) == NULL)
            fact_changes_add(out, is_class, b->list[i].name, NULL, b->list[i].value);
}

static int by_suspicion(const void *p, const void *q)
{
    const struct change *a = p, *b = q;
    if (a->is_class != b->is_class)
        return a->is_class ? -1 : 1;
    return a->weight != b->weight ? b->weight - a->weight : strcmp(a->name, b->name);
}

void changes_find(struct changes *out, const struct fingerprint *a, const struct fingerprint *b)
{
    out->n = 0;
    fact_changes_find(out, true, &a->machine_class, &b->machine_class);
    fact_changes_find(out, false, &a->config, &b->config);
    qsort(out->list, out->n, sizeof out->list[0], by_suspicion);
}

void changes_write_json(const struct changes *c, struct jsonw *w, const char *key)
{
    jsonw_array(w, key);
    for (int i = 0; i < c->n; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "kind", c->list[i].is_class ? "hardware" : "config");
        jsonw_text(w, "name", c->list[i].name);
        jsonw_text(w, "before", c->list[i].a);
        jsonw_text(w, "after", c->list[i].b);
        jsonw_i64(w, "weight", c->list[i].weight);
        jsonw_end(w);
    }
    jsonw_end(w);
}
