// SPDX-License-Identifier: Apache-2.0
#include "core/admission.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

// What a rank needs besides its working set: the program, Open MPI's buffers and shared memory.
#define RANK_OVERHEAD_BYTES ((int64_t)64 << 20)

__attribute__((format(printf, 5, 6))) static void block(struct admission *a, const char *kind,
                                                        double measured, double limit,
                                                        const char *fmt, ...)
{
    if (a->n == ADMISSION_BLOCKERS_MAX)
        return;
    struct blocker *b = &a->list[a->n++];
    *b = (struct blocker){.kind = kind, .measured = measured, .limit = limit, .unit = "bytes"};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->text, sizeof b->text, fmt, ap);
    va_end(ap);
}

static int ranks_on(const struct plan *p, int node)
{
    int n = 0;
    for (int i = 0; i < p->n_ranks; i++)
        n += (p->ranks[i].mem_node < 0 ? p->ranks[i].cpu_node : p->ranks[i].mem_node) == node;
    return n;
}

static int64_t target_bytes(const struct plan *p, int node)
{
    for (int i = 0; i < p->n_targets; i++)
        if (p->targets[i] == node)
            return p->bytes_per_target;
    return 0;
}

static long long mib(double bytes)
{
    return (long long)(bytes / (1 << 20));
}

static void check_node(struct admission *a, const struct plan *p, const struct topo_node *of,
                       const char *root)
{
    int node = of->os, n = ranks_on(p, node);
    int64_t available = memory_node_available_bytes(root, node);
    int64_t shared = target_bytes(p, node);
    if ((!n && !shared) || available < 0 || of->memory_bytes == 0) // first touch: it is elsewhere
        return;
    double want = (double)n * (double)(p->bytes_per_rank + RANK_OVERHEAD_BYTES) + (double)shared;
    double limit = (double)available * ADMISSION_MEMORY_SHARE;
    if (want > limit)
        block(
            a, "memory", want, limit,
            "%d ranks of %lld MiB%s need %lld MiB on node %d; %lld MiB may be taken (%d %% of what "
            "is available). Use "
            "a smaller size, fewer ranks or another node",
            n, mib((double)p->bytes_per_rank), shared ? " and the arrays measured there" : "",
            mib(want), node, mib(limit), (int)(ADMISSION_MEMORY_SHARE * 100));
}

void admission_check(struct admission *a, const struct plan *p, const struct topology *t,
                     const char *root)
{
    *a = (struct admission){0};
    if (!t->this_system)
        block(a, "topology_not_live", 0, 0,
              "the topology is not of this machine (%s): it can be shown, not probed", t->source);
    for (int i = 0; i < t->n_nodes; i++)
        check_node(a, p, &t->nodes[i], root);
    int64_t room = memory_cgroup_room_bytes(root);
    double want = (double)p->n_ranks * (double)(p->bytes_per_rank + RANK_OVERHEAD_BYTES) +
                  (double)(p->n_targets ? p->bytes_per_target : 0);
    if (room >= 0 && want > (double)room * ADMISSION_MEMORY_SHARE)
        block(a, "cgroup_memory", want, (double)room * ADMISSION_MEMORY_SHARE,
              "the run needs %lld MiB; the daemon's control group leaves %lld MiB. Raise "
              "MemoryMax= or use a smaller size",
              mib(want), mib((double)room * ADMISSION_MEMORY_SHARE));
}

int admission_error(const struct admission *a, struct err *err)
{
    if (!a->n)
        return 0;
    bool memory = strstr(a->list[0].kind, "memory") != NULL;
    return err_set(err, memory ? ERR_NO_MEMORY_NODE : ERR_BUSY, memory ? "size" : "", "%s",
                   a->list[0].text);
}

void admission_write_json(const struct admission *a, struct jsonw *w, const char *key)
{
    jsonw_array(w, key);
    for (int i = 0; i < a->n; i++) {
        const struct blocker *b = &a->list[i];
        jsonw_object(w, NULL);
        jsonw_text(w, "kind", b->kind);
        jsonw_text(w, "text", b->text);
        jsonw_fixed(w, "measured", b->measured, 3);
        jsonw_fixed(w, "limit", b->limit, 3);
        jsonw_text(w, "unit", b->unit);
        jsonw_end(w);
    }
    jsonw_end(w);
}
