// SPDX-License-Identifier: Apache-2.0
// Reads a history and finds the stretches between its changes, each with the band of its runs.
#include "analysis/plot/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/setup_change.h"
#include "analysis/plot/parts.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
    BAND_RUNS_MIN = 5,
    CAUSES_MAX = 3, // facts that are named of a change
    WIDE = 30,      // as in other pictures
};
#define PICTURE_DAY_MS INT64_C(86400000)
#define SIGMA_OF_MAD 1.4826
#define BAND_SIGMAS 2 // on each side: 95 % of runs that differ by chance

void history_fini(struct history_picture *p)
{
    for (int i = 0; i < p->n_changes; i++)
        buf_free(&p->changes[i].cause);
    free(p->moments);
    free(p->changes);
    free(p->stretches);
    free(p->days);
}

static struct range values_of(const struct history_picture *p)
{
    struct range r = RANGE_EMPTY;
    for (int i = 0; i < p->n; i++)
        range_add(&r, p->moments[i].value);
    return r;
}

bool history_is_wide(const struct history_picture *p)
{
    const struct range r = values_of(p);
    return range_known(&r) && r.lo > 0 && r.hi >= WIDE * r.lo;
}

void history_fit_wide(const struct history_picture *p, struct range *out)
{
    struct range r = values_of(p);
    for (int i = 0; i < p->n_days; i++) { // the class
        const struct history_day *d = &p->days[i];
        range_add(&r, d->low > 0 ? d->low : NAN);
        range_add(&r, d->high > 0 ? d->high : NAN);
    }
    const double margin = pow(r.hi / r.lo, 0.04);
    *out = (struct range){r.lo / margin, r.hi * margin, true};
}

// "microcode: 0x1000065 -> 0x1000070; kernel: 6.1.0 -> 6.1.9; 2 more facts changed".
static void read_cause(const struct json *facts, struct buf *out)
{
    int n = 0;
    if (!json_is_array(facts))
        buf_str(out, "the facts of the machine are not recorded for both sides");
    else if (!json_first(facts))
        buf_str(out, "no recorded fact of the machine changed with it");
    for (const struct json *f = json_first(facts); f; f = json_next(f))
        if (n++ < CAUSES_MAX)
            buf_fmt(out, "%s%s: %s -> %s", n > 1 ? "; " : "", json_get_text(f, "name", "?"),
                    json_get_text(f, "before", "not known"),
                    json_get_text(f, "after", "not known"));
    if (n > CAUSES_MAX)
        buf_fmt(out, "; %d more facts changed", n - CAUSES_MAX);
}

static void read_shift(const struct json *change, struct buf *out)
{
    const struct setup_change cause = setup_change_from_json(change);
    char text[SETUP_CHANGE_TEXT];
    if (*setup_change_text(&cause, text))
        buf_fmt(out, "%s: ", text);
}

static int index_of_run(const struct history_picture *p, int64_t run)
{
    for (int i = 0; i < p->n; i++)
        if (p->moments[i].run == run)
            return i;
    return -1;
}

static int index_of_time(const struct history_picture *p, int64_t ms)
{
    for (int i = 0; i < p->n; i++)
        if (p->moments[i].measured_ms == ms)
            return i;
    return -1;
}

// A change names its first run, or the time of it where runs of several histories are one.
static int index_of_change(const struct history_picture *p, const struct json *c)
{
    int64_t ms;
    return clock_parse(json_get_text(c, "at", ""), &ms)
               ? index_of_time(p, ms)
               : index_of_run(p, json_get_i64(c, "run", 0));
}

static void read_changes(struct history_picture *p, const struct json *list)
{
    for (const struct json *c = json_first(list); c && p->n_changes < HISTORY_CHANGES_MAX;
         c = json_next(c)) {
        struct history_change change = {.at = index_of_change(p, c),
                                        .percent = json_get_number(c, "percent", NAN),
                                        .before = json_get_number(c, "before", NAN),
                                        .after = json_get_number(c, "after", NAN)};
        int last = p->n_changes ? p->changes[p->n_changes - 1].at : 0;
        if (change.at <= last)
            continue; // not after the one before: no change of this history
        read_shift(c, &change.cause);
        if (json_get(c, "fact_changes") || !p->moments[change.at].nodes)
            read_cause(json_get(c, "fact_changes"), &change.cause);
        else
            buf_str(&change.cause, "a rollout of these days may be the cause");
        p->changes[p->n_changes++] = change;
    }
}

static void read_moments(struct history_picture *p, const struct json *points)
{
    for (const struct json *j = json_first(points); j; j = json_next(j)) {
        struct moment m = {.run = json_get_i64(j, "run", 0),
                           .value = json_get_number(j, "value", NAN),
                           .lo = json_get_number(j, "lo", NAN),
                           .hi = json_get_number(j, "hi", NAN)};
        if (clock_parse(json_get_text(j, "measured", ""), &m.measured_ms) && isfinite(m.value))
            p->moments[p->n++] = m;
    }
}

static bool day_time(const struct json *j, int64_t *ms)
{
    char text[40];
    snprintf(text, sizeof text, "%.10sT00:00:00Z", json_get_text(j, "day", ""));
    return clock_parse(text, ms);
}

// Days of a class: their bars are the quartiles of its nodes.
static void read_class_days(struct history_picture *p, const struct json *days)
{
    for (const struct json *j = json_first(days); j; j = json_next(j)) {
        struct moment m = {.nodes = (int)json_get_i64(j, "nodes", 0),
                           .value = json_get_number(j, "median", NAN),
                           .lo = json_get_number(j, "q1", NAN),
                           .hi = json_get_number(j, "q3", NAN)};
        if (day_time(j, &m.measured_ms) && isfinite(m.value))
            p->moments[p->n++] = m;
    }
}

// Only days of the time of the runs, and with enough nodes.
static int read_class_band(struct history_picture *p, const struct json *band, struct err *err)
{
    p->days = calloc((size_t)json_count(band) + 1, sizeof *p->days);
    if (!p->days)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a picture");
    for (const struct json *j = json_first(band); j && p->n; j = json_next(j)) {
        struct history_day d = {.low = json_get_number(j, "low", NAN),
                                .median = json_get_number(j, "median", NAN),
                                .high = json_get_number(j, "high", NAN)};
        if (!day_time(j, &d.noon_ms) || !isfinite(d.low) || !isfinite(d.high) ||
            d.noon_ms + PICTURE_DAY_MS <= p->moments[0].measured_ms ||
            d.noon_ms > p->moments[p->n - 1].measured_ms)
            continue;
        d.noon_ms += PICTURE_DAY_MS / 2;
        p->days[p->n_days++] = d;
    }
    return 0;
}

static void find_band(const struct history_picture *p, struct stretch *s, double *room)
{
    int n = 0;
    for (int i = s->from; i < s->end; i++)
        room[n++] = p->moments[i].value;
    s->middle = middle_of(room, n);
    for (int i = 0; i < n; i++)
        room[i] = fabs(room[i] - s->middle);
    double reach = BAND_SIGMAS * SIGMA_OF_MAD * middle_of(room, n);
    s->lo = n >= BAND_RUNS_MIN ? s->middle - reach : NAN;
    s->hi = n >= BAND_RUNS_MIN ? s->middle + reach : NAN;
}

static int find_stretches(struct history_picture *p, struct err *err)
{
    CLEANUP_MEM double *room = calloc((size_t)p->n + 1, sizeof *room);
    p->stretches = calloc((size_t)p->n_changes + 1, sizeof *p->stretches);
    if (!room || !p->stretches)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a picture");
    for (int i = 0; i <= p->n_changes && p->n; i++) {
        struct stretch *s = &p->stretches[p->n_stretches++];
        s->from = i ? p->changes[i - 1].at : 0;
        s->end = i < p->n_changes ? p->changes[i].at : p->n;
        find_band(p, s, room);
    }
    return 0;
}

int history_from_json(struct history_picture *p, const struct json *answer, struct err *err)
{
    const struct json *points = json_get(answer, "points"), *days = json_get(answer, "days");
    bool of_class = json_is_array(days);
    *p = (struct history_picture){
        .metric = json_get_text(answer, "metric", "?"),
        .node = json_get_text(answer, of_class ? "class" : "node", "?"),
        .what = of_class ? "day" : "run",
        .variant = json_get_text(answer, "variant", ""),
        .unit = json_get_text(answer, "unit", ""),
        .more_is_better = strcmp(json_get_text(answer, "better", ""), "more") == 0,
        .older = json_get_bool(answer, "more", false) || json_get_i64(answer, "left_out", 0) > 0,
        .searched = json_get_i64(answer, "searched", 0),
        .others = json_get_i64(answer, "other_runs", 0),
        .pending = json_get_i64(answer, "pending", 0),
        .moments = calloc((size_t)json_count(of_class ? days : points) + 1, sizeof *p->moments),
        .changes = calloc(HISTORY_CHANGES_MAX, sizeof *p->changes)};
    if (!p->moments || !p->changes)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a picture");
    if (!of_class && !json_is_array(points))
        return err_set(err, ERR_UNREACHABLE, "url", "the response has no points");
    if (of_class)
        read_class_days(p, days);
    else
        read_moments(p, points);
    if (read_class_band(p, json_get(answer, "band"), err) < 0)
        return -1;
    read_changes(p, json_get(answer, "change_points"));
    return find_stretches(p, err);
}
