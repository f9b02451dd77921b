// SPDX-License-Identifier: Apache-2.0
// First the conditions that are known only now, then the result: as one transaction, or for a large
// run in pieces of which the last makes it visible.
#include "core/run/result.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/results/run_metrics.h"
#include "core/run/machine_changes.h"
#include "model/budget.h"
#include "model/target.h"

static void add_suffered(struct job *j, struct monitor *a)
{
    struct blocker list[4];
    int n = monitor_suffered(a, list, COUNT_OF(list));
    for (int i = 0; i < n; i++)
        conditions_add(&j->conditions, condition_find(admission_kinds[list[i].kind].name), -1,
                       "while it ran, %s", list[i].text);
}

static void add_placement(struct conditions *c, int rank, const struct plan_rank *want,
                          const struct rank_info *got)
{
    char words[TARGET_LABEL_ROOM];
    target_words(want->mem_node, words, sizeof words);
    if (got->cpu >= 0 && got->cpu != want->cpu)
        conditions_add(c, CONDITION_PLACEMENT, rank, "ran on CPU %" PRId64 " instead of %d",
                       got->cpu, want->cpu);
    if (want->mem_node >= 0 && got->mem_node >= 0 && got->mem_node != want->mem_node)
        conditions_add(c, CONDITION_PLACEMENT, rank,
                       "had its memory on node %" PRId64 " instead of %d", got->mem_node,
                       want->mem_node);
    else if (got->pages_checked > 0 && got->mem_share < 0.99)
        conditions_add(c, CONDITION_PLACEMENT, rank, "had only %.1f %% of its memory on %s",
                       100 * got->mem_share, words);
    if (got->migrations > 0)
        conditions_add(c, CONDITION_MIGRATED, rank, "moved between CPUs %" PRId64 " times",
                       got->migrations);
}

// The bench itself says why, where it measured fewer pairs than planned.
static void note_pairs(struct job *j)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    int64_t fewer = j->records.pairs_most;
    if (fewer)
        budget_take_pairs(&j->plan, &j->spec, fewer);
    else
        budget_describe_pairs(&j->plan, j->spec.budget_s, &text);
    if (text.len)
        conditions_add(&j->conditions, CONDITION_BUDGET, -1, "%s", buf_text(&text));
}

void job_note_end(struct job *j, struct monitor *a)
{
    const struct records *records = &j->records;
    note_pairs(j);
    add_suffered(j, a);
    job_note_hang(j);
    conditions_append(&j->conditions, &records->conditions);
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
    result->n_ranks = records->n_ranks == records->plan->n_ranks ? records->n_ranks : 0;
}

// Of a run that its time limit ended, the cells that were measured are kept. It has failed, so no
// baseline, history or comparison takes them.
static bool has_numbers(const struct ending *e, const struct records *records)
{
    return e->result.state == RUN_SUCCEEDED || (e->why.code == ERR_TIMEOUT && records->n_cells > 0);
}

// Metrics are worth less than their run: without memory for them it is stored all the same, and
// gets them later.
static struct metrics_made *make_metrics(const struct spec *spec, const struct topology *topology,
                                         int64_t found_bytes, const struct run_result *result)
{
    const struct metrics_input in = {.spec = spec,
                                     .method = result->method,
                                     .matrices = result->matrices,
                                     .n_matrices = result->n_matrices,
                                     .ranks = result->ranks,
                                     .n_ranks = result->n_ranks,
                                     .topology = topology,
                                     .found_bytes = found_bytes};
    struct err err;
    struct metrics_made *made = metrics_make(&in, &err);
    if (!made)
        log_error("run.metrics", &err);
    return made;
}

static int make_result(struct job *j, struct err *err)
{
    struct ending *e = &j->ending;
    buf_free(&e->conditions);
    buf_free(&e->plan);
    struct jsonw conditions = jsonw_to(&e->conditions), plan = jsonw_to(&e->plan);
    conditions_write_json(&j->conditions, &conditions, NULL);
    if (j->records.pairs_most)
        plan_write_json(&j->plan, &plan, NULL);
    if (!buf_ok(&e->conditions) || !buf_ok(&e->plan))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the conditions of a run");
    enum run_state state = job_outcome(j, &e->why);
    e->result =
        (struct run_result){.state = state,
                            .error = e->why.code,
                            .error_member = e->why.member,
                            .error_text = e->why.text,
                            .method = *j->records.hello.method ? j->records.hello.method : NULL,
                            .conditions_json = buf_text(&e->conditions),
                            .plan_json = j->records.pairs_most ? buf_text(&e->plan) : NULL,
                            .log = j->log};
    if (has_numbers(e, &j->records))
        set_numbers(&e->result, &j->records);
    return 0;
}

static bool is_large(const struct run_result *r)
{
    int64_t cells = 0;
    for (int i = 0; i < r->n_matrices; i++)
        cells += (int64_t)r->matrices[i].row.n * r->matrices[i].col.n;
    return cells > STORE_STAGE_CELLS;
}

static int store_at_once(struct job *j, struct store *s, const struct machine *m, bool *no_metrics,
                         struct err *err)
{
    struct run_result *r = &j->ending.result;
    struct metrics_made *made = NULL;
    if (r->state == RUN_SUCCEEDED) {
        made = make_metrics(&j->spec, &job_machine(j, m)->topology, j->plan.found_bytes, r);
        r->metrics = metrics_made_view(made);
    }
    *no_metrics = r->state == RUN_SUCCEEDED && !made;
    int rc = store_run_finished(s, j->id, r, err);
    metrics_made_free(made);
    return rc;
}

static int store_in_pieces(struct job *j, struct store *s, struct err *err)
{
    struct ending *e = &j->ending;
    if (!e->stage.numbers)
        return store_stage_begin_result(s, &e->stage, j->id, &e->result, err) < 0 ? -1 : 1;
    int more = store_stage_step(s, &e->stage, err);
    if (more <= 0)
        store_stage_end(s, &e->stage);
    return more;
}

int job_store(struct job *j, struct store *s, const struct machine *m, enum run_state *state,
              bool *no_metrics, struct err *err)
{
    struct ending *e = &j->ending;
    if (!e->stage.numbers && make_result(j, err) < 0)
        return -1;
    *state = e->result.state;
    *no_metrics = is_large(&e->result);
    int rc =
        is_large(&e->result) ? store_in_pieces(j, s, err) : store_at_once(j, s, m, no_metrics, err);
    if (rc == 0)
        log_event(*state == RUN_SUCCEEDED ? LOG_LVL_INFO : LOG_LVL_WARN, "run.over",
                  "id=%" PRId64 " state=%s text=\"%s\"", j->id, run_state_names[*state],
                  log_quote(e->why.text).text);
    return rc;
}
