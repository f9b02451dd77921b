// SPDX-License-Identifier: Apache-2.0
#include "model/spec.h"

#include <stdlib.h>

#include "base/cleanup.h"
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
    CHECK(read_spec(&s, "{\"benchmark\":\"latency\"}", &err) == 0 && s.latency.min_samples == 7 &&
              !strcmp(s.numa, "local"),
          "a benchmark's name is enough");
    CHECK(read_spec(
              &s, "{\"benchmark\":\"latency\",\"size\":64,\"numa\":3,\"ranks\":2,\"dry_run\":true}",
              &err) == 0 &&
              !strcmp(s.latency.size, "64") && !strcmp(s.numa, "3") && !strcmp(s.ranks, "2"),
          "whole numbers where texts could stand, and members that are somebody else's");
}

static void refuses(void)
{
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
        {"{\"benchmark\":\"latency\",\"timeout_s\":0}", "timeout_s"},
    };
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        struct spec s;
        struct err err = {0};
        CHECK(read_spec(&s, bad[k].json, &err) < 0 && err.code == ERR_INVALID &&
                  !strcmp(err.member, bad[k].member) && *err.text,
              "%s: refused by name", bad[k].json);
    }
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

int main(void)
{
    accepts();
    refuses();
    round_trip();
    tables();
    return tap_done();
}
