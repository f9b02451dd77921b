// SPDX-License-Identifier: Apache-2.0
// Inside the store only: the handle, and transactions over what is in memory and in the database.
#pragma once
#include "fleet/store/book.h"
#include "fleet/store/engine.h"

enum { STORE_ROWS = 2 * SUMMARY_RUNS_MAX }; // given to the engine at once

struct store_owner {
    const char *node, *collector; // "": this collector contacts it, or it pushes
};
struct store_owners {
    struct buf text;
    struct store_owner *list; // by node; owned
    int n;
};

struct fleet_store {
    const struct fleet_engine *engine;
    void *db; // the engine's
    enum fleet_store_use use;
    struct book book;
    struct fleet_row rows[STORE_ROWS]; // not given to the engine yet
    int n_rows;
    int layouts[SUMMARY_LAYOUTS_MAX]; // numbers of those of the page; 0: not looked up
    int64_t n_put;                    // rows of the transaction; deleted ones count against it
    int64_t n_arrived;                // rows that were put, and notes
    bool changed;                     // something else than places
    struct buf json;
    int archive; // enum fleet_archive: what is wanted of the runs that are stored
    struct store_owners owners;
    int n_unkept; // rows that were not archived, because their node has too many
};

// As fleet_store_open(), also a database into which a history is being moved.
struct fleet_store *fleet_open_any(const char *where, enum fleet_store_use use, struct err *err);
// Begins with a book that is up to date.
int fleet_begin(struct fleet_store *s, struct err *err);
// result 0: commits. -1: rolled back, and the book is read again by the next transaction.
int fleet_end(struct fleet_store *s, int result, struct err *err);
// As it is in a page, but for its place in a feed. Values are borrowed of the row. ERR_DAMAGED.
int row_summary(const struct book *b, const struct fleet_row *row, struct summary *out,
                struct err *err);
// Wants the run, if runs like it are archived. The set-up that it begins is in the book.
int archive_row(struct fleet_store *s, const struct fleet_row *row, struct err *err);
// With `row`, one of s->rows, the present set-up of its node ends, as the book still has it: wants
// the last run with it that succeeded, if such runs are archived and its history has not ended.
int archive_setup_end(struct fleet_store *s, const struct fleet_row *row, struct err *err);
// The run is kept from now on, or no longer: if runs are archived for that, it is wanted, or it
// goes unless a finding cites it.
int archive_note(struct fleet_store *s, const struct fleet_row *row, bool kept, int64_t due_ms,
                 struct err *err);
// A number of the database; *out stays if it is not there.
int fleet_meta(struct fleet_store *s, const char *name, int64_t *out, struct err *err);
// A statement without rows.
int fleet_exec(struct fleet_store *s, const char *sql, const struct fleet_cell *in, int n,
               struct err *err);
// The number of a node, which is made if it is new. -1.
int store_node(struct fleet_store *s, const char *name, int64_t since_ms, struct err *err);

// feeds.c
struct book_feed *feed_at(struct fleet_store *s, int number);
// A history that is new, of the page's node or of a node whose runs are in the page. Its number;
// -1.
int feed_make(struct fleet_store *s, const struct fleet_page *p, const char *history,
              const char *version, int node, struct err *err);
void feed_open(struct fleet_store *s, int feed, int node); // it is the node's present one
void feed_leave(struct fleet_store *s, int node);          // the node has another one, or is gone
bool same_name(const char *a, const char *b);              // "n1" and "n1.cluster.example"
bool page_is_sound(const struct fleet_page *f);

// owners.c
void owners_fini(struct store_owners *o);
// The sources say that the node is that of another collector, or is contacted.
bool is_anothers(const struct fleet_store *s, const char *node, const char *collector);

// rows.c
// Whether the node has brought as many rows of dictionaries and histories as one may.
bool brought_all(const struct fleet_store *s, int node);
int rows_room(struct fleet_store *s, int n, struct err *err); // for so many rows of a page
int rows_flush(struct fleet_store *s, struct err *err);
// One more row: 1. 0: it brings something new, and its node has brought all. -1
int page_put_run(struct fleet_store *s, const struct summary *r, const struct fleet_page *p,
                 int node, int feed, struct err *err);
int spans_flush(struct fleet_store *s, int node, struct err *err);
// The rows from `first` on are kept: what they say of set-ups, and whether they are archived.
int rows_kept(struct fleet_store *s, int first, struct err *err);
// known[i]: run first+i of the page is stored already. All are of one history, and each number is
// higher than the one before.
int runs_known(struct fleet_store *s, const struct fleet_page *p, int first, int n, int node,
               int feed, bool *known, struct err *err);

// notes.c
// Notes first…first+n of the page, all of one history. Those of runs that are not stored are passed
// over.
int notes_put(struct fleet_store *s, const struct fleet_page *p, int first, int n, int node,
              int feed, struct err *err);
bool notes_are_sound(const struct fleet_page *f);
// Those with after < arrival <= until, in order; *n grows by how many they are.
int notes_read(struct fleet_store *s, int64_t after, int64_t until,
               int (*fn)(void *ctx, const struct summary_note *note, struct err *err), void *ctx,
               int *n, struct err *err);

// collected.c
int put_collected(struct fleet_store *s, const struct fleet_page *p, struct fleet_ack *ack,
                  struct err *err);
