// SPDX-License-Identifier: Apache-2.0
// Metrics belong to a version of their definitions. A run without those of this version gets them
// from what is stored of it (core/run/fill.h).
#include "core/results/run_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct metrics_made *metrics_make(const struct metrics_input *in, struct err *err)
{
    struct metrics_made *m = calloc(1, sizeof *m);
    if (!m) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for metrics");
        return NULL;
    }
    metrics_variant(in, &m->variant);
    if (metrics_find(&m->list, in, err) == 0 && buf_ok(&m->variant))
        return m;
    metrics_made_free(m);
    return NULL;
}

void metrics_made_free(struct metrics_made *m)
{
    if (!m)
        return;
    buf_free(&m->variant);
    free(m);
}

struct run_metrics metrics_made_view(const struct metrics_made *m)
{
    return m ? (struct run_metrics){.version = METRICS_VERSION,
                                    .variant = buf_text(&m->variant),
                                    .list = m->list.list,
                                    .n = m->list.n}
             : (struct run_metrics){0};
}

struct metrics_made *metrics_of(struct store *s, const struct machine *m, int64_t id,
                                struct err *err)
{
    struct stored_run r CLEANUP(stored_run_fini) = {0};
    struct topology room CLEANUP(topology_fini) = {0};
    const struct topology *topology;
    if (stored_run_load(s, id, &r, err) < 0 ||
        stored_run_topology(s, m, id, &room, &topology, err) < 0)
        return NULL;
    const struct metrics_input in = stored_run_metrics_input(&r, topology);
    return metrics_make(&in, err);
}

int metrics_fill(struct store *s, const struct machine *m, int64_t id, struct err *err)
{
    struct metrics_made *made = metrics_of(s, m, id, err);
    const struct run_metrics view = metrics_made_view(made);
    int rc = made ? store_run_metrics(s, id, &view, err) : -1;
    metrics_made_free(made);
    return rc;
}

struct image {
    int version, n;
    size_t variant_bytes; // with the NUL; the list comes first
};

void metrics_image_add(const struct metrics_made *m, struct buf *out)
{
    const struct run_metrics v = metrics_made_view(m);
    const struct image head = {v.version, v.n, strlen(v.variant) + 1};
    buf_add(out, &head, sizeof head);
    buf_add(out, v.list, (size_t)v.n * sizeof *v.list);
    buf_add(out, v.variant, head.variant_bytes);
}

int metrics_image_view(const char *data, size_t n, struct run_metrics *out)
{
    struct image head;
    if (n < sizeof head)
        return -1;
    memcpy(&head, data, sizeof head);
    n -= sizeof head;
    if (head.n < 0 || head.n > METRICS_MAX || head.variant_bytes < 1 ||
        n != (size_t)head.n * sizeof *out->list + head.variant_bytes || data[sizeof head + n - 1])
        return -1;
    const void *list = data + sizeof head;
    *out = (struct run_metrics){.version = head.version, .n = head.n, .list = list};
    out->variant = data + sizeof head + (size_t)head.n * sizeof *out->list;
    return 0;
}
