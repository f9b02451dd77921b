// SPDX-License-Identifier: Apache-2.0
// Notes of feeds: a run that is stored has another label now, or is in a baseline, or no longer.
// They are kept as they came, because this collector's own feed passes them on. Several ways lead
// from a node to here, and one may be behind: of the notes of a run the one with the highest number
// in its node's feed counts.
#include "fleet/store/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

// What is stored of the run of a note.
struct noted_run {
    int64_t seq, run, noted; // noted: the number of its newest note; 0: it has none
    bool here;
    char label[RUN_LABEL_MAX + 1];
};

struct noting {
    struct fleet_store *store;
    int node, feed, n;
    int64_t received_ms;
    struct noted_run *runs; // each number once
};

static struct noted_run *noted_run_find(const struct noting *g, int64_t seq)
{
    for (int i = 0; i < g->n; i++)
        if (g->runs[i].seq == seq)
            return &g->runs[i];
    return NULL;
}

static int noted_run_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct noted_run *r = noted_run_find(ctx, row[0].i);
    (void)err;
    if (!r)
        return 0;
    r->here = true;
    r->run = row[1].i;
    snprintf(r->label, sizeof r->label, "%s", row[2].t);
    return 0;
}

static int noted_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct noted_run *r = noted_run_find(ctx, row[0].i);
    (void)err;
    if (r)
        r->noted = row[1].i;
    return 0;
}

// One look at the runs of the node, however many notes there are.
static int noting_read(struct noting *g, const struct summary_note *list, int n, struct err *err)
{
    static const char runs[] = "SELECT seq, run, label FROM run "
                               "WHERE node = $1 AND feed = $2 AND seq >= $3 AND seq <= $4";
    static const char notes[] =
        "SELECT seq, max(noted) FROM note "
        "WHERE node = $1 AND feed = $2 AND seq >= $3 AND seq <= $4 GROUP BY seq";
    const struct fleet_engine *e = g->store->engine;
    int64_t first = INT64_MAX, last = 0;
    for (int i = 0; i < n; i++) {
        int64_t seq = list[i].run_seq;
        first = seq < first ? seq : first;
        last = seq > last ? seq : last;
        if (!noted_run_find(g, seq))
            g->runs[g->n++].seq = seq;
    }
    const struct fleet_cell in[] = {CELL_I(g->node), CELL_I(g->feed), CELL_I(first), CELL_I(last)};
    return rows_flush(g->store, err) < 0 ||
                   e->query(g->store->db, runs, in, COUNT_OF(in), noted_run_row, g, err) < 0 ||
                   e->query(g->store->db, notes, in, COUNT_OF(in), noted_row, g, err) < 0
               ? -1
               : 0;
}

static int relabel_run(const struct noting *g, struct noted_run *r, const char *label,
                       struct err *err)
{
    const struct fleet_cell in[] = {CELL_T(label), CELL_I(g->node), CELL_I(g->feed),
                                    CELL_I(r->seq)};
    if (strcmp(r->label, label) == 0)
        return 0;
    snprintf(r->label, sizeof r->label, "%s", label);
    return fleet_exec(g->store,
                      "UPDATE run SET label = $1 WHERE node = $2 AND feed = $3 AND seq = $4", in,
                      COUNT_OF(in), err);
}

static int put_note(const struct noting *g, const struct summary_note *note, int64_t noted,
                    struct err *err)
{
    struct fleet_store *s = g->store;
    struct noted_run *r = noted_run_find(g, note->run_seq);
    if (!r || !r->here || noted <= r->noted)
        return 0; // it was never stored, or a newer note came another way
    const struct fleet_row row = {.node = g->node, .feed = g->feed, .seq = r->seq, .run = r->run};
    const struct fleet_cell in[] = {CELL_I(++s->book.arrived),
                                    CELL_I(g->node),
                                    CELL_I(g->feed),
                                    CELL_I(r->seq),
                                    CELL_I(r->run),
                                    CELL_I(noted),
                                    CELL_T(note->label),
                                    CELL_I(note->baseline)};
    r->noted = noted;
    s->n_arrived++;
    s->changed = true;
    return fleet_exec(s,
                      "INSERT INTO note (arrival, node, feed, seq, run, noted, label, baseline) "
                      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                      in, COUNT_OF(in), err) < 0 ||
                   relabel_run(g, r, note->label, err) < 0 ||
                   archive_note(s, &row, *note->label || note->baseline, g->received_ms, err) < 0
               ? -1
               : 0;
}

int notes_put(struct fleet_store *s, const struct fleet_page *p, int first, int n, int node,
              int feed, struct err *err)
{
    const struct summary_note *list = p->page->notes + first;
    if (!n)
        return 0;
    CLEANUP_MEM struct noted_run *runs = calloc((size_t)n, sizeof *runs);
    struct noting g = {s, node, feed, 0, p->received_ms, runs};
    if (!runs)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for notes");
    if (noting_read(&g, list, n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (put_note(&g, &list[i], p->collector ? list[i].node_seq : list[i].seq, err) < 0)
            return -1;
    return 0;
}

bool notes_are_sound(const struct fleet_page *f)
{
    const struct summary_page *p = f->page;
    int64_t at = f->after;
    for (int i = 0; i < p->n_notes; i++) {
        const struct summary_note *n = &p->notes[i];
        bool placed = f->collector ? *n->node && *n->node_history && n->run_seq < n->node_seq
                                   : n->run_seq < n->seq;
        if (n->seq <= at || n->seq > p->next || !placed)
            return false;
        at = n->seq;
    }
    return true;
}

// ---- Out ----------------------------------------------------------------------------------------

struct notes_reader {
    int (*fn)(void *ctx, const struct summary_note *note, struct err *err);
    void *ctx;
    int *n;
};

static int note_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct notes_reader *r = ctx;
    struct summary_note note = {.seq = row[0].i,
                                .run_seq = row[1].i,
                                .run = row[2].i,
                                .node_seq = row[3].i,
                                .baseline = row[5].i != 0};
    snprintf(note.label, sizeof note.label, "%s", row[4].t);
    snprintf(note.node, sizeof note.node, "%s", row[6].t);
    snprintf(note.node_history, sizeof note.node_history, "%s", row[7].t);
    ++*r->n;
    return r->fn(r->ctx, &note, err);
}

int notes_read(struct fleet_store *s, int64_t after, int64_t until,
               int (*fn)(void *ctx, const struct summary_note *note, struct err *err), void *ctx,
               int *n, struct err *err)
{
    static const char sql[] =
        "SELECT k.arrival, k.seq, k.run, k.noted, k.label, k.baseline, node.name, feed.history "
        "FROM note AS k JOIN node ON node.id = k.node JOIN feed ON feed.id = k.feed "
        "WHERE k.arrival > $1 AND k.arrival <= $2 ORDER BY k.arrival";
    struct notes_reader r = {fn, ctx, n};
    const struct fleet_cell in[] = {CELL_I(after), CELL_I(until)};
    return s->engine->query(s->db, sql, in, COUNT_OF(in), note_row, &r, err);
}
