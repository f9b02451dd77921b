// SPDX-License-Identifier: Apache-2.0
#include "model/spec_request.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "model/spec_values.h"
#include "tests/unit/tap.h"

static int read_spec(struct spec *s, const char *text, struct err *err)
{
    static const char *const ours[] = {"dry_run", NULL};
    CLEANUP_JSON struct json *j = json_parse(text, strlen(text), err);
    return j ? spec_from_json(s, j, ours, err) : -1;
}

static void accepts(void)
{
    struct spec s;
    struct err err = {0};
    CHECK(read_spec(&s, "{\"benchmark\":\"latency\"}", &err) == 0 && s.min_samples == 16 &&
              !strcmp(s.numa, "local"),
          "a benchmark's name is enough");
    CHECK(read_spec(
              &s, "{\"benchmark\":\"latency\",\"size\":64,\"numa\":3,\"ranks\":2,\"dry_run\":true}",
              &err) == 0 &&
              !strcmp(s.size, "64") && !strcmp(s.numa, "3") && !strcmp(s.ranks, "2"),
          "whole numbers where texts could stand, and members that are somebody else's");
}

static void notes(void)
{
    struct spec s;
    struct err err = {0};
    CHECK(read_spec(&s, "{\"benchmark\":\"latency\",\"note\":\"a\\u0007b\"}", &err) == 0,
          "a run that is stored may have any note");
    CHECK(spec_check_note(&s, &err) < 0 && !strcmp(err.member, "note") &&
              strstr(err.text, "U+0007"),
          "a new one may not: %s", err.text);
    CHECK(read_spec(&s, "{\"benchmark\":\"latency\",\"note\":\"a\\u009b2J\"}", &err) == 0 &&
              spec_check_note(&s, &err) < 0 && strstr(err.text, "U+009B"),
          "nor one of another kind: %s", err.text);
    CHECK(read_spec(&s, "{\"benchmark\":\"latency\",\"note\":\"cafe\\tno. 7\"}", &err) == 0 &&
              spec_check_note(&s, &err) == 0,
          "a note with a tab");
}

static const struct {
    const char *json, *member;
} bad[] = {
    {"[]", ""},
    {"{}", "benchmark"},
    {"{\"benchmark\":7}", "benchmark"},
    {"{\"benchmark\":\"speed\"}", "benchmark"},
    {"{\"benchmark\":\"latency\",\"colour\":1}", "colour"},
    {"{\"benchmark\":\"latency\",\"size\":\"0\"}", "size"},
    {"{\"benchmark\":\"latency\",\"size\":\"100T\"}", "size"},
    {"{\"benchmark\":\"latency\",\"size\":\"256B\"}", "size"},
    {"{\"benchmark\":\"latency\",\"size\":\"64K\",\"stride\":\"64K\"}", "size"},
    {"{\"benchmark\":\"latency\",\"stride\":12}", "stride"},
    {"{\"benchmark\":\"atomics\",\"threads\":\"1\"}", "threads"},
    {"{\"benchmark\":\"atomics\",\"threads\":\"0,2\"}", "threads"},
    {"{\"benchmark\":\"atomics\",\"operation\":\"add\"}", "operation"},
    {"{\"benchmark\":\"atomics\",\"form\":\"x86\"}", "form"},
    {"{\"benchmark\":\"atomics\",\"numa\":\"0\"}", "numa"},
    {"{\"benchmark\":\"c2c\",\"targets\":\"1\"}", "targets"},
    {"{\"benchmark\":\"c2c\",\"home\":\"third\",\"targets\":\"none\"}", "targets"},
    {"{\"benchmark\":\"c2c\",\"home\":\"fourth\"}", "home"},
    {"{\"benchmark\":\"latency\",\"stride\":-8}", "stride"},
    {"{\"benchmark\":\"latency\",\"mode\":\"fast\"}", "mode"},
    {"{\"benchmark\":\"latency\",\"min_samples\":6}", "min_samples"},
    {"{\"benchmark\":\"latency\",\"precision\":0}", "precision"},
    {"{\"benchmark\":\"latency\",\"cpus\":\"1,1\"}", "cpus"},
    {"{\"benchmark\":\"latency\",\"cpus\":\"one\"}", "cpus"},
    {"{\"benchmark\":\"latency\",\"ranks\":\"some\"}", "ranks"},
    {"{\"benchmark\":\"latency\",\"ranks\":0}", "ranks"},
    {"{\"benchmark\":\"latency\",\"numa\":\"\"}", "numa"},
    {"{\"benchmark\":\"latency\",\"numa\":\"0;1\"}", "numa"},
    {"{\"benchmark\":\"latency\",\"hyperthreads\":\"yes\"}", "hyperthreads"},
    {"{\"benchmark\":\"latency\",\"timeout_s\":-1}", "timeout_s"},
    {"{\"benchmark\":\"latency\",\"size\":\"9223372036854775808\"}", "size"},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"stride\":64}", "stride"},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"locality\":\"1M\"}", "locality"},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"load\":\"read\"}", "load"},
    {"{\"benchmark\":\"latency\",\"locality\":256}", "locality"},
    {"{\"benchmark\":\"latency\",\"load_cpus\":\"1\"}", "load_cpus"},
    {"{\"benchmark\":\"latency\",\"load_rate\":10}", "load_rate"},
    {"{\"benchmark\":\"latency\",\"load\":\"read\",\"load_cpus\":\"1,1\"}", "load_cpus"},
    {"{\"benchmark\":\"latency\",\"targets\":\"0\"}", "targets"},
    {"{\"benchmark\":\"matrix\",\"size\":\"1-64\"}", "size"},
    {"{\"benchmark\":\"matrix\",\"targets\":\"x\"}", "targets"},
    {"{\"benchmark\":\"matrix\",\"numa\":\"0\"}", "numa"},
    {"{\"benchmark\":\"bandwidth\",\"sweep\":\"own\",\"targets\":\"0\"}", "targets"},
    {"{\"benchmark\":\"bandwidth\",\"kernel\":\"dot\"}", "kernel"},
    {"{\"benchmark\":\"bandwidth\",\"sweep\":\"sizes\",\"targets\":\"0\"}", "targets"},
    {"{\"benchmark\":\"bandwidth\",\"sweep\":\"sizes\",\"size\":\"1K,1M\"}", "size"},
    {"{\"benchmark\":\"bandwidth\",\"size\":\"64K,1M\"}", "size"},
    {"{\"benchmark\":\"bandwidth\",\"sweep\":\"memcpy\",\"kernel\":\"read\"}", "kernel"},
    {"{\"benchmark\":\"bandwidth\",\"instructions\":\"mmx\"}", "instructions"},
    {"{\"benchmark\":\"bandwidth\",\"stores\":\"fast\"}", "stores"},
    {"{\"benchmark\":\"bandwidth\",\"sweep\":\"threads\",\"threads\":\"0,2\"}", "threads"},
    {"{\"benchmark\":\"bandwidth\",\"sweep\":\"threads\",\"threads\":\"many\"}", "threads"},
    {"{\"benchmark\":\"bandwidth\",\"passes\":1}", "passes"},
    {"{\"benchmark\":\"pingpong\",\"pairs\":\"0-0\"}", "pairs"},
    {"{\"benchmark\":\"pingpong\",\"pairs\":\"0-1,\"}", "pairs"},
    {"{\"benchmark\":\"pingpong\",\"pairs\":\"0-1;2-3\"}", "pairs"},
    {"{\"benchmark\":\"pingpong\",\"pairs\":\"0--1\"}", "pairs"},
    {"{\"benchmark\":\"pingpong\",\"pairs\":\"0-1,2-3,1-0\"}", "pairs"},
    {"{\"benchmark\":\"c2c\",\"pairs\":\"\"}", "pairs"},
    {"{\"benchmark\":\"c2c\",\"pairs\":\"0-1,0\"}", "pairs"},
    {"{\"benchmark\":\"c2c\",\"pairs\":\"0-1\",\"pairs_most\":9}", "pairs_most"},
    {"{\"benchmark\":\"pingpong\",\"pairs\":\"classes\",\"pairs_most\":9}", "pairs_most"},
    {"{\"benchmark\":\"c2c\",\"pairs_most\":4}", "pairs_most"},
    {"{\"benchmark\":\"c2c\",\"pairs\":\"0-1\",\"concurrent_pairs\":\"all\"}", "concurrent_pairs"},
    {"{\"benchmark\":\"pingpong\",\"message_max\":\"1G\"}", "message_max"},
    {"{\"benchmark\":\"pingpong\",\"launcher\":\"processes\"}", "launcher"},
    {"{\"benchmark\":\"c2c\",\"lines\":0}", "lines"},
    {"{\"benchmark\":\"c2c\",\"size\":\"1\"}", "size"},
    {"{\"benchmark\":\"firsttouch\",\"numa\":\"auto\"}", "numa"},
    {"{\"benchmark\":\"firsttouch\",\"size\":\"2K\"}", "size"},
    {"{\"benchmark\":\"loaded\",\"load\":\"none\"}", "load"},
    {"{\"benchmark\":\"loaded\",\"steps\":0}", "steps"},
    {"{\"benchmark\":\"loaded\",\"mix\":\"4:1\"}", "mix"},
    {"{\"benchmark\":\"loaded\",\"mix\":\"reads,\"}", "mix"},
    {"{\"benchmark\":\"loaded\",\"mix\":\"nt,nt\"}", "mix"},
    {"{\"benchmark\":\"loaded\",\"mix\":\"all,copy\"}", "mix"},
    {"{\"benchmark\":\"loaded\",\"mix\":\"nt\",\"load\":\"copy\"}", "load"},
    {"{\"benchmark\":\"loaded\",\"targets\":\"near\"}", "targets"},
    {"{\"benchmark\":\"loaded\",\"targets\":\"0\",\"numa\":\"1\"}", "numa"},
    {"{\"benchmark\":\"matrix\",\"targets\":\"own\"}", "targets"},
    {"{\"benchmark\":\"latency\",\"quick\":\"very\"}", "quick"},
};

static void refuses(void)
{
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        struct spec s;
        struct err err = {0};
        CHECK(read_spec(&s, bad[k].json, &err) < 0 && err.code == ERR_INVALID &&
                  !strcmp(err.member, bad[k].member) && *err.text,
              "%s: refused by name", bad[k].json);
    }
}

// What a stored run may have, and a new one may not: the member has no effect.
static const struct {
    const char *json, *member; // "" accepted
} new_runs[] = {
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"visits\":3}", "visits"},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"precision\":3}", "precision"},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"min_samples\":30}", "min_samples"},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"sample_us\":30}", "sample_us"},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"cell_ms\":30}", "cell_ms"},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"quick\":true,\"visits\":3}", "visits"},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"quick\":true}", ""},
    {"{\"benchmark\":\"latency\",\"method\":\"classic\",\"visits\":8,\"seed\":3}", ""},
    {"{\"benchmark\":\"latency\",\"size\":\"1,2\",\"locality\":\"2M\"}", "locality"},
    {"{\"benchmark\":\"latency\",\"size\":\"1,2\",\"locality\":\"1M\"}", ""},
    {"{\"benchmark\":\"latency\",\"hyperthreads\":true,\"cpus\":\"0\"}", "hyperthreads"},
    {"{\"benchmark\":\"c2c\",\"hyperthreads\":true,\"cpus\":\"0,1\"}", "hyperthreads"},
    {"{\"benchmark\":\"latency\",\"hyperthreads\":true,\"ranks\":2}", ""},
    {"{\"benchmark\":\"c2c\",\"definition\":\"hitm\",\"lines\":4}", "lines"},
    {"{\"benchmark\":\"c2c\",\"definition\":\"hit\",\"lines\":1}", "lines"},
    {"{\"benchmark\":\"c2c\",\"definition\":\"states\",\"lines\":4}", "lines"},
    {"{\"benchmark\":\"c2c\",\"definition\":\"all\",\"lines\":4}", ""},
    {"{\"benchmark\":\"c2c\",\"definition\":\"hit\",\"repetitions\":300}", ""},
    {"{\"benchmark\":\"atomics\",\"operation\":\"locks\",\"form\":\"llsc\"}", "form"},
    {"{\"benchmark\":\"atomics\",\"operation\":\"mcs\",\"form\":\"lse\"}", "form"},
    {"{\"benchmark\":\"atomics\",\"operation\":\"cas\",\"form\":\"lse\"}", ""},
    {"{\"benchmark\":\"atomics\",\"form\":\"lse\"}", ""},
    {"{\"benchmark\":\"bandwidth\",\"sweep\":\"memcpy\",\"stores\":\"streaming\"}", "stores"},
    {"{\"benchmark\":\"bandwidth\",\"kernel\":\"read\",\"stores\":\"streaming\"}", "stores"},
    {"{\"benchmark\":\"bandwidth\",\"kernel\":\"write\",\"stores\":\"streaming\"}", "stores"},
    {"{\"benchmark\":\"bandwidth\",\"kernel\":\"add\",\"stores\":\"streaming\"}", ""},
    {"{\"benchmark\":\"bandwidth\",\"instructions\":\"scalar\",\"stores\":\"streaming\"}",
     "stores"},
    {"{\"benchmark\":\"bandwidth\",\"instructions\":\"scalar\",\"sweep\":\"memcpy\"}",
     "instructions"},
    {"{\"benchmark\":\"bandwidth\",\"instructions\":\"scalar\",\"sweep\":\"own\"}", ""},
    {"{\"benchmark\":\"bandwidth\",\"visits\":9}", "visits"},
    {"{\"benchmark\":\"bandwidth\",\"visits\":9,\"passes\":9}", ""},
    {"{\"benchmark\":\"bandwidth\",\"passes\":3}", ""},
    {"{\"benchmark\":\"bandwidth\",\"quick\":true,\"visits\":6}", "visits"},
    {"{\"benchmark\":\"bandwidth\",\"quick\":true,\"passes\":3}", ""},
    {"{\"benchmark\":\"pagefault\",\"visits\":31}", "visits"},
    {"{\"benchmark\":\"pagefault\",\"size\":\"1K\"}", "size"},
    {"{\"benchmark\":\"pagefault\",\"size\":\"4K\"}", ""},
    {"{\"benchmark\":\"pagefault\",\"size\":\"auto\"}", ""},
    {"{\"benchmark\":\"firsttouch\",\"seed\":2}", "seed"},
    {"{\"benchmark\":\"scan\",\"visits\":1}", "visits"},
    {"{\"benchmark\":\"scan\",\"visits\":3}", "visits"},
    {"{\"benchmark\":\"scan\",\"visits\":4}", ""},
    {"{\"benchmark\":\"latency\",\"note\":\"a\\u0007b\"}", "note"},
};

static void refuses_without_effect(void)
{
    for (size_t k = 0; k < COUNT_OF(new_runs); k++) {
        struct spec s;
        struct err err = {0};
        CHECK(read_spec(&s, new_runs[k].json, &err) == 0, "%s: a stored run may have it: %s",
              new_runs[k].json, err.text);
        CHECK_INT(spec_check_request(&s, &err), *new_runs[k].member ? -1 : 0, "%s: %s",
                  new_runs[k].json, err.text);
        CHECK_STR(err.member, new_runs[k].member, "%s: %s", new_runs[k].json, err.text);
    }
}

// The lower rank first: one series.
static void orders_pairs(void)
{
    struct spec s;
    struct err err = {0};
    static const char *const names[] = {"c2c", "pingpong"};
    for (int i = 0; i < 2; i++) {
        char request[80];
        CLEANUP_BUF struct buf of = BUF_INIT;
        snprintf(request, sizeof request, "{\"benchmark\":\"%s\",\"pairs\":\"1-0,02-3,7-4\"}",
                 names[i]);
        CHECK(read_spec(&s, request, &err) == 0, "%s: %s", request, err.text);
        spec_variant(&s, &of);
        CHECK_STR(buf_text(&of), "pairs=0-1,2-3,4-7", "%s", request);
    }
    CHECK(read_spec(&s, "{\"benchmark\":\"c2c\",\"pairs\":\"classes\"}", &err) == 0 &&
              !strcmp(s.pairs, "classes"),
          "words stay as they are");
}

static void round_trip(void)
{
    struct spec s, back;
    struct err err = {0};
    read_spec(&s,
              "{\"benchmark\":\"latency\",\"size\":\"1-64\",\"mode\":\"both\",\"precision\":0.25,"
              "\"numa\":\"0,1\",\"note\":\"a \\\"b\\\"\"}",
              &err);
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct jsonw w = jsonw_to(&b);
    spec_write_json(&s, &w, NULL);
    CHECK(read_spec(&back, buf_text(&b), &err) == 0 && memcmp(&s, &back, sizeof s) == 0,
          "what is written is read back: %s", err.text);
}

// A daemon of another version fills in what it has: only members that were set are sent.
static void requests(void)
{
    struct spec s, back;
    struct err err = {0};
    for (int k = 0; k < 2 * BENCHMARKS; k++) {
        CLEANUP_BUF struct buf b = BUF_INIT, want = BUF_INIT;
        struct jsonw w = jsonw_to(&b);
        buf_fmt(&want, "{\"benchmark\":\"%s\"%s}", benchmarks[k / 2].name,
                k % 2 ? ",\"quick\":true" : "");
        read_spec(&s, buf_text(&want), &err);
        spec_write_request(&s, NULL, &w, NULL);
        CHECK_STR(buf_text(&b), buf_text(&want), "as short as it can be");
    }
    read_spec(&s, "{\"benchmark\":\"latency\",\"quick\":true,\"visits\":8,\"size\":\"64\"}", &err);
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct jsonw w = jsonw_to(&b);
    const struct param_given given = {2, {spec_param(&s, "precision"), spec_param(&s, "seed")}};
    spec_write_request(&s, &given, &w, NULL);
    CHECK_STR(buf_text(&b),
              "{\"benchmark\":\"latency\",\"size\":\"64\",\"precision\":5,\"visits\":8,\"seed\":1,"
              "\"quick\":true}",
              "what differs from quick, and what was given though it does not");
    CHECK(read_spec(&back, buf_text(&b), &err) == 0 && memcmp(&s, &back, sizeof s) == 0,
          "which is the same run: %s", err.text);
}

// Earlier versions stored "doubling" with each sweep. A new run may not ask for what has no effect.
static void stored_threads(void)
{
    struct spec s;
    struct err err = {0};
    static const char *const sweeps[] = {"nodes", "own", "memcpy"};
    for (size_t i = 0; i < COUNT_OF(sweeps); i++) {
        char text[100];
        snprintf(text, sizeof text,
                 "{\"benchmark\":\"bandwidth\",\"sweep\":\"%s\",\"threads\":\"doubling\"}",
                 sweeps[i]);
        CHECK(read_spec(&s, text, &err) == 0, "%s is read: %s", text, err.text);
        CHECK(spec_check_request(&s, &err) < 0 && !strcmp(err.member, "threads"), "and refused: %s",
              err.text);
    }
}

static void tables(void)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct jsonw w = jsonw_to(&b);
    spec_write_catalogue(&w);
    struct err err = {0};
    CLEANUP_JSON struct json *j = json_parse(buf_text(&b), b.len, &err);
    const struct json *first = json_first(json_get(j, "benchmarks"));
    CHECK(json_count(json_get(j, "benchmarks")) == BENCHMARKS,
          "every benchmark stands in the catalogue");
    CHECK(json_count(json_get(first, "params")) == benchmarks[0].params.n,
          "with all of its parameters");
    CHECK(json_count(json_get(j, "common")) == spec_common.n, "and those that all have");
    int distinct = 1;
    for (int k = 0; k < BENCHMARKS; k++)
        for (int i = 0; i < spec_common.n; i++)
            distinct &= !param_find(&benchmarks[k].params, spec_common.params[i].name);
    CHECK(distinct, "no name is in both tables");
}

// Our own defaults and quick values are values that a request could have, for every benchmark.
static void every_benchmark(void)
{
    for (int k = 0; k < BENCHMARKS; k++) {
        const struct benchmark *b = &benchmarks[k];
        struct spec s;
        struct err err = {0};
        CHECK(b->name && b->title && b->help && b->method && b->params.n && b->defaults &&
                  b->quick && b->check && b->shapes,
              "row %d of the table is complete", k);
        spec_init(&s, (enum benchmark_id)k);
        CHECK(spec_check(&s, &err) == 0 && spec_check_request(&s, &err) == 0, "%s by default: %s",
              benchmarks[k].name, err.text);
        spec_quick(&s);
        CHECK(spec_check(&s, &err) == 0 && spec_check_request(&s, &err) == 0 && s.quick,
              "%s --quick: %s", benchmarks[k].name, err.text);
        for (const struct preset *p = benchmarks[k].quick; p->name; p++)
            CHECK(spec_param(&s, p->name) &&
                      param_set_text(spec_param(&s, p->name), &s, p->value, &err) == 0,
                  "%s: quick %s=%s %s", benchmarks[k].name, p->name, p->value, err.text);
        for (const struct preset *p = benchmarks[k].defaults; p->name; p++)
            CHECK(param_find(&spec_common, p->name) != NULL, "%s: default of %s",
                  benchmarks[k].name, p->name);
    }
    struct spec s;
    struct err err = {0};
    CHECK(read_spec(&s, "{\"benchmark\":\"latency\",\"cell_ms\":99,\"quick\":true}", &err) == 0 &&
              s.cell_ms == 99 && s.visits == 6,
          "quick first, then what is given");
    CHECK(read_spec(&s, "{\"benchmark\":\"latency\",\"method\":\"classic\"}", &err) == 0 &&
              strcmp(spec_method(&s), "classic-v1") == 0,
          "the classic method has its own name");
    int pairs[SPEC_PAIRS_MAX][2], n = 0;
    CHECK(spec_pairs("0-1,7-4", pairs, &n, &err) == 0 && n == 2 && pairs[1][0] == 4 &&
              pairs[1][1] == 7,
          "pairs are read, the lower rank first");
}

static void variant(void)
{
    CLEANUP_BUF struct buf none = BUF_INIT, some = BUF_INIT;
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    s.precision = 7; // effort: the same question
    snprintf(s.note, sizeof s.note, "a note");
    spec_variant(&s, &none);
    CHECK_STR(buf_text(&none), "", "effort and notes make no other series");
    s.pages = PAGES_4K;
    snprintf(s.cpus, sizeof s.cpus, "0,1");
    spec_variant(&s, &some);
    CHECK_STR(buf_text(&some), "pages=4k cpus=0,1", "what is asked for does");
}

// The kernel that quick chooses is none of a copy's.
static void variant_of_copies(void)
{
    static const char *const requests[] = {
        "{\"benchmark\":\"bandwidth\",\"sweep\":\"memcpy\"}",
        "{\"benchmark\":\"bandwidth\",\"sweep\":\"memcpy\",\"quick\":true}",
        "{\"benchmark\":\"bandwidth\",\"sweep\":\"memcpy\",\"quick\":true,\"kernel\":\"triad\"}",
        "{\"benchmark\":\"bandwidth\",\"sweep\":\"memcpy\",\"quick\":true,\"kernel\":\"add\"}"};
    for (int i = 0; i < 4; i++) {
        CLEANUP_JSON struct json *object = json_parse(requests[i], strlen(requests[i]), NULL);
        CLEANUP_BUF struct buf of = BUF_INIT;
        struct spec s;
        struct err err = {0};
        int got = spec_from_json(&s, object, NULL, &err);
        CHECK_INT(got, i < 3 ? 0 : -1, "%s: %s", requests[i], err.text);
        if (got == 0)
            spec_variant(&s, &of);
        CHECK_STR(got < 0 ? err.member : buf_text(&of), got < 0 ? "kernel" : "sweep=memcpy", "%s",
                  requests[i]);
    }
}

static void difference(void)
{
    struct spec a, b;
    struct spec_difference d[2];
    spec_init(&a, BENCHMARK_LATENCY);
    spec_init(&b, BENCHMARK_LATENCY);
    b.visits = 7;
    b.precision = 5;
    snprintf(b.note, sizeof b.note, "again");
    CHECK(spec_difference(&a, &b, d, 2) == 0, "effort and notes make no other question");
    b.stride = 128;
    b.hyperthreads = true;
    b.locality = 1 << 20;
    CHECK(spec_difference(&a, &b, d, 2) == 3, "three parameters differ");
    CHECK(!strcmp(d[0].name, "stride") && !strcmp(d[0].a, "0") && !strcmp(d[0].b, "128") &&
              !strcmp(d[1].name, "locality"),
          "each with both values: %s %s %s", d[0].name, d[0].a, d[0].b);
    spec_init(&b, BENCHMARK_MATRIX);
    CHECK(spec_difference(&a, &b, d, 2) == 1 && !strcmp(d[0].name, "benchmark") &&
              !strcmp(d[0].b, "matrix"),
          "of different benchmarks that is all there is to say");
}

// arm64 with base pages of 64 KiB has transparent huge pages of 512 MiB.
static void page_rounding(void)
{
    static const struct page_sizes arm = {65536, 512 << 20, 1 << 30};
    static const struct {
        const struct page_sizes *sizes;
        enum pages pages;
        uint64_t bytes, want, page;
    } cases[] = {
        {&page_sizes_usual, PAGES_4K, 5000, 8192, 4096},
        {&page_sizes_usual, PAGES_THP, 5000, 2 << 20, 2 << 20},
        {&arm, PAGES_4K, 1 << 20, 1 << 20, 65536},
        {&arm, PAGES_4K, 1, 65536, 65536},
        {&arm, PAGES_THP, 1 << 20, 1 << 20, 65536},
        {&arm, PAGES_THP, 600 << 20, 1 << 30, 512 << 20},
        {&arm, PAGES_HUGE, 1, 1 << 30, 1 << 30},
        {&arm, PAGES_2M, 3 << 20, 4 << 20, 2 << 20},
        {&page_sizes_usual, PAGES_1G, 1, 1 << 30, 1 << 30},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t got = spec_page_round(cases[i].pages, cases[i].sizes, cases[i].bytes);
        uint64_t page = spec_page_bytes(cases[i].pages, cases[i].sizes, cases[i].bytes);
        CHECK(got == cases[i].want && page == cases[i].page, "%llu bytes: %llu in pages of %llu",
              (unsigned long long)cases[i].bytes, (unsigned long long)got,
              (unsigned long long)page);
    }
}

int main(void)
{
    page_rounding();
    variant();
    variant_of_copies();
    difference();
    every_benchmark();
    accepts();
    notes();
    refuses();
    refuses_without_effect();
    orders_pairs();
    round_trip();
    requests();
    stored_threads();
    tables();
    return tap_done();
}
