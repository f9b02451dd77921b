// SPDX-License-Identifier: Apache-2.0
// What comes down the channel of a run. The first byte says which benchmark was asked for and in
// pieces of what size the rest arrives. What passes records_check is a whole result.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/launch/planner.h"
#include "core/node/hwloc.h"
#include "core/run/records.h"
#include "tests/fuzz/fuzz.h"

static struct spec specs[BENCHMARKS];
static struct plan plans[BENCHMARKS];
static void forget_plans(void)
{
    for (int b = 0; b < BENCHMARKS; b++)
        plan_fini(&plans[b]);
}

// What the corpus was recorded on: two cores of one node.
void fuzz_records_begin(const char *dir)
{
    struct topology machine CLEANUP(topology_fini) = {0};
    char *xml = NULL;
    (void)dir;
    setenv("HWLOC_SYNTHETIC", "pack:1 [numa(memory=1073741824)] core:2 pu:1", 1);
    fuzz_hold(probe_topology(&machine, &xml, NULL) == 0);
    free(xml);
    unsetenv("HWLOC_SYNTHETIC");
    for (int b = 0; b < BENCHMARKS; b++) {
        spec_init(&specs[b], (enum benchmark_id)b);
        spec_quick(&specs[b]);
        struct err err = {0};
        if (plan_make(&plans[b], &specs[b], &machine, &err) < 0)
            fprintf(stderr, "%s: %s: %s\n", benchmarks[b].name, err.member, err.text);
        fuzz_hold(err.code == ERR_NONE);
    }
    specs[BENCHMARK_LOADED].steps = 2;
    snprintf(specs[BENCHMARK_LATENCY].size, sizeof specs[0].size, "1-2");
    atexit(forget_plans);
}

static void check_whole(const struct records *r)
{
    fuzz_hold(r->have_hello && r->have_end && r->n_ranks == r->plan->n_ranks);
    fuzz_hold(r->n_matrices > 0 && r->n_matrices <= RECORDS_MATRICES_MAX);
    for (int i = 0; i < r->n_matrices; i++)
        fuzz_hold(shape_check(&r->matrices[i], r->spec, r->plan, NULL) == 0 &&
                  shape_complete(&r->matrices[i]));
}

void fuzz_records(const uint8_t *data, size_t size)
{
    static struct records r;
    struct err err = {0};
    fuzz_accepted = false;
    if (!size)
        return;
    int benchmark = *data % 16 % BENCHMARKS; // a new one at the end leaves the corpus as it is
    size_t piece = (size_t)1 << *data / 16;  // 1 B to 32 KiB
    fuzz_hold(records_init(&r, "nonce", &specs[benchmark], &plans[benchmark], &err) == 0);
    int rc = 0;
    for (size_t at = 1; rc == 0 && at < size; at += piece) {
        size_t n = piece < size - at ? piece : size - at;
        char *bytes = malloc(n);
        fuzz_hold(bytes != NULL);
        memcpy(bytes, data + at, n);
        rc = records_feed(&r, bytes, n, &err);
        free(bytes);
    }
    fuzz_accepted = rc == 0 && records_check(&r, &err) == 0;
    if (rc < 0)
        fuzz_hold(err.code != ERR_NONE && *err.text);
    else if (fuzz_accepted)
        check_whole(&r);
    records_fini(&r);
}
