// SPDX-License-Identifier: Apache-2.0
// The XML of a topology may come from any client that may import a run, and hwloc ends the program
// that gives it certain invalid XML (it aborts, or reads where nothing is). So it is read by a
// child, which leaves plain arrays in memory that we share with it; we believe them only as far as
// they make sense. This machine is read in the same way: hwloc ends the program as well when memory
// runs out.
#include "core/node/hwloc_stored.h"

#include "core/node/hwloc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/os/child.h"

enum {
    READ_MS = 1000,        // 500 KB, of the largest machines, take 30 ms
    READ_BYTES = 64 << 20, // more than we have; those take 10 MB
    READ_HERE_MS = 30000,  // a start waits for it, on a busy node too
    XML_MAX = 16 << 20,    // address space only, until it is written to
};

enum { DONE, REFUSED };

struct shared {
    struct err err;
    struct topology t; // without its arrays
    bool distances;
    struct topo_cpu cpus[TOPOLOGY_CPUS_MAX];
    struct topo_node nodes[TOPOLOGY_NODES_MAX];
    struct topo_cache caches[TOPOLOGY_CACHES_MAX];
    int distance[TOPOLOGY_NODES_MAX * TOPOLOGY_NODES_MAX];
    struct topo_claim claims[TOPOLOGY_CLAIMS_MAX];
    char xml[XML_MAX]; // of this machine
};

static int nonsense(struct err *err)
{
    return err_set(err, ERR_INVALID, "topology", "hwloc cannot read the topology");
}

// ---- the child

static bool hwloc_stored_fits(const struct topology *t)
{
    return t->n_cpus <= TOPOLOGY_CPUS_MAX && t->n_nodes <= TOPOLOGY_NODES_MAX &&
           t->n_caches <= TOPOLOGY_CACHES_MAX && t->n_claims <= TOPOLOGY_CLAIMS_MAX;
}

static int hwloc_stored_hand_over(struct shared *s, const struct topology *t, struct err *err)
{
    if (!hwloc_stored_fits(t))
        return nonsense(err);
    size_t n = (size_t)t->n_nodes;
    s->t = *t;
    s->distances = t->distance != NULL;
    memcpy(s->cpus, t->cpus, sizeof *t->cpus * (size_t)t->n_cpus);
    memcpy(s->nodes, t->nodes, sizeof *t->nodes * n);
    memcpy(s->caches, t->caches, sizeof *t->caches * (size_t)t->n_caches);
    memcpy(s->claims, t->claims, sizeof *t->claims * (size_t)t->n_claims);
    if (t->distance)
        memcpy(s->distance, t->distance, sizeof *t->distance * n * n);
    return 0;
}

static int read_here(struct shared *s, struct topology *t)
{
    char *xml; // goes with the process
    if (probe_topology(t, &xml, &s->err) < 0)
        return -1;
    size_t n = strlen(xml);
    if (n >= sizeof s->xml)
        return err_set(&s->err, ERR_INTERNAL, "", "the topology has more than %d bytes", XML_MAX);
    memcpy(s->xml, xml, n + 1);
    return 0;
}

struct reading {
    struct shared *s;
    const char *xml; // NULL: this machine
};

// What hwloc prints about a stranger's XML is no news.
static int read_quietly(struct shared *s, struct topology *t, const char *xml)
{
    // An index of a thousand million makes hwloc request 500 MB.
    if (!child_limit_memory(READ_BYTES))
        return err_set(&s->err, ERR_UNAVAILABLE, "",
                       "the memory to read the topology cannot be limited");
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    return probe_topology_xml(t, xml, &s->err);
}

static int read_it(void *arg)
{
    const struct reading *r = arg;
    struct topology t = {0};
    int rc = r->xml ? read_quietly(r->s, &t, r->xml) : read_here(r->s, &t);
    return rc == 0 && hwloc_stored_hand_over(r->s, &t, &r->s->err) == 0 ? DONE : REFUSED;
}

// ---- the daemon's side

static bool sensible_cpus(const struct shared *s)
{
    const struct topology *t = &s->t;
    for (int i = 0; i < t->n_cpus; i++) {
        const struct topo_cpu *c = &s->cpus[i];
        if (c->os < 0 || (i && c->os <= c[-1].os) || c->core < 0 || c->thread < 0 ||
            c->package < 0 || c->node < -1 || c->l3 < -1 || c->l3 >= t->n_caches || c->kind < -1 ||
            c->kind >= t->n_kinds)
            return false;
    }
    return t->n_cpus > 0;
}

static bool sensible(const struct shared *s)
{
    const struct topology *t = &s->t;
    if (!memchr(t->cpu_model, '\0', sizeof t->cpu_model))
        return false;
    if (t->n_cpus < 0 || t->n_nodes < 0 || t->n_caches < 0 || t->n_claims < 0 ||
        !hwloc_stored_fits(t) || !sensible_cpus(s))
        return false;
    if (t->n_kinds < 0 || t->n_kinds > TOPOLOGY_KINDS_MAX)
        return false;
    for (int i = 0; i < t->n_kinds; i++)
        if (!memchr(t->kinds[i].type, '\0', sizeof t->kinds[i].type))
            return false;
    for (int i = 0; i < t->n_nodes; i++)
        if (s->nodes[i].os < 0 || (i && s->nodes[i].os <= s->nodes[i - 1].os) ||
            s->nodes[i].memory_bytes < 0 || s->nodes[i].cache_bytes < 0 ||
            !memchr(s->nodes[i].kind, '\0', sizeof s->nodes[i].kind))
            return false;
    for (int i = 0; i < t->n_claims; i++)
        if (s->claims[i].initiator < 0 || s->claims[i].target < 0 ||
            !(s->claims[i].latency_ns >= 0) || !(s->claims[i].read_mbps >= 0) ||
            !(s->claims[i].write_mbps >= 0))
            return false;
    for (int i = 0; i < t->n_caches; i++)
        if (s->caches[i].bytes < 0 || s->caches[i].line_bytes < 0 || s->caches[i].n_cpus < 0)
            return false;
    return t->n_nodes > 0;
}

static void *hwloc_stored_copy(const void *from, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    return to && bytes ? memcpy(to, from, bytes) : to;
}

static int hwloc_stored_take_over(struct topology *out, const struct shared *s, struct err *err)
{
    struct topology t CLEANUP(topology_fini) = s->t;
    size_t n = (size_t)t.n_nodes;
    t.cpus = hwloc_stored_copy(s->cpus, sizeof *s->cpus * (size_t)t.n_cpus);
    t.nodes = hwloc_stored_copy(s->nodes, sizeof *s->nodes * n);
    t.caches = hwloc_stored_copy(s->caches, sizeof *s->caches * (size_t)t.n_caches);
    t.distance = s->distances ? hwloc_stored_copy(s->distance, sizeof *s->distance * n * n) : NULL;
    t.claims = hwloc_stored_copy(s->claims, sizeof *s->claims * (size_t)t.n_claims);
    if (!t.cpus || !t.nodes || !t.caches || !t.claims || (s->distances && !t.distance))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the topology");
    *out = t;
    t = (struct topology){0};
    return 0;
}

static int read_by_child(struct topology *t, struct reading *r, struct err *err)
{
    const struct shared *s = r->s;
    int rc = child_run(read_it, r, r->xml ? READ_MS : READ_HERE_MS, err);
    if (rc < 0 && err->code == ERR_TIMEOUT)
        return err_set(err, ERR_TIMEOUT, "topology", "hwloc takes too long for the topology");
    if (rc < 0 && err->code != ERR_INTERNAL)
        return -1;
    if (rc == REFUSED && s->err.code > ERR_NONE && s->err.code < ERR_CODES)
        return err_set(err, s->err.code, "topology", "%.*s", (int)sizeof s->err.text - 1,
                       s->err.text);
    return rc == DONE && sensible(s) ? hwloc_stored_take_over(t, s, err) : nonsense(err);
}

// xml NULL: of this machine, and *text gets its XML.
static int hwloc_stored_read_topology(struct topology *t, const char *xml, char **text,
                                      struct err *err)
{
    struct shared *s = child_share(sizeof *s);
    struct reading r = {s, xml};
    struct err why = {0};
    if (!s)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the topology");
    int rc = read_by_child(t, &r, &why);
    if (rc < 0 && why.code != ERR_TIMEOUT)
        // hwloc does not report what it lacked: once more, before it is the XML's fault.
        rc = read_by_child(t, &r, &why);
    if (rc == 0 && text && !(*text = strdup(s->xml))) {
        topology_fini(t);
        rc = err_set(&why, ERR_NO_MEMORY, "", "no memory for the topology as XML");
    }
    if (rc < 0 && err)
        *err = why;
    child_unshare(s, sizeof *s);
    return rc;
}

int probe_topology_stored(struct topology *t, const char *xml, struct err *err)
{
    if (hwloc_stored_read_topology(t, xml, NULL, err) < 0)
        return -1;
    t->this_system = false;
    snprintf(t->source, sizeof t->source, "stored");
    return 0;
}

int probe_machine(struct topology *t, char **xml, struct err *err)
{
    return hwloc_stored_read_topology(t, NULL, xml, err);
}
