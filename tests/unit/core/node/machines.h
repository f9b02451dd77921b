// SPDX-License-Identifier: Apache-2.0
// Machines for tests: synthetic ones, and folders with what a kernel would say.
#pragma once
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analysis/compare/fact_changes.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "core/launch/plan_check.h"
#include "core/launch/planner.h"
#include "core/node/checkup.h"
#include "core/node/facts.h"
#include "core/node/hwloc.h"
#include "core/node/hwloc_stored.h"
#include "core/node/machine.h"
#include "model/condition.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/core/node/hybrid_xml.h"
#include "tests/unit/core/node/memory_only.h"
#include "tests/unit/core/node/recorded.h"
#include "tests/unit/core/node/synthetic.h"
#include "tests/unit/tap.h"

__attribute__((unused)) static int plan(struct plan *p, const struct topology *t, const char *cpus,
                                        const char *ranks, const char *numa, struct err *err)
{
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    snprintf(s.cpus, sizeof s.cpus, "%s", cpus);
    snprintf(s.ranks, sizeof s.ranks, "%s", ranks);
    snprintf(s.numa, sizeof s.numa, "%s", numa);
    return plan_make(p, &s, t, err);
}

// "0@0/1 2@0/1": CPU @ its node / memory's node of each rank.
__attribute__((unused)) static void expect(const struct topology *t, const char *cpus,
                                           const char *ranks, const char *numa, const char *want)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct err err = {0};
    CLEANUP_BUF struct buf got = BUF_INIT;
    if (plan(&p, t, cpus, ranks, numa, &err) < 0)
        buf_fmt(&got, "%s: %s", err.member, err.text);
    for (int i = 0; i < p.n_ranks; i++)
        buf_fmt(&got, "%s%d@%d/%d", i ? " " : "", p.ranks[i].cpu, p.ranks[i].cpu_node,
                p.ranks[i].mem_node);
    bool ok = strcmp(buf_text(&got), want) == 0;
    CHECK(ok, "cpus \"%s\" ranks %s numa %s", cpus, ranks, numa);
    if (!ok)
        printf("# got  %s\n# want %s\n", buf_text(&got), want);
}
