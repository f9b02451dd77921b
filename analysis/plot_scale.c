// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot_parts.h"
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
    double slack = 1e-9 * fmax(fabs(r->lo), fabs(r->hi));
    if (t->n < TICKS_MAX && at >= r->lo - slack && at <= r->hi + slack)
        t->at[t->n++] = at;
}

static void ticks_log(struct ticks *t, const struct range *r, int wanted)
{
    static const int steps[] = {1, 2, 5};
    int first = (int)floor(log10(r->lo)), last = (int)ceil(log10(r->hi));
    bool all = (last - first) * 3 <= 2 * wanted; // 1, 2, 5 of each power; else the powers alone
    int every = all || last - first <= wanted ? 1 : (last - first) / wanted + 1;
    for (int e = first; e <= last; e += every)
        for (size_t i = 0; i < (all ? COUNT_OF(steps) : 1); i++)
            add_tick(t, r, steps[i] * pow(10, e));
}

void ticks_round(struct ticks *t, const struct range *r, int wanted)
{
    static const double steps[] = {1, 2, 5, 10};
    t->n = 0;
    if (r->log)
        ticks_log(t, r, wanted);
    if (t->n >= 3 || !(r->hi > r->lo))
        return;
    t->n = 0; // less than a power of ten on a logarithmic axis: even steps read better
    double raw = (r->hi - r->lo) / wanted, power = pow(10, floor(log10(raw))), step = power;
    for (size_t i = 0; i < COUNT_OF(steps) && step < raw; i++)
        step = steps[i] * power;
    for (double k = ceil(r->lo / step - 1e-9); k * step <= r->hi * (1 + 1e-9); k++)
        add_tick(t, r, k * step);
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

void tick_text(double v, char *out, size_t room)
{
    snprintf(out, room, fabs(v) < 1e7 ? "%.7g" : "%.3g", v + 0.0);
}

// What is measured: how it is called, and which end of it one wants.
static const struct {
    const char *quantity, *text, *better;
} quantities[] = {
    {"latency", "latency", "less is better"},
    {"round_trip", "round trip", "less is better"},
    {"access_time", "time of an access", "less is better"},
    {"bandwidth", "bandwidth", "more is better"},
};

static double largest(const struct matrix *m)
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
    if (strcmp(m->unit, "MB/s") == 0 && largest(m) >= 1000) {
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
    {"threads", "ranks that work together"},
    {"pair", "pair of ranks"},
    {"message", "message (bytes)"},
    {"access", "memory that is read"},
    {"load", "load (% of full)"},
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
