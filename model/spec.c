// SPDX-License-Identifier: Apache-2.0
// All functions walk over the two parameter tables of a benchmark: its own and the common one.
// None of them names a benchmark.
#include "model/spec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/target.h"
#include "model/topology.h"

const struct benchmark *benchmark_find(const char *name)
{
    for (int i = 0; i < BENCHMARKS; i++)
        if (strcmp(benchmarks[i].name, name) == 0)
            return &benchmarks[i];
    return NULL;
}

// A value from our own tables; a test sets every one of them.
static void preset(struct spec *s, const struct preset *list)
{
    for (; list->name; list++)
        param_set_text(spec_param(s, list->name), s, list->value, NULL);
}

const struct param *spec_param(const struct spec *s, const char *name)
{
    const struct param *p = param_find(&spec_common, name);
    return p ? p : param_find(&benchmarks[s->benchmark].params, name);
}

void spec_init(struct spec *s, enum benchmark_id id)
{
    memset(s, 0, sizeof *s);
    s->benchmark = id;
    param_defaults(&spec_common, s);
    param_defaults(&benchmarks[id].params, s);
    preset(s, benchmarks[id].defaults);
}

void spec_quick(struct spec *s)
{
    preset(s, benchmarks[s->benchmark].quick);
    s->quick = true;
}

const char *spec_method(const struct spec *s)
{
    return s->method == METHOD_CLASSIC ? "classic-v1" : benchmarks[s->benchmark].method;
}

static void add_variant(const struct param_table *t, const struct spec *s,
                        const struct spec *defaults, struct buf *out)
{
    for (int i = 0; i < t->n; i++) {
        char value[SPEC_TEXT_MAX], plain[SPEC_TEXT_MAX];
        const struct param *p = &t->params[i];
        param_get_text(p, s, value, sizeof value);
        param_get_text(p, defaults, plain, sizeof plain);
        if (!p->effort && strcmp(value, plain) != 0)
            buf_fmt(out, "%s%s=%s", out->len ? " " : "", p->name, value);
    }
}

void spec_variant(const struct spec *s, struct buf *out)
{
    struct spec defaults;
    spec_init(&defaults, (enum benchmark_id)s->benchmark);
    add_variant(&benchmarks[s->benchmark].params, s, &defaults, out);
    add_variant(&spec_common, s, &defaults, out);
}

static int add_differences(const struct param_table *t, const struct spec *a, const struct spec *b,
                           struct spec_difference *out, int n, int most)
{
    for (int i = 0; i < t->n; i++) {
        const struct param *p = &t->params[i];
        char of_a[SPEC_TEXT_MAX], of_b[SPEC_TEXT_MAX];
        param_get_text(p, a, of_a, sizeof of_a);
        param_get_text(p, b, of_b, sizeof of_b);
        if (p->effort || strcmp(of_a, of_b) == 0)
            continue;
        if (n < most) {
            out[n].name = p->name;
            snprintf(out[n].a, sizeof out[n].a, "%s", of_a);
            snprintf(out[n].b, sizeof out[n].b, "%s", of_b);
        }
        n++;
    }
    return n;
}

int spec_difference(const struct spec *a, const struct spec *b, struct spec_difference *out,
                    int most)
{
    if (a->benchmark == b->benchmark) {
        int n = add_differences(&benchmarks[a->benchmark].params, a, b, out, 0, most);
        return add_differences(&spec_common, a, b, out, n, most);
    }
    if (most > 0) {
        out[0].name = "benchmark";
        snprintf(out[0].a, sizeof out[0].a, "%s", benchmarks[a->benchmark].name);
        snprintf(out[0].b, sizeof out[0].b, "%s", benchmarks[b->benchmark].name);
    }
    return 1;
}

static bool listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static int spec_read_member(struct spec *s, const struct json *m, struct err *err)
{
    const struct param *p = spec_param(s, json_name(m));
    if (!p)
        return err_set(err, ERR_INVALID, json_name(m),
                       "is not a parameter of benchmark \"%s\" (GET /v1/benchmarks lists them)",
                       benchmarks[s->benchmark].name);
    return param_set_json(p, s, m, err);
}

// The kernel that quick chooses means nothing where memory is copied. Otherwise a quick run would
// be of another variant than the same run without it.
static void forget_kernel(struct spec *s)
{
    struct spec preset;
    spec_init(&preset, BENCHMARK_BANDWIDTH);
    spec_quick(&preset);
    if (s->benchmark == BENCHMARK_BANDWIDTH && s->sweep == SWEEP_MEMCPY && s->quick &&
        s->kernel == preset.kernel)
        s->kernel = 0;
}

// The first rank of a pair is the lower one, however a list that was checked has it. So 1-0 is the
// series of 0-1.
static void order_pairs(struct spec *s)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    int first, second, used = 0;
    if (!isdigit((unsigned char)*s->pairs))
        return;
    for (const char *at = s->pairs; sscanf(at, "%4d-%4d%n", &first, &second, &used) == 2;) {
        buf_fmt(&text, "%s%d-%d", text.len ? "," : "", first < second ? first : second,
                first < second ? second : first);
        at += used + (at[used] == ',');
    }
    if (buf_ok(&text))
        snprintf(s->pairs, sizeof s->pairs, "%s", buf_text(&text));
}

int spec_from_json(struct spec *s, const struct json *object, const char *const *ignore,
                   struct err *err)
{
    if (!json_is_object(object))
        return err_set(err, ERR_INVALID, "",
                       "must be a JSON object such as {\"benchmark\":\"latency\"}");
    const struct json *which = json_get(object, "benchmark");
    if (!which)
        return err_set(err, ERR_INVALID, "benchmark", "is missing; for example \"latency\"");
    const struct benchmark *b = json_text(which) ? benchmark_find(json_text(which)) : NULL;
    if (!json_text(which))
        return err_set(err, ERR_INVALID, "benchmark", "must be a text such as \"latency\"");
    if (!b)
        return err_set(err, ERR_INVALID, "benchmark",
                       "\"%.40s\" is not a benchmark (GET /v1/benchmarks lists them)",
                       json_text(which));
    struct spec got;
    bool quick = false;
    spec_init(&got, (enum benchmark_id)(b - benchmarks));
    if (json_bool(json_get(object, "quick"), &quick) && quick)
        spec_quick(&got);
    for (const struct json *m = json_first(object); m; m = json_next(m)) {
        if (m == which || listed(ignore, json_name(m)))
            continue;
        if (spec_read_member(&got, m, err) < 0)
            return -1;
    }
    forget_kernel(&got);
    if (spec_check(&got, err) < 0)
        return -1;
    order_pairs(&got);
    *s = got;
    return 0;
}

int spec_check_note(const struct spec *s, struct err *err)
{
    const char *control = str_control(s->note, strlen(s->note));
    return control ? err_set(err, ERR_INVALID, "note", "has %s", str_control_name(control).text)
                   : 0;
}

void spec_write_json(const struct spec *s, struct jsonw *w, const char *key)
{
    const struct benchmark *b = &benchmarks[s->benchmark];
    jsonw_object(w, key);
    jsonw_text(w, "benchmark", b->name);
    for (int i = 0; i < b->params.n; i++)
        param_write_value(&b->params.params[i], s, w);
    for (int i = 0; i < spec_common.n; i++)
        param_write_value(&spec_common.params[i], s, w);
    jsonw_end(w);
}

static int check_ranks(const struct spec *s, struct err *err)
{
    static const char *const words[] = {"all-cores", "one-per-numa", "one-per-l3", NULL};
    uint64_t n;
    if (listed(words, s->ranks))
        return 0;
    if (!str_to_u64(s->ranks, &n) || n < 1 || n > SPEC_RANKS_MAX)
        return err_set(err, ERR_INVALID, "ranks",
                       "must be all-cores, one-per-numa, one-per-l3 or ranks per node from 1 to "
                       "%d; got \"%s\"",
                       SPEC_RANKS_MAX, s->ranks);
    return 0;
}

int spec_cpus(const struct spec *s, int **ids, int *n, struct err *err)
{
    CLEANUP_MEM int *got = NULL;
    if (str_to_ids(s->cpus, true, SPEC_RANKS_MAX, "cpus", &got, n, err) < 0)
        return -1;
    for (int i = 0; i < *n && !s->oversubscribe; i++)
        for (int k = 0; k < i; k++)
            if (got[k] == got[i])
                return err_set(err, ERR_INVALID, "cpus",
                               "lists CPU %d twice: several ranks on one CPU take turns, and need "
                               "oversubscribe",
                               got[i]);
    *ids = steal_ptr(&got);
    return 0;
}

static int check_placement(const struct spec *s, struct err *err)
{
    CLEANUP_MEM int *ids = NULL;
    int n = 0;
    if (*s->cpus && spec_cpus(s, &ids, &n, err) < 0)
        return -1;
    if (!*s->cpus && check_ranks(s, err) < 0)
        return -1;
    CLEANUP_MEM int *nodes = NULL;
    struct target_list list;
    if (target_is_policy(s->numa))
        return targets_read(&list, s->numa, "numa", err);
    if (strcmp(s->numa, "local") == 0 || strcmp(s->numa, "auto") == 0)
        return 0;
    if (!*s->numa)
        return err_set(
            err, ERR_INVALID, "numa",
            "must be local, auto, a node (3), a list (0,0,1,1), interleave:0-3 or weighted:0-1");
    return str_to_ids(s->numa, true, SPEC_RANKS_MAX, "numa", &nodes, &n, err);
}

int spec_check(const struct spec *s, struct err *err)
{
    return check_placement(s, err) < 0 ? -1 : benchmarks[s->benchmark].check(s, err);
}

int64_t spec_pairs_of(const struct spec *s, int64_t all)
{
    return s->pairs_most && s->pairs_most < all ? s->pairs_most : all;
}

int64_t spec_fewer_pairs(int64_t pairs)
{
    int64_t fewer = 1;
    while (2 * fewer < pairs)
        fewer *= 2;
    return fewer;
}

int64_t spec_fewest_pairs(int64_t members)
{
    return members > PAIR_CLASSES ? members : PAIR_CLASSES;
}

bool spec_has_targets(const struct spec *s)
{
    return spec_param(s, "targets") && (!spec_param(s, "home") || s->home == C2C_HOME_THIRD) &&
           s->sweep != SWEEP_OWN && s->sweep != SWEEP_SIZES && strcmp(s->targets, "own") != 0;
}

static void write_params(const struct param_table *t, struct jsonw *w, const char *key)
{
    jsonw_array(w, key);
    for (int i = 0; i < t->n; i++)
        param_write_catalogue(&t->params[i], w);
    jsonw_end(w);
}

void spec_write_catalogue(struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_array(w, "benchmarks");
    for (int i = 0; i < BENCHMARKS; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "name", benchmarks[i].name);
        jsonw_text(w, "title", benchmarks[i].title);
        jsonw_text(w, "help", benchmarks[i].help);
        jsonw_text(w, "method", benchmarks[i].method);
        write_params(&benchmarks[i].params, w, "params");
        jsonw_end(w);
    }
    jsonw_end(w);
    write_params(&spec_common, w, "common");
    jsonw_end(w);
}
