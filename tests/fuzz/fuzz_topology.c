// SPDX-License-Identifier: Apache-2.0
// A topology as XML: it comes with an import, is kept, and read when the run is asked about.
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "core/launch/planner.h"
#include "core/node/hwloc.h"
#include "core/node/hwloc_stored.h"
#include "tests/fuzz/fuzz.h"

static void check_cpus(const struct topology *t)
{
    for (int i = 0; i < t->n_cpus; i++) {
        const struct topo_cpu *c = &t->cpus[i];
        fuzz_hold(c->os >= 0 && (!i || c->os > t->cpus[i - 1].os));
        fuzz_hold(c->l3 >= -1 && c->l3 < t->n_caches);
        fuzz_hold(c->node == -1 || topology_node(t, c->node));
        topology_pair_class(c, &t->cpus[0]);
    }
}

static void use(const struct topology *t)
{
    CLEANUP_BUF struct buf json = BUF_INIT;
    struct jsonw w = jsonw_to(&json);
    struct plan plan CLEANUP(plan_fini) = {0};
    static struct spec spec;
    jsonw_object(&w, NULL);
    topology_write_members(t, &w);
    jsonw_end(&w);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&json), json.len, NULL);
    fuzz_hold(j != NULL);
    fuzz_hold(topology_llc_bytes(t) >= 0);
    spec_init(&spec, BENCHMARK_LATENCY);
    plan_make(&plan, &spec, t, NULL);
}

void fuzz_topology(const uint8_t *data, size_t size)
{
    struct topology t CLEANUP(topology_fini) = {0};
    struct err err = {0};
    char *xml = fuzz_text(data, size);
    fuzz_accepted = probe_topology_stored(&t, xml, &err) == 0;
    if (fuzz_accepted) {
        fuzz_hold(t.n_cpus > 0 && t.n_cpus <= TOPOLOGY_CPUS_MAX);
        fuzz_hold(t.n_nodes > 0 && t.n_nodes <= TOPOLOGY_NODES_MAX);
        fuzz_hold(t.n_caches >= 0 && t.n_caches <= TOPOLOGY_CACHES_MAX);
        check_cpus(&t);
        use(&t);
    } else {
        fuzz_hold(err.code != ERR_NONE && *err.text && !t.cpus);
    }
    free(xml);
}
