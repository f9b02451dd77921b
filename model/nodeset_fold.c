// SPDX-License-Identifier: Apache-2.0
// Folding, as ClusterShell 1.9 does it. Names with the same text around their numbers are one
// table: a column for each number that differs. One column is written as ranges. Of several, rows
// that differ in one column only are merged, until there are none. Which are merged first decides
// the text, so the order of the merges is ClusterShell's: neighbours in sorted order first, then
// each row with all behind it. ClusterShell compares all pairs for that; here rows that are equal
// but for a column are found by a sorted list of sums, so that 10,000 names that cannot be merged
// cost milliseconds.
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "model/nodeset.h"

enum {
    COLUMNS_MAX = NODESET_NAME_ROOM / 2,
    FIELDS_MAX = 1 << 20, // rows x columns that are merged; above it names are listed
    EFFORT_MAX =
        1 << 22, // fields that all rounds visit; behind it a fold may be longer than needed
};

struct digits {
    const char *text;
    int len;
};

// Equal sets have equal sums; 128 bits, so that others practically never have.
struct sum {
    uint64_t a, b;
};

struct value {
    struct digits digits;
    int next; // of the same set; -1: none
};

// A set of values: a list, so that joining two costs nothing.
struct field {
    struct sum sum;
    struct digits lowest, highest; // by nodeset order: shorter ones first
    int count, head, tail;
};

// An entry for each row and column: rows with the same sum differ in that column only.
struct place {
    struct sum others;
    int row;
};

struct table {
    int columns, n;
    struct field *fields; // [row][column]
    int *order;           // rows that are left, n of them
    struct value *values;
    struct place *places; // [column][place], each column sorted
    int *skip;            // [column][place]: the next place that may be alive
    int *where;           // [column][row]: its place
    int rows;             // at the beginning
};

static struct digits digits_next(const char **at)
{
    while (**at && !isdigit((unsigned char)**at))
        (*at)++;
    struct digits d = {*at, (int)strspn(*at, "0123456789")};
    *at += d.len;
    return d;
}

static bool digits_same(struct digits a, struct digits b)
{
    return a.len == b.len && memcmp(a.text, b.text, (size_t)a.len) == 0;
}

static int digits_order(struct digits a, struct digits b)
{
    return a.len != b.len ? (a.len > b.len) - (a.len < b.len)
                          : memcmp(a.text, b.text, (size_t)a.len);
}

static int digits_order_q(const void *a, const void *b)
{
    return digits_order(*(const struct digits *)a, *(const struct digits *)b);
}

// b = a + 1, whatever the number of digits.
static bool digits_follow(struct digits a, struct digits b)
{
    int nines = 0;
    while (nines < a.len && a.text[a.len - 1 - nines] == '9')
        nines++;
    for (int i = 0; i < nines; i++)
        if (i >= b.len || b.text[b.len - 1 - i] != '0')
            return false;
    if (nines == a.len)
        return b.len == a.len + 1 && *b.text == '1';
    int at = a.len - 1 - nines;
    return a.len == b.len && b.text[at] == a.text[at] + 1 &&
           memcmp(a.text, b.text, (size_t)at) == 0;
}

static bool digits_padded(struct digits d)
{
    return d.len > 1 && *d.text == '0';
}

static void write_stretch(const struct digits *list, int from, int to, bool is_range,
                          struct buf *out)
{
    for (int i = from; i <= to; i = is_range && i < to ? to : i + 1) {
        if (i > 0)
            buf_char(out, i == to && is_range && from < to ? '-' : ',');
        buf_add(out, list[i].text, (size_t)list[i].len);
    }
}

// "1-3,7" of a sorted list. A range begins anew where zeros in front begin or end. ClusterShell
// remembers them over numbers that are in no range, so 05,99,100 has no 99-100; so do we.
static void write_ranges(const struct digits *list, int n, struct buf *out)
{
    enum { ALONE, RANGE, GAPS } shape = ALONE;
    int from = 0;
    struct digits first = list[0]; // whose zeros count
    for (int i = 1; i < n; i++) {
        bool follows = digits_follow(list[i - 1], list[i]);
        bool other = digits_padded(first) ? list[i].len != first.len : digits_padded(list[i]);
        if (other || (shape == RANGE && !follows)) {
            write_stretch(list, from, i - 1, shape == RANGE, out);
            from = i;
            first = list[i];
            shape = other ? ALONE : GAPS;
        } else if (shape == GAPS && follows) {
            write_stretch(list, from, i - 2, false, out);
            from = i - 1;
            shape = RANGE;
        } else if (shape == ALONE) {
            shape = follows ? RANGE : GAPS;
        }
    }
    write_stretch(list, from, n - 1, shape == RANGE, out);
}

static struct sum sum_plus(struct sum a, struct sum b)
{
    return (struct sum){a.a + b.a, a.b + b.b};
}

static int sum_order(struct sum a, struct sum b)
{
    return a.a != b.a ? (a.a > b.a) - (a.a < b.a) : (a.b > b.b) - (a.b < b.b);
}

static struct field *field_at(const struct table *t, int row, int column)
{
    return &t->fields[(size_t)row * (size_t)t->columns + (size_t)column];
}

// The row without one column.
static struct sum sum_others(const struct table *t, int row, int column)
{
    struct sum all = {0};
    for (int c = 0; c < t->columns; c++) {
        const struct sum *s = &field_at(t, row, c)->sum;
        if (c != column)
            all = sum_plus(
                all, (struct sum){hash_mix(s->a + (uint64_t)c), hash_mix(s->b ^ (uint64_t)c)});
    }
    return all;
}

static bool differ_in_one(const struct table *t, int a, int b, int *column)
{
    int n = 0;
    for (int c = 0; c < t->columns && n < 2; c++)
        if (sum_order(field_at(t, a, c)->sum, field_at(t, b, c)->sum) != 0) {
            *column = c;
            n++;
        }
    return n == 1;
}

// Row a takes what row b has in the column.
static void row_merge(const struct table *t, int a, int b, int column)
{
    struct field *to = field_at(t, a, column);
    const struct field *from = field_at(t, b, column);
    to->sum = sum_plus(to->sum, from->sum);
    to->count += from->count;
    t->values[to->tail].next = from->head;
    to->tail = from->tail;
    to->lowest = digits_order(from->lowest, to->lowest) < 0 ? from->lowest : to->lowest;
    to->highest = digits_order(from->highest, to->highest) > 0 ? from->highest : to->highest;
}

// As texts: "10" is before "9".
static int text_order(struct digits a, struct digits b)
{
    int n = memcmp(a.text, b.text, (size_t)(a.len < b.len ? a.len : b.len));
    return n ? n : (a.len > b.len) - (a.len < b.len);
}

// Larger rows first; then by column: more values first, the lower first value, the lower last.
static int row_order(const void *pa, const void *pb, void *arg)
{
    const struct table *t = arg;
    const struct field *a = field_at(t, *(const int *)pa, 0), *b = field_at(t, *(const int *)pb, 0);
    int64_t names_a = 1, names_b = 1;
    for (int c = 0; c < t->columns; c++) {
        names_a *= a[c].count;
        names_b *= b[c].count;
    }
    int order = (names_a < names_b) - (names_a > names_b);
    for (int c = 0; c < t->columns && !order; c++) {
        order = (a[c].count < b[c].count) - (a[c].count > b[c].count);
        order = order ? order : text_order(a[c].lowest, b[c].lowest);
        order = order ? order : text_order(a[c].highest, b[c].highest);
    }
    return order;
}

static void drop_merged(struct table *t)
{
    int n = 0;
    for (int i = 0; i < t->n; i++)
        if (t->order[i] >= 0)
            t->order[n++] = t->order[i];
    t->n = n;
}

// Merges each row with those directly behind it. Returns whether there were any.
static bool merge_neighbours(struct table *t)
{
    int column, merged = 0;
    for (int i = 0; i + 1 < t->n; i++) {
        int row = t->order[i], k = i + 1;
        for (; k < t->n && differ_in_one(t, row, t->order[k], &column); k++) {
            row_merge(t, row, t->order[k], column);
            t->order[k] = -1;
            merged++;
        }
        i = k - 1;
    }
    drop_merged(t);
    return merged > 0;
}

static int place_order(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;
    int order = sum_order(a->others, b->others);
    return order ? order : (a->row > b->row) - (a->row < b->row);
}

// Places hold positions in t->order, so that "the first behind me" is the next one in the list.
static void list_places(struct table *t)
{
    for (int c = 0; c < t->columns; c++) {
        struct place *list = t->places + (size_t)c * (size_t)t->rows;
        int *skip = t->skip + (size_t)c * (size_t)t->rows;
        int *where = t->where + (size_t)c * (size_t)t->rows;
        for (int i = 0; i < t->n; i++)
            list[i] = (struct place){sum_others(t, t->order[i], c), i};
        qsort(list, (size_t)t->n, sizeof *list, place_order);
        for (int i = 0; i < t->n; i++) {
            skip[i] = i;
            where[list[i].row] = i;
        }
    }
}

// The first place at or behind `at` that is alive, t->n if there is none. Paths are halved.
static int alive_from(const struct table *t, int *skip, int at)
{
    while (at < t->n && skip[at] != at) {
        int next = skip[at];
        if (next < t->n)
            skip[at] = skip[next];
        at = next;
    }
    return at;
}

// The position of the first row behind `after` that equals row `i` but for the column; t->n: none.
static int find_mergeable(const struct table *t, int i, int column, int after)
{
    const struct place *list = t->places + (size_t)column * (size_t)t->rows;
    int *skip = t->skip + (size_t)column * (size_t)t->rows;
    const struct place wanted = {sum_others(t, t->order[i], column), after + 1};
    int low = 0, high = t->n;
    while (low < high) {
        int half = low + (high - low) / 2;
        if (place_order(&list[half], &wanted) < 0)
            low = half + 1;
        else
            high = half;
    }
    low = alive_from(t, skip, low);
    return low < t->n && sum_order(list[low].others, wanted.others) == 0 ? list[low].row : t->n;
}

// Merges each row with any behind it, the first partner first.
static bool merge_any(struct table *t)
{
    int merged = 0;
    list_places(t);
    for (int i = 0; i + 1 < t->n; i++) {
        for (int after = i; t->order[i] >= 0 && after < t->n;) {
            int best = t->n, column = 0;
            for (int c = 0; c < t->columns; c++) {
                int found = find_mergeable(t, i, c, after);
                if (found < best) {
                    best = found;
                    column = c;
                }
            }
            if (best < t->n) {
                row_merge(t, t->order[i], t->order[best], column);
                t->order[best] = -1;
                for (int c = 0; c < t->columns; c++) {
                    int at = t->where[(size_t)c * (size_t)t->rows + (size_t)best];
                    t->skip[(size_t)c * (size_t)t->rows + (size_t)at] = at + 1;
                }
                merged++;
            }
            after = best;
        }
    }
    drop_merged(t);
    return merged > 0;
}

static void merge_rows(struct table *t)
{
    bool any = false, changed = true;
    for (int64_t effort = 0; changed && effort < EFFORT_MAX;
         effort += (int64_t)t->rows * t->columns) {
        qsort_r(t->order, (size_t)t->n, sizeof *t->order, row_order, t);
        changed = any ? merge_any(t) : merge_neighbours(t);
        if (!changed && !any)
            any = changed = true;
    }
}

static void write_field(const struct table *t, const struct field *f, struct digits *list,
                        struct buf *out)
{
    int n = 0;
    for (int i = f->head; i >= 0; i = t->values[i].next)
        list[n++] = t->values[i].digits;
    qsort(list, (size_t)n, sizeof *list, digits_order_q);
    if (n > 1)
        buf_char(out, '[');
    write_ranges(list, n, out);
    if (n > 1)
        buf_char(out, ']');
}

// The name, with the fields of a row instead of the numbers that differ. fields NULL: as it is.
static void write_name(const struct table *t, const char *name, uint32_t differ,
                       const struct field *fields, struct digits *list, struct buf *out)
{
    const char *at = name;
    for (int k = 0, c = 0; *at; k++) {
        const char *begin = at;
        struct digits d = digits_next(&at);
        buf_add(out, begin, (size_t)(d.text - begin));
        if (d.len && (differ >> k & 1) && fields)
            write_field(t, &fields[c++], list, out);
        else
            buf_add(out, d.text, (size_t)d.len);
    }
}

// Which of the names' numbers are not the same in all: a bit each.
static uint32_t differing(char *const *names, int n)
{
    uint32_t differ = 0;
    for (int i = 1; i < n; i++) {
        const char *a = names[i - 1], *b = names[i];
        for (int k = 0; *a; k++) {
            struct digits da = digits_next(&a), db = digits_next(&b);
            if (!digits_same(da, db))
                differ |= UINT32_C(1) << k;
        }
    }
    return differ;
}

static void rows_fill(struct table *t, char *const *names, uint32_t differ)
{
    for (int row = 0, v = 0; row < t->rows; row++) {
        const char *at = names[row];
        t->order[row] = row;
        for (int k = 0, c = 0; *at; k++) {
            struct digits d = digits_next(&at);
            if (!(differ >> k & 1))
                continue;
            t->values[v] = (struct value){d, -1};
            *field_at(t, row, c++) = (struct field){
                .sum = {hash_mix(hash_bytes(d.text, (size_t)d.len)),
                        hash_mix(hash_words(d.text, (size_t)d.len))},
                .lowest = d,
                .highest = d,
                .count = 1,
                .head = v,
                .tail = v,
            };
            v++;
        }
    }
}

static void table_free(struct table *t)
{
    free(t->fields);
    free(t->order);
    free(t->values);
    free(t->places);
    free(t->skip);
    free(t->where);
}

static bool table_make(struct table *t)
{
    size_t fields = (size_t)t->rows * (size_t)t->columns;
    t->fields = calloc(fields, sizeof *t->fields);
    t->order = calloc((size_t)t->rows, sizeof *t->order);
    t->values = calloc(fields, sizeof *t->values);
    t->places = calloc(fields, sizeof *t->places);
    t->skip = calloc(fields, sizeof *t->skip);
    t->where = calloc(fields, sizeof *t->where);
    return t->fields && t->order && t->values && t->places && t->skip && t->where;
}

// All rows become one: they have one column.
static void merge_column(struct table *t)
{
    for (int i = 1; i < t->rows; i++)
        row_merge(t, 0, i, 0);
    t->n = 1;
}

// Names with the same text around the numbers.
static void fold_alike(char *const *names, int n, struct buf *out)
{
    uint32_t differ = differing(names, n);
    struct table t = {.columns = __builtin_popcount(differ), .n = n, .rows = n};
    struct digits *list = calloc((size_t)n, sizeof *list);
    bool lists = (int64_t)n * t.columns > FIELDS_MAX; // and folds nothing
    if (!list || (!lists && t.columns && !table_make(&t))) {
        buf_fail(out);
    } else {
        if (!lists && t.columns)
            rows_fill(&t, names, differ);
        if (!lists && t.columns == 1)
            merge_column(&t);
        else if (!lists && t.columns)
            merge_rows(&t);
        for (int i = 0; i < t.n; i++) {
            if (i > 0)
                buf_char(out, ',');
            write_name(&t, names[lists ? i : 0], differ,
                       lists || !t.columns ? NULL : field_at(&t, t.order[i], 0), list, out);
        }
    }
    free(list);
    table_free(&t);
}

static bool alike(const char *a, const char *b)
{
    while (*a || *b) {
        const char *begin_a = a, *begin_b = b;
        struct digits da = digits_next(&a), db = digits_next(&b);
        ptrdiff_t n = da.text - begin_a;
        if (n != db.text - begin_b || memcmp(begin_a, begin_b, (size_t)n) != 0 ||
            (da.len > 0) != (db.len > 0))
            return false;
    }
    return true;
}

static int pointer_order(const void *a, const void *b)
{
    return nodeset_name_order(*(char *const *)a, *(char *const *)b);
}

void nodeset_fold(const struct nodeset *s, struct buf *out)
{
    CLEANUP_MEM char **names = calloc((size_t)s->n + 1, sizeof *names);
    int n = 0;
    bool sorted = true;
    if (!names) {
        buf_fail(out);
        return;
    }
    for (int i = 0; i < s->n; i++) {
        names[i] = s->names[i];
        sorted = sorted && (i == 0 || nodeset_name_order(names[i - 1], names[i]) <= 0);
    }
    if (!sorted)
        qsort(names, (size_t)s->n, sizeof *names, pointer_order);
    for (int i = 0; i < s->n; i++)
        if (n == 0 || strcmp(names[n - 1], names[i]) != 0)
            names[n++] = names[i];
    for (int from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && alike(names[from], names[to]); to++)
            continue;
        if (from > 0)
            buf_char(out, ',');
        fold_alike(names + from, to - from, out);
    }
}
