// SPDX-License-Identifier: Apache-2.0
// A row is wanted, here, or not to be had. `due_ms` is when a wanted run is requested next, and
// when another one was stored or given up. `tries` counts the requests that failed, for whatever
// reason, and `refused` those that its node refused.
#include "fleet/store/archive.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "fleet/store/compress.h"
#include "fleet/store/parts.h"

enum { ARCHIVE_WANTED, ARCHIVE_HERE, ARCHIVE_NEVER };
enum {
    RETRY_MS = 60 * 1000,  // doubled with each try
    RETRY_DOUBLED_MAX = 9, // times: once in 8 hours then
    DAY_MS = 86400 * 1000,
};

void fleet_store_archives(struct fleet_store *s, enum fleet_archive which)
{
    s->archive = which;
}

static int want_run(struct fleet_store *s, const struct fleet_row *row, bool cited, int64_t due_ms,
                    struct err *err)
{
    const struct fleet_cell in[] = {CELL_I(row->node), CELL_I(row->feed), CELL_I(row->seq),
                                    CELL_I(row->run),  CELL_I(due_ms),    CELL_I(cited)};
    return fleet_exec(
        s,
        "INSERT INTO archive (node, feed, seq, run, state, tries, due_ms, bytes, why, cited) "
        "VALUES ($1, $2, $3, $4, 0, 0, $5, 0, '', $6) ON CONFLICT (node, feed, seq) DO UPDATE "
        "SET cited = 1 WHERE archive.cited = 0 AND excluded.cited = 1",
        in, COUNT_OF(in), err);
}

static bool day_passed(int64_t since_ms, int64_t now_ms)
{
    return !since_ms || now_ms < since_ms || now_ms - since_ms >= DAY_MS;
}

// Of a node whose archive is full: what was given up long ago, and what is still wanted of a
// history that has ended. One from times that have not come: the clock was ahead.
static int given_up_delete(struct fleet_store *s, int node, int64_t now_ms, struct err *err)
{
    struct book_node *n = &s->book.node[node - 1];
    const int64_t age_ms = (int64_t)FLEET_GIVEN_UP_DAYS * DAY_MS;
    const struct fleet_cell in[] = {CELL_I(node), CELL_I(now_ms - age_ms), CELL_I(now_ms + age_ms),
                                    CELL_I(n->feed)};
    n->swept_ms = now_ms;
    return fleet_exec(s,
                      "DELETE FROM archive WHERE node = $1 AND (due_ms < $2 OR due_ms > $3) "
                      "AND (state = 2 OR (state = 0 AND feed <> $4))",
                      in, COUNT_OF(in), err);
}

static int archived_count(struct fleet_store *s, int node, int64_t now_ms, struct err *err)
{
    static const char sql[] = "SELECT count(*) FROM archive WHERE node = $1";
    struct book_node *n = &s->book.node[node - 1];
    int64_t rows = 0;
    if (s->engine->query(s->db, sql, &CELL_I(node), 1, fleet_number, &rows, err) < 0)
        return -1;
    if (rows >= FLEET_LABELLED_MAX && day_passed(n->swept_ms, now_ms) &&
        (given_up_delete(s, node, now_ms, err) < 0 ||
         s->engine->query(s->db, sql, &CELL_I(node), 1, fleet_number, &rows, err) < 0))
        return -1;
    n->archived = 1 + (int)(rows < FLEET_LABELLED_MAX ? rows : FLEET_LABELLED_MAX);
    return 0;
}

// Labels and set-ups are the node's own word. 1: it may add a run to the archive; 0: it may not;
// -1.
static int word_counts(struct fleet_store *s, int node, int64_t now_ms, struct err *err)
{
    struct book_node *n = &s->book.node[node - 1];
    bool full = n->archived > FLEET_LABELLED_MAX;
    if ((!n->archived || (full && day_passed(n->swept_ms, now_ms))) &&
        archived_count(s, node, now_ms, err) < 0)
        return -1;
    if (n->archived > FLEET_LABELLED_MAX) {
        s->n_unkept++;
        return 0;
    }
    n->archived++;
    return 1;
}

// A run that the setting keeps, requested from due_ms on, which is now; `always`: whatever its
// label becomes.
static int want_kept(struct fleet_store *s, const struct fleet_row *row, bool always,
                     int64_t due_ms, struct err *err)
{
    int wanted = s->archive == FLEET_ARCHIVE_ALL ? 1 : word_counts(s, row->node, due_ms, err);
    return wanted > 0 ? want_run(s, row, always, due_ms, err) : wanted;
}

struct last_row {
    struct fleet_row row; // without what it borrows; node 0: none
    int feed, machine;
};

static int last_row_see(void *ctx, const struct fleet_row *row, struct err *err)
{
    struct last_row *l = ctx;
    (void)err;
    if (row->feed == l->feed && row->machine == l->machine &&
        (!l->row.node || row->at_ms > l->row.at_ms))
        l->row = *row;
    return 0;
}

static struct fleet_reading reading_setup(const struct fleet_store *s, const struct fleet_row *row)
{
    return (struct fleet_reading){.first = row->node,
                                  .last = row->node,
                                  .n_kinds = s->book.kinds.n,
                                  .n_machines = s->book.machines.n,
                                  .since_ms = s->book.node[row->node - 1].setup_ms,
                                  .until_ms = row->at_ms,
                                  .newest = 1,
                                  .own = true,
                                  .values_only = true};
}

// Of the engine's. The run that the set-up began with is looked at first: mostly it has succeeded,
// and one run is found faster than the last of years.
static int setup_has_good(struct fleet_store *s, const struct fleet_row *row, bool *has,
                          struct err *err)
{
    const struct book_node *n = &s->book.node[row->node - 1];
    struct last_row l = {.feed = row->feed, .machine = n->machine};
    struct fleet_reading reading = reading_setup(s, row);
    reading.until_ms = n->setup_ms + 1;
    if (s->engine->read(s->db, &reading, last_row_see, &l, err) < 0)
        return -1;
    reading.until_ms = row->at_ms;
    if (!l.row.node && row->at_ms > n->setup_ms + 1 &&
        s->engine->read(s->db, &reading, last_row_see, &l, err) < 0)
        return -1;
    *has = l.row.node != 0;
    return 0;
}

// The run that a set-up began with is in its row from the beginning.
static int setup_good_keep(struct fleet_store *s, const struct fleet_row *row, struct err *err)
{
    const struct book_node *n = &s->book.node[row->node - 1];
    const struct fleet_cell in[] = {CELL_I(SETUP_GOOD_SEEN), CELL_I(row->node),
                                    CELL_I(n->setup_ms)};
    return row->at_ms == n->setup_ms
               ? 0
               : fleet_exec(s, "UPDATE setup SET good = $1 WHERE node = $2 AND from_ms = $3", in,
                            COUNT_OF(in), err);
}

// 1: it is the first run of its set-up that succeeded; 0; -1.
static int first_good(struct fleet_store *s, const struct fleet_row *row, struct err *err)
{
    struct book_node *n = &s->book.node[row->node - 1];
    bool has = n->good == SETUP_GOOD_SEEN;
    if (has || row->state != RUN_SUCCEEDED || row->flags & ROW_IMPORTED ||
        row->machine != n->machine || row->at_ms < n->setup_ms)
        return 0;
    if (n->good == SETUP_GOOD_UNKNOWN && s->archive != FLEET_ARCHIVE_NONE &&
        setup_has_good(s, row, &has, err) < 0)
        return -1;
    n->good = SETUP_GOOD_SEEN;
    return setup_good_keep(s, row, err) < 0 ? -1 : !has;
}

int archive_row(struct fleet_store *s, const struct fleet_row *row, struct err *err)
{
    int first = first_good(s, row, err);
    if (first < 0)
        return -1;
    if (s->archive == FLEET_ARCHIVE_NONE ||
        (s->archive == FLEET_ARCHIVE_KEPT && !*row->label && !first))
        return 0;
    return want_kept(s, row, first, row->received_ms, err);
}

// Of those that the engine does not have yet.
static void last_row_at_hand(const struct fleet_store *s, const struct fleet_reading *reading,
                             const struct fleet_row *end, struct last_row *l)
{
    for (const struct fleet_row *r = s->rows; r < end; r++)
        if (r->node == reading->first && r->state == RUN_SUCCEEDED && !(r->flags & ROW_IMPORTED) &&
            r->at_ms >= reading->since_ms && r->at_ms < reading->until_ms)
            last_row_see(l, r, NULL);
}

int archive_setup_end(struct fleet_store *s, const struct fleet_row *row, struct err *err)
{
    struct book_node *n = &s->book.node[row->node - 1];
    struct last_row l = {.feed = row->feed, .machine = n->machine};
    const struct fleet_reading reading = reading_setup(s, row);
    if (s->archive != FLEET_ARCHIVE_KEPT)
        return 0;
    last_row_at_hand(s, &reading, row, &l);
    if (!l.row.node && s->engine->read(s->db, &reading, last_row_see, &l, err) < 0)
        return -1;
    n->archived = 0; // counted anew: the run may be there for its label
    return l.row.node ? want_kept(s, &l.row, true, row->received_ms, err) : 0;
}

int archive_note(struct fleet_store *s, const struct fleet_row *row, bool kept, int64_t due_ms,
                 struct err *err)
{
    const struct fleet_cell in[] = {CELL_I(row->node), CELL_I(row->feed), CELL_I(row->seq)};
    if (s->archive == FLEET_ARCHIVE_NONE)
        return 0;
    s->book.node[row->node - 1].archived = 0; // counted anew: a run may lose its place
    if (kept)
        return want_kept(s, row, false, due_ms, err);
    return s->archive == FLEET_ARCHIVE_ALL
               ? 0
               : fleet_exec(s,
                            "DELETE FROM archive "
                            "WHERE node = $1 AND feed = $2 AND seq = $3 AND cited = 0",
                            in, COUNT_OF(in), err);
}

struct cited_rows {
    const struct fleet_cited_runs *cited;
    int feed; // the present history of the node
    int n;
    struct fleet_row rows[FLEET_CITED_MAX]; // without what they borrow
};

static int cited_row(void *ctx, const struct fleet_row *row, struct err *err)
{
    struct cited_rows *c = ctx;
    (void)err;
    for (int i = 0; i < c->cited->n; i++)
        if (row->feed == c->feed && row->run == c->cited->runs[i] && c->n < FLEET_CITED_MAX) {
            c->rows[c->n++] = *row;
            break;
        }
    return 0;
}

static int want_cited(struct fleet_store *s, const struct fleet_cited_runs *cited, struct err *err)
{
    int node = interned_find(&s->book.nodes, cited->node) + 1;
    struct cited_rows c = {.cited = cited, .feed = node ? s->book.node[node - 1].feed : 0};
    const struct fleet_reading reading = {.first = node,
                                          .last = node,
                                          .n_kinds = s->book.kinds.n,
                                          .n_machines = s->book.machines.n,
                                          .since_ms = cited->since_ms,
                                          .until_ms = INT64_MAX,
                                          .own = true,
                                          .values_only = true};
    if (!c.feed)
        return 0;
    if (s->engine->read(s->db, &reading, cited_row, &c, err) < 0)
        return -1;
    for (int i = 0; i < c.n; i++)
        if (want_run(s, &c.rows[i], true, 0, err) < 0)
            return -1;
    return 0;
}

int fleet_store_archive_want(struct fleet_store *s, const struct fleet_cited_runs *list, int n,
                             struct err *err)
{
    int rc = 0;
    if (s->archive == FLEET_ARCHIVE_NONE || n == 0)
        return 0;
    if (fleet_begin(s, err) < 0)
        return -1;
    for (int i = 0; i < n && rc == 0; i++)
        rc = want_cited(s, &list[i], err);
    return fleet_end(s, rc, err);
}

struct wanted_runs {
    int (*fn)(void *ctx, const struct fleet_wanted_run *w, struct err *err);
    void *ctx;
};

static int wanted_run_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct wanted_runs *w = ctx;
    const struct fleet_wanted_run one = {row[0].t, row[1].t, row[2].i, row[3].i};
    return w->fn(w->ctx, &one, err);
}

int fleet_store_archive_wanted(struct fleet_store *s, int64_t now_ms, int most,
                               int (*fn)(void *ctx, const struct fleet_wanted_run *w,
                                         struct err *err),
                               void *ctx, struct err *err)
{
    // Of a history that is closed a node has nothing any more.
    static const char sql[] =
        "SELECT node.name, was.name, a.seq, a.run FROM archive AS a "
        "JOIN feed ON feed.id = a.feed AND feed.state = 0 "
        "JOIN node ON node.id = feed.node JOIN node AS was ON was.id = a.node "
        "WHERE a.state = 0 AND (a.due_ms <= $1 OR a.due_ms > $2) "
        "ORDER BY a.due_ms, a.node, a.seq LIMIT $3";
    // One that is due later than any retry is: the clock was ahead.
    const int64_t latest_ms = now_ms + ((int64_t)RETRY_MS << RETRY_DOUBLED_MAX);
    const struct fleet_cell in[] = {CELL_I(now_ms), CELL_I(latest_ms), CELL_I(most)};
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s,
                     s->engine->query(s->db, sql, in, COUNT_OF(in), wanted_run_row,
                                      &(struct wanted_runs){fn, ctx}, err),
                     err);
}

int fleet_whole_fill(struct fleet_whole *w, const char *body, size_t n, struct err *err)
{
    w->bytes = (int64_t)n;
    return n > FLEET_ARCHIVE_BYTES_MAX
               ? err_set(err, ERR_TOO_LARGE, "", "a whole run has at most %d bytes",
                         FLEET_ARCHIVE_BYTES_MAX)
               : compress_bytes(body, n, &w->frame, err);
}

static int put_frame(struct fleet_store *s, struct fleet_whole *w, int number, int feed,
                     int64_t now_ms, struct err *err)
{
    const struct fleet_cell in[] = {CELL_B(w->frame.data, w->frame.len),
                                    CELL_I(w->bytes),
                                    CELL_I(now_ms),
                                    CELL_I(number),
                                    CELL_I(feed),
                                    CELL_I(w->seq)};
    return fleet_exec(s,
                      "UPDATE archive SET body = $1, bytes = $2, due_ms = $3, state = 1, why = '' "
                      "WHERE node = $4 AND feed = $5 AND seq = $6 AND state = 0",
                      in, COUNT_OF(in), err);
}

struct missed {
    const struct fleet_whole *w;
    bool wanted, same; // same: it was refused for the same reason the last time
    int64_t tries, refusals;
};

static int missed_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct missed *m = ctx;
    (void)err;
    m->wanted = true;
    m->tries = row[0].i;
    m->refusals = row[1].i;
    m->same = strcmp(row[2].t, m->w->why) == 0;
    return 0;
}

// It is given up at once, or because it was refused for the same reason before, after many
// refusals. One that the node did not respond to keeps the reason of its last response.
static int put_missed(struct fleet_store *s, struct fleet_whole *w, int number, int feed,
                      int64_t now_ms, struct err *err)
{
    const struct fleet_cell key[] = {CELL_I(number), CELL_I(feed), CELL_I(w->seq)};
    struct missed m = {.w = w};
    if (s->engine->query(s->db,
                         "SELECT tries, refused, why FROM archive "
                         "WHERE node = $1 AND feed = $2 AND seq = $3 AND state = 0",
                         key, COUNT_OF(key), missed_row, &m, err) < 0)
        return -1;
    if (!m.wanted)
        return 0;
    bool ends = w->never || (w->refused && m.same && m.refusals >= FLEET_REFUSED_TRIES);
    int doubled = (int)(m.tries < RETRY_DOUBLED_MAX ? m.tries : RETRY_DOUBLED_MAX);
    const struct fleet_cell in[] = {CELL_I(ends ? ARCHIVE_NEVER : ARCHIVE_WANTED),
                                    CELL_I(now_ms + (ends ? 0 : (int64_t)RETRY_MS << doubled)),
                                    CELL_I(m.tries + 1),
                                    CELL_I(m.refusals + w->refused),
                                    CELL_I(w->never || w->refused),
                                    CELL_T(w->why),
                                    CELL_I(number),
                                    CELL_I(feed),
                                    CELL_I(w->seq)};
    if (fleet_exec(s,
                   "UPDATE archive SET state = $1, due_ms = $2, tries = $3, refused = $4, "
                   "why = CASE WHEN CAST($5 AS integer) = 1 THEN $6 ELSE why END "
                   "WHERE node = $7 AND feed = $8 AND seq = $9 AND state = 0",
                   in, COUNT_OF(in), err) < 0)
        return -1;
    w->given_up = ends;
    return 0;
}

static int archive_put(struct fleet_store *s, struct fleet_whole *list, int n, int64_t now_ms,
                       struct err *err)
{
    for (int i = 0; i < n; i++) {
        int node = interned_find(&s->book.nodes, list[i].node) + 1;
        int number = list[i].under ? interned_find(&s->book.nodes, list[i].under) + 1 : node;
        int feed = node && number ? s->book.node[node - 1].feed : 0;
        if (feed && (list[i].frame.len ? put_frame : put_missed)(s, &list[i], number, feed, now_ms,
                                                                 err) < 0)
            return -1;
    }
    return 0;
}

int fleet_store_archive_put(struct fleet_store *s, struct fleet_whole *list, int n, int64_t now_ms,
                            struct err *err)
{
    return fleet_begin(s, err) < 0 ? -1 : fleet_end(s, archive_put(s, list, n, now_ms, err), err);
}

// ---- Out

struct archived {
    struct buf *out;
    int state; // -1: not wanted at all
    char why[160];
};

static int archived_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct archived *a = ctx;
    a->state = (int)row[0].i;
    snprintf(a->why, sizeof a->why, "%s", row[1].t);
    return a->state == ARCHIVE_HERE
               ? compress_undo(row[2].t, (size_t)row[2].i, FLEET_ARCHIVE_BYTES_MAX, a->out, err)
               : 0;
}

int fleet_store_archive_get(struct fleet_store *s, const char *node, int64_t seq, struct buf *out,
                            struct err *err)
{
    static const char sql[] =
        "SELECT a.state, a.why, a.body FROM archive AS a JOIN node ON node.id = a.node "
        "WHERE node.name = $1 AND a.seq = $2 ORDER BY a.feed DESC LIMIT 1";
    struct archived a = {.out = out, .state = -1};
    const struct fleet_cell in[] = {CELL_T(node), CELL_I(seq)};
    if (fleet_begin(s, err) < 0 ||
        fleet_end(s, s->engine->query(s->db, sql, in, COUNT_OF(in), archived_row, &a, err), err) <
            0)
        return -1;
    if (a.state == ARCHIVE_HERE)
        return 0;
    return a.state == ARCHIVE_NEVER
               ? err_set(err, ERR_GONE, "seq", "run %lld of node %.63s is not archived%s%s",
                         (long long)seq, node, *a.why ? ": " : "", a.why)
               : err_set(err, ERR_NOT_FOUND, "seq", "run %lld of node %.63s is not archived%s",
                         (long long)seq, node,
                         a.state == ARCHIVE_WANTED ? " yet: it is requested from the node" : "");
}
