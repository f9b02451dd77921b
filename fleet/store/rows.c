// SPDX-License-Identifier: Apache-2.0
// Runs of pages become rows, and what is new of them goes to the dictionaries.
#include "fleet/store/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "fleet/store/months.h"

bool brought_all(const struct fleet_store *s, int node)
{
    return s->book.node[node - 1].brought >= FLEET_STORE_NEW_MAX;
}

// A row of a dictionary is new. 1, or -1.
static int put_new(struct fleet_store *s, int node, const char *sql, const struct fleet_cell *row,
                   int n, struct err *err)
{
    s->book.node[node - 1].brought++;
    return fleet_exec(s, sql, row, n, err) < 0 ? -1 : 1;
}

static int number_result(int number)
{
    return (number > 0) - (number < 0);
}

// ---- What a row has numbers for. 1: *number. 0: it is new, and the node may not add it. -1

static int page_put_layout(struct fleet_store *s, const struct summary_layout *l, int node,
                           int *number, struct err *err)
{
    bool fresh;
    *number = book_layout(&s->book, l, &s->json, brought_all(s, node), &fresh, err);
    if (!fresh)
        return number_result(*number);
    const struct fleet_cell row[] = {CELL_I(*number), CELL_I(node),
                                     CELL_T(s->book.layouts.list[*number - 1]),
                                     CELL_T(buf_text(&s->json))};
    return put_new(s, node,
                   "INSERT INTO layout (id, origin, hash, metrics) VALUES ($1, $2, $3, $4)", row,
                   COUNT_OF(row), err);
}

static int page_put_kind(struct fleet_store *s, const struct summary *r, int layout, int node,
                         int *number, struct err *err)
{
    struct book_kind k = {layout, r->metrics_version, r->n_ranks, "", "", ""};
    bool fresh;
    snprintf(k.benchmark, sizeof k.benchmark, "%s", r->benchmark);
    snprintf(k.method, sizeof k.method, "%s", r->method);
    snprintf(k.variant, sizeof k.variant, "%s", r->variant);
    *number = book_kind(&s->book, &k, brought_all(s, node), &fresh, err);
    if (!fresh)
        return number_result(*number);
    const struct fleet_cell row[] = {
        CELL_I(*number),   CELL_I(node),        CELL_I(layout),   CELL_I(k.metrics_version),
        CELL_I(k.n_ranks), CELL_T(k.benchmark), CELL_T(k.method), CELL_T(k.variant)};
    return put_new(s, node,
                   "INSERT INTO kind (id, origin, layout, metrics_version, n_ranks, benchmark, "
                   "method, variant) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                   row, COUNT_OF(row), err);
}

static int page_put_machine(struct fleet_store *s, const struct summary *r, int node, int *number,
                            struct err *err)
{
    struct book_machine m;
    bool fresh;
    snprintf(m.hash[FLEET_CLASS], sizeof m.hash[0], "%s", r->class_hash);
    snprintf(m.hash[FLEET_CONFIG], sizeof m.hash[0], "%s", r->config_hash);
    snprintf(m.hash[FLEET_TOPOLOGY], sizeof m.hash[0], "%s", r->topology_hash);
    *number = book_machine(&s->book, &m, brought_all(s, node), &fresh, err);
    if (!fresh)
        return number_result(*number);
    const struct fleet_cell row[] = {CELL_I(*number), CELL_I(node), CELL_T(m.hash[FLEET_CLASS]),
                                     CELL_T(m.hash[FLEET_CONFIG]), CELL_T(m.hash[FLEET_TOPOLOGY])};
    return put_new(s, node,
                   "INSERT INTO machine (id, origin, class, config, topology) "
                   "VALUES ($1, $2, $3, $4, $5)",
                   row, COUNT_OF(row), err);
}

// A node has no more spans than kinds, but for the classes of machines that it had.
static int page_put_span(struct fleet_store *s, const struct fleet_row *row, struct err *err)
{
    int month = month_of(row->at_ms);
    const struct book_span span = {.kind = row->kind,
                                   .class = s->book.machine[row->machine - 1].class,
                                   .first = month,
                                   .last = month,
                                   .dirty = true};
    return book_span(&s->book, row->node, &span, err);
}

int spans_flush(struct fleet_store *s, int node, struct err *err)
{
    struct book_node *n = &s->book.node[node - 1];
    for (int i = 0; i < n->n_spans; i++) {
        struct book_span *p = &n->span[i];
        const struct fleet_cell row[] = {CELL_I(node), CELL_I(p->kind), CELL_I(p->class),
                                         CELL_I(p->first), CELL_I(p->last)};
        if (p->dirty &&
            fleet_exec(s,
                       "INSERT INTO span (node, kind, class, first_month, last_month) "
                       "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (node, kind, class) DO UPDATE "
                       "SET first_month = excluded.first_month, last_month = excluded.last_month",
                       row, COUNT_OF(row), err) < 0)
            return -1;
        p->dirty = false;
    }
    return 0;
}

int rows_flush(struct fleet_store *s, struct err *err)
{
    int n = s->n_rows;
    s->n_rows = 0;
    s->n_put += n;
    s->n_arrived += n;
    for (int i = 0; i < n; i++)
        s->rows[i].arrival = ++s->book.arrived;
    return n ? s->engine->put_rows(s->db, s->rows, n, err) : 0;
}

int rows_room(struct fleet_store *s, int n, struct err *err)
{
    return s->n_rows + n > STORE_ROWS ? rows_flush(s, err) : 0;
}

static bool is_ahead(int64_t ms, int64_t received_ms)
{
    return ms > received_ms + FLEET_STORE_AHEAD_MS;
}

int64_t fleet_store_date(const struct summary *r, int64_t received_ms)
{
    int64_t at_ms = r->measured_ms > 0 ? r->measured_ms : r->finished_ms;
    return at_ms <= 0 || is_ahead(at_ms, received_ms) ? received_ms : at_ms;
}

static void row_dates(struct fleet_row *row, const struct summary *r, int64_t received_ms)
{
    row->received_ms = received_ms;
    row->finished_ms = is_ahead(r->finished_ms, received_ms) ? received_ms : r->finished_ms;
    row->at_ms = fleet_store_date(r, received_ms);
    row->flags |= r->measured_ms <= 0 ? ROW_UNDATED : 0;
    row->flags |= is_ahead(r->measured_ms, received_ms) ? ROW_AHEAD : 0;
}

static struct fleet_row row_of(const struct summary *r, const struct fleet_page *p, int node,
                               int feed)
{
    struct fleet_row row = {.node = node,
                            .feed = feed,
                            .seq = p->collector ? r->node_seq : r->seq,
                            .run = r->id,
                            .state = r->state,
                            .flags = r->imported * ROW_IMPORTED | r->forced * ROW_FORCED,
                            .disturbed = -1,
                            .seconds = r->duration_s,
                            .label = r->label,
                            .v = r->values,
                            .lo = r->lo,
                            .hi = r->hi};
    if (!isnan(r->disturbed))
        row.disturbed = (int)lround(r->disturbed * 1e4);
    if (r->layout >= 0)
        row.n = p->page->layouts[r->layout].n;
    row_dates(&row, r, p->received_ms);
    return row;
}

int page_put_run(struct fleet_store *s, const struct summary *r, const struct fleet_page *p,
                 int node, int feed, struct err *err)
{
    struct fleet_row row = row_of(r, p, node, feed);
    int layout = r->layout < 0 ? 0 : s->layouts[r->layout], put = 1;
    if (r->layout >= 0 && !layout) {
        put = page_put_layout(s, &p->page->layouts[r->layout], node, &layout, err);
        s->layouts[r->layout] = put > 0 ? layout : 0;
    }
    put = put > 0 ? page_put_kind(s, r, layout, node, &row.kind, err) : put;
    put = put > 0 ? page_put_machine(s, r, node, &row.machine, err) : put;
    put = put > 0 ? page_put_span(s, &row, err) : put;
    if (put > 0)
        s->rows[s->n_rows++] = row;
    return put;
}

// A node's set-ups, as rollouts are read from them. Runs come in the order in which they were
// measured; one that a clock dates before the present set-up began says nothing about it.
static int put_setup(struct fleet_store *s, const struct fleet_row *row, struct err *err)
{
    struct book_node *n = &s->book.node[row->node - 1];
    bool known = *s->book.machine[row->machine - 1].hash[FLEET_CONFIG];
    if (!known || row->flags & ROW_IMPORTED || row->machine == n->machine ||
        (n->machine && row->at_ms <= n->setup_ms))
        return 0;
    const struct fleet_cell until[] = {CELL_I(row->at_ms), CELL_I(row->node), CELL_I(n->setup_ms)};
    const struct fleet_cell fresh[] = {
        CELL_I(row->node), CELL_I(row->at_ms), CELL_I(row->machine),
        CELL_I(row->state == RUN_SUCCEEDED ? SETUP_GOOD_SEEN : SETUP_GOOD_NONE)};
    if (n->machine &&
        (archive_setup_end(s, row, err) < 0 ||
         fleet_exec(s, "UPDATE setup SET until_ms = $1 WHERE node = $2 AND from_ms = $3", until,
                    COUNT_OF(until), err) < 0))
        return -1;
    n->machine = row->machine;
    n->setup_ms = row->at_ms;
    n->good = SETUP_GOOD_NONE; // of runs before this one, which is looked at next
    return fleet_exec(s, "INSERT INTO setup (node, from_ms, machine, good) VALUES ($1, $2, $3, $4)",
                      fresh, COUNT_OF(fresh), err);
}

int rows_kept(struct fleet_store *s, int first, struct err *err)
{
    for (int i = first; i < s->n_rows; i++)
        if (put_setup(s, &s->rows[i], err) < 0 || archive_row(s, &s->rows[i], err) < 0)
            return -1;
    return 0;
}

// ---- What is there already

struct known_runs {
    const struct fleet_page *p;
    int first, n;
    bool *known;
};

static int64_t seq_of(const struct fleet_page *p, int i)
{
    return p->collector ? p->page->runs[i].node_seq : p->page->runs[i].seq;
}

static int known_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct known_runs *k = ctx;
    (void)err;
    for (int low = 0, high = k->n; low < high;) {
        int at = (low + high) / 2;
        int64_t seq = seq_of(k->p, k->first + at);
        if (seq == row[0].i) {
            k->known[at] = true;
            break;
        }
        if (seq < row[0].i)
            low = at + 1;
        else
            high = at;
    }
    return 0;
}

int runs_known(struct fleet_store *s, const struct fleet_page *p, int first, int n, int node,
               int feed, bool *known, struct err *err)
{
    static const char sql[] =
        "SELECT seq FROM run WHERE node = $1 AND feed = $2 AND seq >= $3 AND seq <= $4";
    struct known_runs k = {p, first, n, known};
    if (!n)
        return 0;
    const struct fleet_cell in[] = {CELL_I(node), CELL_I(feed), CELL_I(seq_of(p, first)),
                                    CELL_I(seq_of(p, first + n - 1))};
    return rows_flush(s, err) < 0
               ? -1
               : s->engine->query(s->db, sql, in, COUNT_OF(in), known_row, &k, err);
}
