// SPDX-License-Identifier: Apache-2.0
// What a run is asked to do. One flat struct, described by parameter tables (model/benchmarks.c):
// the same tables check a request, parse the options of numa_bench and numaprobe, and write the
// catalogue. A benchmark reads the members that its own table lists; the others are zero.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/param.h"
#include "model/target.h"

// Every benchmark: its number, in the order of lists, and its name in functions. A line here asks
// for a row of model/benchmarks.c, estimate_NAME() of model/estimate.c, NAME_run() of
// bench/benchmarks, metrics_of_NAME() of analysis/metrics and section_NAME() of analysis/report.
#define BENCHMARK_LIST(X)                                                                          \
    X(LATENCY, latency)                                                                            \
    X(MATRIX, matrix)                                                                              \
    X(BANDWIDTH, bandwidth)                                                                        \
    X(PINGPONG, pingpong)                                                                          \
    X(C2C, c2c)                                                                                    \
    X(FIRSTTOUCH, firsttouch)                                                                      \
    X(LOADED, loaded)                                                                              \
    X(PAGEFAULT, pagefault)                                                                        \
    X(HIERARCHY, hierarchy)                                                                        \
    X(SCAN, scan)                                                                                  \
    X(ATOMICS, atomics)

enum benchmark_id {
#define BENCHMARK_ID(id, name) BENCHMARK_##id,
    BENCHMARK_LIST(BENCHMARK_ID)
#undef BENCHMARK_ID
        BENCHMARKS
};

enum mode { MODE_CONCURRENT, MODE_SERIAL, MODE_BOTH };
enum pages {
    PAGES_THP,
    PAGES_4K,   // base pages, whatever their size
    PAGES_HUGE, // reserved huge pages of the default size, and all that follow are reserved
    PAGES_2M,
    PAGES_1G,
    PAGE_KINDS
};
enum chase_method { METHOD_PRP, METHOD_CLASSIC };
enum launcher { LAUNCHER_AUTO, LAUNCHER_MPI, LAUNCHER_PROCESSES };
enum load_kind {
    LOAD_NONE,
    LOAD_CHASE,
    LOAD_READ,
    LOAD_WRITE, // around the caches
    LOAD_COPY,
    LOAD_3R1W, // every line is read, every third is modified in place
    LOAD_2R1W,
    LOAD_1R1W,
    LOAD_KINDS
};
enum bandwidth_sweep { SWEEP_NODES, SWEEP_THREADS, SWEEP_OWN, SWEEP_SIZES, SWEEP_MEMCPY };
// Instruction sets of the stream kernels, the wider of one machine after the narrower.
enum instructions {
    INSTRUCTIONS_AUTO,
    INSTRUCTIONS_SCALAR,
    INSTRUCTIONS_SSE2,
    INSTRUCTIONS_AVX2,
    INSTRUCTIONS_AVX512,
    INSTRUCTIONS_NEON,
    INSTRUCTIONS_SVE,
    INSTRUCTIONS
};
enum stores { STORES_CACHED, STORES_STREAMING, STORES };
enum concurrent_pairs {
    CONCURRENT_PAIRS_AUTO,
    CONCURRENT_PAIRS_ONE,
    CONCURRENT_PAIRS_LLC,
    CONCURRENT_PAIRS_ALL
};
enum page_cost { COST_FAULT, COST_COLLAPSE, COST_MIGRATE };
enum c2c_definition {
    C2C_BOTH,
    C2C_ONLY_CAS,
    C2C_ONLY_LOAD,
    C2C_ONLY_HITM,
    C2C_ONLY_HIT,
    C2C_STATES, // hitm and hit
    C2C_EVERY,
};
enum operation_choice { CHOICE_ALL, CHOICE_ATOMICS, CHOICE_LOCKS, CHOICE_ONE }; // and further ones
enum atomic_form { FORM_AUTO, FORM_LSE, FORM_LLSC };
enum c2c_home { C2C_HOME_FIRST, C2C_HOME_SECOND, C2C_HOME_THIRD };

// Limits, with their arithmetic.
enum {
    SPEC_SIZES_MAX = 48,   // 1 KiB doubled 48 times is 256 PiB: more than any node has
    SPEC_RANKS_MAX = 1024, // two sockets of 256 cores with two threads each
    SPEC_TARGETS_MAX = TARGETS_MAX,
    SPEC_PAIRS_MAX = 64,                      // pairs of ranks that are listed
    SPEC_TARGETS_TEXT = 5 * SPEC_TARGETS_MAX, // nodes of four digits with their commas
    SPEC_PAIRS_TEXT = 10 * SPEC_PAIRS_MAX,    // two ranks of four digits, dash and comma
    SPEC_MESSAGE_MAX = 1 << 26,
    SPEC_STEPS_MAX = 40,                // levels of load above idle
    SPEC_MIXES_MAX = 7,                 // of reads and writes
    SPEC_SAMPLES_MAX = 10000,           // that may be requested of a cell
    SPEC_LINES_MAX = 64,                // that a pair of cores alternates between
    SPEC_LLC_DEFAULT = 64 << 20,        // bytes of a last-level cache that the machine hides
    SPEC_TEXT_MAX = 5 * SPEC_RANKS_MAX, // a list of CPUs or nodes of four digits with their commas
};

struct spec {
    int benchmark; // enum benchmark_id
    // Placement and the run, of every benchmark; read by the launch plan.
    char cpus[SPEC_TEXT_MAX]; // "" or "1,9,17" (OS indices, one rank each, in this order)
    char ranks[24]; // "all-cores", "one-per-numa", "one-per-l3" or N per node; unused with cpus
    char numa[SPEC_TEXT_MAX]; // "local", "auto", "3", "0,0,1,1" or "interleave:0-3": memory of each
                              // rank
    bool hyperthreads;        // with "all-cores": also the second thread of each core
    bool oversubscribe;       // more than one rank on a CPU allowed
    int launcher;             // enum launcher
    bool quick;               // the benchmark's quick defaults (spec_quick)
    int64_t timeout_s;        // deadline of the whole run; 0: as the plan says
    int64_t budget_s;         // effort is lowered until the run takes no longer; 0: no budget
    int64_t queue_s;          // wait so long for the node to be free; 0: refuse at once
    bool force;               // start although a condition blocks the run
    char note[200];           // free text kept with the run
    // Memory.
    char size[256]; // working sets, see str_to_sizes; "auto" where the benchmark allows it
    int pages;      // enum pages
    char targets[SPEC_TARGETS_TEXT]; // memory that is measured: "all", "0,2", see model/target.h
    // Chasing.
    int method;          // enum chase_method
    int mode;            // enum mode
    uint64_t stride;     // bytes between links; 0: the machine's cache line
    uint64_t locality;   // bytes within which the order is random; 0: the whole working set
    double precision;    // %: half-width of the median's interval to reach
    int64_t min_samples; // samples a cell, at least
    int64_t sample_us;   // length of one sample
    int64_t cell_ms;     // time limit of one cell
    int64_t visits;      // moments of the run at which a cell is measured
    int64_t seed;        // of the permutations; rank r uses seed + r
    // Load on other cores.
    int load;                      // enum load_kind
    char load_cpus[SPEC_TEXT_MAX]; // "": those without a rank (the planner's choice)
    int64_t load_rate;             // MB/s a core; 0: as fast as it goes
    int64_t steps;                 // of the loaded benchmark, from idle to full
    char mix[64];                  // "reads,3:1,nt", "all" or "": the mix that `load` names
    // Bandwidth.
    int kernel;        // 0: all, otherwise 1 + enum stream_kernel of bench/kernels/stream.h
    int sweep;         // enum bandwidth_sweep
    int instructions;  // enum instructions
    int stores;        // enum stores
    char threads[256]; // of the sweep by threads: "auto", "doubling", "all", "1,4,16"
    int64_t passes;
    int cost;         // enum page_cost
    double deviation; // %: of a unit from its peers that a scan reports
    // Pairs of cores.
    char pairs[SPEC_PAIRS_TEXT]; // "classes", "all" or "0-1,0-4": of ranks
    uint64_t message_max;        // bytes
    int64_t pairs_most;          // of all pairs; 0: every one
    int64_t repetitions;
    int definition;       // enum c2c_definition
    int64_t lines;        // cache lines that a pair takes turns with
    int home;             // enum c2c_home
    int concurrent_pairs; // enum concurrent_pairs
    // Several ranks on one cache line.
    int operation; // enum operation_choice, or CHOICE_ONE + enum operation
    int form;      // enum atomic_form
};

struct shape;
struct page_sizes;

struct preset {
    const char *name, *value; // of a parameter
};

// Of a rank's CPU. Equal numbers are one cache.
struct rank_cache {
    int node, llc;        // -1: not known
    uint64_t llc_bytes;   // of its last-level cache; SPEC_LLC_DEFAULT if not known
    uint64_t found_bytes; // of a cache beyond it, which its node has; 0: none was found
};

enum bytes_of {
    BYTES_OF_ONE,  // each rank has them; of ranks that share a target, one at a time
    BYTES_OF_EACH, // each rank has them, all at once
    BYTES_OF_ALL,  // all ranks have them together, each its part
};

struct benchmark {
    const char *name;
    const char *title;
    const char *help;
    const char *method;            // in every result; a change of method is a change of name
    struct param_table params;     // offsets into struct spec
    const struct preset *defaults; // of common parameters where they differ; ends with a NULL name
    const struct preset *quick;    // a rough answer; ends with a NULL name
    int (*check)(const struct spec *s, struct err *err); // what the table cannot say
    // The matrices of a run (model/shape.h); returns how many.
    int (*shapes)(const struct spec *s, struct shape *list);
    bool up_to_size; // its working sets are a series up to the size, not the sizes of the spec
    // What its plan has to know. Bytes that a rank has at once on a node; NULL: the size.
    int (*bytes)(const struct spec *s, const struct rank_cache *caches, int ranks,
                 const struct page_sizes *pages, uint64_t *bytes, struct err *err);
    bool whole_pages; // those bytes are of whole pages already
    enum bytes_of bytes_of;
    bool no_policy;      // pages belong to the node that touches them first
    bool needs_mpi;      // it measures MPI itself
    bool first_measures; // the first rank of a node measures alone, at times or always
    bool loads_by_ranks; // the first rank of each node measures, the others make the load
    bool fills_caches;   // its ranks do at the same time, but for those of mode serial
    bool keeps_budget;   // it looks at the clock itself, beside the plan
    int least_ranks;     // 0: one
};

extern const struct benchmark benchmarks[BENCHMARKS];
extern const struct param_table spec_common; // every benchmark has these too

const struct benchmark *benchmark_find(const char *name);               // NULL if there is none
const struct param *spec_param(const struct spec *s, const char *name); // NULL if it has none
void spec_init(struct spec *s, enum benchmark_id id);                   // all defaults
void spec_quick(struct spec *s); // the benchmark's quick values on top; sets s->quick
// How the results are made, as stored with them: "prp4-v1", "classic-v1" …
const char *spec_method(const struct spec *s);

// What was requested that makes its results another series: "pages=4k size=1-1024", the parameters
// that are not effort and differ from the benchmark's defaults, in the tables' order; "" when none
// does.
void spec_variant(const struct spec *s, struct buf *out);

// A parameter that makes two specs different questions, with the values of both as text.
struct spec_difference {
    const char *name;    // of the parameter, or "benchmark"
    char a[256], b[256]; // cut if longer
};
// The parameters that are not effort and differ, in the tables' order; `out` gets at most `most`.
// Returns how many there are. Of different benchmarks only that is reported.
int spec_difference(const struct spec *a, const struct spec *b, struct spec_difference *out,
                    int most);

// Reads {"benchmark":"latency","size":"1-1024",…}: members of both tables, flat. "quick":true first
// sets the quick values, whatever the order. Members named in `ignore` (NULL-terminated, may be
// NULL) belong to the caller. Then spec_check. ERR_INVALID names the member.
int spec_from_json(struct spec *s, const struct json *object, const char *const *ignore,
                   struct err *err);
void spec_write_json(const struct spec *s, struct jsonw *w, const char *key);
// The CPUs of cpus, each once unless the ranks may share one. ERR_INVALID on "cpus". free(*ids)
int spec_cpus(const struct spec *s, int **ids, int *n, struct err *err);
// What the tables cannot say: lists parse, sizes hold at least one link, stride is a multiple of 8…
int spec_check(const struct spec *s, struct err *err);
// Of a new run besides: its note has no control characters. Stored runs may. ERR_INVALID ("note").
int spec_check_note(const struct spec *s, struct err *err);
// How many of all pairs that there are a run measures (pairs_most).
int64_t spec_pairs_of(const struct spec *s, int64_t all);
// Where `pairs` are too many for a budget: the largest power of two below them, so that two runs
// have the same number although they take a little longer or shorter.
int64_t spec_fewer_pairs(int64_t pairs);
// The fewest that a budget chooses, where each pair is of two out of `members` (ranks, targets):
// each of them has a pair, and each class of pairs one.
int64_t spec_fewest_pairs(int64_t members);
bool spec_has_targets(const struct spec *s); // each rank measures memory of several nodes
// Catalogue of one benchmark or all:
// {"benchmarks":[{"name","title","help","params":[…]}],"common":[…]}
void spec_write_catalogue(struct jsonw *w);
