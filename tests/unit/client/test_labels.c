// SPDX-License-Identifier: Apache-2.0
// Labels: whatever a machine calls its memory, Kubernetes takes the label.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/labels.h"
#include "tests/unit/tap.h"

static const char *value_of(const struct labels *l, const char *name)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->list[i].name, name) == 0)
            return l->list[i].value;
    return "";
}

static void test_text(void)
{
    static const struct {
        const char *from, *to;
    } texts[] = {{"dram", "dram"},
                 {"HBM", "hbm"},
                 {"GPU memory", "gpu-memory"},
                 {"--x_y.z..", "x_y.z"},
                 {"prob\xc3\xa9 1", "prob---1"},
                 {"", ""},
                 {"\xe2\x82\xac", ""}};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct labels l = {0};
        labels_add(&l, "name", texts[i].from);
        CHECK_STR(value_of(&l, "name"), texts[i].to, "\"%s\" as a value", texts[i].to);
        CHECK(l.n == (*texts[i].to != '\0'), "nothing is no label");
    }
    char name[200];
    struct labels l = {0};
    memset(name, 'a', sizeof name);
    name[62] = '.';
    name[sizeof name - 1] = '\0';
    labels_add(&l, "name", name);
    CHECK(strlen(value_of(&l, "name")) == 62, "63 characters, of which the last is a dot");
    for (int i = 0; i < 2 * LABELS_MAX; i++)
        labels_add(&l, "more", "x");
    CHECK(l.n == LABELS_MAX, "no more than there is room for");
}

static void test_age(void)
{
    static const struct {
        int64_t s;
        const char *to;
    } ages[] = {{-1, ""},           {0, "day"},       {86400, "day"},
                {86401, "week"},    {604800, "week"}, {604801, "month"},
                {2592000, "month"}, {2592001, "old"}, {INT64_MAX, "old"}};
    for (size_t i = 0; i < COUNT_OF(ages); i++) {
        struct labels l = {0};
        labels_add_age(&l, ages[i].s);
        CHECK_STR(value_of(&l, "age"), ages[i].to, "an age of %lld s", (long long)ages[i].s);
    }
}

static void test_machine(void)
{
    static const char text[] =
        "{\"this_system\":true,\"nodes\":[{\"kind\":\"dram\"},{\"kind\":\"dram\"},"
        "{\"kind\":\"GPUMemory\"},{\"kind\":\"CXL-DRAM\"},{}],\"kinds\":[{},{}]}";
    CLEANUP_JSON struct json *t = json_parse(text, strlen(text), NULL);
    struct labels l = {0};
    labels_add_machine(&l, t);
    CHECK_STR(value_of(&l, "numa-nodes"), "5", "all nodes");
    CHECK_STR(value_of(&l, "memory-dram"), "2", "nodes of a kind");
    CHECK_STR(value_of(&l, "memory-gpumemory"), "1", "a kind in lower case");
    CHECK_STR(value_of(&l, "memory-cxl-dram"), "1", "a kind that begins like another");
    CHECK_STR(value_of(&l, "core-kinds"), "2", "kinds of cores");
    CHECK(l.n == 5, "a node without a kind has no label of its own");
    CLEANUP_JSON struct json *other = json_parse("{\"nodes\":[{\"kind\":\"dram\"}]}", 27, NULL);
    struct labels none = {0};
    labels_add_machine(&none, other); // a recorded machine
    labels_add_machine(&none, NULL);
    CHECK(none.n == 0, "neither has a recorded machine, nor none");
}

static void check_latency(double ns, const char *metric, bool imported, const char *span)
{
    struct summary_metric metrics[] = {{"latency.l3.median_ns", "ns"}, {"", "ns"}};
    float values[] = {12, (float)ns};
    struct summary_layout layout = {2, metrics};
    struct summary runs[] = {{.id = 4, .node = "n1", .state = RUN_SUCCEEDED, .layout = -1},
                             {.id = 3, .node = "n1", .state = RUN_SUCCEEDED, .values = values},
                             {.id = 9, .node = "n2", .state = RUN_SUCCEEDED, .values = values}};
    const struct summary_page page = {
        .node = "n1", .n_layouts = 1, .n_runs = 3, .layouts = &layout, .runs = runs};
    struct labels l = {0};
    double value = 0;
    snprintf(metrics[1].name, sizeof metrics[1].name, "%s", metric);
    runs[1].imported = imported;
    const struct summary *s = labels_add_latency(&l, &page, &value);
    CHECK_STR(value_of(&l, "latency-class"), span, "%g ns of %s", ns, metric);
    CHECK(*span ? s == &runs[1] && value == (float)ns : !s && l.n == 0, "and the run that has it");
}

static void test_latency(void)
{
    static const char dram[] = "latency.local.dram.median_ns";
    check_latency(93.1, dram, false, "80-100ns");
    check_latency(100, dram, false, "100-125ns");
    check_latency(99.9, "matrix.local.median_ns", false, "80-100ns");
    check_latency(8, "scan.memory_ns", false, "8-10ns");
    check_latency(1250, "hierarchy.memory_ns", false, "1250-1600ns");
    check_latency(9990, dram, false, "8000-10000ns");
    check_latency(0.5, dram, false, "");
    check_latency(93.1, "latency.dram.median_ns", false, "");
    check_latency(93.1, dram, true, ""); // of another machine
}

static void test_forms(void)
{
    CLEANUP_BUF struct buf nfd = BUF_INIT, slurm = BUF_INIT;
    struct labels l = {0};
    labels_add(&l, "verdict", "OK");
    labels_add(&l, "latency-class", "12.5-16ns");
    labels_write(&l, OUTPUT_NFD, "+expiry-time=now\nb\n", &nfd);
    labels_write(&l, OUTPUT_SLURM, "a", &slurm);
    CHECK_STR(buf_text(&nfd),
              "# numaprobe: +expiry-time=now\n# numaprobe: b\n"
              "feature.node.kubernetes.io/numaprobe.verdict=ok\n"
              "feature.node.kubernetes.io/numaprobe.latency-class=12.5-16ns\n",
              "a feature file; no comment is an instruction");
    CHECK_STR(buf_text(&slurm), "Features=numaprobe_verdict_ok,numaprobe_latency_class_12_5_16ns\n",
              "a line for Slurm");
}

int main(void)
{
    test_text();
    test_age();
    test_machine();
    test_latency();
    test_forms();
    return tap_done();
}
