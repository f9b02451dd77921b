// SPDX-License-Identifier: Apache-2.0
// The tables: every benchmark with its parameters, their limits, defaults and help.
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/mix.h"
#include "model/scan.h"
#include "model/shape.h"
#include "model/spec_values.h"
#include "model/stream_team.h"
#include "model/target.h"
#include "model/topology.h"

#define AT(member) offsetof(struct spec, member)
#define ROOM(member) sizeof(((struct spec *)NULL)->member)

static const char *const mode_names[] = {"concurrent", "serial", "both", NULL};
static const char *const page_names[] = {"thp", "4k", "huge", "2M", "1G", NULL};
static const char *const method_names[] = {"prp", "classic", NULL};
static const char *const launcher_names[] = {"auto", "mpi", "processes", NULL};
static const char *const load_names[] = {"none", "chase", "read", "write", "copy", NULL};
static const char *const kernel_names[] = {"all",   "copy", "scale", "add",
                                           "triad", "read", "write", NULL};
static const char *const sweep_names[] = {"nodes", "threads", "own", "sizes", "memcpy", NULL};
static const char *const instruction_names[] = {"auto",   "scalar", "sse2", "avx2",
                                                "avx512", "neon",   "sve",  NULL};
static const char *const store_names[] = {"cached", "streaming", NULL};
static const char *const concurrent_names[] = {"auto", "one", "per-l3", "all", NULL};
static const char *const cost_names[] = {"fault", "collapse", "migrate", NULL};
static const char *const definition_names[] = {"both", "cas",    "load", "hitm",
                                               "hit",  "states", "all",  NULL};
static const char *const operation_choices[] = {"all",      "atomics", "locks",  "fetch_add", "cas",
                                                "exchange", "tas",     "ticket", "mcs",       NULL};
static const char *const form_names[] = {"auto", "lse", "llsc", NULL};
static const char *const home_names[] = {"first", "second", "third", NULL};

// Parameters that several benchmarks have; only the defaults differ.
#define P_SIZES(default_, help_)                                                                   \
    {                                                                                              \
        .name = "size", .kind = PARAM_TEXT, .offset = AT(size), .room = ROOM(size),                \
        .def = default_, .metavar = "LIST", .help = help_                                          \
    }
#define P_PAGES                                                                                    \
    {                                                                                              \
        .name = "pages", .kind = PARAM_ENUM, .offset = AT(pages), .choices = page_names,           \
        .def = "thp",                                                                              \
        .help = "Page size to request: transparent huge pages, base pages (4k, whatever their "    \
                "size) or reserved huge pages (of the default size, 2M or 1G). The result states " \
                "what "                                                                            \
                "the kernel gave."                                                                 \
    }
#define INTERLEAVED_HELP                                                                           \
    " +interleave:0-3 adds memory whose pages are on these nodes in turn, +weighted:0-1 by the "   \
    "kernel's weights of the nodes (Linux 6.9)."
#define P_TARGETS(more_)                                                                           \
    {                                                                                              \
        .name = "targets", .kind = PARAM_TEXT, .offset = AT(targets), .room = ROOM(targets),       \
        .def = "all", .metavar = "NODES",                                                          \
        .help = "NUMA nodes whose memory is measured: all that have memory of their own (not a "   \
                "GPU's, NVM or SPM, which must be named), or a list 0,2." more_                    \
    }
#define P_PRECISION(default_)                                                                      \
    {                                                                                              \
        .name = "precision", .effort = true, .kind = PARAM_REAL, .offset = AT(precision),          \
        .min = 0.05, .max = 50, .def = default_, .unit = "%",                                      \
        .help = "Sample until the 95 % interval of the median is within plus or minus this."       \
    }
#define P_MIN_SAMPLES(default_)                                                                    \
    {                                                                                              \
        .name = "min_samples", .effort = true, .kind = PARAM_INT, .offset = AT(min_samples),       \
        .min = 7, .max = SPEC_SAMPLES_MAX, .def = default_,                                        \
        .help = "Least number of samples per cell."                                                \
    }
#define P_SAMPLE_US(default_, help_)                                                               \
    {                                                                                              \
        .name = "sample_us", .effort = true, .kind = PARAM_INT, .offset = AT(sample_us),           \
        .min = 20, .max = 1000000, .def = default_, .unit = "us", .help = help_                    \
    }
#define P_CELL_MS(default_)                                                                        \
    {                                                                                              \
        .name = "cell_ms", .effort = true, .kind = PARAM_INT, .offset = AT(cell_ms), .min = 5,     \
        .max = 600000, .def = default_, .unit = "ms",                                              \
        .help =                                                                                    \
            "Time limit of sampling one cell. A cell that has not converged by then is marked."    \
    }
#define P_VISITS(default_)                                                                         \
    {                                                                                              \
        .name = "visits", .effort = true, .kind = PARAM_INT, .offset = AT(visits), .min = 1,       \
        .max = 100, .def = default_,                                                               \
        .help = "Repetitions of each cell, spread over the run. Their differences widen its "      \
                "interval."                                                                        \
    }
#define P_SEED                                                                                     \
    {                                                                                              \
        .name = "seed", .effort = true, .kind = PARAM_INT, .offset = AT(seed), .min = 0,           \
        .max = 4503599627370496.0, .def = "1",                                                     \
        .help = "Seed of the random orders; rank r uses seed + r."                                 \
    }
#define P_STRIDE                                                                                   \
    {                                                                                              \
        .name = "stride", .kind = PARAM_BYTES, .offset = AT(stride), .min = 0, .max = 1 << 20,     \
        .def = "0",                                                                                \
        .help = "Distance between links, a multiple of 8. 0: the machine's cache line."            \
    }

#define P_PAIRS(default_)                                                                          \
    {                                                                                              \
        .name = "pairs", .kind = PARAM_TEXT, .offset = AT(pairs), .room = ROOM(pairs),             \
        .def = default_, .metavar = "WHICH",                                                       \
        .help =                                                                                    \
            "classes: one pair each of siblings, same L3, same node, same socket, other socket; "  \
            "all: every pair, as a matrix; or pairs of ranks 0-1,0-4."                             \
    }
// One range, that of pairs of ranks: of a rank and a target there are fewer.
#define P_PAIRS_MOST(help_)                                                                        \
    {                                                                                              \
        .name = "pairs_most", .kind = PARAM_INT, .offset = AT(pairs_most), .min = 0,               \
        .max = SPEC_RANKS_MAX * (SPEC_RANKS_MAX - 1) / 2.0, .def = "0",                            \
        .help = help_ " 0: all, or as many as fit the budget."                                     \
    }
#define P_PAIRS_MOST_OF_ALL                                                                        \
    P_PAIRS_MOST("With pairs all: number of pairs to measure. Each kind of pair, then each rank, " \
                 "comes first; the same number gives the same pairs.")
#define P_CONCURRENT_PAIRS                                                                         \
    {                                                                                              \
        .name = "concurrent_pairs", .kind = PARAM_ENUM, .offset = AT(concurrent_pairs),            \
        .choices = concurrent_names, .def = "auto",                                                \
        .help =                                                                                    \
            "Pairs measured at a time. all: as many as there are, but one per core; per-l3: "      \
            "one per last-level cache; one. auto: the first of these that changes the time of "    \
            "control pairs by less than 2 %."                                                      \
    }
#define P_PASSES(default_, help_)                                                                  \
    {                                                                                              \
        .name = "passes", .effort = true, .kind = PARAM_INT, .offset = AT(passes), .min = 3,       \
        .max = 1000, .def = default_, .help = help_                                                \
    }

#define SAMPLE_HELP "Length of one sample (and at least 10,000 hops)."

static const struct param latency_params[] = {
    P_SIZES("512", "Working sets. A bare number is MiB; 32K, 4M, 16G; lists 1,8,64; a range "
                   "1-16384 doubles."),
    {.name = "mode",
     .kind = PARAM_ENUM,
     .offset = AT(mode),
     .choices = mode_names,
     .def = "concurrent",
     .help =
         "All ranks at once under constant load, one rank at a time, or both on the same chains."},
    {.name = "method",
     .kind = PARAM_ENUM,
     .offset = AT(method),
     .choices = method_names,
     .def = "prp",
     .help = "prp: one link per cache line, computed random order, many samples, all ranks "
             "together. classic: as numa_bench 1.x, with 8-byte links, shuffled, 100,000 hops "
             "timed once, without a barrier; for comparison with archived results."},
    P_PAGES,
    P_STRIDE,
    {.name = "locality",
     .kind = PARAM_BYTES,
     .offset = AT(locality),
     .min = 0,
     .max = 1099511627776.0,
     .def = "0",
     .help = "Shuffle only within blocks of this size, block after block, which avoids most TLB "
             "misses. Below the largest working set. 0: the whole of it."},
    {.name = "load",
     .kind = PARAM_ENUM,
     .offset = AT(load),
     .choices = load_names,
     .def = "none",
     .help = "Background load: other cores chase, read, write or copy memory of their own node."},
    {.name = "load_cpus",
     .kind = PARAM_TEXT,
     .offset = AT(load_cpus),
     .room = ROOM(load_cpus),
     .def = "",
     .metavar = "LIST",
     .help = "CPUs that generate the load. Empty: one thread of each core without a rank."},
    {.name = "load_rate",
     .kind = PARAM_INT,
     .offset = AT(load_rate),
     .min = 0,
     .max = 1000000,
     .def = "0",
     .unit = "MB/s",
     .help = "Rate of the load of each CPU. 0: as fast as it can."},
    P_PRECISION("1"),
    P_MIN_SAMPLES("16"),
    P_SAMPLE_US("2000", SAMPLE_HELP),
    P_CELL_MS("160"),
    P_VISITS("8"),
    P_SEED,
};

static const struct param matrix_params[] = {
    P_SIZES("auto", "Working set. A bare number is MiB; auto is four last-level caches, at least "
                    "64 MiB."),
    P_TARGETS(""),
    P_PAIRS_MOST("Number of pairs of a rank and a target to measure, at least as many as there are "
                 "ranks and targets. Local memory comes first; the same number gives the same "
                 "pairs."),
    P_PAGES,
    P_STRIDE,
    P_PRECISION("1"),
    P_MIN_SAMPLES("16"),
    P_SAMPLE_US("2000", SAMPLE_HELP),
    P_CELL_MS("320"),
    P_VISITS("8"),
    P_SEED,
};

static const struct param bandwidth_params[] = {
    P_SIZES("auto",
            "One array, over all ranks of a row together; a list of all arrays of a rank "
            "with sweep sizes (32K,1M,64M or 16K-256M). A bare number is MiB; auto is four times "
            "the last-level caches of the ranks that work together, as STREAM demands."),
    {.name = "kernel",
     .kind = PARAM_ENUM,
     .offset = AT(kernel),
     .choices = kernel_names,
     .def = "all",
     .help =
         "STREAM's copy, scale, add, triad; read sums one array; write goes around the caches."},
    {.name = "sweep",
     .kind = PARAM_ENUM,
     .offset = AT(sweep),
     .choices = sweep_names,
     .def = "nodes",
     .help = "nodes: all ranks of each node against each target; threads: 1, 2, 4 ... ranks "
             "against each target; own: all ranks at once, each on its own memory; sizes: one rank "
             "and all ranks, each on its own memory, from the first cache to memory; memcpy: "
             "copies from each target node to each other."},
    {.name = "threads",
     .kind = PARAM_TEXT,
     .offset = AT(threads),
     .room = ROOM(threads),
     .def = "auto",
     .metavar = "WHICH",
     .help = "Numbers of ranks of the sweeps threads and sizes: doubling (1, 2, 4 ... and all "
             "ranks), all (every number), or a list 1,4,16. auto: doubling; 1 and all ranks of "
             "sizes."},
    {.name = "instructions",
     .kind = PARAM_ENUM,
     .offset = AT(instructions),
     .choices = instruction_names,
     .def = "auto",
     .help =
         "Instruction set of the kernels: scalar, sse2, avx2 or avx512 on x86; scalar, neon or "
         "sve on arm64; auto is the widest that the CPU has. The result states which was used."},
    {.name = "stores",
     .kind = PARAM_ENUM,
     .offset = AT(stores),
     .choices = store_names,
     .def = "cached",
     .help = "Stores of copy, scale, add and triad: cached, as STREAM is usually compiled, or "
             "streaming (non-temporal), as in most figures that vendors publish."},
    P_TARGETS(INTERLEAVED_HELP),
    P_PAGES,
    P_PASSES("8", "Times that each kernel is timed over its arrays, over all repetitions."),
    P_VISITS("8"),
};

static const struct param pingpong_params[] = {
    P_PAIRS("classes"),
    P_PAIRS_MOST_OF_ALL,
    {.name = "message_max",
     .kind = PARAM_BYTES,
     .offset = AT(message_max),
     .min = 0,
     .max = SPEC_MESSAGE_MAX,
     .def = "4M",
     .help = "Largest message; sizes are 0, 1, 2, 4 ... bytes."},
    {.name = "repetitions",
     .effort = true,
     .kind = PARAM_INT,
     .offset = AT(repetitions),
     .min = 20,
     .max = 1000000,
     .def = "1000",
     .help =
         "Messages there and back of each size, fewer of those above 40 KiB: 40 MiB together, at "
         "least 20."},
    P_VISITS("8"),
    P_CONCURRENT_PAIRS,
};

static const struct param c2c_params[] = {
    {.name = "definition",
     .kind = PARAM_ENUM,
     .offset = AT(definition),
     .choices = definition_names,
     .def = "both",
     .help = "cas: both cores compare-and-swap one flag; load: each writes a line of its own and "
             "spins on the other's; both: these two, each a matrix. hitm: the first rank reads "
             "lines that the second has modified in its cache; hit: lines that it has clean; "
             "states: these two. all: all four."},
    P_PAIRS("all"),
    P_PAIRS_MOST_OF_ALL,
    {.name = "home",
     .kind = PARAM_ENUM,
     .offset = AT(home),
     .choices = home_names,
     .def = "first",
     .help = "NUMA node of a pair's lines: that of its first rank, which keeps the time, of its "
             "second, or a third one: the first of targets that is neither's. Not every machine "
             "has a second and a third node."},
    {.name = "targets",
     .kind = PARAM_TEXT,
     .offset = AT(targets),
     .room = ROOM(targets),
     .def = "all",
     .metavar = "NODES",
     .help = "NUMA nodes that home third chooses from: all that have memory of their own, or a "
             "list 2,3."},
    {.name = "lines",
     .kind = PARAM_INT,
     .offset = AT(lines),
     .min = 1,
     .max = SPEC_LINES_MAX,
     .def = "8",
     .help = "Cache lines that a pair alternates between: the home of a line affects the latency. "
             "The result also has each line's round trip, the fastest line first; 1: it has not. "
             "Of cas and load only."},
    {.name = "repetitions",
     .effort = true,
     .kind = PARAM_INT,
     .offset = AT(repetitions),
     .min = 20,
     .max = 1000000,
     .def = "1000",
     .help = "Round trips a sample."},
    P_MIN_SAMPLES("64"),
    P_VISITS("8"),
    P_CONCURRENT_PAIRS,
};

static const struct param atomics_params[] = {
    {.name = "operation",
     .kind = PARAM_ENUM,
     .offset = AT(operation),
     .choices = operation_choices,
     .def = "all",
     .help = "atomics: fetch_add, cas (adding 1 by compare-and-swap until it succeeds) and "
             "exchange; locks: tas (test-and-set), ticket and mcs (a queue); all of them, or one."},
    {.name = "threads",
     .kind = PARAM_TEXT,
     .offset = AT(threads),
     .room = ROOM(threads),
     .def = "auto",
     .metavar = "WHICH",
     .help =
         "Numbers of ranks that work on the line at once: doubling (1, 2, 4 ... and all "
         "ranks; auto), all (every number), or a list 1,4,16. A lock is handed over from 2 on."},
    {.name = "form",
     .kind = PARAM_ENUM,
     .offset = AT(form),
     .choices = form_names,
     .def = "auto",
     .help = "Instructions of fetch_add, cas and exchange on arm64: lse (one instruction, ARMv8.1) "
             "or llsc (load and store exclusive). auto: lse where the CPU has it; of other CPUs "
             "their own. The result states which were used."},
    P_MIN_SAMPLES("32"),
    P_SAMPLE_US("2000", "Length of one sample. The shorter, the less evenly a lock is shared out."),
    P_VISITS("8"),
};

static const struct param firsttouch_params[] = {
    P_SIZES("auto", "Array of each rank. A bare number is MiB; auto is four last-level caches, at "
                    "least 64 MiB."),
    P_MIN_SAMPLES("16"),
    P_SAMPLE_US("2000", "Length of one sample."),
    P_CELL_MS("320"),
    P_VISITS("8"),
    P_SEED,
};

static const struct param loaded_params[] = {
    P_SIZES("auto", "Working set of the rank that chases, and of the loaders that share a "
                    "last-level cache, together. A bare number is MiB; auto is four last-level "
                    "caches, at least 64 MiB."),
    {.name = "load",
     .kind = PARAM_ENUM,
     .offset = AT(load),
     .choices = load_names,
     .def = "read",
     .help = "Load of the other ranks, where mix names none: read, write (around the caches), copy "
             "or chase."},
    {.name = "mix",
     .kind = PARAM_TEXT,
     .offset = AT(mix),
     .room = ROOM(mix),
     .def = "",
     .metavar = "LIST",
     .help = "Mixes of reads and writes, a curve each: reads; 3:1, 2:1, 1:1 (lines read : lines "
             "written, in place); nt (writes around the caches); copy; chase; all: the first "
             "five. Empty: the one that load names."},
    {.name = "targets",
     .kind = PARAM_TEXT,
     .offset = AT(targets),
     .room = ROOM(targets),
     .def = "own",
     .metavar = "NODES",
     .help = "own: all nodes at once, each on the memory of its ranks. Otherwise one node's ranks "
             "at a time, on the memory of each target: all nodes that have memory of their own "
             "(all), or a list 0,2." INTERLEAVED_HELP},
    {.name = "steps",
     .kind = PARAM_INT,
     .offset = AT(steps),
     .min = 1,
     .max = SPEC_STEPS_MAX,
     .def = "12",
     .help = "Levels of load above idle. The last is unlimited; the others are placed where the "
             "curve of latency over bandwidth bends."},
    P_PAGES,
    P_STRIDE,
    P_PRECISION("2"),
    P_MIN_SAMPLES("16"),
    P_SAMPLE_US("2000", SAMPLE_HELP),
    P_CELL_MS("320"),
    P_VISITS("8"),
    P_SEED,
};

static const struct param pagefault_params[] = {
    P_SIZES("16", "Memory that each rank touches in a pass, 4K at least, rounded up to whole huge "
                  "pages. A bare number is MiB."),
    {.name = "cost",
     .kind = PARAM_ENUM,
     .offset = AT(cost),
     .choices = cost_names,
     .def = "fault",
     .help = "fault: the first touch of a page, 4 KiB and huge. collapse: the kernel makes a huge "
             "page of touched 4 KiB pages (MADV_COLLAPSE). migrate: touched 4 KiB pages move from "
             "each target to each other (move_pages)."},
    P_TARGETS(""),
    P_PASSES("30", "Fresh mappings that each rank touches for each cell, over all repetitions. One "
                   "more, before the others, is not counted."),
    P_VISITS("6"),
};

static const struct param hierarchy_params[] = {
    P_SIZES("auto", "Largest working set of the curve. A bare number is MiB; auto is sixteen "
                    "last-level caches, at least 256 MiB."),
    P_TARGETS(""),
    P_PRECISION("2"),
    P_MIN_SAMPLES("16"),
    P_SAMPLE_US("500", SAMPLE_HELP),
    P_CELL_MS("40"),
    P_VISITS("4"),
    P_SEED,
};

static const struct param scan_params[] = {
    {.name = "deviation",
     .kind = PARAM_REAL,
     .offset = AT(deviation),
     .min = 1,
     .max = 100,
     .def = "5",
     .unit = "%",
     .help = "Least deviation to report: how much slower than the median of its peers a core, "
             "last-level cache, node or pair is. Where peers differ by more, it is more."},
    P_PAGES,
    {.name = "repetitions",
     .effort = true,
     .kind = PARAM_INT,
     .offset = AT(repetitions),
     .min = 20,
     .max = 1000000,
     .def = "200",
     .help = "Round trips a sample of a pair."},
    P_SAMPLE_US("500", SAMPLE_HELP),
    P_CELL_MS("900"),
    P_VISITS("9"),
    P_SEED,
};

static const struct param common_params[] = {
    {.name = "cpus",
     .kind = PARAM_TEXT,
     .offset = AT(cpus),
     .room = ROOM(cpus),
     .def = "",
     .metavar = "LIST",
     .help =
         "CPUs to run on (OS numbers), one rank per CPU, in this order: 1,9,17. Overrides ranks."},
    {.name = "ranks",
     .kind = PARAM_TEXT,
     .offset = AT(ranks),
     .room = ROOM(ranks),
     .def = "all-cores",
     .metavar = "WHICH",
     .help = "Where ranks run: all-cores, one-per-numa, one-per-l3, or a number of ranks per NUMA "
             "node. Of different kinds of cores the strongest are taken, of equal ones the last. "
             "The default of matrix and firsttouch is one-per-numa."},
    {.name = "numa",
     .kind = PARAM_TEXT,
     .offset = AT(numa),
     .room = ROOM(numa),
     .def = "local",
     .metavar = "NODES",
     .help =
         "NUMA node of each rank's memory: local, auto (round-robin over the nodes with memory, "
         "without a GPU's, NVM and SPM), one node (3), or one node per rank (0,0,1,1). "
         "With interleave:0-3 the pages of each rank are on these nodes in turn. With weighted:0-1 "
         "the kernel's weights of the nodes count (Linux 6.9). weighted:0=3,1=1 requires these "
         "weights."},
    {.name = "hyperthreads",
     .kind = PARAM_BOOL,
     .offset = AT(hyperthreads),
     .def = "false",
     .help = "Use all hardware threads of a core. Not beside cpus."},
    {.name = "oversubscribe",
     .effort = true,
     .kind = PARAM_BOOL,
     .offset = AT(oversubscribe),
     .def = "false",
     .help = "Allow several ranks on one CPU: cpus may list a CPU again, and "
             "ranks may be above a node's cores."},
    {.name = "launcher",
     .effort = true,
     .kind = PARAM_ENUM,
     .offset = AT(launcher),
     .choices = launcher_names,
     .def = "auto",
     .help = "Who starts the ranks: mpi (mpirun), processes (numa_bench itself, without MPI), or "
             "auto: mpi, unless something keeps mpirun from working; then processes."},
    {.name = "quick",
     .effort = true,
     .kind = PARAM_BOOL,
     .offset = AT(quick),
     .def = "false",
     .help = "Quick, rough result (5 %). Sets other defaults; parameters given explicitly still "
             "apply."},
    {.name = "timeout_s",
     .option = "run-timeout",
     .effort = true,
     .kind = PARAM_INT,
     .offset = AT(timeout_s),
     .min = 0,
     .max = 86400,
     .def = "0",
     .unit = "s",
     .help =
         "Time limit of the run. A run whose time estimate exceeds it is refused. A run that "
         "reaches it stops and keeps the cells that were measured. 0: twice the estimate, 900 to "
         "14400."},
    {.name = "budget_s",
     .option = "budget",
     .effort = true,
     .kind = PARAM_INT,
     .offset = AT(budget_s),
     .min = 0,
     .max = 86400,
     .def = "0",
     .unit = "s",
     .help = "Time that the run may take. Repetitions, samples and time per cell are lowered until "
             "the time estimate fits; then the number of pairs. A slower run leaves out "
             "repetitions, but one of each cell. 0: as requested. The default of scan is 60 s."},
    {.name = "queue_s",
     .option = "wait-for-node",
     .effort = true,
     .kind = PARAM_INT,
     .offset = AT(queue_s),
     .min = 0,
     .max = 604800,
     .def = "0",
     .unit = "s",
     .help = "Wait this long until the node is free. 0: a busy node refuses the run at once."},
    {.name = "force",
     .effort = true,
     .kind = PARAM_BOOL,
     .offset = AT(force),
     .def = "false",
     .help = "Start although a condition blocks the run (administrators only). The run records "
             "what was overruled."},
    {.name = "note",
     .effort = true,
     .kind = PARAM_TEXT,
     .offset = AT(note),
     .room = ROOM(note),
     .def = "",
     .help = "Free text kept with the run."},
};

const struct param_table spec_common = {common_params, COUNT_OF(common_params)};

// --- What the tables cannot say ----------------------------------------------------------------

enum { TOUCH_LEAST = 4096, STREAM_LEAST = 4096, HIERARCHY_LEAST = 32 << 20 };

static int contradiction(struct err *err, const char *member, const char *why)
{
    return err_set(err, ERR_INVALID, member, "contradicts %s", why);
}

static int check_links(const struct spec *s, uint64_t smallest, uint64_t largest, struct err *err)
{
    enum { LINE_LEAST = 64 }; // the machine's is not known yet: core/launch/planner.c
    if (s->stride % 8)
        return err_set(err, ERR_INVALID, "stride", "must be a multiple of 8 bytes, got %llu",
                       (unsigned long long)s->stride);
    if (spec_check_links(s, smallest, LINE_LEAST, err) < 0)
        return -1;
    if (largest > (uint64_t)1 << 46) {
        char got[24];
        str_rough_size((double)largest, got, sizeof got);
        return err_set(err, ERR_INVALID, "size", "the largest must be at most 64T, got %s", got);
    }
    return 0;
}

static int check_classic(const struct spec *s, struct err *err)
{
    if (s->method != METHOD_CLASSIC)
        return 0;
    if (s->stride || s->locality)
        return contradiction(err, s->stride ? "stride" : "locality",
                             "method classic, whose links are 8 bytes apart in one random order");
    return s->load == LOAD_NONE
               ? 0
               : contradiction(err, "load", "method classic, which cannot hold a load constant");
}

static int benchmarks_check_load(const struct spec *s, struct err *err)
{
    CLEANUP_MEM int *ids = NULL;
    int n;
    if (s->load == LOAD_NONE && (*s->load_cpus || s->load_rate))
        return contradiction(err, *s->load_cpus ? "load_cpus" : "load_rate", "load none");
    if (!*s->load_cpus)
        return 0;
    return str_to_ids(s->load_cpus, false, SPEC_RANKS_MAX, "load_cpus", &ids, &n, err);
}

static int check_latency(const struct spec *s, struct err *err)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n;
    if (str_to_sizes(s->size, SPEC_SIZES_MAX, "size", &sizes, &n, err) < 0 ||
        check_links(s, sizes[0], sizes[n - 1], err) < 0 || check_classic(s, err) < 0)
        return -1;
    return benchmarks_check_load(s, err);
}

// "auto" or one size.
static int check_one_size(const struct spec *s, struct err *err)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n;
    if (strcmp(s->size, "auto") == 0)
        return check_links(s, 1 << 20, 1 << 20, err);
    if (str_to_sizes(s->size, 1, "size", &sizes, &n, err) < 0)
        return -1;
    return check_links(s, sizes[0], sizes[0], err);
}

// Benchmarks that choose the node of each array themselves.
static int check_own_placement(const struct spec *s, struct err *err)
{
    if (strcmp(s->numa, "local") == 0)
        return 0;
    return err_set(err, ERR_INVALID, "numa", "must be local: %s places its memory itself%s",
                   benchmarks[s->benchmark].name, *s->targets ? " (see targets)" : "");
}

static int check_targets(const struct spec *s, struct err *err)
{
    struct target_list list;
    if (check_one_size(s, err) < 0 || check_own_placement(s, err) < 0)
        return -1;
    return targets_read(&list, s->targets, "targets", err);
}

// Of benchmarks whose results are of single nodes.
static int check_nodes_only(const struct spec *s, struct err *err)
{
    struct target_list list;
    if (check_targets(s, err) < 0 || targets_read(&list, s->targets, "targets", err) < 0)
        return -1;
    if (!list.n || !target_is_interleaved(list.list[list.n - 1]))
        return 0;
    return err_set(err, ERR_INVALID, "targets",
                   "has interleaved memory, which bandwidth, loaded and latency (in numa) measure");
}

static int check_pairs(const struct spec *s, struct err *err)
{
    int pairs[SPEC_PAIRS_MAX][2], n;
    bool all = strcmp(s->pairs, "all") == 0;
    if (!all && s->pairs_most)
        return contradiction(err, "pairs_most", "a list of pairs: pairs must be all");
    if (s->pairs_most && s->pairs_most < PAIR_CLASSES)
        return err_set(err, ERR_INVALID, "pairs_most",
                       "must be 0 (all), or %d at least, a pair of each class; got %d",
                       PAIR_CLASSES, (int)s->pairs_most);
    if (all)
        return 0;
    if (s->concurrent_pairs != CONCURRENT_PAIRS_AUTO)
        return contradiction(err, "concurrent_pairs",
                             "a list of pairs, which are measured one after the other: pairs must "
                             "be all");
    return strcmp(s->pairs, "classes") == 0 ? 0 : spec_pairs(s->pairs, pairs, &n, err);
}

static int check_c2c(const struct spec *s, struct err *err)
{
    CLEANUP_MEM int *ids = NULL;
    int n;
    if (check_own_placement(s, err) < 0 || check_pairs(s, err) < 0)
        return -1;
    if (strcmp(s->targets, "all") == 0)
        return 0;
    if (s->home != C2C_HOME_THIRD)
        return contradiction(err, "targets", "home first or second, which is a rank's own node");
    return str_to_ids(s->targets, false, SPEC_TARGETS_MAX, "targets", &ids, &n, err);
}

static int check_counts(const struct spec *s, struct err *err)
{
    CLEANUP_MEM int *counts = NULL;
    int n;
    if (strcmp(s->threads, "auto") == 0 || strcmp(s->threads, "doubling") == 0 ||
        strcmp(s->threads, "all") == 0)
        return 0;
    if (str_to_ids(s->threads, false, SPEC_RANKS_MAX, "threads", &counts, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (!counts[i])
            return err_set(err, ERR_INVALID, "threads", "lists numbers of ranks from 1, got 0");
    return 0;
}

// A lock is handed over among two ranks at least.
static int check_atomics(const struct spec *s, struct err *err)
{
    int64_t list[AXIS_OPERATIONS];
    int n = spec_operations(s, list);
    if (check_own_placement(s, err) < 0 || check_counts(s, err) < 0)
        return -1;
    if (strcmp(s->threads, "1") == 0 && operation_is_lock((enum operation)list[n - 1]))
        return err_set(err, ERR_INVALID, "threads",
                       "must have a number above 1: locks are handed over; or choose an operation "
                       "that is no lock");
    return 0;
}

static int check_sizes(const struct spec *s, struct err *err)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n;
    if (strcmp(s->size, "auto") == 0)
        return 0;
    if (str_to_sizes(s->size, SPEC_SIZES_MAX, "size", &sizes, &n, err) < 0)
        return -1;
    if (sizes[0] < STREAM_LEAST)
        return err_set(err, ERR_INVALID, "size", "must be 4K at least: three arrays share it");
    return 0;
}

static int check_bandwidth(const struct spec *s, struct err *err)
{
    if (check_counts(s, err) < 0)
        return -1;
    bool preset = s->quick && strcmp(kernel_names[s->kernel], "triad") == 0; // of quick_bandwidth
    if (s->sweep == SWEEP_MEMCPY && s->kernel != 0 && !preset)
        return contradiction(err, "kernel", "sweep memcpy, which has kernels of its own");
    if (s->sweep != SWEEP_OWN && s->sweep != SWEEP_SIZES)
        return s->sweep == SWEEP_MEMCPY ? check_nodes_only(s, err) : check_targets(s, err);
    if (strcmp(s->targets, "all") != 0)
        return contradiction(err, "targets",
                             "sweeps own and sizes, where each rank has its own memory");
    return s->sweep == SWEEP_SIZES ? check_sizes(s, err) : check_one_size(s, err);
}

static int check_pingpong(const struct spec *s, struct err *err)
{
    if (s->launcher == LAUNCHER_PROCESSES)
        return contradiction(err, "launcher", "pingpong, which measures messages of MPI");
    if (target_is_policy(s->numa))
        return contradiction(err, "numa", "pingpong, whose messages are in memory of one node");
    return check_pairs(s, err);
}

static int check_firsttouch(const struct spec *s, struct err *err)
{
    if (check_one_size(s, err) < 0)
        return -1;
    // Pages are what is touched first.
    if (spec_bytes_per_rank(s, TOUCH_LEAST) < TOUCH_LEAST)
        return err_set(err, ERR_INVALID, "size", "must be 4K at least: whole pages are touched");
    return check_own_placement(s, err);
}

// The curve needs room beyond the first caches, and pages a number.
static int check_hierarchy(const struct spec *s, struct err *err)
{
    if (check_nodes_only(s, err) < 0)
        return -1;
    if (spec_bytes_per_rank(s, HIERARCHY_LEAST) < HIERARCHY_LEAST)
        return err_set(err, ERR_INVALID, "size",
                       "must be 32M at least: the curve has to pass the caches");
    return 0;
}

static bool loaded_by_path(const struct spec *s)
{
    return strcmp(s->targets, "own") != 0;
}

static int check_loaded(const struct spec *s, struct err *err)
{
    const struct load_mix *mixes[SPEC_MIXES_MAX];
    int n;
    if (s->load == LOAD_NONE)
        return err_set(err, ERR_INVALID, "load", "must be chase, read, write or copy");
    if (*s->mix && s->load != LOAD_READ)
        return contradiction(err, "load", "mix, which names the loads");
    if (mix_list(s, mixes, &n, err) < 0)
        return -1;
    return loaded_by_path(s) ? check_targets(s, err) : check_one_size(s, err);
}

// --- Matrices ----------------------------------------------------------------------------------

static int shapes_copy(struct shape *out, const struct shape *from, int n)
{
    memcpy(out, from, (size_t)n * sizeof *out);
    return n;
}

// Both, or the one that is chosen by its number from 1.
static int shapes_either(struct shape *out, const struct shape *two, int choice)
{
    return choice ? shapes_copy(out, &two[choice - 1], 1) : shapes_copy(out, two, 2);
}

static int shapes_latency(const struct spec *s, struct shape *list)
{
    static const struct shape modes[] = {
        {"concurrent", "latency", "ns", "rank", "working_set"},
        {"serial", "latency", "ns", "rank", "working_set"},
    };
    return shapes_either(list, modes, s->mode == MODE_BOTH ? 0 : 1 + s->mode);
}

static int shapes_matrix(const struct spec *s, struct shape *list)
{
    (void)s;
    *list = (struct shape){"idle", "latency", "ns", "rank", "target"};
    return 1;
}

static int shapes_bandwidth(const struct spec *s, struct shape *list)
{
    static const char *const rows[] = {[SWEEP_NODES] = "initiator",
                                       [SWEEP_THREADS] = "threads",
                                       [SWEEP_OWN] = "threads",
                                       [SWEEP_SIZES] = "threads"};
    static const struct shape copies[] = {
        {"memcpy", "bandwidth", "MB/s", "source", "target"},
        {"streaming", "bandwidth", "MB/s", "source", "target"},
    };
    const char *cols = s->sweep == SWEEP_SIZES ? "working_set" : "target";
    int n = 0;
    if (s->sweep == SWEEP_MEMCPY)
        return shapes_copy(list, copies, 2);
    for (int k = 1; kernel_names[k]; k++) // 0 is all
        if (s->kernel == 0 || s->kernel == k)
            list[n++] = (struct shape){kernel_names[k], "bandwidth", "MB/s", rows[s->sweep], cols};
    return n;
}

static int shapes_pingpong(const struct spec *s, struct shape *list)
{
    static const struct shape all[] = {
        {"latency", "latency", "us", "rank", "rank"},
        {"bandwidth", "bandwidth", "MB/s", "rank", "rank"},
    };
    if (strcmp(s->pairs, "all") == 0)
        return shapes_copy(list, all, s->message_max ? 2 : 1); // messages of nothing have no rate
    *list = (struct shape){"pingpong", "latency", "us", "pair", "message"};
    return 1;
}

static int shapes_c2c(const struct spec *s, struct shape *list)
{
    static const struct shape definitions[] = {
        {"cas", "round_trip", "ns", "rank", "rank"},
        {"load", "round_trip", "ns", "rank", "rank"},
        {"hitm", "latency", "ns", "rank", "rank"},
        {"hit", "latency", "ns", "rank", "rank"},
    };
    // Of hitm and hit a sample reads 128 lines.
    static const struct shape lines[] = {
        {"cas_lines", "round_trip", "ns", "pair", "line"},
        {"load_lines", "round_trip", "ns", "pair", "line"},
    };
    bool both = s->definition == C2C_BOTH || s->definition == C2C_EVERY;
    int n = s->definition == C2C_STATES  ? shapes_copy(list, definitions + 2, 2)
            : s->definition == C2C_EVERY ? shapes_copy(list, definitions, COUNT_OF(definitions))
                                         : shapes_either(list, definitions, s->definition);
    for (int i = 0; i < n && strcmp(s->pairs, "all") != 0; i++) {
        list[i].rows = "pair";
        list[i].cols = "message"; // a cache line
    }
    for (int i = 0; s->lines > 1 && i < 2; i++)
        if (both || s->definition == C2C_ONLY_CAS + i)
            list[n++] = lines[i];
    return n;
}

static int shapes_atomics(const struct spec *s, struct shape *list)
{
    static const struct shape all[] = {
        {"time", "operation_time", "ns", "threads", "operation"},
        {"rate", "rate", "Mop/s", "threads", "operation"},
        {"fairness", "fairness", "", "threads", "operation"},
        {"share", "share", "%", "threads", "operation"},
        {"handover", "handover_time", "ns", "threads", "operation"},
    };
    int64_t operations[AXIS_OPERATIONS];
    int n = spec_operations(s, operations);
    bool locks = operation_is_lock((enum operation)operations[n - 1]);
    return shapes_copy(list, all, COUNT_OF(all) - !locks);
}

static int shapes_firsttouch(const struct spec *s, struct shape *list)
{
    (void)s;
    *list = (struct shape){"access", "access_time", "ns", "rank", "access"};
    return 1;
}

static int shapes_pagefault(const struct spec *s, struct shape *list)
{
    static const struct shape both[] = {
        {"4k", "fault_time", "ns", "threads", "target"},
        {"thp", "fault_time", "ns", "threads", "target"},
    };
    static const struct shape collapse = {"collapse", "collapse_time", "ns", "threads", "target"};
    static const struct shape migrate = {"migrate", "migration_time", "ns", "threads", "path"};
    if (s->cost == COST_FAULT)
        return shapes_copy(list, both, 2);
    return shapes_copy(list, s->cost == COST_COLLAPSE ? &collapse : &migrate, 1);
}

static int shapes_hierarchy(const struct spec *s, struct shape *list)
{
    static const struct shape all[] = {
        {"latency", "latency", "ns", "rank", "working_set"},
        {"base_pages", "latency", "ns", "rank", "pages"},
        {"packed", "latency", "ns", "rank", "pages"},
        {"huge_pages", "latency", "ns", "rank", "pages"},
        {"parallel", "access_time", "ns", "rank", "chains"},
        {"stride", "latency", "ns", "rank", "stride"},
        {"cycle", "cycle_time", "ns", "rank", "chains"},
        {"nodes", "latency", "ns", "rank", "target"},
    };
    (void)s;
    return shapes_copy(list, all, COUNT_OF(all));
}

static int shapes_scan(const struct spec *s, struct shape *list)
{
    static const struct shape all[] = {
        {SCAN_LATENCY, "latency", "ns", "rank", "working_set"},
        {SCAN_BANDWIDTH, "bandwidth", "MB/s", "rank", "working_set"},
        {SCAN_TRANSFER, "round_trip", "ns", "pair", "message"},
        {SCAN_OF_CORE, "deviation", "%", "rank", "aspect"},
        {SCAN_OF_L3, "deviation", "%", "l3", "aspect"},
        {SCAN_OF_NODE, "deviation", "%", "initiator", "aspect"},
        {SCAN_OF_PAIR, "deviation", "%", "pair", "aspect"},
    };
    (void)s;
    return shapes_copy(list, all, COUNT_OF(all));
}

static int shapes_loaded(const struct spec *s, struct shape *list)
{
    const struct load_mix *mixes[SPEC_MIXES_MAX];
    const char *rows = loaded_by_path(s) ? "path" : "rank";
    int n = 0;
    mix_list(s, mixes, &n, NULL);
    for (int i = 0; i < n; i++) {
        list[2 * i] = (struct shape){mixes[i]->latency, "latency", "ns", rows, "load"};
        list[2 * i + 1] = (struct shape){mixes[i]->bandwidth, "bandwidth", "MB/s", rows, "load"};
    }
    return 2 * n;
}

// --- Memory ------------------------------------------------------------------------------------

// Classic has a list of indices as large as the working set.
static int bytes_latency(const struct spec *s, const struct rank_cache *caches, int ranks,
                         const struct page_sizes *pages, uint64_t *bytes, struct err *err)
{
    (void)pages;
    (void)err;
    *bytes = spec_bytes_per_rank(s, spec_auto_bytes_of(caches, ranks));
    *bytes *= s->method == METHOD_CLASSIC ? 2 : 1;
    return 0;
}

// Each rank maps its part of them, in whole pages. Those of 2 MiB are not counted, and the planner
// counts reserved ones; of 512 MiB, with base pages of 64 KiB, a part may take twice its size.
static uint64_t bytes_in_parts(const struct spec *s, const struct page_sizes *pages, uint64_t bytes,
                               int ranks)
{
    uint64_t n = ranks > 0 ? (uint64_t)ranks : 1;
    if (pages->thp <= page_sizes_usual.thp || spec_pages_reserved((enum pages)s->pages))
        return bytes;
    return n * spec_page_round((enum pages)s->pages, pages, (bytes + n - 1) / n);
}

// Those of the largest team: the teams work one after the other.
static int bytes_bandwidth(const struct spec *s, const struct rank_cache *caches, int ranks,
                           const struct page_sizes *pages, uint64_t *bytes, struct err *err)
{
    bool copies = s->sweep == SWEEP_MEMCPY; // from a mapping of its own to another one
    CLEANUP_MEM struct stream_team *teams = calloc((size_t)ranks + 1, sizeof *teams);
    if (!teams)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    int n = stream_teams(s, caches, ranks, teams, err);
    *bytes = 0;
    for (int i = 0; i < n; i++) {
        uint64_t mapped = teams[i].array_bytes * (copies ? 1 : STREAM_ARRAYS),
                 all = (copies ? 2 : 1) * bytes_in_parts(s, pages, mapped, teams[i].n_ranks);
        *bytes = all > *bytes ? all : *bytes;
    }
    if (n >= 0 && s->sweep == SWEEP_SIZES) // of each rank, whatever its arrays
        *bytes = bytes_in_parts(
            s, pages, (uint64_t)ranks * spec_bytes_per_rank(s, spec_auto_bytes_of(caches, ranks)),
            ranks);
    return n < 0 ? -1 : 0;
}

// Whole huge pages.
static int bytes_pagefault(const struct spec *s, const struct rank_cache *caches, int ranks,
                           const struct page_sizes *pages, uint64_t *bytes, struct err *err)
{
    (void)pages;
    uint64_t huge = 2 << 20;
    (void)err;
    *bytes = spec_bytes_per_rank(s, spec_auto_bytes_of(caches, ranks));
    *bytes = (*bytes + huge - 1) / huge * huge;
    return 0;
}

// The curve's memory and a quarter as much, which is of base pages.
static int bytes_hierarchy(const struct spec *s, const struct rank_cache *caches, int ranks,
                           const struct page_sizes *pages, uint64_t *bytes, struct err *err)
{
    (void)err;
    *bytes = spec_page_round(PAGES_THP, pages,
                             spec_bytes_per_rank(s, 4 * spec_auto_bytes_of(caches, ranks)));
    *bytes += spec_page_round(PAGES_4K, pages, *bytes / 4);
    return 0;
}

static int bytes_scan(const struct spec *s, const struct rank_cache *caches, int ranks,
                      const struct page_sizes *pages, uint64_t *bytes, struct err *err)
{
    (void)pages;
    (void)s;
    (void)err;
    *bytes = scan_memory_bytes(caches, ranks);
    return 0;
}

// Sent and received.
static int bytes_pingpong(const struct spec *s, const struct rank_cache *caches, int ranks,
                          const struct page_sizes *pages, uint64_t *bytes, struct err *err)
{
    (void)pages;
    (void)caches;
    (void)ranks;
    (void)err;
    *bytes = 2 * s->message_max;
    return 0;
}

// --- The benchmarks ----------------------------------------------------------------------------

static const struct preset no_presets[] = {{0}};
static const struct preset one_per_numa[] = {{"ranks", "one-per-numa"}, {0}};
static const struct preset quick_chase[] = {
    {"precision", "5"}, {"min_samples", "7"}, {"cell_ms", "60"}, {"visits", "6"}, {0}};
static const struct preset quick_bandwidth[] = {
    {"passes", "4"}, {"visits", "4"}, {"kernel", "triad"}, {0}};
static const struct preset quick_pagefault[] = {{"passes", "10"}, {"visits", "5"}, {0}};
static const struct preset quick_pingpong[] = {{"repetitions", "100"}, {"visits", "4"}, {0}};
static const struct preset quick_c2c[] = {
    {"repetitions", "200"}, {"min_samples", "16"}, {"visits", "4"}, {0}};
static const struct preset quick_atomics[] = {{"min_samples", "8"}, {"visits", "4"}, {0}};
static const struct preset quick_touch[] = {
    {"min_samples", "7"}, {"cell_ms", "60"}, {"visits", "6"}, {0}};
static const struct preset quick_hierarchy[] = {{"precision", "5"},   {"min_samples", "7"},
                                                {"sample_us", "200"}, {"cell_ms", "5"},
                                                {"visits", "4"},      {0}};
static const struct preset a_minute[] = {{"budget_s", "60"}, {0}};
static const struct preset quick_scan[] = {
    {"cell_ms", "90"}, {"visits", "6"}, {"repetitions", "100"}, {0}};
static const struct preset quick_loaded[] = {{"precision", "5"}, {"min_samples", "7"},
                                             {"cell_ms", "60"},  {"steps", "5"},
                                             {"visits", "4"},    {0}};

#define PARAMS(table)                                                                              \
    {                                                                                              \
        table, COUNT_OF(table)                                                                     \
    }

const struct benchmark benchmarks[BENCHMARKS] = {
    [BENCHMARK_LATENCY] =
        {
            .name = "latency",
            .title = "Memory latency by pointer chasing",
            .help = "Each rank walks one random cycle of dependent loads through its working set, "
                    "one link per cache line. The result is the latency of a load.",
            .method = "prp4-v2",
            .params = PARAMS(latency_params),
            .defaults = no_presets,
            .quick = quick_chase,
            .check = check_latency,
            .shapes = shapes_latency,
            .fills_caches = true,
            .bytes = bytes_latency,
        },
    [BENCHMARK_MATRIX] =
        {
            .name = "matrix",
            .title = "Idle latency from every node to every node",
            .help = "One rank at a time chases through memory on each target node while the others "
                    "sleep: initiator x target.",
            .method = "prp4-v2",
            .params = PARAMS(matrix_params),
            .defaults = one_per_numa,
            .quick = quick_chase,
            .check = check_nodes_only,
            .shapes = shapes_matrix,
        },
    [BENCHMARK_BANDWIDTH] =
        {
            .name = "bandwidth",
            .title = "Sustainable memory bandwidth",
            .help = "STREAM's four kernels, a read and a write around the caches, by the ranks "
                    "together, on each target node; bytes counted as STREAM counts them.",
            .method = "stream-v2",
            .params = PARAMS(bandwidth_params),
            .defaults = no_presets,
            .quick = quick_bandwidth,
            .check = check_bandwidth,
            .shapes = shapes_bandwidth,
            .fills_caches = true,
            .first_measures = true,
            .bytes = bytes_bandwidth,
            .bytes_of = BYTES_OF_ALL,
        },
    [BENCHMARK_PINGPONG] =
        {
            .name = "pingpong",
            .title = "MPI ping-pong between cores",
            .help = "Two ranks send a message there and back while the others sleep; half of the "
                    "round trip, by size of the message and pair of cores.",
            .method = "pingpong-v1",
            .params = PARAMS(pingpong_params),
            .defaults = no_presets,
            .quick = quick_pingpong,
            .check = check_pingpong,
            .shapes = shapes_pingpong,
            .bytes = bytes_pingpong,
            .needs_mpi = true,
            .least_ranks = 2,
        },
    [BENCHMARK_C2C] =
        {
            .name = "c2c",
            .title = "Core-to-core cache-line transfer latency",
            .help = "Two cores transfer a cache line to each other. The result is the round trip "
                    "of every pair, or the latency of reading a line in the other's cache.",
            .method = "c2c-v2",
            .params = PARAMS(c2c_params),
            .defaults = no_presets,
            .quick = quick_c2c,
            .check = check_c2c,
            .shapes = shapes_c2c,
            .least_ranks = 2,
        },
    [BENCHMARK_FIRSTTOUCH] =
        {
            .name = "firsttouch",
            .title = "Cost of accessing pages that another rank touched first",
            .help =
                "Each rank touches an array first, so that its node gets the pages. Then all ranks "
                "read their own array, the first rank's (shared) and the next rank's (crossed).",
            .method = "touch-v2",
            .params = PARAMS(firsttouch_params),
            .defaults = one_per_numa,
            .quick = quick_touch,
            .check = check_firsttouch,
            .shapes = shapes_firsttouch,
            .fills_caches = true,
            .no_policy = true,
        },
    [BENCHMARK_LOADED] =
        {
            .name = "loaded",
            .title = "Latency under stepped load",
            .help = "The first rank of each node chases while the node's other ranks move data at "
                    "stepped rates: the curve of latency over bandwidth, for each mix of reads and "
                    "writes and each target.",
            .method = "loaded-v1",
            .params = PARAMS(loaded_params),
            .defaults = no_presets,
            .quick = quick_loaded,
            .check = check_loaded,
            .shapes = shapes_loaded,
            .fills_caches = true,
            .first_measures = true,
            .loads_by_ranks = true,
            .least_ranks = 2,
        },
    [BENCHMARK_PAGEFAULT] =
        {
            .name = "pagefault",
            .title = "Cost of first touching a page: 4 KiB and huge, by number of ranks",
            .help = "1, 2, 4 ... ranks at once each write to every page of a fresh mapping on each "
                    "target node. The result is the time per page of one rank, for 4 KiB pages and "
                    "for transparent huge pages of 2 MiB.",
            .method = "pagefault-v1",
            .params = PARAMS(pagefault_params),
            .defaults = no_presets,
            .quick = quick_pagefault,
            .check = check_nodes_only,
            .shapes = shapes_pagefault,
            .fills_caches = true,
            .first_measures = true,
            .bytes = bytes_pagefault,
            .bytes_of = BYTES_OF_EACH,
        },
    [BENCHMARK_HIERARCHY] =
        {
            .name = "hierarchy",
            .title = "Caches, TLB reach, outstanding misses and prefetch gain of a core",
            .help = "One rank at a time chases by working set, by number of pages, in several "
                    "chains at once, by stride and on each target node. The result is one table "
                    "that explains the latency of memory.",
            .method = "hierarchy-v1",
            .params = PARAMS(hierarchy_params),
            .defaults = one_per_numa,
            .quick = quick_hierarchy,
            .check = check_hierarchy,
            .shapes = shapes_hierarchy,
            .up_to_size = true,
            .bytes = bytes_hierarchy,
            .whole_pages = true,
        },
    [BENCHMARK_SCAN] =
        {
            .name = "scan",
            .title = "The slow core, cache, node or pair of a large machine",
            .help =
                "All ranks at once: latency of the second-level cache and of memory, and "
                "bandwidth; pairs of cores hand over a line. First broad and quick; then longer "
                "where something is slower than its peers, to confirm it.",
            .method = "scan-v1",
            .params = PARAMS(scan_params),
            .defaults = a_minute,
            .quick = quick_scan,
            .check = check_own_placement,
            .shapes = shapes_scan,
            .fills_caches = true,
            .bytes = bytes_scan,
            .keeps_budget = true,
            .least_ranks = 2,
        },
    [BENCHMARK_ATOMICS] =
        {
            .name = "atomics",
            .title = "Atomic operations and locks on one cache line, by number of ranks",
            .help =
                "1, 2, 4 ... ranks at once make fetch-and-add, compare-and-swap and exchange on "
                "one cache line, or take and give back a lock: time and rate, how evenly the "
                "ranks get their turns, and how long a lock takes from rank to rank.",
            .method = "atomics-v1",
            .params = PARAMS(atomics_params),
            .defaults = no_presets,
            .quick = quick_atomics,
            .check = check_atomics,
            .shapes = shapes_atomics,
            .first_measures = true,
            .least_ranks = 2,
        },
};
