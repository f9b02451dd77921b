// SPDX-License-Identifier: Apache-2.0
// Values have six significant digits, as in a summary; per cent have two after the point.
#include "analysis/peers/fleet_json.h"

enum { VIEW_DIGITS = 6 };

static void better_text(struct jsonw *w, bool more)
{
    jsonw_text(w, "better", more ? "more" : "less");
}

// ---- Effect

static void write_fleet_change(const struct fleet_change *c, struct jsonw *w)
{
    jsonw_text(w, "fact", c->fact);
    jsonw_text(w, "from", c->from);
    jsonw_text(w, "to", c->to);
    jsonw_i64(w, "nodes", c->nodes);
}

static void write_effect_metric(const struct fleet_effect_metric *m, struct jsonw *w)
{
    const struct effect *k = &m->effect;
    jsonw_object(w, NULL);
    jsonw_text(w, "metric", m->metric);
    jsonw_text(w, "unit", m->unit);
    jsonw_text(w, "benchmark", m->benchmark);
    jsonw_text(w, "variant", m->variant);
    better_text(w, m->more);
    jsonw_fixed(w, "percent", k->percent, 2);
    jsonw_fixed(w, "lo", k->lo, 2);
    jsonw_fixed(w, "hi", k->hi, 2);
    jsonw_digits(w, "q", m->q, VIEW_DIGITS);
    jsonw_i64(w, "treated", k->treated);
    jsonw_i64(w, "controls", k->controls);
    jsonw_i64(w, "waves", k->waves);
    jsonw_i64(w, "worse_waves", k->worse_waves);
    jsonw_text(w, "verdict", effect_verdict_names[k->verdict]);
    jsonw_end(w);
}

void fleet_effect_write_json(const struct fleet_effect *e, struct jsonw *w)
{
    write_fleet_change(&e->change, w);
    jsonw_i64(w, "untouched", e->untouched);
    jsonw_i64(w, "days", e->days);
    jsonw_time(w, "first", e->first);
    jsonw_time(w, "last", e->last);
    jsonw_array(w, "together");
    for (int i = 0; i < e->n_together; i++) {
        jsonw_object(w, NULL);
        write_fleet_change(&e->together[i], w);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_array(w, "metrics");
    for (int i = 0; i < e->n; i++)
        write_effect_metric(&e->list[i], w);
    jsonw_end(w);
}

// ---- Views

static void write_view(const struct fleet_view *v, int metric, bool more, struct jsonw *w)
{
    jsonw_text(w, "class", v->f->classes.list[v->table.class]);
    jsonw_text(w, "metric", fleet_table_metric(&v->table, v->f, metric));
    jsonw_text(w, "unit", fleet_table_unit(&v->table, v->f, metric));
    better_text(w, more);
}

// The rank counts from the worst, whatever is written first.
void fleet_ranking_write_json(const struct fleet_ranking *r, const struct fleet_view *v,
                              const struct fleet_ranking_part *part, struct jsonw *w)
{
    write_view(v, r->metric, r->more, w);
    jsonw_i64(w, "nodes", r->n);
    jsonw_i64(w, "other_method_nodes", r->others);
    jsonw_digits(w, "median", r->median, VIEW_DIGITS);
    jsonw_fixed(w, "spread_percent", r->spread, 2);
    jsonw_array(w, "ranking");
    for (int i = 0; i < r->n && i < part->limit; i++) {
        int at = part->best ? r->n - 1 - i : i;
        const struct fleet_rank *k = &r->list[at];
        jsonw_object(w, NULL);
        jsonw_i64(w, "rank", at + 1);
        jsonw_text(w, "node", v->f->nodes.list[k->node]);
        jsonw_digits(w, "value", k->value, VIEW_DIGITS);
        jsonw_digits(w, "lo", k->lo, VIEW_DIGITS);
        jsonw_digits(w, "hi", k->hi, VIEW_DIGITS);
        jsonw_fixed(w, "percent", k->percent, 2);
        jsonw_i64(w, "runs", k->runs);
        jsonw_end(w);
    }
    jsonw_end(w);
}

void fleet_shares_write_json(const struct fleet_shares *s, const struct fleet_view *v, int metric,
                             const char *fact, struct jsonw *w)
{
    write_view(v, metric, s->more, w);
    jsonw_text(w, "fact", fact);
    jsonw_i64(w, "other_method_nodes", s->others);
    jsonw_array(w, "groups");
    for (int i = 0; i < s->n; i++) {
        const struct fleet_share *k = &s->list[i];
        jsonw_object(w, NULL);
        jsonw_text(w, "value", k->value);
        jsonw_i64(w, "nodes", k->nodes);
        jsonw_digits(w, "median", k->median, VIEW_DIGITS);
        jsonw_digits(w, "lo", k->lo, VIEW_DIGITS);
        jsonw_digits(w, "hi", k->hi, VIEW_DIGITS);
        jsonw_fixed(w, "percent", k->percent, 2);
        jsonw_fixed(w, "percent_lo", k->percent_lo, 2);
        jsonw_fixed(w, "percent_hi", k->percent_hi, 2);
        jsonw_digits(w, "q", k->q, VIEW_DIGITS);
        jsonw_text(w, "verdict", fleet_share_verdict(s, i));
        jsonw_end(w);
    }
    jsonw_end(w);
}

// ---- Side by side

static void write_sides_nodes(const struct fleet_sides *s, struct jsonw *w)
{
    jsonw_array(w, "nodes");
    for (int i = 0; i < s->nodes; i++) {
        const struct fleet_node *n = &s->f->node[i];
        jsonw_object(w, NULL);
        jsonw_text(w, "node", s->f->nodes.list[i]);
        jsonw_text(w, "class", n->class < 0 ? NULL : s->f->classes.list[n->class]);
        jsonw_text(w, "config", n->config < 0 ? NULL : s->f->configs.list[n->config]);
        jsonw_bool(w, "facts_known", fleet_sides_facts_known(s, i));
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_sides_facts(const struct fleet_sides *s, struct jsonw *w)
{
    jsonw_array(w, "facts");
    for (int i = 0; i < s->n_facts; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "kind", s->facts[i].is_class ? "hardware" : "config");
        jsonw_text(w, "name", s->facts[i].name);
        jsonw_array(w, "values");
        for (int k = 0; k < s->nodes; k++)
            jsonw_text(w, NULL, s->facts[i].value[k]);
        jsonw_end(w);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_sides_difference(const struct run_pair_metric *p, struct jsonw *w)
{
    jsonw_fixed(w, "percent", p->percent, 2);
    jsonw_fixed(w, "percent_lo", p->lo, 2);
    jsonw_fixed(w, "percent_hi", p->hi, 2);
    jsonw_digits(w, "q", p->q, VIEW_DIGITS);
    jsonw_text(w, "verdict", run_pair_verdict(p));
}

static void write_sides_metric(const struct fleet_sides *s, const struct sides_metric *m,
                               struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_text(w, "metric", m->metric);
    jsonw_text(w, "unit", m->unit);
    better_text(w, m->more);
    jsonw_text(w, "benchmark", m->benchmark);
    jsonw_text(w, "variant", m->variant);
    jsonw_array(w, "values");
    for (int i = 0; i < s->nodes; i++) {
        const struct fleet_rank *r = &m->of[i];
        if (!r->runs) {
            jsonw_null(w, NULL);
            continue;
        }
        jsonw_object(w, NULL);
        jsonw_digits(w, "value", r->value, VIEW_DIGITS);
        jsonw_digits(w, "lo", r->lo, VIEW_DIGITS);
        jsonw_digits(w, "hi", r->hi, VIEW_DIGITS);
        jsonw_i64(w, "runs", r->runs);
        jsonw_end(w);
    }
    jsonw_end(w);
    if (s->nodes == 2)
        write_sides_difference(&m->pair, w);
    jsonw_end(w);
}

void fleet_sides_write_json(const struct fleet_sides *s, struct jsonw *w)
{
    write_sides_nodes(s, w);
    write_sides_facts(s, w);
    jsonw_i64(w, "slower", s->slower);
    jsonw_i64(w, "faster", s->faster);
    jsonw_i64(w, "alone", s->alone);
    jsonw_i64(w, "otherwise", s->otherwise);
    jsonw_array(w, "metrics");
    for (int i = 0; i < s->n; i++)
        write_sides_metric(s, &s->list[i], w);
    jsonw_end(w);
}
