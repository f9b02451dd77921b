// SPDX-License-Identifier: Apache-2.0
// What a run is asked to do. One struct, described by parameter tables: the same tables check a
// request, parse the options of numa_bench and numaprobe, and write the catalogue.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/param.h"

enum benchmark_id { BENCHMARK_LATENCY, BENCHMARKS };

enum mode { MODE_CONCURRENT, MODE_SERIAL, MODE_BOTH };
enum pages { PAGES_THP, PAGES_4K, PAGES_HUGE };

// Limits, with their arithmetic.
enum {
    SPEC_SIZES_MAX = 48,   // 1 KiB doubled 48 times is 256 PiB: more than any node has
    SPEC_RANKS_MAX = 1024, // two sockets of 256 cores with two threads each
    SPEC_BODY_MAX = 65536, // a request: all texts below at their longest fit eight times
};

struct latency_params {
    char size[256];      // sizes to sweep, see str_to_sizes
    int mode;            // enum mode
    int pages;           // enum pages
    uint64_t stride;     // bytes between links; 0: the machine's cache line
    double precision;    // %: half-width of the median's interval to reach
    int64_t min_samples; // samples a cell, at least
    int64_t sample_us;   // length of one sample
    int64_t cell_ms;     // time limit of one cell
    int64_t seed;        // of the permutations; rank r uses seed + r
};

struct spec {
    int benchmark; // enum benchmark_id
    // Placement, read by the launch plan.
    char cpus[256];     // "" or "1,9,17" (OS indices, one rank each, in this order)
    char ranks[24];     // "all-cores", "one-per-numa", "one-per-l3" or N per node; unused with cpus
    char numa[256];     // "local", "auto", "3" or "0,0,1,1": memory of each rank
    bool hyperthreads;  // with "all-cores": also the second thread of each core
    bool oversubscribe; // more than one rank on a CPU allowed
    int64_t timeout_s;  // deadline of the whole run
    char note[200];     // free text kept with the run
    union {
        struct latency_params latency;
    };
};

struct benchmark {
    const char *name;
    const char *title;
    const char *help;
    struct param_table params; // offsets into struct spec
};

extern const struct benchmark benchmarks[BENCHMARKS];
extern const struct param_table spec_common; // every benchmark has these too

const struct benchmark *benchmark_find(const char *name); // NULL if there is none
void spec_init(struct spec *s, enum benchmark_id id);     // all defaults

// Reads {"benchmark":"latency","size":"1-1024",…}: members of both tables, flat. Members named in
// `ignore` (NULL-terminated, may be NULL) belong to somebody else. Then spec_check. ERR_INVALID
// names the member.
int spec_from_json(struct spec *s, const struct json *object, const char *const *ignore,
                   struct err *err);
void spec_write_json(const struct spec *s, struct jsonw *w, const char *key);
// What the tables cannot say: lists parse, sizes hold at least one link, stride is a multiple of 8…
int spec_check(const struct spec *s, struct err *err);
// Catalogue of one benchmark or all:
// {"benchmarks":[{"name","title","help","params":[…]}],"common":[…]}
void spec_write_catalogue(struct jsonw *w);
