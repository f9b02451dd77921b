// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet effect: what the change of a fact (a firmware, a kernel) did to the nodes that
// have it, beside those that were left untouched.
#include <math.h>
#include <stdio.h>

#include "analysis/peers/fleet_effect.h"
#include "analysis/peers/fleet_json.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "client/fleet/gather.h"
#include "client/print.h"

struct effect_flags {
    char from[256], to[256];
};

static const struct param effect_params[] = {
    PARAM_TEXT_ROW(struct effect_flags, from, .filled = true, .metavar = "VALUE",
                   .help = "Value of the fact before. Default: of the change that most nodes had."),
    PARAM_TEXT_ROW(struct effect_flags, to, .filled = true, .metavar = "VALUE",
                   .help = "Value of the fact after."),
};
const struct param_table fleet_effect_options = {effect_params, COUNT_OF(effect_params)};

static const char *value_or(const char *text)
{
    return text && *text ? text : "not set";
}

static void effect_print_head(const struct cli *c, const struct fleet_effect *e)
{
    char first[32], last[32];
    CLEANUP_BUF struct buf line = BUF_INIT;
    clock_rfc3339(e->first, first);
    clock_rfc3339(e->last, last);
    buf_fmt(&line, "%s: %s -> %s, %.10s to %.10s, %d node%s on %d day%s, %d untouched",
            e->change.fact, value_or(e->change.from), value_or(e->change.to), first, last,
            e->change.nodes, str_plural(e->change.nodes), e->days, str_plural(e->days),
            e->untouched);
    print_paragraph(c, buf_text(&line), 4);
    for (int i = 0; i < e->n_together; i++) {
        const struct fleet_change *k = &e->together[i];
        CLEANUP_BUF struct buf with = BUF_INIT;
        buf_fmt(&with, "together with %s: %s -> %s (%d node%s): the two cannot be distinguished",
                k->fact, value_or(k->from), value_or(k->to), k->nodes, str_plural(k->nodes));
        print_paragraph(c, buf_text(&with), 4);
    }
}

static const char *effect_paint(const char *text)
{
    return text[0] == 'w' ? PRINT_RED : text[0] == 'b' ? PRINT_GREEN : NULL;
}

static void effect_print_metrics(const struct cli *c, const struct fleet_effect *e)
{
    static const struct column columns[] = {
        {"metric", "METRIC", false, true},
        {"percent", "DIFFERENCE %", true},
        {"lo", "FROM", true},
        {"hi", "TO", true},
        {"treated", "NODES", true},
        {"controls", "CONTROLS", true},
        {"waves", "DAYS", true},
        {"verdict", "VERDICT", false, false, effect_paint},
    };
    CLEANUP_GRID struct grid g;
    grid_init(&g, columns, COUNT_OF(columns));
    for (int i = 0; i < e->n; i++) {
        const struct effect *k = &e->list[i].effect;
        const double numbers[] = {k->percent, k->lo, k->hi};
        grid_cell(&g, "%s", e->list[i].metric);
        for (size_t m = 0; m < COUNT_OF(numbers); m++)
            if (isfinite(numbers[m]))
                grid_cell(&g, "%+.2f", numbers[m]);
            else
                grid_cell(&g, "%s", "");
        grid_cell(&g, "%d", k->treated);
        grid_cell(&g, "%d", k->controls);
        grid_cell(&g, "%d", k->waves);
        grid_cell(&g, "%s", effect_verdict_names[k->verdict]);
    }
    grid_print(&g, c);
}

static void effect_print(const struct cli *c, struct gather *g, const struct fleet_effect *e)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    if (c->output == OUTPUT_JSON) {
        jsonw_object(&w, NULL);
        fleet_effect_write_json(e, &w);
        gather_write_missing(g, &w);
        jsonw_end(&w);
        buf_char(&text, '\n');
        print_buf(&text);
        return;
    }
    if (c->output == OUTPUT_TABLE)
        effect_print_head(c, e);
    if (c->output == OUTPUT_TABLE && !e->n)
        print_paragraph(
            c,
            "no node that changed has enough runs of a metric before and after that, measured "
            "by the same method and version of the metrics",
            0);
    else
        effect_print_metrics(c, e);
}

// The worst verdict that any metric has.
static int effect_status(const struct fleet_effect *e)
{
    bool judged = false;
    for (int i = 0; i < e->n; i++) {
        if (e->list[i].effect.verdict == EFFECT_WORSE)
            return CLI_EXIT_SLOWER;
        judged |= e->list[i].effect.verdict <= EFFECT_BETTER;
    }
    return judged ? CLI_EXIT_SUCCESS : CLI_EXIT_INCONCLUSIVE;
}

int cmd_fleet_effect(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct effect_flags *f = i->options;
    CLEANUP_GATHER struct gather g = {0};
    struct fleet_effect e = {0};
    if (gather_all(&g, c, GATHER_EFFECT_RUNS, err) < 0)
        return -1;
    if (gather_is_empty(&g))
        return gather_end(&g, CLI_EXIT_INCONCLUSIVE);
    if (fleet_effect_find(&e, g.fleet, i->operands[0], *f->from ? f->from : NULL,
                          *f->to ? f->to : NULL, err) < 0) {
        gather_end(&g, 0);
        return -1;
    }
    effect_print(c, &g, &e);
    int status = effect_status(&e);
    fleet_effect_fini(&e);
    return gather_end(&g, status);
}
