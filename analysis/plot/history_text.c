// SPDX-License-Identifier: Apache-2.0
// A history out of characters, with its changes below it.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot/history.h"
#include "analysis/plot/parts.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/str.h"

enum { COLOUR_RUNS = 0, COLOUR_MIDDLE = 1 }; // of the lines

static void fit_canvas(const struct canvas *k, const struct history_picture *p, struct scale *x,
                       struct scale *y)
{
    struct range r = RANGE_EMPTY;
    for (int i = 0; i < p->n; i++)
        range_add(&r, p->moments[i].value);
    if (!range_known(&r))
        r = (struct range){0, 1, false};
    double from = p->n ? (double)p->moments[0].measured_ms : 0;
    double to = p->n ? (double)p->moments[p->n - 1].measured_ms : 0;
    *x = (struct scale){{from, to, false}, 0, (double)k->width * k->fine_x - 1};
    if (history_is_wide(p)) {
        *y = (struct scale){{r.lo, r.hi, true}, (double)k->height * k->fine_y - 1, 0};
        history_fit_wide(p, &y->r);
        return;
    }
    double more = fmax((HISTORY_LEAST_SPAN * fabs(r.hi) - (r.hi - r.lo)) / 2, 0);
    more = r.hi - r.lo + more > 0 ? more : 1;
    *y = (struct scale){{r.lo - more, r.hi + more, false}, (double)k->height * k->fine_y - 1, 0};
}

static void draw_history(struct canvas *k, const struct history_picture *p, const struct scale *x,
                         const struct scale *y)
{
    for (int s = 0; s < p->n_stretches; s++) {
        const struct stretch *part = &p->stretches[s];
        double at = scale_at(y, part->middle);
        canvas_stroke(k, scale_at(x, (double)p->moments[part->from].measured_ms), at,
                      scale_at(x, (double)p->moments[part->end - 1].measured_ms), at,
                      COLOUR_MIDDLE);
    }
    for (int i = 0; i < p->n; i++)
        canvas_dot(k, (int)lround(scale_at(x, (double)p->moments[i].measured_ms)),
                   (int)lround(scale_at(y, p->moments[i].value)), COLOUR_RUNS);
}

static void write_dates(const struct canvas *k, const struct history_picture *p, struct buf *out)
{
    char from[32] = "", to[32] = "";
    buf_fmt(out, "%*s%s", CANVAS_SCALE - 1, "", k->how->unicode ? "└" : "+");
    for (int x = 0; x < k->width; x++)
        buf_str(out, k->how->unicode ? "─" : "-");
    buf_char(out, '\n');
    if (!p->n)
        return;
    clock_rfc3339(p->moments[0].measured_ms, from);
    clock_rfc3339(p->moments[p->n - 1].measured_ms, to);
    bool one = strncmp(from, to, 10) == 0;
    buf_fmt(out, "%*s%.10s", CANVAS_SCALE, "", from);
    if (!one)
        buf_fmt(out, "%*.10s", k->width - 10, to);
    buf_char(out, '\n');
}

static void write_history_changes(const struct history_picture *p, struct buf *out)
{
    char time[32];
    int from = p->n_changes > HISTORY_LISTED_MAX ? p->n_changes - HISTORY_LISTED_MAX : 0;
    for (int i = from; i < p->n_changes; i++) {
        const struct history_change *c = &p->changes[i];
        clock_rfc3339(p->moments[c->at].measured_ms, time);
        buf_fmt(out, "%+.1f %% since %.10s (run %" PRId64 "): ", percent_written(c->percent), time,
                p->moments[c->at].run);
        buf_plain(out, buf_text(&c->cause));
        buf_char(out, '\n');
    }
    if (from)
        buf_fmt(out, "%d earlier changes\n", from);
    if (p->pending)
        buf_fmt(out,
                "the metrics of %" PRId64 " runs are not computed yet: changes are not searched "
                "for\n",
                p->pending);
    else if (p->n && !p->n_changes)
        buf_str(out, "no significant change\n");
    if (p->searched && p->searched < p->n)
        buf_fmt(out, "changes are searched for in the newest %" PRId64 "\n", p->searched);
    if (p->older)
        buf_str(out, "the limit left out earlier runs\n");
    if (p->others)
        buf_fmt(out,
                "%" PRId64 " run%s with another variant, method or version of the metrics left "
                "out\n",
                p->others, str_plural(p->others));
    if (*p->variant) {
        buf_str(out, "measured with: ");
        buf_plain(out, p->variant);
        buf_char(out, '\n');
    }
}

int history_write_text(const struct history_picture *p, const struct plot_text *how,
                       struct buf *out, struct err *err)
{
    struct canvas k CLEANUP(canvas_fini) = {0};
    struct plot_text fit = plot_text_fit(how);
    struct scale x, y;
    struct ticks t;
    if (canvas_init(&k, &fit, 1, err) < 0)
        return -1;
    fit_canvas(&k, p, &x, &y);
    draw_history(&k, p, &x, &y);
    buf_fmt(out, "%s\n%s%s%s is better; %d run%s\n", p->metric, p->unit, *p->unit ? ", " : "",
            p->more_is_better ? "more" : "less", p->n, str_plural(p->n));
    ticks_round(&t, &y.r, k.height / 3);
    for (int row = 0; row < k.height; row++) {
        canvas_write_scale(&k, &y, &t, row, out);
        for (int i = 0; i < k.width; i++)
            canvas_write(&k, row * k.width + i, out);
        buf_char(out, '\n');
    }
    write_dates(&k, p, out);
    write_history_changes(p, out);
    if (y.r.log)
        buf_str(out, "y is logarithmic\n");
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
}
