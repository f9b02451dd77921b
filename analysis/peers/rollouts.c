// SPDX-License-Identifier: Apache-2.0
// Neighbouring set-ups of a node are compared fact by fact. Ten thousand nodes have few different
// set-ups, so what is counted over nodes is counted over set-ups first.
#include "analysis/peers/rollouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "model/nodeset.h"

#define ROLLOUT_DAY_MS INT64_C(86400000)

enum { VALUE_KEY_ROOM = FACT_NAME_MAX + FACT_VALUE_MAX + 8 };

static int setups_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for the set-ups of so many nodes");
}

int setups_add(struct setups *s, const char *node, const char *config, int64_t from_ms,
               struct err *err)
{
    int known = s->configs.n;
    struct setup_step step = {interned_add(&s->nodes, node, err), -1, from_ms};
    step.config = step.node < 0 ? -1 : interned_add(&s->configs, config, err);
    if (step.config < 0)
        return -1;
    if (s->configs.n > s->facts_room) {
        int room = 2 * s->configs.n;
        struct fleet_facts *facts = realloc(s->facts, room * sizeof *facts);
        if (!facts)
            return setups_no_memory(err);
        memset(facts + known, 0, (room - known) * sizeof *facts);
        s->facts = facts;
        s->facts_room = room;
    }
    if (s->n == s->room) {
        int room = s->room ? 2 * s->room : 256;
        struct setup_step *list = realloc(s->list, room * sizeof *list);
        if (!list)
            return setups_no_memory(err);
        s->list = list;
        s->room = room;
    }
    s->list[s->n++] = step;
    return 0;
}

const char *setups_facts_wanted(const struct setups *s, int *at)
{
    for (; *at < s->configs.n; ++*at)
        if (!s->facts[*at].name)
            return s->configs.list[(*at)++];
    return NULL;
}

int setups_add_facts(struct setups *s, const struct facts *facts, struct err *err)
{
    int config = interned_find(&s->configs, facts->hash);
    return config < 0 ? 0 : fleet_facts_copy(&s->facts[config], facts, err);
}

void setups_fini(struct setups *s)
{
    for (int i = 0; i < s->configs.n && i < s->facts_room; i++)
        free(s->facts[i].name);
    free(s->facts);
    free(s->list);
    interned_fini(&s->nodes);
    interned_fini(&s->configs);
    *s = (struct setups){0};
}

// ---- Finding

struct rollout_search {
    const struct setups *s;
    struct rollouts *out;
    struct interned keys;
    int room;               // of the list
    int *now;               // [node]: its newest set-up; -1: its facts are not known
    int *of;                // [config]: nodes that have it now
    int known;              // nodes whose facts are known now
    struct interned values; // of facts that nodes have now
    int *with;              // [value]: so many nodes
    int values_room;
};

static bool same_fact(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static struct rollout *rollout_of(struct rollout_search *r, const char *fact, const char *from,
                                  const char *to, struct err *err)
{
    char key[FACT_NAME_MAX + 2 * FACT_VALUE_MAX + 8];
    struct rollouts *out = r->out;
    snprintf(key, sizeof key, "%s\n%c%s\n%c%s", fact, from ? '=' : '!', from ? from : "",
             to ? '=' : '!', to ? to : "");
    if (out->n == r->room) {
        int room = r->room ? 2 * r->room : 32;
        struct rollout *list = realloc(out->list, room * sizeof *list);
        if (!list) {
            setups_no_memory(err);
            return NULL;
        }
        out->list = list;
        r->room = room;
    }
    int at = interned_add(&r->keys, key, err);
    if (at < 0)
        return NULL;
    if (at == out->n)
        out->list[out->n++] = (struct rollout){.fact = fact, .from = from, .to = to};
    return &out->list[at];
}

// The list of changes has the room of the next power of two. Of a node that changed and
// changed back the last change counts.
static int rollout_add(struct rollout_search *r, const char *fact, const char *from, const char *to,
                       const struct setup_step *at, struct err *err)
{
    struct rollout *one = rollout_of(r, fact, from, to, err);
    if (!one)
        return -1;
    if (one->n && one->list[one->n - 1].node == at->node) {
        one->list[one->n - 1].at_ms = at->from_ms;
        return 0;
    }
    if ((one->n & (one->n - 1)) == 0) {
        size_t room = one->n ? 2 * (size_t)one->n : 1;
        struct rollout_change *list = realloc(one->list, room * sizeof *list);
        if (!list)
            return setups_no_memory(err);
        one->list = list;
    }
    one->list[one->n++] = (struct rollout_change){at->from_ms, at->node};
    return 0;
}

static int compare_setups(struct rollout_search *r, const struct setup_step *before,
                          const struct setup_step *after, struct err *err)
{
    const struct fleet_facts *was = &r->s->facts[before->config], *is = &r->s->facts[after->config];
    for (int i = 0; i < is->n; i++) {
        const char *value = fleet_fact(was, is->name[i]);
        if (!same_fact(value, is->value[i]) &&
            rollout_add(r, is->name[i], value, is->value[i], after, err) < 0)
            return -1;
    }
    for (int i = 0; i < was->n; i++)
        if (!fleet_fact(is, was->name[i]) &&
            rollout_add(r, was->name[i], was->value[i], NULL, after, err) < 0)
            return -1;
    return 0;
}

// A set-up whose facts are not here is passed over: the next one is compared with the one before.
static int find_changes(struct rollout_search *r, int64_t since_ms, int64_t until_ms,
                        struct err *err)
{
    const struct setups *s = r->s;
    const struct setup_step *last = NULL;
    for (int i = 0; i < s->n; i++) {
        const struct setup_step *step = &s->list[i];
        if (!s->facts[step->config].name)
            continue;
        bool in = step->from_ms >= since_ms && (until_ms == 0 || step->from_ms < until_ms);
        if (last && last->node == step->node && in && compare_setups(r, last, step, err) < 0)
            return -1;
        last = step;
        r->now[step->node] = step->config;
    }
    for (int i = 0; i < s->nodes.n; i++)
        if (r->now[i] >= 0)
            r->of[r->now[i]]++;
    return 0;
}

static int change_order(const void *a, const void *b)
{
    const struct rollout_change *x = a, *y = b;
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

// ---- Counting

// value NULL: any.
static void value_key(const char *fact, const char *value, char key[static VALUE_KEY_ROOM])
{
    snprintf(key, VALUE_KEY_ROOM, "%s%s%s", fact, value ? "\n" : "", value ? value : "");
}

static int rollout_add_value(struct rollout_search *r, const char *fact, const char *value,
                             int nodes, struct err *err)
{
    char key[VALUE_KEY_ROOM];
    int before = r->values.n;
    if (before == r->values_room) {
        int room = r->values_room ? 2 * r->values_room : 256;
        int *with = realloc(r->with, room * sizeof *with);
        if (!with)
            return setups_no_memory(err);
        r->with = with;
        r->values_room = room;
    }
    value_key(fact, value, key);
    int at = interned_add(&r->values, key, err);
    if (at < 0)
        return -1;
    r->with[at] = nodes + (at < before ? r->with[at] : 0);
    return 0;
}

// Once for all rollouts: where each node has values of its own there are as many as nodes.
static int rollout_add_values(struct rollout_search *r, struct err *err)
{
    for (int c = 0; c < r->s->configs.n; c++) {
        const struct fleet_facts *facts = &r->s->facts[c];
        r->known += r->of[c];
        for (int i = 0; r->of[c] && i < facts->n; i++)
            if (rollout_add_value(r, facts->name[i], facts->value[i], r->of[c], err) < 0 ||
                rollout_add_value(r, facts->name[i], NULL, r->of[c], err) < 0)
                return -1;
    }
    return 0;
}

static int nodes_with_value(const struct rollout_search *r, const char *fact, const char *value)
{
    char key[VALUE_KEY_ROOM];
    value_key(fact, value, key);
    int at = interned_find(&r->values, key);
    return at < 0 ? 0 : r->with[at];
}

static void rollout_count(const struct rollout_search *r, struct rollout *one)
{
    one->remaining = one->from ? nodes_with_value(r, one->fact, one->from)
                               : r->known - nodes_with_value(r, one->fact, NULL);
    for (int i = 0; i < one->n; i++) {
        int now = r->now[one->list[i].node];
        one->reverted += !same_fact(fleet_fact(&r->s->facts[now], one->fact), one->to);
    }
    qsort(one->list, one->n, sizeof *one->list, change_order);
}

static int rollout_order(const void *a, const void *b)
{
    const struct rollout *x = a, *y = b;
    int64_t one = x->list[x->n - 1].at_ms, other = y->list[y->n - 1].at_ms;
    if (x->n != y->n)
        return y->n - x->n;
    if (one != other)
        return one > other ? -1 : 1;
    int order = strcmp(x->fact, y->fact);
    return order ? order : strcmp(x->to ? x->to : "", y->to ? y->to : "");
}

int rollouts_find(struct rollouts *out, const struct setups *s, int64_t since_ms, int64_t until_ms,
                  struct err *err)
{
    struct rollouts made = {0};
    CLEANUP_MEM int *now = malloc((s->nodes.n + 1) * sizeof *now);
    CLEANUP_MEM int *of = calloc(s->configs.n + 1, sizeof *of);
    struct rollout_search r = {.s = s, .out = &made, .now = now, .of = of};
    if (!now || !of)
        return setups_no_memory(err);
    for (int i = 0; i < s->nodes.n; i++)
        now[i] = -1;
    int rc = find_changes(&r, since_ms, until_ms, err);
    rc = rc < 0 ? rc : rollout_add_values(&r, err);
    for (int i = 0; i < made.n && rc == 0; i++)
        rollout_count(&r, &made.list[i]);
    interned_fini(&r.keys);
    interned_fini(&r.values);
    free(r.with);
    if (rc < 0) {
        rollouts_fini(&made);
        return -1;
    }
    if (made.n)
        qsort(made.list, made.n, sizeof *made.list, rollout_order);
    *out = made;
    return 0;
}

void rollouts_fini(struct rollouts *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->list[i].list);
    free(r->list);
    *r = (struct rollouts){0};
}

// ---- JSON

static void write_wave(const struct rollout *one, int from, int end, const struct setups *s,
                       struct jsonw *w)
{
    CLEANUP_NODESET struct nodeset names = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    char day[32];
    for (int i = from; i < end; i++)
        if (nodeset_add(&names, s->nodes.list[one->list[i].node], NULL) < 0)
            break;
    nodeset_sort(&names);
    nodeset_fold(&names, &text);
    clock_rfc3339(one->list[from].at_ms, day);
    day[10] = 0;
    jsonw_object(w, NULL);
    jsonw_text(w, "day", day);
    jsonw_i64(w, "nodes", end - from);
    jsonw_text(w, "names", text.len <= ROLLOUT_NAMES_MAX ? buf_text(&text) : NULL);
    jsonw_end(w);
}

static int wave_end(const struct rollout *one, int from)
{
    int64_t day = one->list[from].at_ms / ROLLOUT_DAY_MS;
    while (from < one->n && one->list[from].at_ms / ROLLOUT_DAY_MS == day)
        from++;
    return from;
}

static void write_waves(const struct rollout *one, const struct setups *s, struct jsonw *w)
{
    int days = 0, day = 0;
    for (int from = 0; from < one->n; from = wave_end(one, from))
        days++;
    jsonw_i64(w, "days", days);
    jsonw_array(w, "waves");
    for (int from = 0; from < one->n; from = wave_end(one, from), day++)
        if (day >= days - ROLLOUT_WAVES_MAX)
            write_wave(one, from, wave_end(one, from), s, w);
    jsonw_end(w);
}

void rollouts_write_json(const struct rollouts *r, const struct setups *s, const char *fact,
                         int limit, struct jsonw *w)
{
    int left_out = 0, written = 0;
    jsonw_array(w, "rollouts");
    for (int i = 0; i < r->n; i++) {
        const struct rollout *one = &r->list[i];
        if (fact && strcmp(fact, one->fact) != 0)
            continue;
        if (written == limit) {
            left_out++;
            continue;
        }
        written++;
        jsonw_object(w, NULL);
        jsonw_text(w, "fact", one->fact);
        jsonw_text(w, "from", one->from);
        jsonw_text(w, "to", one->to);
        jsonw_i64(w, "nodes", one->n);
        jsonw_i64(w, "remaining", one->remaining);
        jsonw_i64(w, "reverted", one->reverted);
        jsonw_time(w, "first", one->list[0].at_ms);
        jsonw_time(w, "last", one->list[one->n - 1].at_ms);
        write_waves(one, s, w);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_i64(w, "left_out", left_out);
}
