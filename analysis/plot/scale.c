// SPDX-License-Identifier: Apache-2.0
// Numbers become places on the page and texts beside them: scales, round ticks, and the titles
// of axes. The pictures and the text form share it, so that both show the same numbers.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "base/cleanup.h"
#include "base/str.h"

double scale_at(const struct scale *s, double v)
{
    double lo = s->r.log ? log(s->r.lo) : s->r.lo, hi = s->r.log ? log(s->r.hi) : s->r.hi;
    double at = s->r.log ? log(v) : v;
    double share = hi > lo ? (at - lo) / (hi - lo) : 0.5;
    return s->from + share * (s->to - s->from);
}

void range_add(struct range *r, double v)
{
    if (!isfinite(v))
        return;
    r->lo = fmin(r->lo, v);
    r->hi = fmax(r->hi, v);
}

bool range_known(const struct range *r)
{
    return r->lo <= r->hi;
}

static void add_tick(struct ticks *t, const struct range *r, double at)
{
    double slack = 1e-9 * (r->log ? at : fmax(fabs(r->lo), fabs(r->hi)));
    if (t->n < TICKS_MAX && at >= r->lo - slack && at <= r->hi + slack)
        t->at[t->n++] = at;
}

// 1, 2 and 5 of each power of ten, or the powers alone.
static void ticks_log(struct ticks *t, const struct range *r, int every, bool all)
{
    static const int steps[] = {1, 2, 5};
    int first = (int)floor(log10(r->lo)), last = (int)ceil(log10(r->hi));
    t->n = 0;
    for (int e = first; e <= last; e += every)
        for (size_t i = 0; i < (all ? COUNT_OF(steps) : 1); i++)
            add_tick(t, r, steps[i] * pow(10, e));
}

static void ticks_even(struct ticks *t, const struct range *r, int wanted)
{
    static const double steps[] = {1, 2, 5, 10};
    double raw = (r->hi - r->lo) / wanted, power = pow(10, floor(log10(raw))), step = power;
    t->n = 0;
    for (size_t i = 0; i < COUNT_OF(steps) && step < raw; i++)
        step = steps[i] * power;
    double first = ceil(r->lo / step - 1e-9);
    for (int k = 0; k < TICKS_MAX; k++)
        add_tick(t, r, (first + k) * step);
}

void ticks_round(struct ticks *t, const struct range *r, int wanted)
{
    t->n = 0;
    if (!(r->hi > r->lo))
        return;
    if (r->log) {
        double powers = log10(r->hi / r->lo);
        ticks_log(t, r, powers <= wanted ? 1 : (int)ceil(powers / wanted), powers * 2 <= wanted);
        if (t->n < 3)
            ticks_log(t, r, 1, true);
    }
    if (t->n < 3) // less than a power of ten: even steps read better
        ticks_even(t, r, wanted);
}

int value_digits(double v)
{
    return fabs(v) >= 999.95 ? 0 : fabs(v) >= 9.995 ? 1 : 2;
}

void value_text(double v, char *out, size_t room)
{
    if (isfinite(v))
        snprintf(out, room, "%.*f", value_digits(v), v);
    else
        snprintf(out, room, "-");
}

// There is room for six figures beside an axis: 250000, 1.25e6.
void tick_text(double v, char *out, size_t room)
{
    snprintf(out, room, fabs(v) < 1e6 ? "%.7g" : "%.4g", v + 0.0);
    char *e = strchr(out, 'e');
    if (!e)
        return;
    char *to = e + 1 + (e[1] == '-'), *from = to + strspn(to, "+0"); // "e+06": e6
    memmove(to, from, strlen(from) + 1);
}

// What is measured: how it is called, and which end of it one wants.
static const struct {
    const char *quantity, *text, *better;
} quantities[] = {
    {"latency", "latency", "less is better"},
    {"round_trip", "round trip", "less is better"},
    {"access_time", "time of an access", "less is better"},
    {"bandwidth", "bandwidth", "more is better"},
    {"operation_time", "time of a rank's operation", "less is better"},
    {"handover_time", "time from holder to holder", "less is better"},
    {"rate", "operations of all ranks", "more is better"},
    {"fairness", "Jain's index, 1: fair", "more is better"},
    {"share", "least share of the greatest", "more is better"},
};

static double scale_largest(const struct matrix *m)
{
    struct range r = RANGE_EMPTY;
    for (int i = 0; i < m->row.n * m->col.n; i++)
        range_add(&r, m->cells[i].v[CELL_MEDIAN]);
    return r.hi;
}

struct measure measure_of(const struct matrix *m)
{
    struct measure k = {.unit = m->unit, .divisor = 1};
    const char *text = m->quantity, *better = "";
    for (size_t i = 0; i < COUNT_OF(quantities); i++)
        if (strcmp(quantities[i].quantity, m->quantity) == 0) {
            text = quantities[i].text;
            better = quantities[i].better;
        }
    if (strcmp(m->unit, "MB/s") == 0 && scale_largest(m) >= 1000) {
        k.unit = "GB/s";
        k.divisor = 1000;
    }
    snprintf(k.text, sizeof k.text, "median %s%s%s%s%s%s", text, *k.unit ? " (" : "", k.unit,
             *k.unit ? ")" : "", *better ? ", " : "", better);
    return k;
}

double measured(const struct matrix *m, const struct measure *by, int row, int col,
                enum cell_field field)
{
    return matrix_at(m, row, col)->v[field] / by->divisor;
}

static const struct {
    const char *axis, *title;
} axes[] = {
    {"rank", "rank"},
    {"working_set", "working set of a rank (bytes)"},
    {"target", "node of the memory"},
    {"initiator", "node of the CPUs"},
    {"source", "node that is copied from"},
    {"threads", "ranks that work together"},
    {"pair", "pair of ranks"},
    {"message", "message (bytes)"},
    {"access", "memory that is read"},
    {"load", "load (% of full)"},
    {"pages", "pages, with one link each"},
    {"chains", "chains followed at once"},
    {"stride", "stride (bytes)"},
    {"operation", "operation"},
    {"line", "cache line, the fastest first"},
    {"aspect", "what is compared"},
    {"l3", "last-level cache (its first rank)"},
};

void axis_words(const struct axis *a, char *out, size_t room)
{
    snprintf(out, room, "%s", a->name);
    for (char *p = out; *p; p++)
        if (*p == '_')
            *p = ' ';
}

void axis_title(const struct axis *a, char *out, size_t room)
{
    snprintf(out, room, "%s", a->name);
    for (size_t i = 0; i < COUNT_OF(axes); i++)
        if (strcmp(axes[i].axis, a->name) == 0)
            snprintf(out, room, "%s", axes[i].title);
}

void axis_value(const struct axis *a, int i, char *out, size_t room)
{
    if (strcmp(a->unit, "bytes") == 0)
        str_from_bytes((uint64_t)a->values[i], out, room);
    else
        axis_label(a, i, out, room);
}
