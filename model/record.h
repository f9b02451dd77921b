// SPDX-License-Identifier: Apache-2.0
// What numa_bench reports to the daemon: one JSON object per line on a channel of its own (a FIFO),
// in this order: hello, conditions and progress at any time, pairs before the matrices if they are
// fewer than planned, matrix before its cells, a rank each, end. A channel without `end`, or whose
// `end` counts differ, is a failed run.
//
//     {"rec":"hello","version":1,"nonce":"…","benchmark":"latency","ranks":2,…}
//     {"rec":"pairs","most":64}
//     {"rec":"matrix","name":"concurrent","quantity":"latency","unit":"ns","rows":{…},"cols":{…}}
//     {"rec":"cell","matrix":"concurrent","row":0,"col":3,"n":11,"median":98.123,…}
//     {"rec":"rank","rank":0,…}   {"rec":"progress",…}
//     {"rec":"condition","kind":"steal","severity":"warning","rank":null,"text":"…"}
//     {"rec":"end","ok":true,"cells":30,"phases":{"populate_ms":…,…}}
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/jsonw.h"
#include "model/condition.h"
#include "model/matrix.h"

enum {
    RECORD_VERSION = 1,
    RECORD_LINE_MAX = 65536, // the largest: a matrix head with 1024 ranks and 48 sizes, 14 KB
    RANK_NODES_MAX = 64,     // nodes listed with pages of one rank
};

enum record_kind {
    RECORD_HELLO,
    RECORD_MATRIX,
    RECORD_CELL,
    RECORD_RANK,
    RECORD_PROGRESS,
    RECORD_CONDITION,
    RECORD_PAIRS,
    RECORD_END,
    RECORD_KINDS
};

struct hello {
    int64_t version;
    char nonce[40];
    char benchmark[24];
    char method[40];   // "prp4-v1": how the chain is made and walked; results of different methods
                       // never mix
    char launcher[16]; // "mpi"
    int64_t ranks;
    int64_t line_bytes; // cache line used
};

// Where one rank ran and where its memory was, as verified. -1: not known or not requested.
struct rank_info {
    int64_t rank, pid;
    int64_t cpu_wanted, cpu; // OS index
    int64_t cpu_node;
    int64_t mem_wanted; // requested node
    int64_t mem_node;   // node with most of the pages
    double mem_share;   // of the pages checked, on mem_wanted (on mem_node if none was requested)
    int64_t pages_checked, pages_total; // pages of the base size
    char mem_method[24];                // "move_pages", "get_mempolicy", "numa_maps", "none"
    int n_nodes;
    struct {
        int64_t node, pages; // of the arena
        int64_t process_kib; // of all memory of the process; 0 where the kernel does not say
    } nodes[RANK_NODES_MAX];
    char pages_wanted[8], pages_got[8]; // "thp", "4k" ("16k", "64k"), "huge", "2M", "1G", got also
                                        // "mixed"
    double huge_share;                  // share of the arena on huge pages
    uint64_t address;                   // of the arena
    int64_t seed;
    int64_t migrations; // times the rank was seen on another CPU than at first
    int64_t arena_bytes;
    double off_cpu_share; // of the time of all its samples, left-out ones too; NaN: not known
    double clock_ghz;     // of its core, mean of the repetitions; NaN: not measured
    double load_cycles;   // that a load from L1 takes, in the same way
};

struct progress {
    char phase[16];      // "populate", "build", "warm-up", "measure", "control pairs"
    int64_t done, total; // cells; of control pairs per cent
    int64_t eta_ms;      // -1: not known
};

enum phase { PHASE_POPULATE, PHASE_BUILD, PHASE_WARMUP, PHASE_MEASURE, PHASE_VERIFY, PHASES };
extern const char *const phase_names[PHASES];

// A budget has no room for all pairs of ranks, which is known when control pairs were measured.
struct fewer_pairs {
    int64_t most; // that are measured, of all or of the pairs_most that were requested
};

struct end {
    bool ok;
    int64_t cells;
    double phase_ms[PHASES]; // slowest rank's
    enum err_code code;      // when not ok; by slug in the record
    char member[64];
    char text[256];
};

struct record {
    enum record_kind kind;
    union {
        struct hello hello;
        struct matrix matrix; // head only: axes, cells all NaN; owned, see record_fini
        struct {
            char matrix[24];
            int64_t row, col;
            struct cell cell;
        } cell;
        struct rank_info rank;
        struct progress progress;
        struct condition condition;
        struct fewer_pairs pairs;
        struct end end;
    };
};

// Writes one line with its '\n'.
void record_write(const struct record *r, struct buf *out);
// Parses one line without '\n'. ERR_INVALID names the member. The caller calls record_fini.
int record_parse(struct record *r, const char *line, size_t len, struct err *err);
void record_fini(struct record *r);

// Flat structs are described by tables: kind, name, offset, limits.
enum slot_kind {
    SLOT_I64,
    SLOT_REAL,  // NaN, null in JSON: not known
    SLOT_MAYBE, // not known: it is not in JSON, as in that of older versions
    SLOT_TEXT
};
struct record_slot {
    const char *name;
    enum slot_kind kind;
    size_t offset, room;
    double min, max;
};
enum { RECORD_RANK_SLOTS = 20 };
extern const struct record_slot
    record_rank_slots[RECORD_RANK_SLOTS]; // all of a rank but address and nodes

// Also used outside of records.
void rank_write_json(const struct rank_info *r, struct jsonw *w, const char *key);
int rank_from_json(struct rank_info *r, const struct json *object, struct err *err);
void phases_write_json(const double phase_ms[PHASES], struct jsonw *w, const char *key);
