// SPDX-License-Identifier: Apache-2.0
#include "base/exposition.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static void write_all(struct exposition *e)
{
    static const char *const labels[][2] = {{"a", "x\"y\\z"}, {"b", "line\nbreak \xff\xc2\x9b"}};
    exposition_begin(e, "np_runs", "counter", "Runs that \"ended\"");
    exposition_sample(e, labels, 2, 3);
    exposition_sample(e, labels, 2, (double)NAN); // not known
    exposition_begin(e, "np_age_seconds", "gauge", "Age");
    exposition_labelled(e, "quantile", "0.5", 0.25);
    exposition_single(e, "np_busy", "gauge", "Busy", 1);
    exposition_single(e, "np_unknown", "gauge", "Not known", -1);
    exposition_end(e);
}

static void test_text(void)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    struct exposition e = exposition_to(&out, false);
    write_all(&e);
    CHECK_STR(buf_text(&out),
              "# HELP np_runs_total Runs that \"ended\"\n"
              "# TYPE np_runs_total counter\n"
              "np_runs_total{a=\"x\\\"y\\\\z\",b=\"line\\nbreak ??\"} 3\n"
              "# HELP np_age_seconds Age\n"
              "# TYPE np_age_seconds gauge\n"
              "np_age_seconds{quantile=\"0.5\"} 0.25\n"
              "# HELP np_busy Busy\n"
              "# TYPE np_busy gauge\n"
              "np_busy 1\n",
              "text");
    CHECK(strstr(exposition_content_type(&e), "0.0.4"), "the format without an end");
}

static void test_openmetrics(void)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    struct exposition e = exposition_to(&out, true);
    write_all(&e);
    CHECK_STR(buf_text(&out),
              "# HELP np_runs Runs that \\\"ended\\\"\n"
              "# TYPE np_runs counter\n"
              "np_runs_total{a=\"x\\\"y\\\\z\",b=\"line\\nbreak ??\"} 3\n"
              "# HELP np_age_seconds Age\n"
              "# TYPE np_age_seconds gauge\n"
              "# UNIT np_age_seconds seconds\n"
              "np_age_seconds{quantile=\"0.5\"} 0.25\n"
              "# HELP np_busy Busy\n"
              "# TYPE np_busy gauge\n"
              "np_busy 1\n"
              "# EOF\n",
              "OpenMetrics");
    CHECK(strstr(exposition_content_type(&e), "openmetrics"), "the format with an end");
}

int main(void)
{
    test_text();
    test_openmetrics();
    return tap_done();
}
