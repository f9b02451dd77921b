// SPDX-License-Identifier: Apache-2.0
// Plans of the benchmarks that need more than ranks: targets, load, pairs, memory.
#include "core/planner.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/probe.h"
#include "tests/unit/core/memory_only.h"
#include "tests/unit/tap.h"

// Two sockets, each a node with two L3 of two cores with two threads: CPU 4n is the first of L3 n.
static const char machine[] = "pack:2 [numa(memory=4294967296)] l3:2(size=33554432) core:2 pu:2";

static struct topology synthetic(const char *text)
{
    struct topology t = {0};
    CLEANUP_MEM char *xml = NULL;
    struct err err = {0};
    setenv("HWLOC_SYNTHETIC", text, 1);
    if (probe_topology(&t, &xml, &err) < 0)
        printf("# %s\n", err.text);
    unsetenv("HWLOC_SYNTHETIC");
    return t;
}

static int make(struct plan *p, const struct topology *t, const char *request, struct err *err)
{
    struct spec s;
    CLEANUP_JSON struct json *j = json_parse(request, strlen(request), err);
    return j && spec_from_json(&s, j, NULL, err) == 0 ? plan_make(p, &s, t, err) : -1;
}

static void expect(const struct topology *t, const char *request, const char *want)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CLEANUP_BUF struct buf got = BUF_INIT;
    char targets[80] = "";
    if (make(&p, t, request, &err) < 0)
        buf_fmt(&got, "%s: %s", err.member, err.text);
    for (int i = 0; i < p.n_ranks; i++)
        buf_fmt(&got, "%s%d/%d", i ? " " : "", p.ranks[i].cpu, p.ranks[i].mem_node);
    str_from_ids(p.targets, p.n_targets, targets, sizeof targets);
    if (p.n_ranks)
        buf_fmt(&got, " targets %s load %s MiB %lld %lld", targets, p.load_cpus,
                (long long)(p.bytes_per_rank >> 20), (long long)(p.bytes_per_target >> 20));
    CHECK_STR(buf_text(&got), want, "%s", request);
}

static void refuse(const struct topology *t, const char *request, const char *member,
                   const char *word)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CHECK(make(&p, t, request, &err) < 0 && strcmp(err.member, member) == 0 &&
              strstr(err.text, word),
          "%s: %s: %s", request, err.member, err.text);
}

static void memory(struct topology *t)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct admission a;
    struct err err = {0};
    if (make(&p, t, "{\"benchmark\":\"matrix\",\"size\":\"64G\"}", &err) < 0)
        abort();
    memory_only(&a, &p, t, "");
    bool told = false;
    for (int i = 0; i < a.n; i++)
        told |= a.list[i].kind == ADMIT_MEMORY;
    CHECK(told, "a target that cannot hold the arrays is a blocker");
    plan_fini(&p);
    if (make(&p, t, "{\"benchmark\":\"firsttouch\",\"size\":\"64G\"}", &err) < 0)
        abort();
    int64_t was = t->nodes[1].memory_bytes;
    t->nodes[1].memory_bytes = 0;
    memory_only(&a, &p, t, "");
    t->nodes[1].memory_bytes = was;
    for (int i = 0; i < a.n; i++)
        CHECK(!strstr(a.list[i].text, "node 1;"),
              "a node without memory is not what a first touch takes from: %s", a.list[i].text);
}

// Every second CPU of 512, which no range shortens: the list is whole.
static void many_loaders(void)
{
    static const char request[] = "{\"benchmark\":\"latency\",\"ranks\":1,\"load\":\"read\"}";
    struct topology t CLEANUP(topology_fini) = synthetic("node:1 core:256 pu:2");
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CLEANUP_MEM int *ids = NULL;
    int n = 0;
    CHECK(make(&p, &t, request, &err) == 0 &&
              str_to_ids(p.load_cpus, false, 1024, "", &ids, &n, &err) == 0 && n == 255 &&
              ids[0] == 2 && ids[254] == 510,
          "255 loaders, %d in the list: ... %s", n, p.load_cpus + strlen(p.load_cpus) / 10 * 9);
}

int main(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic(machine);
    expect(&t, "{\"benchmark\":\"matrix\"}", "0/0 8/1 targets 0-1 load  MiB 0 128");
    expect(&t, "{\"benchmark\":\"matrix\",\"targets\":\"1\",\"ranks\":\"one-per-l3\"}",
           "0/0 4/0 8/1 12/1 targets 1 load  MiB 0 128");
    expect(&t, "{\"benchmark\":\"firsttouch\"}", "0/-1 8/-1 targets  load  MiB 128 0");
    expect(&t, "{\"benchmark\":\"pingpong\"}", "0/0 1/0 2/0 4/0 8/1 targets  load  MiB 8 0");
    expect(&t, "{\"benchmark\":\"bandwidth\",\"ranks\":2}",
           "0/0 2/0 8/1 10/1 targets 0-1 load  MiB 0 1536");
    expect(&t, "{\"benchmark\":\"bandwidth\",\"ranks\":2,\"sweep\":\"own\"}",
           "0/0 2/0 8/1 10/1 targets  load  MiB 384 0");
    expect(&t, "{\"benchmark\":\"latency\",\"ranks\":1,\"load\":\"read\",\"size\":64}",
           "0/0 8/1 targets  load 2,4,6,10,12,14 MiB 64 0");
    expect(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"load\":\"copy\",\"load_cpus\":\"9\"}",
           "0/0 targets  load 9 MiB 512 0");
    expect(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"method\":\"classic\",\"size\":64}",
           "0/0 targets  load  MiB 128 0");
    refuse(&t, "{\"benchmark\":\"matrix\",\"targets\":\"7\"}", "targets", "not there");
    refuse(&t, "{\"benchmark\":\"c2c\",\"cpus\":\"3\"}", "ranks", "two ranks");
    refuse(&t, "{\"benchmark\":\"loaded\",\"cpus\":\"3\"}", "ranks", "two ranks");
    refuse(&t, "{\"benchmark\":\"loaded\",\"ranks\":\"one-per-numa\"}", "ranks", "no rank is left");
    refuse(&t, "{\"benchmark\":\"latency\",\"load\":\"read\"}", "load", "every core");
    refuse(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"load\":\"read\",\"load_cpus\":\"0\"}",
           "load_cpus", "has rank 0");
    refuse(&t, "{\"benchmark\":\"latency\",\"cpus\":\"0\",\"load\":\"read\",\"load_cpus\":\"99\"}",
           "load_cpus", "not there");
    memory(&t);
    many_loaders();
    return tap_done();
}
