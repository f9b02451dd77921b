// SPDX-License-Identifier: Apache-2.0
// The parser of node sets. An operand is read into parts (text and the ranges behind it) and
// counted before a name of it is made, so that a set of a million names costs nothing. The names
// are collected in a hash table and sorted once at the end, so that a long list is not quadratic.
#include "model/nodeset.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

enum {
    PARTS_MAX = 32,                    // brackets of a name
    DIGITS_MAX = 18,                   // of a number in brackets: fits 64 bits
    DEPTH_MAX = 16,                    // groups within groups
    LOOKUPS_MAX = 1024,                // of groups, in a parse
    WORK_MAX = 16 * NODESET_NAMES_MAX, // names made in a parse, removed ones included
    NOT_THERE = -1,
};

#define OPERATORS ",!&^"

struct range {
    uint64_t from, to, step;
    int width; // zeros fill it up to so many digits
};

struct part { // text, then one of the ranges
    const char *text;
    int len, first, n; // n 0: nothing behind the text
};

struct operand {
    const char *begin, *end; // in the text
    bool is_group;
    struct part parts[PARTS_MAX];
    int n;
    struct range *ranges;
    int n_ranges, room;
};

// A set that grows and shrinks, with slots. A removed name keeps its place, in case it comes back.
struct pile {
    struct nodeset set;
    bool *gone;
    int alive;
};

struct trail { // of groups that are being parsed, the innermost first
    const char *group;
    const struct trail *outer;
};

struct parser {
    const char *text, *at;
    const struct nodeset_groups *groups;
    const struct trail *trail;
    int depth;
    struct effort {
        int names, names_max, lookups;
    } * effort;         // of the whole parse
    const char *wanted; // no name is made, but this one is looked for; NULL: all are made
    bool found;
    struct err *err;
};

static int parse_into(struct parser *p, struct pile *out);

void nodeset_free(struct nodeset *s)
{
    free(s->names);
    free(s->slots);
    *s = (struct nodeset){0};
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_';
}

int nodeset_name_check(const char *name, struct err *err)
{
    size_t n = 0;
    while (is_name_char(name[n]))
        n++;
    return n < 1 || name[n] || n >= NODESET_NAME_ROOM || *name == '-' || *name == '.'
               ? err_set(err, ERR_INVALID, "nodes", "%s", NODESET_NAME_RULE)
               : 0;
}

static int nodeset_append(struct nodeset *s, const char *name, size_t len)
{
    if (s->n == s->room) {
        int room = s->room ? 2 * s->room : 16;
        void *names = realloc(s->names, (size_t)room * sizeof *s->names);
        if (!names)
            return -1;
        s->names = names;
        s->room = room;
    }
    memcpy(s->names[s->n++], name, len + 1);
    return 0;
}

static void pile_free(struct pile *l)
{
    nodeset_free(&l->set);
    free(l->gone);
    *l = (struct pile){0};
}

static uint32_t nodeset_slot(const struct nodeset *s, const char *name, size_t len)
{
    uint32_t at = (uint32_t)hash_keyed(name, len) & (s->n_slots - 1);
    while (s->slots[at] && strcmp(s->names[s->slots[at] - 1], name) != 0)
        at = (at + 1) & (s->n_slots - 1);
    return at;
}

static void nodeset_index(struct nodeset *s)
{
    for (int i = 0; i < s->n; i++)
        s->slots[nodeset_slot(s, s->names[i], strlen(s->names[i]))] = (uint32_t)i + 1;
}

// Slots for so many more names: at most half of them are full.
static int nodeset_reserve(struct nodeset *s, int more)
{
    uint32_t n = s->slots ? s->n_slots : 64;
    while (n / 2 < (uint32_t)(s->n + more))
        n *= 2;
    if (s->slots && n == s->n_slots)
        return 0;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return -1;
    free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    nodeset_index(s);
    return 0;
}

int nodeset_add(struct nodeset *s, const char *name, struct err *err)
{
    if (nodeset_name_check(name, err) < 0)
        return -1;
    const size_t len = strlen(name);
    uint32_t *slot = nodeset_reserve(s, 1) < 0 ? NULL : &s->slots[nodeset_slot(s, name, len)];
    if (slot && *slot)
        return 0;
    if (slot && s->n == NODESET_NAMES_MAX)
        return err_set(err, ERR_INVALID, "nodes", "more than %d names", NODESET_NAMES_MAX);
    if (!slot || nodeset_append(s, name, len) < 0)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d node names", s->n);
    *slot = (uint32_t)s->n;
    return 0;
}

static int pile_find(const struct pile *l, const char *name)
{
    uint32_t index = l->set.slots ? l->set.slots[nodeset_slot(&l->set, name, strlen(name))] : 0;
    return index && !l->gone[index - 1] ? (int)index - 1 : NOT_THERE;
}

static int pile_reserve(struct pile *l, int more)
{
    if (nodeset_reserve(&l->set, more) < 0)
        return -1;
    bool *gone = realloc(l->gone, l->set.n_slots / 2 * sizeof *gone);
    l->gone = gone ? gone : l->gone;
    return gone ? 0 : -1;
}

// pile_reserve() was called for it.
static int pile_add(struct pile *l, const char *name, size_t len)
{
    struct nodeset *s = &l->set;
    uint32_t *slot = &s->slots[nodeset_slot(s, name, len)];
    if (!*slot) {
        if (nodeset_append(s, name, len) < 0)
            return -1;
        *slot = (uint32_t)s->n;
        l->gone[s->n - 1] = true;
    }
    l->alive += l->gone[*slot - 1];
    l->gone[*slot - 1] = false;
    return 0;
}

static void pile_drop(struct pile *l, int index)
{
    l->gone[index] = true;
    l->alive--;
}

// Text that may be anything, a part of it around `at`, as it may be printed.
static void parse_excerpt(const char *text, const char *at, char *out, size_t room)
{
    enum { BEFORE = 24, BEHIND = 16 };
    const char *from = at - text > BEFORE ? at - BEFORE : text;
    size_t n = 0;
    if (from > text)
        n = (size_t)snprintf(out, room, "...");
    for (; *from && from < at + BEHIND && n + 4 < room; from++)
        out[n++] = (char)(*from >= ' ' && *from < 0x7f ? *from : '?');
    snprintf(out + n, room - n, "%s", *from ? "..." : "");
}

__attribute__((format(printf, 3, 4))) static int parse_refuse(const struct parser *p,
                                                              const char *at, const char *fmt, ...)
{
    char part[64], why[180];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    parse_excerpt(p->text, at, part, sizeof part);
    err_set(p->err, ERR_INVALID, "nodes", "\"%s\", character %td: %s", part, at - p->text + 1, why);
    return p->trail ? err_prefix(p->err, "group @%.40s", p->trail->group) : -1;
}

static int parse_no_memory(const struct parser *p)
{
    return err_set(p->err, ERR_NO_MEMORY, "", "no memory for the node names");
}

static const char *past_blanks(const char *s)
{
    return s + strspn(s, " \t\r\n\v\f");
}

static int operand_number(struct parser *p, uint64_t *value, int *digits)
{
    p->at = past_blanks(p->at);
    *digits = (int)strspn(p->at, "0123456789");
    if (*digits < 1)
        return parse_refuse(p, p->at, "a number is missing, as in n[1-4,8]");
    if (*digits > DIGITS_MAX)
        return parse_refuse(p, p->at, "a number of %d digits; at most %d", *digits, DIGITS_MAX);
    *value = strtoull(p->at, NULL, 10);
    p->at = past_blanks(p->at + *digits);
    return 0;
}

// Zeros in front say how wide the numbers are: "01", "001-128", "000".
static int operand_range(struct parser *p, struct range *r)
{
    int wide, wide_to;
    const char *begin = past_blanks(p->at);
    if (operand_number(p, &r->from, &wide) < 0)
        return -1;
    const bool padded = wide > 1 && *begin == '0';
    *r = (struct range){.from = r->from, .to = r->from, .step = 1, .width = padded ? wide : 0};
    if (*p->at == '-') {
        p->at++;
        const char *to = past_blanks(p->at);
        if (operand_number(p, &r->to, &wide_to) < 0)
            return -1;
        if ((padded || (*to == '0' && wide_to > 1)) && wide != wide_to)
            return parse_refuse(p, begin,
                                "%d and %d digits; with zeros in front both ends have as many",
                                wide, wide_to);
        if (r->to < r->from)
            return parse_refuse(p, begin, "%" PRIu64 " is above %" PRIu64 "; ranges go upwards",
                                r->from, r->to);
        if (*p->at == '/') {
            p->at++;
            if (operand_number(p, &r->step, &wide) < 0)
                return -1;
            if (r->step < 1)
                return parse_refuse(p, begin, "a step is at least 1");
        }
    }
    return 0;
}

static int operand_bracket(struct parser *p, struct operand *o, struct part *part)
{
    const char *open = p->at++;
    part->first = o->n_ranges;
    for (;;) {
        struct range r = {0};
        if (operand_range(p, &r) < 0)
            return -1;
        if (o->n_ranges == o->room) {
            int room = o->room ? 2 * o->room : 16;
            void *ranges = realloc(o->ranges, (size_t)room * sizeof *o->ranges);
            if (!ranges)
                return parse_no_memory(p);
            o->ranges = ranges;
            o->room = room;
        }
        o->ranges[o->n_ranges++] = r;
        part->n++;
        if (*p->at == ']')
            break;
        if (!*p->at)
            return parse_refuse(p, open, "this bracket has no ']'");
        if (*p->at != ',')
            return parse_refuse(p, p->at,
                                "between numbers are ',', '-' and '/', as in n[1-4,8,10-20/2]");
        p->at++;
    }
    p->at++;
    return 0;
}

static bool ends_operand(const char *s)
{
    return !*s || strchr(OPERATORS, *s) || s != past_blanks(s);
}

// From p->at to the next opor blank.
static int operand_read(struct parser *p, struct operand *o)
{
    o->begin = p->at;
    o->n = o->n_ranges = 0;
    o->is_group = *p->at == '@';
    p->at += o->is_group;
    while (!ends_operand(p->at)) {
        struct part *part = &o->parts[o->n];
        *part = (struct part){.text = p->at};
        while (is_name_char(*p->at) || (o->is_group && *p->at && strchr(":*", *p->at)))
            p->at++;
        part->len = (int)(p->at - part->text);
        if (o->n == PARTS_MAX - 1)
            return parse_refuse(p, o->begin, "at most %d brackets per name", PARTS_MAX - 1);
        o->n++;
        if (*p->at == '[' && operand_bracket(p, o, part) < 0)
            return -1;
        if (!part->n && !ends_operand(p->at))
            return parse_refuse(p, p->at,
                                *p->at == ']' ? "this ']' has no '['"
                                : o->is_group
                                    ? "a group name has letters, digits, '.', '-', '_' and ':'"
                                    : NODESET_NAME_RULE);
    }
    o->end = p->at;
    if (!o->n)
        return parse_refuse(p, o->begin,
                            o->is_group ? "a group name is missing behind '@'"
                                        : "a node name is missing");
    return 0;
}

// How many names it has, or more than the limit if they are more.
static uint64_t operand_count(const struct operand *o)
{
    uint64_t product = 1;
    for (int i = 0; i < o->n && product <= NODESET_NAMES_MAX; i++) {
        uint64_t sum = o->parts[i].n ? 0 : 1;
        for (int k = 0; k < o->parts[i].n && sum <= NODESET_NAMES_MAX; k++) {
            const struct range *r = &o->ranges[o->parts[i].first + k];
            sum += (r->to - r->from) / r->step + 1;
        }
        product = sum > NODESET_NAMES_MAX ? sum : product * sum;
    }
    return product;
}

static int operand_check(struct parser *p, const struct operand *o, int *names)
{
    uint64_t count = operand_count(o);
    if (count > NODESET_NAMES_MAX)
        return parse_refuse(p, o->begin, "%" PRIu64 " names%s; a set has at most %d", count,
                            o->n > 1 ? " or more" : "", NODESET_NAMES_MAX);
    *names = (int)count;
    p->effort->names += *names;
    const int most = p->effort->names_max;
    if (p->effort->names > most)
        return parse_refuse(p, o->begin, "all operands together have more than %d names", most);
    return 0;
}

struct expansion {
    struct parser *p;
    const struct operand *o;
    struct pile *out;
    char name[NODESET_NAME_ROOM + DIGITS_MAX + 2];
};

static int pile_take(struct pile *l, const struct pile *from)
{
    if (pile_reserve(l, from->alive) < 0)
        return -1;
    for (int i = 0; i < from->set.n; i++) {
        const char *name = from->set.names[i];
        if (!from->gone[i] && pile_add(l, name, strlen(name)) < 0)
            return -1;
    }
    return 0;
}

static int take_group(struct parser *p, const struct operand *o, const char *group,
                      struct pile *out)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    for (const struct trail *t = p->trail; t; t = t->outer)
        if (strcmp(t->group, group) == 0)
            return parse_refuse(p, o->begin, "the group @%.40s holds itself", group);
    if (p->depth == DEPTH_MAX)
        return parse_refuse(p, o->begin, "groups within groups: at most %d deep", DEPTH_MAX);
    if (p->effort->lookups++ == LOOKUPS_MAX)
        return parse_refuse(p, o->begin, "more than %d groups", LOOKUPS_MAX);
    if (!p->groups)
        return parse_refuse(p, o->begin,
                            "groups are not looked up here: list their nodes, as in n[1-4] "
                            "(numaprobe fleet -w looks them up itself)");
    if (p->groups->find(p->groups->ctx, group, &text, p->err) < 0)
        return -1;
    if (!buf_ok(&text))
        return parse_no_memory(p);
    struct trail trail = {group, p->trail};
    struct parser inner = *p;
    inner.text = inner.at = buf_text(&text);
    inner.trail = &trail;
    inner.depth++;
    struct pile members = {0};
    int done = parse_into(&inner, &members);
    if (done == 0 && pile_take(out, &members) < 0)
        done = parse_no_memory(p);
    pile_free(&members);
    return done;
}

static int take_name(struct expansion *x, size_t len)
{
    if (x->o->is_group && (len >= NODESET_NAME_ROOM || *x->name == '-'))
        return parse_refuse(x->p, x->o->begin,
                            "a group name has at most %d characters, and does not begin with '-'",
                            NODESET_NAME_ROOM - 1);
    if (x->o->is_group)
        return take_group(x->p, x->o, x->name, x->out);
    if (len >= NODESET_NAME_ROOM || nodeset_name_check(x->name, NULL) < 0)
        return parse_refuse(x->p, x->o->begin, "%s", NODESET_NAME_RULE);
    return pile_add(x->out, x->name, len) < 0 ? parse_no_memory(x->p) : 0;
}

// With zeros in front up to the width. Returns its length. (A set has 65,536 of them.)
static size_t operand_digits(char *out, uint64_t v, int width)
{
    size_t n = 1;
    for (uint64_t rest = v; rest > 9; rest /= 10)
        n++;
    if (n < (size_t)width)
        n = (size_t)width;
    out[n] = '\0';
    for (size_t i = n; i-- > 0; v /= 10)
        out[i] = (char)('0' + v % 10);
    return n;
}

// The names that begin with the first `len` bytes of x->name followed by the parts from `k`.
static int operand_expand(struct expansion *x, int k, size_t len)
{
    if (k == x->o->n)
        return take_name(x, len);
    const struct part *part = &x->o->parts[k];
    if (len + (size_t)part->len >= NODESET_NAME_ROOM)
        return take_name(x, NODESET_NAME_ROOM);
    memcpy(x->name + len, part->text, (size_t)part->len);
    len += (size_t)part->len;
    x->name[len] = '\0';
    if (!part->n)
        return operand_expand(x, k + 1, len);
    for (int i = 0; i < part->n; i++) {
        const struct range *r = &x->o->ranges[part->first + i];
        for (uint64_t v = r->from; v <= r->to; v += r->step) {
            if (operand_expand(x, k + 1, len + operand_digits(x->name + len, v, r->width)) < 0)
                return -1;
        }
    }
    return 0;
}

// set = set OPERATOR operand. Takes as long as the operand is, however large the set is or was: a
// text may have thousands of operands.
static int pile_apply(struct pile *set, char op, struct pile *operand)
{
    if (op == '^' && pile_reserve(set, operand->alive) < 0)
        return -1;
    for (int i = 0; i < operand->set.n; i++) {
        const char *name = operand->set.names[i];
        int at = operand->gone[i] ? NOT_THERE : pile_find(set, name);
        if (at != NOT_THERE && op != '&')
            pile_drop(set, at);
        else if (at == NOT_THERE && op == '&' && !operand->gone[i])
            pile_drop(operand, i);
        else if (!operand->gone[i] && op == '^' && pile_add(set, name, strlen(name)) < 0)
            return -1;
    }
    if (op == '&') {
        const struct pile was = *set;
        *set = *operand;
        *operand = was;
    }
    return 0;
}

// As operand_digits() would write it.
static bool range_has(const struct range *r, const char *digits, int n)
{
    char written[DIGITS_MAX + 2];
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v = 10 * v + (uint64_t)(digits[i] - '0');
    return v >= r->from && v <= r->to && (v - r->from) % r->step == 0 && r->width <= DIGITS_MAX &&
           operand_digits(written, v, r->width) == (size_t)n;
}

// The parts from `k` can make this text.
static bool operand_has(const struct operand *o, int k, const char *text)
{
    if (k == o->n)
        return !*text;
    const struct part *part = &o->parts[k];
    if (strncmp(text, part->text, (size_t)part->len) != 0)
        return false;
    text += part->len;
    if (!part->n)
        return operand_has(o, k + 1, text);
    for (int i = 0; i < part->n; i++)
        for (int n = 1; n <= DIGITS_MAX && isdigit((unsigned char)text[n - 1]); n++)
            if (range_has(&o->ranges[part->first + i], text, n) && operand_has(o, k + 1, text + n))
                return true;
    return false;
}

static int parse_wanted(struct parser *p, char op, struct operand *o)
{
    int names = 0;
    if (operand_read(p, o) < 0 || operand_check(p, o, &names) < 0)
        return -1;
    if (o->is_group)
        return parse_refuse(p, o->begin, "groups are not looked up here");
    bool has = operand_has(o, 0, p->wanted);
    p->found = op == ','   ? p->found || has
               : op == '!' ? p->found && !has
               : op == '&' ? p->found && has
                           : p->found != has;
    return 0;
}

static int parse_operand(struct parser *p, char op, struct operand *o, struct pile *out)
{
    struct pile own = {0};
    struct expansion x = {.p = p, .o = o, .out = op == ',' ? out : &own};
    int names = 0;
    int done = operand_read(p, o) < 0 || operand_check(p, o, &names) < 0 ? -1 : 0;
    if (done == 0 && pile_reserve(x.out, names) < 0)
        done = parse_no_memory(p);
    if (done == 0)
        done = operand_expand(&x, 0, 0);
    if (done == 0 && op != ',' && pile_apply(out, op, &own) < 0)
        done = parse_no_memory(p);
    pile_free(&own);
    if (done == 0 && out->alive > NODESET_NAMES_MAX)
        done =
            parse_refuse(p, o->begin, "more than %d names with these; a set has at most that many",
                         NODESET_NAMES_MAX);
    return done;
}

static int parse_into(struct parser *p, struct pile *out)
{
    struct operand o = {0};
    int done = 0;
    char op = ',';
    size_t length = strlen(p->text);
    if (length > NODESET_TEXT_MAX)
        return parse_refuse(p, p->text, "a text of %zu bytes; at most %d (64 KiB)", length,
                            NODESET_TEXT_MAX);
    p->at = past_blanks(p->text);
    while (done == 0 && *p->at) {
        done = p->wanted ? parse_wanted(p, op, &o) : parse_operand(p, op, &o, out);
        p->at = past_blanks(p->at);
        op = ',';
        if (done == 0 && *p->at && strchr(OPERATORS, *p->at)) {
            op = *p->at;
            const char *next = past_blanks(p->at + 1);
            if (!*next || strchr(OPERATORS, *next))
                done = parse_refuse(p, p->at, "a node name is missing behind '%c'", op);
            p->at = next;
        }
    }
    free(o.ranges);
    return done;
}

// What remains of a pile.
static void pile_finish(struct pile *l, struct nodeset *out)
{
    int n = 0;
    for (int i = 0; i < l->set.n; i++) {
        if (l->gone[i])
            continue;
        if (n != i)
            memcpy(l->set.names[n], l->set.names[i], sizeof *l->set.names);
        n++;
    }
    if (n < l->set.n) {
        l->set.n = n;
        memset(l->set.slots, 0, l->set.n_slots * sizeof *l->set.slots);
        nodeset_index(&l->set);
    }
    *out = l->set;
    l->set = (struct nodeset){0};
}

static int parse_set(struct nodeset *out, const char *text, const struct nodeset_groups *groups,
                     int names_max, struct err *err)
{
    struct effort effort = {.names_max = names_max};
    struct pile all = {0};
    struct parser p = {.text = text, .groups = groups, .effort = &effort, .err = err};
    int done = parse_into(&p, &all);
    if (done == 0)
        pile_finish(&all, out);
    pile_free(&all);
    return done;
}

int nodeset_parse(struct nodeset *out, const char *text, const struct nodeset_groups *groups,
                  struct err *err)
{
    if (parse_set(out, text, groups, WORK_MAX, err) < 0)
        return -1;
    nodeset_sort(out);
    return 0;
}

int nodeset_parse_members(struct nodeset *out, const char *text, int names_max, struct err *err)
{
    return parse_set(out, text, NULL, names_max, err);
}

bool nodeset_text_has(const char *text, const char *name)
{
    struct effort effort = {.names_max = WORK_MAX};
    struct parser p = {.text = text, .effort = &effort, .wanted = name};
    return parse_into(&p, NULL) == 0 && p.found;
}

// The text around the numbers, with "%s" for each, is compared first, as ClusterShell does it. '%'
// is below all characters of a name. Then the numbers count, from left to right.
int nodeset_name_order(const char *a, const char *b)
{
    int number = 0;
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
            if (!number)
                number = na != nb ? (na > nb) - (na < nb) : memcmp(a, b, na);
            a += na;
            b += nb;
            continue;
        }
        int ca = isdigit((unsigned char)*a) ? '%' : *a, cb = isdigit((unsigned char)*b) ? '%' : *b;
        if (ca != cb)
            return ca - cb;
        a++;
        b++;
    }
    return *a || *b ? (*a != 0) - (*b != 0) : number;
}

static int name_order_q(const void *a, const void *b)
{
    return nodeset_name_order(a, b);
}

void nodeset_sort(struct nodeset *s)
{
    int n = 0;
    bool sorted = true;
    free(s->slots);
    s->slots = NULL;
    for (int i = 1; i < s->n && sorted; i++)
        sorted = nodeset_name_order(s->names[i - 1], s->names[i]) < 0;
    if (!sorted)
        qsort(s->names, (size_t)s->n, sizeof *s->names, name_order_q);
    for (int i = 0; i < s->n; i++) {
        if (n > 0 && strcmp(s->names[n - 1], s->names[i]) == 0)
            continue;
        if (n != i)
            memcpy(s->names[n], s->names[i], sizeof *s->names);
        n++;
    }
    s->n = n;
}

int nodeset_find(const struct nodeset *s, const char *name)
{
    if (s->slots)
        return (int)s->slots[nodeset_slot(s, name, strlen(name))] - 1;
    const char(*at)[NODESET_NAME_ROOM] =
        s->n ? bsearch(name, s->names, (size_t)s->n, sizeof *s->names, name_order_q) : NULL;
    return at ? (int)(at - s->names) : -1;
}

bool nodeset_has(const struct nodeset *s, const char *name)
{
    return nodeset_find(s, name) >= 0;
}
