// SPDX-License-Identifier: Apache-2.0
// References: made of a fleet, written, read again, read from others, and used to judge a run.
#include "analysis/peers/class_reference.h"
#include "base/cleanup.h"
#include "tests/unit/analysis/fleet_pages.h"
#include "tests/unit/tap.h"

static struct fleet *small_fleet(void)
{
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = PAGES_NOW;
    struct fleet *f = fleet_new(&o, NULL);
    unsigned long long seed = 321;
    char name[16];
    for (int i = 0; i < 42; i++)
        for (int k = 0; k < 5; k++) {
            // 40 nodes of a class, 2 of another.
            snprintf(name, sizeof name, "n%02d", i);
            struct page_run r = {.node = name,
                                 .class = i < 40 ? "AAA" : "BBB",
                                 .config = "S",
                                 .id = k + 1,
                                 .noise = 0.004,
                                 .measured_ms = PAGES_NOW - (5 - k) * PAGES_DAY};
            r.factor[0] = r.factor[1] = r.factor[2] = 1 + 0.01 * ((i * 7) % 9 - 4) / 2.6;
            page_add(f, &r, &seed);
        }
    page_facts(f, "AAA", "cpu_model=EPYC shape=2x96");
    return f;
}

static void read_text(const char *text, struct class_reference *r, struct err *err)
{
    CLEANUP_JSON struct json *j = json_parse(text, strlen(text), err);
    *err = (struct err){0};
    if (!j || class_reference_read(r, j, err) == 0)
        class_reference_fini(r);
}

#define HEAD "{\"format\":\"numaprobe-reference\",\"version\":1,\"created\":null,\"classes\":["
#define CLASS                                                                                      \
    "{\"class\":\"a\",\"cpu\":\"\",\"probes\":[{\"benchmark\":\"latency\",\"variant\":\"\","       \
    "\"method\":\"m\",\"metrics_version\":4,\"metrics\":["
#define METRIC(median)                                                                             \
    "{\"metric\":\"x\",\"unit\":\"ns\",\"median\":" median                                         \
    ",\"spread_percent\":1,\"runs_percent\":0.5,\"nodes\":8}"

static void test_bad(void)
{
    static const struct {
        const char *text, *member;
    } cases[] = {
        {"{}", "format"},
        {"[]", "format"},
        {"{\"format\":\"numaprobe-baseline\",\"version\":1,\"classes\":[]}", "format"},
        {"{\"format\":\"numaprobe-reference\",\"version\":2,\"classes\":[]}", "version"},
        {"{\"format\":\"numaprobe-reference\",\"version\":\"1\",\"classes\":[]}", "version"},
        {"{\"format\":\"numaprobe-reference\",\"version\":1,\"created\":\"soon\",\"classes\":[]}",
         "created"},
        {"{\"format\":\"numaprobe-reference\",\"version\":1}", "classes"},
        {HEAD "]}", "classes"},
        {HEAD "{}]}", "classes[0].class"},
        {HEAD "{\"class\":\"a\\u001b[2J\",\"cpu\":\"\",\"probes\":[]}]}", "classes[0].class"},
        {HEAD "{\"class\":\"a\",\"cpu\":\"\"}]}", "classes[0].probes"},
        {HEAD "{\"class\":\"a\",\"cpu\":\"\",\"probes\":[7]}]}", "classes[0].probes[0].benchmark"},
        {HEAD CLASS METRIC("1") "," METRIC("0") "]}]}]}", "classes[0].probes[0].metrics[1].median"},
        {HEAD CLASS METRIC("-1") "]}]}]}", "classes[0].probes[0].metrics[0].median"},
        {HEAD CLASS METRIC("1e16") "]}]}]}", "classes[0].probes[0].metrics[0].median"},
        {HEAD CLASS METRIC("1e-300") "]}]}]}", "classes[0].probes[0].metrics[0].median"},
        {HEAD "{\"class\":\"\"}]}", "classes[0].class"},
        {HEAD CLASS METRIC("1") "," METRIC("2") "]}]}]}", "classes"}, // one metric twice
        {HEAD CLASS METRIC("1") "]}]}," CLASS METRIC("1") "]}]}]}", "classes"},
        {HEAD CLASS METRIC("null") "]}]}]}", "classes[0].probes[0].metrics[0].median"},
        {HEAD CLASS "{\"metric\":\"\",\"unit\":\"\",\"median\":1,\"spread_percent\":1,"
                    "\"runs_percent\":1,\"nodes\":1}]}]}]}",
         "classes[0].probes[0].metrics[0].metric"},
        {HEAD CLASS "{\"metric\":\"x\",\"unit\":\"nanoseconds\"}]}]}]}",
         "classes[0].probes[0].metrics[0].unit"},
        {HEAD CLASS "{\"metric\":\"x\",\"unit\":\"ns\",\"median\":1,\"spread_percent\":0}]}]}]}",
         "classes[0].probes[0].metrics[0].spread_percent"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct class_reference r = {0};
        struct err err = {0};
        read_text(cases[i].text, &r, &err);
        CHECK(err.code == ERR_INVALID && strcmp(err.member, cases[i].member) == 0, "%s: %s",
              cases[i].member, err.text);
        if (strcmp(err.member, cases[i].member) != 0)
            printf("# got \"%s\"\n", err.member);
    }
}

static struct class_reference_verdict judge(const struct class_reference *r, struct summary *s,
                                            double factor)
{
    static float v[PAGE_METRICS];
    static struct summary_layout layout = {PAGE_METRICS, page_names};
    struct class_reference_verdict out;
    struct class_reference_run run = {s, &layout};
    const double usual[PAGE_METRICS] = {90, 140, 200};
    for (int m = 0; m < PAGE_METRICS; m++)
        v[m] = (float)usual[m];
    v[1] = (float)(140 * factor);
    s->values = v;
    if (class_reference_judge(&out, r, &run, 3, 10, NULL) < 0)
        abort();
    return out;
}

static void test_judge(const struct class_reference *r)
{
    struct summary s = {.id = 1,
                        .benchmark = "latency",
                        .method = "prp4-v1",
                        .metrics_version = 4,
                        .class_hash = "AAA",
                        .layout = 0};
    struct class_reference_verdict v = judge(r, &s, 1.01);
    CHECK(v.state == REFERENCE_OK && v.compared == 3 && v.worse == 0, "as usual");
    v = judge(r, &s, 1.06);
    CHECK(v.state == REFERENCE_WARNING && v.worse == 1, "6 %% slower is a warning");
    CHECK(v.worst && strcmp(v.worst->name, "latency.n0.n1.median_ns") == 0 &&
              fabs(v.percent - 6) < 0.5 && v.worst->nodes == 40 && v.q < 0.01,
          "in this metric");
    v = judge(r, &s, 1.2);
    CHECK(v.state == REFERENCE_CRITICAL, "20 %% slower is critical");
    v = judge(r, &s, 0.8);
    CHECK(v.state == REFERENCE_OK && v.worst, "20 %% faster is fine");
    snprintf(s.class_hash, sizeof s.class_hash, "CCC");
    v = judge(r, &s, 1);
    CHECK(v.state == REFERENCE_UNKNOWN && !v.worst, "other hardware is not compared");
    CHECK_STR(v.why, "the reference is of other hardware: EPYC, class AAA; the run's is class CCC",
              "and the reason stated");
    snprintf(s.class_hash, sizeof s.class_hash, "AAA");
    snprintf(s.benchmark, sizeof s.benchmark, "c2c");
    v = judge(r, &s, 1);
    CHECK_STR(v.why, "the reference has no run of c2c", "another benchmark");
    snprintf(s.benchmark, sizeof s.benchmark, "latency");
    snprintf(s.variant, sizeof s.variant, "size=1");
    v = judge(r, &s, 1);
    CHECK_STR(v.why,
              "the reference has latency with other parameters: \"\"; the run has \"size=1\"",
              "other parameters");
    *s.variant = '\0';
    s.metrics_version = 5;
    v = judge(r, &s, 1);
    CHECK_STR(
        v.why,
        "the reference is of method prp4-v1 and metrics of version 4, the run of prp4-v1 and 5",
        "a version");
    struct class_reference_run bare = {&s, NULL};
    s.metrics_version = 4;
    CHECK(class_reference_judge(&v, r, &bare, 3, 10, NULL) == 0 && v.state == REFERENCE_UNKNOWN,
          "a run without metrics");
}

int main(void)
{
    CLEANUP_FLEET struct fleet *f = small_fleet();
    CLEANUP_BUF struct buf text = BUF_INIT, again = BUF_INIT;
    struct class_reference made, read;
    struct err err = {0};
    CHECK(class_reference_make(&made, f, NULL) == 0 && made.n == 3, "three metrics of one class");
    CHECK(fabs(made.list[0].median - 90) < 0.5 && made.list[0].nodes == 40 &&
              strcmp(made.list[0].cpu, "EPYC") == 0,
          "its median and CPU");
    CHECK(fabs(made.list[0].spread - 0.01) < 0.005 && fabs(made.list[0].runs - 0.004) < 0.002,
          "what nodes differ by (%.4f), and runs (%.4f)", made.list[0].spread, made.list[0].runs);
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    class_reference_write_json(&made, &w);
    jsonw_end(&w);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, NULL);
    CHECK(class_reference_read(&read, j, &err) == 0 && read.n == 3, "is read again: %s", err.text);
    w = jsonw_to(&again);
    jsonw_object(&w, NULL);
    class_reference_write_json(&read, &w);
    jsonw_end(&w);
    CHECK_STR(buf_text(&again), buf_text(&text), "and written again, the same");
    test_judge(&read);
    test_bad();
    class_reference_fini(&made);
    class_reference_fini(&read);
    return tap_done();
}
