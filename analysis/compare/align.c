// SPDX-License-Identifier: Apache-2.0
// Ranks belong together by place, everything else by its value. What differs is either harmless
// because aligned, worth a note, or a refusal: a parameter that is not listed here refuses.
#include "analysis/compare/align.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/median.h"
#include "analysis/stats/rank_places.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"

enum { SPEC_DIFFERENCES_MAX = 32 };

void compare_note(struct comparison *c, const char *fmt, ...)
{
    if (c->n_notes == COMPARE_NOTES_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->notes[c->n_notes++], COMPARE_NOTE_ROOM, fmt, ap);
    va_end(ap);
}

// Which ranks belong together: by number, -1 where a rank of A has none.
struct rank_map {
    struct places of_a, of_b; // owned
    int n_a, n_b;
    int64_t *a, *b; // numbers; owned
    int *partner;   // index into b; owned
    bool places;    // both sides know theirs
    int moved;      // partners at different places
    int unmatched;  // of A and B together
};

// What stands against comparing, one after another.
struct refusal {
    struct comparison *c;
    bool allow_different;
    const char *member; // the first
    struct buf text;
};

static void rank_map_fini(struct rank_map *m)
{
    places_fini(&m->of_a);
    places_fini(&m->of_b);
    free(m->a);
    free(m->b);
    free(m->partner);
}

static void refusal_fini(struct refusal *r)
{
    buf_free(&r->text);
}

static bool axis_is(const struct axis *a, const char *name)
{
    return strcmp(a->name, name) == 0;
}

static bool has_axis(const struct compare_side *s, const char *name)
{
    return axis_is(&s->matrix->row, name) || axis_is(&s->matrix->col, name);
}

__attribute__((format(printf, 3, 4))) static void refuse(struct refusal *r, const char *member,
                                                         const char *fmt, ...)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vfmt(&line, fmt, ap);
    va_end(ap);
    buf_needs(&r->text, &line);
    if (r->allow_different) {
        compare_note(r->c, "%s; differences may come from that alone", buf_text(&line));
        return;
    }
    r->member = r->member ? r->member : member;
    buf_fmt(&r->text, "%s%s", r->text.len ? "; " : "", buf_text(&line));
}

// One fact that must be the same on both sides; unknown on a side is a note.
static void must_match(struct refusal *r, const char *what, const char *a, const char *b)
{
    a = a == NULL ? "" : a;
    b = b == NULL ? "" : b;
    if (strcmp(a, b) == 0)
        return;
    if (*a == '\0' || *b == '\0')
        compare_note(r->c, "%s of %s is not known; the other has %s", what, *a ? "B" : "A",
                     *a ? a : b);
    else
        refuse(r, what, "the %s differs: A has %s, B has %s", what, a, b);
}

// "" where it is not known of any rank; "mixed" where ranks differ.
static const char *align_pages_of(const struct compare_side *s)
{
    const char *pages = "";
    for (int i = 0; s->ranks != NULL && i < s->n_ranks; i++) {
        const char *got = s->ranks[i].pages_got;
        if (*pages && *got && strcmp(pages, got) != 0)
            return "mixed";
        pages = *got ? got : pages;
    }
    return pages;
}

// ---- Ranks --------------------------------------------------------------------------------------

static bool same_place(const struct rank_info *p, const struct rank_info *q)
{
    return p != NULL && q != NULL && p->cpu >= 0 && p->cpu == q->cpu && p->mem_node == q->mem_node;
}

static void add_once(int64_t *list, int *n, int64_t value)
{
    for (int i = 0; i < *n; i++)
        if (list[i] == value)
            return;
    list[(*n)++] = value;
}

// All ranks whose places are known, or else those that an axis names.
static int64_t *align_ranks_of(const struct compare_side *s, bool places, int *n)
{
    const struct axis *row = &s->matrix->row, *col = &s->matrix->col;
    size_t most = (size_t)s->n_ranks + 2 * (size_t)row->n + (size_t)col->n + 1;
    int64_t *list = calloc(most, sizeof *list);
    *n = 0;
    for (int i = 0; list && places && i < s->n_ranks; i++)
        list[(*n)++] = s->ranks[i].rank;
    if (!list || places)
        return list;
    const struct axis *axis = axis_is(col, "rank") ? col : row;
    for (int i = 0; axis_is(axis, "rank") && i < axis->n; i++)
        list[(*n)++] = axis->values[i];
    for (int i = 0; axis_is(row, "pair") && i < row->n; i++) {
        int first, second;
        axis_unpair(row->values[i], &first, &second);
        add_once(list, n, first);
        add_once(list, n, second);
    }
    return list;
}

// A rank of B by its place or, with `other` 0, by its number.
struct seat {
    int64_t key, other;
    int at; // index into the map's b
};

static int by_key(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->other != y->other)
        return x->other < y->other ? -1 : 1;
    return x->at - y->at;
}

struct seats {
    int n_by_number, n_by_place;
    struct seat *by_number, *by_place; // owned
    bool *taken;                       // of each rank of B; owned
};

static void seats_fini(struct seats *s)
{
    free(s->by_number);
    free(s->by_place);
    free(s->taken);
}

static int seats_init(struct seats *s, const struct rank_map *m, struct err *err)
{
    size_t room = (size_t)m->n_b + 1;
    s->by_number = calloc(room, sizeof *s->by_number);
    s->by_place = calloc(room, sizeof *s->by_place);
    s->taken = calloc(room, sizeof *s->taken);
    if (!s->by_number || !s->by_place || !s->taken)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    for (int j = 0; j < m->n_b; j++) {
        const struct rank_info *q = places_info(&m->of_b, m->b[j]);
        s->by_number[s->n_by_number++] = (struct seat){.key = m->b[j], .at = j};
        if (q && q->cpu >= 0)
            s->by_place[s->n_by_place++] = (struct seat){q->cpu, q->mem_node, j};
    }
    qsort(s->by_number, (size_t)s->n_by_number, sizeof *s->by_number, by_key);
    qsort(s->by_place, (size_t)s->n_by_place, sizeof *s->by_place, by_key);
    return 0;
}

// The first rank of B there that has no partner yet; -1: none.
static int first_free(const struct seats *s, const struct seat *list, int n, int64_t key,
                      int64_t other)
{
    int lo = 0, hi = n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (by_key(&list[middle], &(struct seat){key, other, -1}) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < n && list[lo].key == key && list[lo].other == other; lo++)
        if (!s->taken[list[lo].at])
            return list[lo].at;
    return -1;
}

enum pass { PLACE_AND_NUMBER, PLACE, NUMBER, PASSES };

static int find_partner(const struct rank_map *m, const struct seats *s, int64_t rank,
                        enum pass pass)
{
    const struct rank_info *p = places_info(&m->of_a, rank);
    if (pass == PLACE)
        return p && p->cpu >= 0 ? first_free(s, s->by_place, s->n_by_place, p->cpu, p->mem_node)
                                : -1;
    if (pass == PLACE_AND_NUMBER && !same_place(p, places_info(&m->of_b, rank)))
        return -1;
    return first_free(s, s->by_number, s->n_by_number, rank, 0);
}

// The surest partners first.
static void find_partners(struct rank_map *m, struct seats *s)
{
    for (int i = 0; i < m->n_a; i++)
        m->partner[i] = -1;
    for (int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i < m->n_a; i++) {
            if (m->partner[i] >= 0)
                continue;
            m->partner[i] = find_partner(m, s, m->a[i], (enum pass)pass);
            if (m->partner[i] >= 0)
                s->taken[m->partner[i]] = true;
        }
    m->unmatched = m->n_a + m->n_b;
    for (int i = 0; i < m->n_a; i++)
        m->unmatched -= m->partner[i] >= 0 ? 2 : 0;
}

static bool places_known(const struct compare_side *s)
{
    return s->ranks != NULL && s->n_ranks > 0 && s->ranks[0].cpu >= 0;
}

static int map_ranks(struct rank_map *m, const struct compare_side *a, const struct compare_side *b,
                     struct err *err)
{
    m->places = places_known(a) && places_known(b);
    m->a = align_ranks_of(a, m->places, &m->n_a);
    m->b = align_ranks_of(b, m->places, &m->n_b);
    m->partner = calloc((size_t)m->n_a + 1, sizeof *m->partner);
    struct seats seats CLEANUP(seats_fini) = {0};
    if (!m->a || !m->b || !m->partner)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    if (places_init(&m->of_a, a->ranks, a->n_ranks, NULL, err) < 0 ||
        places_init(&m->of_b, b->ranks, b->n_ranks, NULL, err) < 0 ||
        seats_init(&seats, m, err) < 0)
        return -1;
    find_partners(m, &seats);
    return 0;
}

static int64_t partner_of(const struct rank_map *m, int64_t rank)
{
    for (int i = 0; i < m->n_a; i++)
        if (m->a[i] == rank)
            return m->partner[i] < 0 ? -1 : m->b[m->partner[i]];
    return -1;
}

// One line for all of a kind: the first in full, and how many more.
static void note_places(struct comparison *c, const struct rank_map *m, bool elsewhere)
{
    char line[COMPARE_NOTE_ROOM / 2] = "";
    int n = 0;
    for (int i = 0; i < m->n_a; i++) {
        if (m->partner[i] < 0)
            continue;
        int64_t ra = m->a[i], rb = m->b[m->partner[i]];
        const struct rank_info *p = places_info(&m->of_a, ra), *q = places_info(&m->of_b, rb);
        bool match = elsewhere ? !same_place(p, q) : ra != rb && same_place(p, q);
        if (!match || !p || !q || n++)
            continue;
        if (elsewhere)
            snprintf(line, sizeof line,
                     "placement of rank %" PRId64 " differs: CPU %" PRId64 " in A, CPU %" PRId64
                     " in B",
                     ra, p->cpu, q->cpu);
        else
            snprintf(line, sizeof line,
                     "rank %" PRId64 " of A is compared with rank %" PRId64 " of B: both on CPU "
                     "%" PRId64 ", memory node %" PRId64,
                     ra, rb, p->cpu, p->mem_node);
    }
    if (n == 1)
        compare_note(c, "%s", line);
    else if (n)
        compare_note(c, "%s; %d more likewise", line, n - 1);
}

// Ranks work together, but the first of each node also measures alone: while others make the load,
// or as the team of one.
static bool first_measures(const struct compare_side *s)
{
    return has_axis(s, "load") || has_axis(s, "threads");
}

// The rank of the lowest number on the node; NULL: none whose CPU is known.
static const struct rank_info *first_of_node(const struct compare_side *s, int64_t node)
{
    const struct rank_info *first = NULL;
    for (int i = 0; i < s->n_ranks; i++) {
        const struct rank_info *r = &s->ranks[i];
        if (r->cpu >= 0 && r->cpu_node == node && (!first || r->rank < first->rank))
            first = r;
    }
    return first;
}

// The same ranks may be in another order: then another core of a node has measured alone. The cells
// are compared all the same.
static void note_measuring(struct comparison *c, const struct compare_side *a,
                           const struct compare_side *b)
{
    const struct rank_info *from = NULL, *to = NULL;
    int n = 0;
    for (int i = 0; i < a->n_ranks; i++) {
        const struct rank_info *p = &a->ranks[i], *q = first_of_node(b, p->cpu_node);
        if (first_of_node(a, p->cpu_node) != p || !q || p->cpu == q->cpu || n++)
            continue;
        from = p;
        to = q;
    }
    if (n)
        compare_note(c,
                     "the core that measures alone differs: CPU %" PRId64 " in A, CPU %" PRId64
                     " in B (node %" PRId64 "%s)",
                     from->cpu, to->cpu, from->cpu_node, n > 1 ? " and others" : "");
}

// Memory on another node is another question, whatever the CPU.
static void align_check_memory(struct refusal *r, struct rank_map *m)
{
    int n = 0;
    const struct rank_info *from = NULL, *to = NULL;
    for (int i = 0; m->places && i < m->n_a; i++) {
        if (m->partner[i] < 0)
            continue;
        const struct rank_info *p = places_info(&m->of_a, m->a[i]);
        const struct rank_info *q = places_info(&m->of_b, m->b[m->partner[i]]);
        m->moved += !same_place(p, q);
        if (p->mem_node == q->mem_node || p->mem_node < 0 || q->mem_node < 0)
            continue;
        from = n++ ? from : p;
        to = n > 1 ? to : q;
    }
    if (n)
        refuse(r, "placement",
               "the placement differs: memory of rank %" PRId64 " is on node %" PRId64
               " in A, on node %" PRId64 " in B (%d rank%s)",
               from->rank, from->mem_node, to->mem_node, n, str_plural(n));
}

// Where ranks work together, other ranks are another question; where each is measured by itself,
// they are a note.
static void check_layout(struct refusal *r, const struct rank_map *m, const struct compare_side *a)
{
    bool team = has_axis(a, "initiator") || has_axis(a, "threads") || has_axis(a, "load") ||
                has_axis(a, "source");
    bool together = strcmp(a->matrix->name, "concurrent") == 0;
    int common = m->n_a + m->n_b - m->unmatched;
    if (team && m->places && (m->unmatched || m->moved))
        refuse(r, "ranks",
               "the rank layout differs, and ranks work together here: A has %d rank%s, B has %d, "
               "%d at the same places",
               m->n_a, str_plural(m->n_a), m->n_b, common / 2 - m->moved);
    else if (m->unmatched)
        compare_note(r->c, "the rank layout differs: A has %d rank%s, B has %d, %d %s in both%s",
                     m->n_a, str_plural(m->n_a), m->n_b, common / 2, common / 2 == 1 ? "is" : "are",
                     together ? "; what the others do is part of what concurrent measures" : "");
}

// ---- Parameters ---------------------------------------------------------------------------------

// Parameters whose difference is no refusal: an axis aligns it, or something measured says more.
enum treatment { ALIGNED, SELECTS, MEASURED, LAYOUT };
static const struct {
    const char *name;
    enum treatment treatment;
    const char *axis; // ALIGNED: by this axis
} treatments[] = {
    {"size", ALIGNED, "working_set"},
    {"targets", ALIGNED, "target"},
    {"targets", ALIGNED, "path"},
    {"threads", ALIGNED, "threads"},
    {"pairs", ALIGNED, "pair"},
    {"operation", ALIGNED, "operation"},
    {"message_max", ALIGNED, "message"},
    {"steps", ALIGNED, "load"},
    {"mode", SELECTS, NULL}, // which matrices there are: their names are compared
    {"kernel", SELECTS, NULL},
    {"mix", SELECTS, NULL},
    {"definition", SELECTS, NULL},
    {"pairs_most", SELECTS, NULL}, // cells that both have are compared
    {"method", MEASURED, NULL},    // the result's own word
    {"pages", MEASURED, NULL},     // what was got
    {"numa", LAYOUT, NULL},        // where places are known, these are compared
    {"ranks", LAYOUT, NULL},
    {"cpus", LAYOUT, NULL},
    {"hyperthreads", LAYOUT, NULL},
};

static bool harmless(const struct compare_side *a, const struct compare_side *b, const char *name,
                     bool places)
{
    for (size_t i = 0; i < COUNT_OF(treatments); i++) {
        if (strcmp(treatments[i].name, name) != 0)
            continue;
        switch (treatments[i].treatment) {
        case ALIGNED:
            if (has_axis(a, treatments[i].axis))
                return true;
            break;
        case LAYOUT:
            return places;
        case MEASURED:
            return strcmp(name, "method") == 0 || (*align_pages_of(a) && *align_pages_of(b));
        case SELECTS:
            return true;
        }
    }
    return false;
}

static int check_specs(struct refusal *r, const struct compare_side *a,
                       const struct compare_side *b, bool places, struct err *err)
{
    if (!a->spec || !b->spec)
        return 0;
    CLEANUP_MEM struct spec_difference *list = calloc(SPEC_DIFFERENCES_MAX, sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    int n = spec_difference(a->spec, b->spec, list, SPEC_DIFFERENCES_MAX);
    for (int i = 0; i < n && i < SPEC_DIFFERENCES_MAX; i++)
        if (!harmless(a, b, list[i].name, places))
            refuse(r, list[i].name, "%s differs: %.60s in A, %.60s in B", list[i].name,
                   *list[i].a ? list[i].a : "none", *list[i].b ? list[i].b : "none");
    return 0;
}

// Who starts the ranks and on which machine is no part of the question, but it may be the answer.
static void note_facts(struct comparison *c, const struct compare_side *a,
                       const struct compare_side *b)
{
    if (a->launcher && b->launcher && strcmp(a->launcher, b->launcher) != 0)
        compare_note(c, "the launcher differs: %s in A, %s in B", a->launcher, b->launcher);
    if (a->node && b->node && strcmp(a->node, b->node) != 0)
        compare_note(c, "two machines are compared: A is of node %s, B of %s", a->node, b->node);
}

static int check_sides(struct comparison *c, struct rank_map *m, const struct compare_side *a,
                       const struct compare_side *b, bool allow_different, struct err *err)
{
    const struct matrix *x = a->matrix, *y = b->matrix;
    if (strcmp(x->quantity, y->quantity) != 0 || strcmp(x->unit, y->unit) != 0)
        return err_set(err, ERR_CONFLICT, "quantity", "A is %s in %s, B is %s in %s", x->quantity,
                       x->unit, y->quantity, y->unit);
    if (!axis_is(&x->row, y->row.name) || !axis_is(&x->col, y->col.name))
        return err_set(err, ERR_CONFLICT, "axes", "A has %s by %s, B has %s by %s", x->row.name,
                       x->col.name, y->row.name, y->col.name);
    struct refusal r CLEANUP(refusal_fini) = {.c = c, .allow_different = allow_different};
    bool latency = strcmp(x->name, "serial") == 0 || strcmp(x->name, "concurrent") == 0;
    must_match(&r, latency ? "mode" : "matrix", x->name, y->name);
    must_match(&r, "method", a->method, b->method);
    must_match(&r, "page kind", align_pages_of(a), align_pages_of(b));
    if (check_specs(&r, a, b, m->places, err) < 0)
        return -1;
    align_check_memory(&r, m);
    check_layout(&r, m, a);
    note_facts(c, a, b);
    if (!buf_ok(&r.text))
        return err_set(err, ERR_NO_MEMORY, "", "no memory to compare the runs");
    if (!r.member)
        return 0;
    return err_set(err, ERR_CONFLICT, r.member, "%s", buf_text(&r.text));
}

// ---- Rows and columns ---------------------------------------------------------------------------

// A rank that measures under load stands for its node: its partner is the one of that node in B.
static int64_t measuring_in_b(const struct compare_side *b, int64_t rank, const struct rank_map *m)
{
    const struct rank_info *p = places_info(&m->of_a, rank);
    const struct rank_info *q = p ? first_of_node(b, p->cpu_node) : NULL;
    return q ? q->rank : partner_of(m, rank);
}

// The value of B that belongs to this one of A; -1: none (no axis with partners has -1).
static int64_t value_in_b(const struct axis *x, int64_t value, const struct rank_map *m,
                          const struct compare_side *b)
{
    if (axis_is(x, "rank"))
        return m->places && has_axis(b, "load") ? measuring_in_b(b, value, m)
                                                : partner_of(m, value);
    if (!axis_is(x, "pair"))
        return value;
    int first, second;
    axis_unpair(value, &first, &second);
    int64_t p = partner_of(m, first), q = partner_of(m, second);
    return p < 0 || q < 0 ? -1 : axis_pair((int)(p < q ? p : q), (int)(p < q ? q : p));
}

static int align_axis(struct comparison *c, const struct axis *x, const struct axis *y,
                      const struct rank_map *m, const struct compare_side *b, int **to_a,
                      int **to_b, struct err *err)
{
    int n = 0;
    *to_a = calloc((size_t)x->n + 1, sizeof **to_a);
    *to_b = calloc((size_t)x->n + 1, sizeof **to_b);
    if (!*to_a || !*to_b)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    for (int i = 0; i < x->n; i++) {
        int64_t wanted = value_in_b(x, x->values[i], m, b);
        bool named = axis_is(x, "rank") || axis_is(x, "pair");
        int j = named && wanted < 0 ? -1 : axis_index(y, wanted);
        if (j < 0)
            continue;
        (*to_a)[n] = i;
        (*to_b)[n++] = j;
    }
    const char *what = axis_is(x, "working_set") ? "size" : x->name;
    if (!n)
        return err_set(err, ERR_CONFLICT, "target", "the two runs have no %s in common", what);
    if ((n < x->n || n < y->n) && !axis_is(x, "rank"))
        compare_note(c, "not every %s is in both: A has %d, B has %d, %d are compared", what, x->n,
                     y->n, n);
    return n;
}

int compare_align(struct comparison *c, const struct compare_side *a, const struct compare_side *b,
                  const struct compare_options *o, struct err *err)
{
    struct rank_map m CLEANUP(rank_map_fini) = {0};
    const struct matrix *x = a->matrix, *y = b->matrix;
    if (map_ranks(&m, a, b, err) < 0 || check_sides(c, &m, a, b, o->allow_different, err) < 0)
        return -1;
    if (m.places) {
        if (first_measures(a))
            note_measuring(c, a, b);
        else
            note_places(c, &m, false);
        note_places(c, &m, true);
    }
    c->rows = align_axis(c, &x->row, &y->row, &m, b, &c->row_a, &c->row_b, err);
    if (c->rows < 0)
        return -1;
    c->cols = align_axis(c, &x->col, &y->col, &m, b, &c->col_a, &c->col_b, err);
    return c->cols < 0 ? -1 : 0;
}
