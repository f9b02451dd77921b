// SPDX-License-Identifier: Apache-2.0
// Each function estimates the time of one kind of reply. Replies that would take longer than
// WORK_INLINE_US are made by the worker process, so that the loop stays free.
#include "api/services/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/services/services.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "core/store/size.h"
#include "model/fingerprint.h"

static int64_t ns_to_us(int64_t ns)
{
    return ns / 1000;
}

bool work_add_run(const struct request *q, struct work *w, int64_t id, int cell_ns, bool log,
                  bool topology, struct err *why)
{
    struct run_size z;
    if (store_run_size(api_of(q)->store, id, &z, why) != 1 || !z.final)
        return false;
    int64_t bytes = (log ? z.log_bytes : 0) + (topology ? z.topology_bytes : 0);
    w->us += ns_to_us(z.ranks * WORK_RANK_NS + z.cells * cell_ns + bytes * WORK_BYTE_NS);
    w->bytes += (size_t)(z.cells * WORK_CELL_BYTES + 2 * bytes);
    size_t n = strlen(w->tag);
    snprintf(w->tag + n, sizeof w->tag - n, "%" PRId64 ":%s\n", id, z.label);
    return true;
}

// Whether the run's topology is another one than this machine's, so that hwloc has to read it.
static bool is_foreign(const struct request *q, int64_t id, struct err *why)
{
    static int64_t readings = -1;
    static char here[65];
    const struct machine *m = api_of(q)->machine;
    struct run_size z;
    if (readings != m->readings) {
        if (m->topology_xml)
            text_hash(m->topology_xml, here);
        readings = m->readings;
    }
    return store_run_size(api_of(q)->store, id, &z, why) == 1 && *z.topology_hash &&
           strcmp(z.topology_hash, here) != 0;
}

static void add_with_topology(const struct request *q, struct work *w, int64_t id, struct err *why)
{
    if (work_add_run(q, w, id, WORK_CELL_FAST_NS, false, true, why) && is_foreign(q, id, why))
        w->us += WORK_TOPOLOGY_US;
}

void work_of_matrix(const struct request *q, struct work *w, struct err *why)
{
    w->settled = true;
    work_add_run(q, w, q->arg, WORK_CELL_NS, false, false, why);
}

void work_of_picture(const struct request *q, struct work *w, struct err *why)
{
    CLEANUP_BUF struct buf accept = BUF_INIT;
    request_header_list(q, "Accept", &accept);
    w->settled = true;
    if (str_starts(q->path + strlen(q->path) - 4, ".svg") || strstr(buf_text(&accept), "image/"))
        add_with_topology(q, w, q->arg, why);
    else
        work_add_run(q, w, q->arg, WORK_CELL_NS, false, false, why);
}

void work_of_export(const struct request *q, struct work *w, struct err *why)
{
    bool topology = true, log = true;
    request_query_bool(q, "topology", &topology, why);
    request_query_bool(q, "log", &log, why);
    w->settled = true;
    work_add_run(q, w, q->arg, WORK_CELL_NS, log, topology, why);
}

void work_of_log(const struct request *q, struct work *w, struct err *why)
{
    w->settled = true;
    work_add_run(q, w, q->arg, 0, true, false, why);
}

static int64_t id_in(const struct request *q, const char *name)
{
    const char *text = request_query(q, name);
    int64_t id = 0;
    return text && str_to_i64(text, &id) ? id : 0;
}

void work_of_compare(const struct request *q, struct work *w, struct err *why)
{
    w->settled = true;
    if (!work_add_run(q, w, id_in(q, "base"), WORK_CELL_PAIR_NS, false, false, why) ||
        !work_add_run(q, w, id_in(q, "target"), WORK_CELL_PAIR_NS, false, false, why))
        w->us = 0;
}

// The caches of the first run's machine are marked in it.
void work_of_compare_picture(const struct request *q, struct work *w, struct err *why)
{
    work_of_compare(q, w, why);
    if (w->us && is_foreign(q, id_in(q, "base"), why))
        w->us += WORK_TOPOLOGY_US;
}

void work_of_report(const struct request *q, struct work *w, struct err *why)
{
    int64_t with = id_in(q, "with");
    w->settled = true;
    add_with_topology(q, w, q->arg, why);
    if (with)
        add_with_topology(q, w, with, why);
}

// Findings, pictures and tables, and a verdict that depends on a baseline too.
void work_of_report_page(const struct request *q, struct work *w, struct err *why)
{
    work_of_report(q, w, why);
    w->settled = false;
    w->us = w->us ? 3 * w->us + 2 * WORK_INLINE_US : 0;
    w->bytes = 2 * w->bytes + WORK_PAGE_BYTES;
}

void work_of_metrics(const struct request *q, struct work *w, struct err *why)
{
    add_with_topology(q, w, q->arg, why);
}
