// SPDX-License-Identifier: Apache-2.0
#include "analysis/report.h"

#include "analysis/changes.h"
#include "base/json.h"
#include "model/import.h"
#include "tests/unit/analysis/published.h"
#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

static void test_published(void)
{
    struct import c = {0}, s = {0};
    if (published_load(&c, "concurrent") < 0 || published_load(&s, "serial") < 0) {
        SKIP("the published tables are not here (NUMAPROBE_SHARED)");
        return;
    }
    static struct topo_cache l3[] = {{.level = 3, .bytes = 32 << 20}};
    const struct topology t = {.n_caches = 1, .caches = l3};
    const struct report_source serial = {.matrices = s.matrices,
                                         .n = s.n_matrices,
                                         .ranks = s.ranks,
                                         .n_ranks = s.n_ranks,
                                         .topology = &t};
    const struct report_source concurrent = {.matrices = c.matrices,
                                             .n = c.n_matrices,
                                             .ranks = c.ranks,
                                             .n_ranks = c.n_ranks,
                                             .topology = &t};
    struct report *r = report_new(&serial, &concurrent, NULL);
    struct buf md = BUF_INIT, js = BUF_INIT;
    struct jsonw w = jsonw_to(&js);
    report_write_markdown(r, &md);
    report_write_json(r, &w, NULL);
    static const char *const says[] = {"From 16 to 32 MiB",
                                       "From 32 to 64 MiB",
                                       "the 32 MiB L3 cache runs out",
                                       "The two modes part from 128 MiB on",
                                       "rank 6 is typically",
                                       "No slow group",
                                       "The 4 NUMA nodes are alike",
                                       "At 16384 MiB rank 0 takes 130.8 ns, rank 1 156.6 ns",
                                       "(+67 %)"};
    for (size_t k = 0; k < sizeof says / sizeof *says; k++)
        CHECK(strstr(buf_text(&md), says[k]) != NULL, "says: %s", says[k]);
    printf("# %zu bytes of Markdown\n", md.len);
    if (getenv("SHOW") != NULL)
        fputs(buf_text(&md), stderr);
    struct json *root = json_parse(buf_text(&js), js.len, NULL);
    CHECK(json_get_bool(json_get(root, "contention"), "parts", false), "JSON is JSON and says so");
    json_free(root);
    buf_free(&md);
    buf_free(&js);
    report_free(r);
    import_fini(&c);
    import_fini(&s);
}

static void test_changes(void)
{
    static struct fingerprint a, b;
    static struct changes c;
    facts_add(&a.machine_class, "cpu_model", "one");
    facts_add(&b.machine_class, "cpu_model", "two");
    facts_add(&a.config, "kernel", "6.1");
    facts_add(&b.config, "kernel", "6.2");
    facts_add(&a.config, "same", "x");
    facts_add(&b.config, "same", "x");
    facts_add(&b.config, "thp_enabled", "never");
    changes_find(&c, &a, &b);
    CHECK(c.n == 3 && c.list[0].is_class, "class first");
    CHECK_STR(c.list[1].name, "thp_enabled", "then the most suspicious");
    CHECK(c.list[1].a == NULL && c.list[2].weight < c.list[1].weight, "unknown is said to be so");
}

int main(void)
{
    struct err err = {0};
    const struct report_source nothing = {0};
    CHECK(report_new(&nothing, NULL, &err) == NULL && err.code == ERR_INVALID,
          "a report needs data");
    test_published();
    test_changes();
    return tap_done();
}
