// SPDX-License-Identifier: Apache-2.0
#include "core/run/result.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/results/run_metrics.h"
#include "core/run/machine_changes.h"

static void add_suffered(struct job *j, struct admitter *a)
{
    struct blocker list[4];
    int n = admitter_suffered(a, list, COUNT_OF(list));
    for (int i = 0; i < n; i++)
        conditions_add(&j->conditions, condition_find(admission_kinds[list[i].kind].name), -1,
                       "while it ran, %s", list[i].text);
}

static void add_placement(struct conditions *c, int rank, const struct plan_rank *want,
                          const struct rank_info *got)
{
    if (got->cpu >= 0 && got->cpu != want->cpu)
        conditions_add(c, CONDITION_PLACEMENT, rank, "ran on CPU %" PRId64 " instead of %d",
                       got->cpu, want->cpu);
    if (want->mem_node >= 0 && got->mem_node >= 0 && got->mem_node != want->mem_node)
        conditions_add(c, CONDITION_PLACEMENT, rank,
                       "had its memory on node %" PRId64 " instead of %d", got->mem_node,
                       want->mem_node);
    else if (got->pages_checked > 0 && got->mem_share < 0.99)
        conditions_add(c, CONDITION_PLACEMENT, rank, "had only %.1f %% of its memory on node %d",
                       100 * got->mem_share, want->mem_node);
    if (got->migrations > 0)
        conditions_add(c, CONDITION_MIGRATED, rank, "moved between CPUs %" PRId64 " times",
                       got->migrations);
}

void job_note_end(struct job *j, struct admitter *a)
{
    const struct records *records = &j->records;
    add_suffered(j, a);
    job_note_hang(j);
    for (int i = 0; i < records->n_conditions; i++)
        conditions_put(&j->conditions, &records->conditions[i]);
    if (records->n_ranks < j->plan.n_ranks)
        return;
    for (int i = 0; i < records->n_ranks; i++)
        add_placement(&j->conditions, i, &j->plan.ranks[i], &records->ranks[i]);
}

static void set_numbers(struct run_result *result, const struct records *records)
{
    result->phase_ms = records->end.phase_ms;
    result->matrices = records->matrices;
    result->n_matrices = records->n_matrices;
    result->ranks = records->ranks;
    result->n_ranks = records->n_ranks;
}

// Metrics are worth less than their run: without memory for them it is stored all the same, and
// gets them later.
static struct metrics_made *make_metrics(const struct spec *spec, const struct topology *topology,
                                         const struct run_result *result)
{
    const struct metrics_input in = {.spec = spec,
                                     .method = result->method,
                                     .matrices = result->matrices,
                                     .n_matrices = result->n_matrices,
                                     .ranks = result->ranks,
                                     .n_ranks = result->n_ranks,
                                     .topology = topology};
    struct err err;
    struct metrics_made *made = metrics_make(&in, &err);
    if (!made)
        log_error("run.metrics", &err);
    return made;
}

int job_store(struct job *j, struct store *s, const struct machine *m, enum run_state *state,
              bool *no_metrics, struct err *err)
{
    struct err why;
    CLEANUP_BUF struct buf conditions = BUF_INIT;
    conditions_write_json(&j->conditions, &conditions);
    *state = job_outcome(j, &why);
    if (!buf_ok(&conditions))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the conditions of a run");
    struct run_result result = {.state = *state,
                                .error = why.code,
                                .error_member = why.member,
                                .error_text = why.text,
                                .method = *j->records.hello.method ? j->records.hello.method : NULL,
                                .conditions_json = buf_text(&conditions),
                                .log = j->log};
    struct metrics_made *made = NULL;
    if (*state == RUN_SUCCEEDED) {
        set_numbers(&result, &j->records);
        made = make_metrics(&j->spec, &job_machine(j, m)->topology, &result);
        result.metrics = metrics_made_view(made);
    }
    *no_metrics = *state == RUN_SUCCEEDED && !made;
    int rc = store_run_finished(s, j->id, &result, err);
    metrics_made_free(made);
    if (rc < 0)
        return -1;
    log_event(*state == RUN_SUCCEEDED ? LOG_LVL_INFO : LOG_LVL_WARN, "run.over",
              "id=%" PRId64 " state=%s text=\"%s\"", j->id, run_state_names[*state], why.text);
    return 0;
}
