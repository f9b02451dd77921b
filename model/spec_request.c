// SPDX-License-Identifier: Apache-2.0
// A table has the members that a mode of a benchmark does not read. Only values that differ from
// those of the benchmark and of its quick run are refused: whoever repeats the spec of a stored run
// repeats all members, and --quick sets some that the chosen mode does not read.
#include "model/spec_request.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/scan.h"
#include "model/spec_values.h"

enum { UNUSED_MOST = 6, PAGE_LEAST = 4096 };

static bool names_cpus(const struct spec *s)
{
    return *s->cpus != '\0';
}

static bool is_classic(const struct spec *s)
{
    return s->method == METHOD_CLASSIC;
}

static bool copies_memory(const struct spec *s)
{
    return s->sweep == SWEEP_MEMCPY;
}

static bool has_all_threads(const struct spec *s)
{
    return s->sweep != SWEEP_THREADS && s->sweep != SWEEP_SIZES;
}

static bool has_own_stores(const struct spec *s)
{
    const char *kernel = spec_param(s, "kernel")->choices[s->kernel];
    return strcmp(kernel, "read") == 0 || strcmp(kernel, "write") == 0;
}

static bool reads_lines(const struct spec *s)
{
    return s->definition == C2C_ONLY_HITM || s->definition == C2C_ONLY_HIT ||
           s->definition == C2C_STATES;
}

static bool has_locks_only(const struct spec *s)
{
    int64_t list[AXIS_OPERATIONS];
    return spec_operations(s, list) > 0 && operation_is_lock((enum operation)list[0]);
}

static const struct unused {
    int benchmark;                      // enum benchmark_id; BENCHMARKS: each
    bool (*when)(const struct spec *s); // NULL: always
    const char *members[UNUSED_MOST];   // ends with NULL
    const char *why;
} unused[] = {
    {BENCHMARKS, names_cpus, {"hyperthreads"}, "beside cpus, which names every CPU"},
    {BENCHMARK_LATENCY,
     is_classic,
     {"visits", "precision", "min_samples", "sample_us", "cell_ms"},
     "with method classic, which times each cell once; method prp has it"},
    {BENCHMARK_BANDWIDTH,
     copies_memory,
     {"stores"},
     "with sweep memcpy, which measures memcpy and streaming stores"},
    {BENCHMARK_BANDWIDTH,
     has_own_stores,
     {"stores"},
     "with kernels read and write: read stores nothing, and write always streams"},
    // Earlier versions stored "doubling", their default, with each sweep.
    {BENCHMARK_BANDWIDTH,
     has_all_threads,
     {"threads"},
     "with this sweep; threads and sizes have it"},
    {BENCHMARK_C2C,
     reads_lines,
     {"lines"},
     "with definitions hitm, hit and states, which read 128 lines; cas and load have it"},
    {BENCHMARK_ATOMICS, has_locks_only, {"form"}, "on locks; fetch_add, cas and exchange have it"},
    {BENCHMARK_FIRSTTOUCH, NULL, {"seed"}, "with firsttouch, which has no random order"},
};

static bool request_differs(const struct param *p, const struct spec *a, const struct spec *b)
{
    char of_a[SPEC_TEXT_MAX], of_b[SPEC_TEXT_MAX];
    param_get_text(p, a, of_a, sizeof of_a);
    param_get_text(p, b, of_b, sizeof of_b);
    return strcmp(of_a, of_b) != 0;
}

// The same benchmark with nothing given; that of quick, if quick.
static struct spec usual_of(const struct spec *s)
{
    struct spec usual;
    spec_init(&usual, (enum benchmark_id)s->benchmark);
    if (s->quick)
        spec_quick(&usual);
    return usual;
}

// Neither the default nor what quick sets.
static bool is_given(const struct spec *s, const char *member)
{
    struct spec usual;
    const struct param *p = spec_param(s, member);
    spec_init(&usual, (enum benchmark_id)s->benchmark);
    if (!p || !request_differs(p, s, &usual))
        return false;
    spec_quick(&usual);
    return !s->quick || request_differs(p, s, &usual);
}

static bool is_about(const struct unused *u, const struct spec *s)
{
    return (u->benchmark == BENCHMARKS || u->benchmark == s->benchmark) && (!u->when || u->when(s));
}

static int check_unused(const struct spec *s, const struct unused *u, struct err *err)
{
    for (int i = 0; is_about(u, s) && u->members[i]; i++)
        if (is_given(s, u->members[i]))
            return err_set(err, ERR_INVALID, u->members[i], "has no effect %s: leave it out",
                           u->why);
    return 0;
}

static int check_locality(const struct spec *s, struct err *err)
{
    uint64_t largest = spec_bytes_per_rank(s, 0);
    char text[24];
    if (!s->locality || s->locality < largest)
        return 0;
    str_from_bytes(largest, text, sizeof text);
    return err_set(err, ERR_INVALID, "locality",
                   "has no effect unless it is below the largest working set, %s: make it smaller "
                   "or leave it out",
                   text);
}

// Every repetition has a pass.
static int check_passes(const struct spec *s, struct err *err)
{
    if (!spec_param(s, "passes") || s->visits <= s->passes || !is_given(s, "visits"))
        return 0;
    return err_set(err, ERR_INVALID, "visits",
                   "must be at most passes (%" PRId64 "), because each repetition has a pass at "
                   "least: raise passes too; got %" PRId64,
                   s->passes, s->visits);
}

static int check_stores(const struct spec *s, struct err *err)
{
    if (s->instructions != INSTRUCTIONS_SCALAR)
        return 0;
    if (copies_memory(s))
        return err_set(err, ERR_INVALID, "instructions",
                       "must not be scalar with sweep memcpy, which measures streaming stores: "
                       "scalar instructions have none");
    if (s->stores != STORES_STREAMING)
        return 0;
    return err_set(err, ERR_INVALID, "stores",
                   "must be cached with scalar instructions, which have no streaming stores");
}

static int check_least(const struct spec *s, struct err *err)
{
    if (s->benchmark == BENCHMARK_SCAN && s->visits < SCAN_VISITS_LEAST)
        return err_set(err, ERR_INVALID, "visits",
                       "must be %d at least: fewer cannot confirm that anything is slow; got "
                       "%" PRId64,
                       SCAN_VISITS_LEAST, s->visits);
    if (s->benchmark == BENCHMARK_PAGEFAULT && spec_bytes_per_rank(s, PAGE_LEAST) < PAGE_LEAST)
        return err_set(err, ERR_INVALID, "size", "must be 4K at least: whole pages are touched");
    return 0;
}

static void forget_unused(struct spec *s)
{
    const struct spec usual = usual_of(s);
    for (size_t k = 0; k < COUNT_OF(unused); k++)
        for (int i = 0; is_about(&unused[k], s) && unused[k].members[i]; i++) {
            const struct param *p = spec_param(s, unused[k].members[i]);
            char text[SPEC_TEXT_MAX];
            if (!p || !is_given(s, p->name))
                continue;
            param_get_text(p, &usual, text, sizeof text);
            param_set_text(p, s, text, NULL);
        }
}

int spec_from_run(struct spec *s, const struct json *object, struct err *err)
{
    if (spec_from_json(s, object, NULL, err) < 0)
        return -1;
    forget_unused(s);
    return 0;
}

int spec_check_request(const struct spec *s, struct err *err)
{
    for (size_t i = 0; i < COUNT_OF(unused); i++)
        if (check_unused(s, &unused[i], err) < 0)
            return -1;
    if (check_locality(s, err) < 0 || check_passes(s, err) < 0 || check_stores(s, err) < 0 ||
        check_least(s, err) < 0)
        return -1;
    return spec_check_note(s, err);
}

static bool request_has(const struct param_given *given, const struct param *p)
{
    for (int i = 0; given && i < given->n; i++)
        if (given->list[i] == p)
            return true;
    return false;
}

void spec_write_request(const struct spec *s, const struct param_given *given, struct jsonw *w,
                        const char *key)
{
    const struct benchmark *b = &benchmarks[s->benchmark];
    const struct param_table *const tables[] = {&b->params, &spec_common};
    const struct spec usual = usual_of(s);
    jsonw_object(w, key);
    jsonw_text(w, "benchmark", b->name);
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (int i = 0; i < tables[t]->n; i++) {
            const struct param *p = &tables[t]->params[i];
            if (request_differs(p, s, &usual) || request_has(given, p) ||
                (s->quick && strcmp(p->name, "quick") == 0))
                param_write_value(p, s, w);
        }
    jsonw_end(w);
}
