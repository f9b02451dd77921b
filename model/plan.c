// SPDX-License-Identifier: Apache-2.0
// Planning itself is core/launch/planner.c. Here is what every room needs of a plan: to free it
// and to write it.
#include "model/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/target.h"

void plan_fini(struct plan *p)
{
    free(p->ranks);
    *p = (struct plan){0};
}

int64_t plan_rank_bytes(const struct plan *p, int rank)
{
    return p->ranks[rank].loads ? p->bytes_per_loader : p->bytes_per_rank;
}

int plan_rank_node(const struct plan *p, int rank)
{
    return target_is_interleaved(p->ranks[rank].mem_node) ? -1 : p->ranks[rank].mem_node;
}

static void write_interleaved(int target, struct jsonw *w)
{
    char label[TARGET_LABEL_ROOM];
    target_label(target, label, sizeof label);
    if (target_is_interleaved(target))
        jsonw_text(w, NULL, label);
}

static void plan_write_run(struct jsonw *w, const char *key, int64_t run)
{
    if (run)
        jsonw_i64(w, key, run);
    else
        jsonw_null(w, key);
}

static void plan_write_past(struct jsonw *w, const struct found_speed *past)
{
    if (!past->run) {
        jsonw_null(w, "estimate_past");
        return;
    }
    jsonw_object(w, "estimate_past");
    jsonw_i64(w, "run", past->run);
    jsonw_fixed(w, "times", past->times, 3);
    jsonw_end(w);
}

void plan_write_json(const struct plan *p, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_array(w, "ranks");
    for (int i = 0; i < p->n_ranks; i++) {
        jsonw_object(w, NULL);
        jsonw_i64(w, "rank", i);
        jsonw_i64(w, "cpu", p->ranks[i].cpu);
        jsonw_i64(w, "cpu_node", p->ranks[i].cpu_node);
        jsonw_i64(w, "mem_node", plan_rank_node(p, i));
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_array(w, "targets");
    for (int i = 0; i < p->n_targets; i++)
        if (!target_is_interleaved(p->targets[i]))
            jsonw_i64(w, NULL, p->targets[i]);
    jsonw_end(w);
    jsonw_array(w, "interleaved");
    if (p->n_ranks)
        write_interleaved(p->ranks[0].mem_node, w);
    for (int i = 0; i < p->n_targets; i++)
        write_interleaved(p->targets[i], w);
    jsonw_end(w);
    jsonw_text(w, "load_cpus", p->load_cpus);
    jsonw_text(w, "launcher", p->processes ? "processes" : "mpi");
    jsonw_i64(w, "bytes_per_rank", p->bytes_per_rank);
    jsonw_i64(w, "bytes_per_target", p->bytes_per_target);
    jsonw_i64(w, "targets_at_once", p->targets_at_once);
    jsonw_i64(w, "bytes_per_loader", p->bytes_per_loader);
    jsonw_i64(w, "reserved_page_bytes", p->reserved_page_bytes);
    plan_write_run(w, "sizes_from", p->found_run);
    jsonw_i64(w, "found_cache_bytes", p->found_bytes);
    jsonw_fixed(w, "estimate_s", p->estimate_s, 3);
    jsonw_fixed(w, "estimate_most_s", p->estimate_most_s, 3);
    plan_write_run(w, "estimate_from", p->speeds[SPEED_LOAD].run);
    speeds_write_json(p->speeds, p->benchmark, w, "estimate_speeds");
    plan_write_past(w, &p->past);
    jsonw_i64(w, "timeout_s", p->timeout_s);
    jsonw_array(w, "shortened");
    for (int i = 0; i < p->n_shortened; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "name", p->shortened[i].name);
        jsonw_i64(w, "from", p->shortened[i].from);
        jsonw_i64(w, "to", p->shortened[i].to);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_array(w, "notes");
    for (int i = 0; i < p->n_notes; i++)
        jsonw_text(w, NULL, p->notes[i]);
    jsonw_end(w);
    jsonw_end(w);
}

int64_t plan_read_found(const char *plan_json)
{
    size_t n = 0;
    const char *at =
        plan_json ? json_find(plan_json, strlen(plan_json), "found_cache_bytes", &n) : NULL;
    CLEANUP_JSON struct json *number = at ? json_parse(at, n, NULL) : NULL;
    int64_t bytes = 0;
    return json_i64(number, &bytes) && bytes > 0 ? bytes : 0;
}
