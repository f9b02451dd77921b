// SPDX-License-Identifier: Apache-2.0
#include "model/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static struct json *written(const struct run *r)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct jsonw w = jsonw_to(&b);
    run_write_json(r, &w, NULL);
    struct err err = {0};
    struct json *j = json_parse(buf_text(&b), b.len, &err);
    if (!j)
        printf("# %s\n# %s\n", err.text, buf_text(&b));
    return j;
}

static void labels(void)
{
    static const char *const bad[] = {"a\nb",
                                      "a\x7f",
                                      "\xc2\x9b"
                                      "2J",
                                      "a\xe2\x80\xae"
                                      "b",
                                      "a\xff",
                                      " a",
                                      "a "};
    struct err err = {0};
    CHECK(run_label_check("gr\xc3\xbc\xc3\x9f", &err) == 0 && run_label_check("", &err) == 0,
          "labels");
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(run_label_check(bad[i], &err) < 0 && !strcmp(err.member, "label"),
              "what is no label: %zu", i);
}

int main(void)
{
    labels();
    for (int s = 0; s < RUN_STATES; s++)
        CHECK(run_state_find(run_state_names[s]) == s && run_state_final(s) == (s > RUN_RUNNING),
              "state %s", run_state_names[s]);
    CHECK(run_state_find("done") == -1, "no state \"done\"");

    struct run r = {.id = 7, .state = RUN_QUEUED, .node = "n1", .created_ms = 1700000000000};
    spec_init(&r.spec, BENCHMARK_LATENCY);
    CLEANUP_JSON struct json *queued = written(&r);
    CHECK(json_is_null(json_get(queued, "seq")) && json_is_null(json_get(queued, "started")) &&
              json_is_null(json_get(queued, "error")) &&
              json_is_array(json_get(queued, "conditions")),
          "a queued run has nulls and an empty array where nothing is known");

    r.state = RUN_RUNNING;
    r.progress = (struct progress){"measure", 3, 9, 1500};
    CLEANUP_JSON struct json *running = written(&r);
    CHECK(json_get_i64(json_get(running, "progress"), "done", 0) == 3,
          "a running run shows its progress");

    r.state = RUN_FAILED;
    r.seq = 4;
    r.started_ms = r.created_ms + 1000;
    r.finished_ms = r.created_ms + 3500;
    r.error = ERR_TIMEOUT;
    strcpy(r.error_text, "the deadline passed");
    r.conditions_json = strdup("[\"a\",\"b\"]");
    CLEANUP_JSON struct json *failed = written(&r);
    CHECK(json_get_number(failed, "seconds", 0) == 2.5 && json_get_i64(failed, "seq", 0) == 4,
          "times and order");
    CHECK_STR(json_get_text(json_get(failed, "error"), "type", ""), "timeout", "why it failed");
    CHECK(json_is_null(json_get(failed, "progress")) &&
              json_count(json_get(failed, "conditions")) == 2,
          "no progress any more; conditions stay");

    r.state = RUN_INTERRUPTED;
    CLEANUP_JSON struct json *interrupted = written(&r);
    CHECK(json_is_null(json_get(interrupted, "seconds")),
          "how long an interrupted run took is not known");
    r.state = RUN_FAILED;
    r.finished_ms = r.started_ms - 1;
    CLEANUP_JSON struct json *turned = written(&r);
    CHECK(json_is_null(json_get(turned, "seconds")), "no run takes less than no time");
    r.finished_ms = r.started_ms + RUN_SECONDS_MAX * INT64_C(1000) + 1;
    CLEANUP_JSON struct json *set = written(&r);
    CHECK(json_is_null(json_get(set, "seconds")), "nor as long as a clock that was set");
    run_fini(&r);
    return tap_done();
}
