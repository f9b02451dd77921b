// SPDX-License-Identifier: Apache-2.0
// The order is made once per round. The next node is the first one in it that is pending, may be
// tried now, and whose group has room.
#include "fleet/campaigns/probe_plan.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/stats/stats.h"
#include "base/cleanup.h"

enum { MINUTE_MS = 60 * 1000 };

const char *const probe_state_names[PROBE_STATES + 1] = {"pending", "running", "done",
                                                         "failed",  "skipped", NULL};

// ---- What a probe costs -------------------------------------------------------------------------

static double class_expected(const struct probe_class *c)
{
    return c->own ? c->own_s / c->own : c->past_s;
}

static bool is_guess(const struct probe_plan *p, int node)
{
    return class_expected(&p->classes[p->nodes[node].class]) <= 0 && class_expected(&p->all) <= 0;
}

static double expected_of(const struct probe_plan *p, int node)
{
    double of_class = class_expected(&p->classes[p->nodes[node].class]);
    double of_all = class_expected(&p->all);
    return of_class > 0 ? of_class : of_all > 0 ? of_all : PROBE_GUESS_S;
}

double probe_plan_longest(const struct probe_plan *p)
{
    double longest_s = 0;
    for (int i = 0; i < p->n; i++) {
        double expected_s = expected_of(p, i);
        longest_s = expected_s > longest_s ? expected_s : longest_s;
    }
    return longest_s;
}

// ---- A round ------------------------------------------------------------------------------------

struct stale {
    int node;
    int64_t newest_ms;
};

static int by_staleness(const void *a, const void *b)
{
    const struct stale *x = a, *y = b;
    return x->newest_ms != y->newest_ms
               ? (x->newest_ms > y->newest_ms) - (x->newest_ms < y->newest_ms)
               : x->node - y->node;
}

static int order_make(struct probe_plan *p)
{
    CLEANUP_MEM struct stale *list = calloc((size_t)p->n + 1, sizeof *list);
    if (!list)
        return -1;
    for (int i = 0; i < p->n; i++)
        list[i] = (struct stale){i, p->rules.order == PROBE_STALEST ? p->nodes[i].newest_ms : 0};
    qsort(list, (size_t)p->n, sizeof *list, by_staleness);
    for (int i = 0; i < p->n; i++)
        p->order[i] = list[i].node;
    return 0;
}

struct past {
    int class;
    double s;
};

static int by_class(const void *a, const void *b)
{
    const struct past *x = a, *y = b;
    return x->class != y->class ? x->class - y->class : (x->s > y->s) - (x->s < y->s);
}

// Medians of the durations that are known: of each class, and of all.
static int classes_make(struct probe_plan *p)
{
    CLEANUP_MEM struct past *list = calloc((size_t)p->n + 1, sizeof *list);
    CLEANUP_MEM double *seconds = calloc((size_t)p->n + 1, sizeof *seconds);
    int n = 0;
    if (!list || !seconds)
        return -1;
    for (int i = 0; i < p->n; i++)
        if (p->nodes[i].past_s > 0)
            list[n++] = (struct past){p->nodes[i].class, p->nodes[i].past_s};
    qsort(list, (size_t)n, sizeof *list, by_class);
    for (int i = 0; i < n; i++)
        seconds[i] = list[i].s;
    for (int from = 0, to; from < n; from = to) {
        for (to = from; to < n && list[to].class == list[from].class; to++)
            continue;
        p->classes[list[from].class].past_s = stats_quantile(seconds + from, to - from, 0.5);
    }
    stats_sort(seconds, n);
    p->all.past_s = n ? stats_quantile(seconds, n, 0.5) : 0;
    return 0;
}

int probe_plan_make(struct probe_plan *p, const struct probe_rules *rules,
                    const struct probe_node *nodes, int n, struct err *err)
{
    *p = (struct probe_plan){.rules = *rules, .n = n};
    for (int i = 0; i < n; i++) {
        p->n_classes = nodes[i].class >= p->n_classes ? nodes[i].class + 1 : p->n_classes;
        p->n_groups = nodes[i].group >= p->n_groups ? nodes[i].group + 1 : p->n_groups;
    }
    p->nodes = calloc((size_t)n + 1, sizeof *p->nodes);
    p->order = calloc((size_t)n + 1, sizeof *p->order);
    p->classes = calloc((size_t)p->n_classes + 1, sizeof *p->classes);
    p->group_running = calloc((size_t)p->n_groups + 1, sizeof *p->group_running);
    if (p->nodes)
        memcpy(p->nodes, nodes, (size_t)n * sizeof *p->nodes);
    if (!p->nodes || !p->order || !p->classes || !p->group_running || order_make(p) < 0 ||
        classes_make(p) < 0) {
        probe_plan_fini(p);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a campaign of %d nodes", n);
    }
    for (int i = 0; i < n; i++) {
        p->count[nodes[i].state]++;
        if (nodes[i].state == PROBE_RUNNING) {
            p->group_running[nodes[i].group]++;
            p->running_s += p->nodes[i].expected_s = expected_of(p, i);
        }
    }
    return 0;
}

void probe_plan_fini(struct probe_plan *p)
{
    free(p->nodes);
    free(p->order);
    free(p->classes);
    free(p->group_running);
    *p = (struct probe_plan){0};
}

static void node_state(struct probe_plan *p, int node, enum probe_state state)
{
    struct probe_node *n = &p->nodes[node];
    if (n->state == PROBE_RUNNING) {
        p->group_running[n->group]--;
        p->running_s -= n->expected_s;
        p->first = p->looked = 0; // it may be pending again, or its group has room
        p->again_ms = 0;
    }
    p->count[n->state]--;
    p->count[state]++;
    n->state = state;
    if (state != PROBE_RUNNING)
        return;
    n->expected_s = expected_of(p, node);
    p->running_s += n->expected_s;
    p->group_running[n->group]++;
}

void probe_plan_start(struct probe_plan *p, int node)
{
    node_state(p, node, PROBE_RUNNING);
}

bool probe_plan_refused(struct probe_plan *p, int node, int64_t now_ms, int64_t after_ms)
{
    struct probe_node *n = &p->nodes[node];
    if (!n->refused_ms)
        n->refused_ms = now_ms;
    bool enough = now_ms - n->refused_ms >= p->rules.retry_ms;
    node_state(p, node, enough ? PROBE_SKIPPED : PROBE_PENDING);
    n->again_ms = now_ms + after_ms;
    return enough;
}

void probe_plan_end(struct probe_plan *p, int node, enum probe_state state, double seconds)
{
    struct probe_node *n = &p->nodes[node];
    if (n->state == PROBE_RUNNING) {
        p->spent_s += seconds > 0 ? seconds : n->expected_s;
        struct probe_class *of[] = {&p->classes[n->class], &p->all};
        for (size_t i = 0; seconds > 0 && state == PROBE_DONE && i < COUNT_OF(of); i++) {
            of[i]->own_s += seconds;
            of[i]->own++;
        }
    }
    node_state(p, node, state);
}

void probe_plan_clock_set(struct probe_plan *p, int64_t step_ms)
{
    for (int i = 0; i < p->n; i++) {
        struct probe_node *n = &p->nodes[i];
        n->refused_ms += n->refused_ms ? step_ms : 0;
        n->again_ms += n->again_ms ? step_ms : 0;
    }
    p->looked = p->first;
    p->again_ms = 0;
}

// ---- What is next -------------------------------------------------------------------------------

static bool failures_pile_up(const struct probe_plan *p)
{
    int finished = p->count[PROBE_DONE] + p->count[PROBE_FAILED];
    return finished >= PROBE_STOP_LEAST &&
           100 * p->count[PROBE_FAILED] > p->rules.failed_percent * finished;
}

static bool group_has_room(const struct probe_plan *p, int group)
{
    return !p->rules.each_n || p->group_running[group] < p->rules.each_n;
}

// The first node in the order that may be probed. -1: none; again_ms: when the first one may be
// free, 0: those that are left wait for their group. A caller that starts or refuses one after the
// other looks at each node once, however many there are.
static int node_find(struct probe_plan *p, int64_t now_ms)
{
    while (p->first < p->n && p->nodes[p->order[p->first]].state != PROBE_PENDING)
        p->first++;
    if (p->looked_ms != now_ms || p->looked < p->first) {
        p->looked = p->first;
        p->looked_ms = now_ms;
        p->again_ms = 0;
    }
    for (; p->looked < p->n; p->looked++) {
        struct probe_node *n = &p->nodes[p->order[p->looked]];
        if (n->state != PROBE_PENDING)
            continue;
        if (n->refused_ms > now_ms) // the clock was ahead then
            n->refused_ms = n->again_ms = now_ms;
        if (n->again_ms > now_ms)
            p->again_ms = p->again_ms && p->again_ms < n->again_ms ? p->again_ms : n->again_ms;
        else if (group_has_room(p, n->group))
            return p->order[p->looked];
    }
    return -1;
}

static struct probe_next when_idle(const struct probe_plan *p, enum probe_action action,
                                   enum probe_why why)
{
    return (struct probe_next){p->count[PROBE_RUNNING] ? PROBE_AWAIT_END : action, why, -1, 0};
}

struct probe_next probe_plan_next(struct probe_plan *p, const struct probe_clock *now)
{
    if (failures_pile_up(p))
        return when_idle(p, PROBE_STOP, PROBE_BECAUSE_FAILURES);
    if (!p->count[PROBE_PENDING])
        return when_idle(p, PROBE_ROUND_OVER, PROBE_BECAUSE_COMPLETE);
    if (p->count[PROBE_RUNNING] >= p->rules.at_once)
        return (struct probe_next){PROBE_AWAIT_END, PROBE_BECAUSE_PLANNED, -1, 0};
    int64_t wait_min = hours_wait_min(&p->rules.window, now->day, now->minute);
    if (wait_min)
        return (struct probe_next){PROBE_AWAIT_TIME, PROBE_BECAUSE_CLOSED, -1,
                                   now->ms - now->ms % MINUTE_MS + wait_min * MINUTE_MS};
    int node = node_find(p, now->ms);
    if (node < 0 && p->again_ms)
        return (struct probe_next){PROBE_AWAIT_TIME, PROBE_BECAUSE_BUSY, -1, p->again_ms};
    if (node < 0)
        return (struct probe_next){PROBE_AWAIT_END, PROBE_BECAUSE_PLANNED, -1, 0};
    if (p->rules.budget_s > 0 &&
        p->spent_s + p->running_s + expected_of(p, node) > p->rules.budget_s)
        return when_idle(p, PROBE_ROUND_OVER, PROBE_BECAUSE_BUDGET);
    return (struct probe_next){PROBE_START, PROBE_BECAUSE_PLANNED, node, 0};
}

// ---- Beforehand ---------------------------------------------------------------------------------

// Seconds inside the window until all is done: no limit lets work of so many seconds pass faster.
static double busy_seconds(const struct probe_plan *p, const double *of_group, double all_s,
                           double longest_s)
{
    double takes_s = all_s / p->rules.at_once;
    for (int g = 0; p->rules.each_n && g < p->n_groups; g++)
        if (of_group[g] / p->rules.each_n > takes_s)
            takes_s = of_group[g] / p->rules.each_n;
    return takes_s > longest_s ? takes_s : longest_s;
}

void probe_plan_estimate(const struct probe_plan *p, const struct probe_clock *now,
                         struct probe_estimate *out)
{
    CLEANUP_MEM double *of_group = calloc((size_t)p->n_groups + 1, sizeof *of_group);
    double longest_s = 0;
    *out = (struct probe_estimate){0};
    for (int at = 0; of_group && at < p->n; at++) {
        int node = p->order[at];
        double expected_s = expected_of(p, node);
        if (p->nodes[node].state != PROBE_PENDING)
            continue;
        if (out->left_out ||
            (p->rules.budget_s > 0 &&
             p->spent_s + p->running_s + out->cost_s + expected_s > p->rules.budget_s)) {
            out->left_out++;
            continue;
        }
        out->nodes++;
        out->guessed += is_guess(p, node);
        out->cost_s += expected_s;
        of_group[p->nodes[node].group] += expected_s;
        longest_s = expected_s > longest_s ? expected_s : longest_s;
    }
    int wait_min = hours_wait_min(&p->rules.window, now->day, now->minute);
    out->begins_ms =
        wait_min ? now->ms - now->ms % MINUTE_MS + (int64_t)wait_min * MINUTE_MS : now->ms;
    double takes_s = of_group ? busy_seconds(p, of_group, out->cost_s, longest_s) : 0;
    int at = (now->day * 24 * 60 + now->minute + wait_min) % HOURS_WEEK_MIN;
    int64_t inside_min = (int64_t)(takes_s / 60);
    int64_t passed_min =
        hours_pass_min(&p->rules.window, at / (24 * 60), at % (24 * 60), inside_min);
    out->ends_ms =
        out->begins_ms + (passed_min - inside_min) * MINUTE_MS + (int64_t)(takes_s * 1e3);
}
