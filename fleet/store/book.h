// SPDX-License-Identifier: Apache-2.0
// Inside the store only: the small tables in memory. Nodes, kinds, machines and layouts only grow,
// so a reader reads on where it was. Feeds are kept by the writer, which alone changes them.
#pragma once
#include "analysis/peers/interned.h"
#include "fleet/store/engine.h"

// Months in which a node has runs of a kind, with machines of a class.
struct book_span {
    int kind, class, first, last;
    bool dirty;
};
struct book_node {
    int feed;               // the number of its open feed; 0: none
    int brought;            // rows of dictionaries, and histories
    int archived;           // for the writer: its runs in the archive, and one; 0: not counted yet
    int64_t swept_ms;       // for the writer: when its archive was full and was swept; 0: never
    struct book_span *span; // for the writer; owned
    int n_spans, spans_room;
    // For the writer: its newest set-up, and when it was first measured with it.
    int machine; // 0: none
    int64_t setup_ms;
    enum setup_good { // has a run with it succeeded? As in the table
        SETUP_GOOD_UNKNOWN,
        SETUP_GOOD_NONE,
        SETUP_GOOD_SEEN,
    } good;
};
struct book_feed {
    int node, twin; // 0: none
    int64_t next, last_ms, skew_ms;
    int64_t was;          // `next` in the database
    int64_t top, top_was; // the highest number that came through another collector; in the database
    char version[32];
    enum fleet_feed_state state;
    bool dirty;
};
struct book_kind {
    int layout, metrics_version;
    int64_t n_ranks;
    char benchmark[24], method[40], variant[256];
};
enum machine_hash { FLEET_CLASS, FLEET_CONFIG, FLEET_TOPOLOGY };
struct book_machine {
    char hash[3][65]; // by enum machine_hash
    int class;        // number
};

// A number of a row is its place + 1.
struct book {
    struct interned nodes, feeds, kinds, machines, layouts; // names, histories, keys, keys, hashes
    struct interned classes; // hashes, in the order in which machines brought them
    struct book_node *node;
    struct book_feed *feed;
    struct book_kind *kind;
    struct book_machine *machine;
    struct summary_layout *layout; // lists are owned
    int node_room, feed_room, kind_room, machine_room, layout_room;
    bool here;       // all of it was read
    int64_t arrived; // for the writer: the last number of an arrival
};

void book_fini(struct book *b); // and it is empty again
// Reads what is new. `writer`: also all feeds, which must be none so far, set-ups and spans.
int book_read(struct book *b, const struct fleet_engine *e, void *db, bool writer, struct err *err);

// Each returns a number; *fresh: it is new, and the caller stores the row. With known_only 0: it is
// new, and was not added. -1: no memory.
int book_node(struct book *b, const char *name, bool *fresh, struct err *err);
int book_feed(struct book *b, const char *history, bool *fresh, struct err *err);
int book_kind(struct book *b, const struct book_kind *k, bool known_only, bool *fresh,
              struct err *err);
int book_machine(struct book *b, const struct book_machine *m, bool known_only, bool *fresh,
                 struct err *err);
// The node has a run in this month: 1. 0: that would be a span too many. -1: no memory.
int book_span(struct book *b, int node, const struct book_span *s, struct err *err);
// json: the text that is stored; its hash is the key.
int book_layout(struct book *b, const struct summary_layout *l, struct buf *json, bool known_only,
                bool *fresh, struct err *err);
