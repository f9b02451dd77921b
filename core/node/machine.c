// SPDX-License-Identifier: Apache-2.0
// To see whether CPUs or memory changed, a text of a few small files is kept and compared. Only
// when it differs is hwloc asked again.
#include "core/node/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "core/node/cpu_instructions.h"
#include "core/node/hwloc.h"
#include "core/node/hwloc_stored.h"
#include "core/node/load.h"

enum { TEXT_ROOM = 16384 }; // a list of 4096 CPUs of which every second is off-line has 12 KiB

// False: it cannot be read now. What is not there is empty: kernels without NUMA have no nodes.
static bool add_file(struct buf *out, const char *root, const char *name, char *text)
{
    *text = '\0';
    if (file_read_fmt(text, TEXT_ROOM, "%s/sys/devices/system/%s", root, name) < 0 &&
        errno != ENOENT)
        return false;
    buf_fmt(out, "%s %s\n", name, text);
    return true;
}

// Parts of a node's memory come and go too: its size shows it.
static bool add_node(struct buf *out, const char *root, int node)
{
    int64_t bytes = memory_node_total_bytes(root, node);
    buf_fmt(out, "node%d %" PRId64 "\n", node, bytes);
    return bytes != MEMORY_UNKNOWN;
}

static bool machine_add_nodes(struct buf *out, const char *root, const char *list)
{
    CLEANUP_MEM int *ids = NULL;
    int n = 0;
    if (*list && str_to_ids(list, false, TOPOLOGY_NODES_MAX, "", &ids, &n, NULL) < 0)
        return true;
    for (int i = 0; i < n; i++)
        if (!add_node(out, root, ids[i]))
            return false;
    return true;
}

static void add_allowed(struct buf *out, const char *root)
{
    struct id_set cpus, mems;
    readings_allowed(&cpus, &mems, root);
    for (int i = 0; i < cpus.n; i++)
        buf_fmt(out, "%d ", cpus.ids[i]);
    buf_char(out, ';');
    for (int i = 0; i < mems.n; i++)
        buf_fmt(out, "%d ", mems.ids[i]);
    free(cpus.ids);
    free(mems.ids);
}

// free(); NULL: it cannot be read now.
static char *machine_look(const char *root)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    char text[TEXT_ROOM];
    if (!add_file(&out, root, "cpu/online", text) || !add_file(&out, root, "node/online", text) ||
        !add_file(&out, root, "node/has_memory", text) || !machine_add_nodes(&out, root, text))
        return NULL;
    add_allowed(&out, root);
    return buf_steal(&out);
}

// hwloc knows what cgroups allow; the kernel's last word is with the process, which may also
// be bound to some CPUs (taskset, CPUAffinity=). Nodes without memory are in no process's mems.
static void limit_to_ours(struct topology *t, const char *root)
{
    struct id_set cpus, mems;
    readings_allowed(&cpus, &mems, root);
    for (int i = 0; i < t->n_cpus; i++)
        t->cpus[i].allowed = t->cpus[i].allowed && id_set_has(&cpus, t->cpus[i].os);
    for (int i = 0; i < t->n_nodes; i++)
        t->nodes[i].allowed = t->nodes[i].allowed &&
                              (t->nodes[i].memory_bytes == 0 || id_set_has(&mems, t->nodes[i].os));
    free(cpus.ids);
    free(mems.ids);
}

// They change without notice.
static void machine_read_weights(struct topology *t, const char *root)
{
    for (int i = 0; t->this_system && i < t->n_nodes; i++) {
        int os = t->nodes[i].os;
        int weight = os < TOPOLOGY_WEIGHTS ? memory_interleave_weight(root, os) : 0;
        if (os < TOPOLOGY_WEIGHTS)
            t->weights[os] = weight > 0 ? weight : 0;
    }
}

int machine_refresh(struct machine *m, struct machine *was, const char *root, struct err *err)
{
    CLEANUP_MEM char *now = m->topology.this_system ? machine_look(root) : NULL;
    struct machine got;
    machine_read_weights(&m->topology, root);
    if (!now || (m->seen && strcmp(now, m->seen) == 0))
        return 0;
    if (machine_read(&got, root, err) < 0)
        return -1;
    *was = *m;
    *m = got;
    m->readings = was->readings + 1;
    return 1;
}

int machine_read(struct machine *m, const char *root, struct err *err)
{
    struct machine got = {0};
    // Before the rest: what changes in between is a difference the next time.
    got.seen = machine_look(root);
    if (probe_machine(&got.topology, &got.topology_xml, err) < 0) {
        machine_fini(&got);
        return -1;
    }
    if (got.topology.this_system)
        limit_to_ours(&got.topology, root);
    if (got.topology.this_system)
        got.topology.pages = memory_page_sizes(root);
    if (got.topology.this_system)
        got.topology.instructions = cpu_instructions_read(root);
    machine_read_weights(&got.topology, root);
    fingerprint_read(&got.fingerprint, &got.topology, root);
    if (gethostname(got.hostname, sizeof got.hostname - 1) < 0)
        snprintf(got.hostname, sizeof got.hostname, "localhost");
    *m = got;
    return 0;
}

void machine_fini(struct machine *m)
{
    topology_fini(&m->topology);
    free(m->topology_xml);
    free(m->seen);
    memset(m, 0, sizeof *m);
}
