// SPDX-License-Identifier: Apache-2.0
// The boxes are drawn where analysis/plot/topology_layout.h places them. Below them stands a table
// for the latency and one for the bandwidth that stand for all. Everything has a title that shows
// when the reader points at it.
#include "analysis/plot/topology_picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot/node_table.h"
#include "analysis/plot/parts.h"
#include "analysis/plot/topology_layout.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8_columns.h"

enum { CPUS_TEXT = 400, TITLE_TEXT = 600, TABLE_GAP = 26, LINE_STEP = 15 };
// Widths of a character, about.
#define LINE_CHARACTER 6.6

// The colour of a node's edge follows the kind of its memory; all others have the last.
static const char *const memory_kinds[] = {"dram", "hbm", "cxl-dram", "nvm", "gpumemory"};

// By day and by night, as in analysis/plot/svg.c.
static const char *const boxes[] = {
    ".package{fill:#f3f6fa;stroke:#d5dce5}.card{fill:#fff;stroke:#cbd4df}.cache{fill:#eaf0f8}"
    ".k0{fill:#a9c2e6}.k1{fill:#f4c9a4}.k2{fill:#bfdfca}.core-text{fill:#17304f;font-size:11px}",
    ".package{fill:#151a21;stroke:#2b3440}.card{fill:#212935;stroke:#3a4554}.cache{fill:#2b3542}"
    ".k0{fill:#43618f}.k1{fill:#875a35}.k2{fill:#3c6d53}.core-text{fill:#e6eaf0;font-size:11px}",
};
static const char shapes_of_boxes[] =
    ".alone{stroke-dasharray:5 4}.off{opacity:.35}.name{font-size:14px;font-weight:600}"
    ".number{font-size:18px;font-weight:600}.cell{font-size:11px}";

static void draw_style(struct buf *out)
{
    buf_fmt(out, "<style>%s@media(prefers-color-scheme:dark){%s}%s</style>\n", boxes[0], boxes[1],
            shapes_of_boxes);
}

static int kind_colour(const struct topo_node *n)
{
    size_t i = 0;
    while (i < COUNT_OF(memory_kinds) && strcmp(memory_kinds[i], n->kind) != 0)
        i++;
    return (int)i;
}

static void draw_box(struct buf *out, const char *class, const struct layout_box *b, double round,
                     const char *title)
{
    buf_fmt(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", class,
            b->x, b->y, b->w, b->h);
    if (round > 0)
        buf_fmt(out, " rx=\"%.0f\"", round);
    svg_titled(out, "rect", title);
}

// "0-3,64-67", cut where it is too long.
static void cpus_text(const struct layout *l, int first, int n, char *out, size_t room)
{
    int ids[TOPOLOGY_CPUS_MAX];
    for (int i = 0; i < n; i++)
        ids[i] = l->cpus[first + i]->os;
    str_from_ids(ids, n, out, room);
}

// ---- Cores and caches ---------------------------------------------------------------------------

static void core_title(const struct layout *l, const struct layout_core *core, char *out,
                       size_t room)
{
    const struct topology *t = l->topology;
    const struct topo_cpu *cpu = l->cpus[core->first];
    char cpus[80], kind[40] = "";
    cpus_text(l, core->first, core->n, cpus, sizeof cpus);
    if (cpu->kind >= 0 && *t->kinds[cpu->kind].type)
        snprintf(kind, sizeof kind, ", %s", t->kinds[cpu->kind].type);
    snprintf(out, room, "core %d: CPU%s %s%s%s", core->core, str_plural(core->n), cpus, kind,
             cpu->allowed ? "" : ", not available to the daemon");
}

static void draw_core(const struct layout *l, const struct layout_core *core, struct buf *out)
{
    const struct topo_cpu *cpu = l->cpus[core->first];
    char title[200], class[24], number[16];
    core_title(l, core, title, sizeof title);
    // Kinds of cores: the strongest looks as where all are alike.
    int weaker = cpu->kind < 0 ? 0 : l->topology->n_kinds - 1 - cpu->kind;
    snprintf(class, sizeof class, "core k%d%s", weaker > 2 ? 2 : weaker,
             cpu->allowed ? "" : " off");
    draw_box(out, class, &core->box, l->core_numbers ? 4 : 1, title);
    snprintf(number, sizeof number, "%d", cpu->os);
    if (l->core_numbers)
        svg_text(out, core->box.x + core->box.w / 2, core->box.y + core->box.h / 2 + 4,
                 ANCHOR_MIDDLE, "core-text", number);
}

static void cache_words(const struct layout *l, const struct layout_cache *c, char *out,
                        size_t room)
{
    char size[24];
    if (c->l3 < 0) {
        snprintf(out, room, "%d cores", c->n);
        return;
    }
    const struct topo_cache *cache = &l->topology->caches[c->l3];
    str_rough_size((double)cache->bytes, size, sizeof size);
    snprintf(out, room, "L%d %s", cache->level, size);
}

static void draw_cache(const struct layout *l, const struct layout_cache *c, struct buf *out)
{
    char words[64], cpus[CPUS_TEXT], title[TITLE_TEXT];
    const struct layout_core *last = &l->cores[c->first + c->n - 1];
    int first = l->cores[c->first].first;
    cache_words(l, c, words, sizeof words);
    cpus_text(l, first, last->first + last->n - first, cpus, sizeof cpus);
    snprintf(title, sizeof title, "%s: %d core%s, CPUs %s", words, c->n, str_plural(c->n), cpus);
    draw_box(out, "cache", &c->box, 5, title);
    svg_text(out, c->box.x + LAYOUT_PAD / 2.0, c->box.y + LAYOUT_CACHE_HEAD - 5, ANCHOR_START,
             "small", words);
    for (int i = 0; l->core_side > 0 && i < c->n; i++)
        draw_core(l, &l->cores[c->first + i], out);
    if (l->core_side > 0)
        return;
    struct layout_box bar = {c->box.x + LAYOUT_PAD / 2.0, c->box.y + LAYOUT_CACHE_HEAD,
                             c->box.w - LAYOUT_PAD, 10};
    char count[24];
    snprintf(count, sizeof count, "%d cores", c->n);
    draw_box(out, "core k0", &bar, 2, count);
}

// ---- Nodes --------------------------------------------------------------------------------------

// A node's own cost, or of one without CPUs the best that any node has. *from: index of that node.
static struct node_cost own_cost(const struct layout *l, enum node_cost_kind kind, int node,
                                 int *from)
{
    const struct node_costs *c = l->costs;
    struct node_cost best = node_cost_at(c, kind, node, node);
    *from = node;
    for (int i = 0;
         isnan(best.v) && l->topology->nodes[node].n_cpus == 0 && i < l->topology->n_nodes; i++) {
        struct node_cost k = node_cost_at(c, kind, i, node);
        if (isnan(k.v))
            continue;
        for (int j = i + 1; j < l->topology->n_nodes; j++) {
            struct node_cost other = node_cost_at(c, kind, j, node);
            bool better = node_cost_more_is_better(kind) ? other.v > k.v : other.v < k.v;
            i = better ? j : i;
            k = better ? other : k;
        }
        best = k;
        *from = i;
    }
    return best;
}

static void draw_value(const struct layout *l, enum node_cost_kind kind, int node, double x,
                       double y, struct buf *out)
{
    int from;
    char value[32], text[64], whence[64] = "own memory";
    const struct topology *t = l->topology;
    struct node_cost k = kind == NODE_COST_KINDS ? (struct node_cost){NAN, NAN, NAN}
                                                 : own_cost(l, kind, node, &from);
    if (isnan(k.v))
        return;
    bool more = node_cost_more_is_better(kind);
    value_text(more ? k.v / NODE_TABLE_MBPS : k.v, value, sizeof value);
    snprintf(text, sizeof text, "%s %s", value, more ? "GB/s" : "ns");
    if (from != node)
        snprintf(whence, sizeof whence, "from node %d", t->nodes[from].os);
    else if (kind == NODE_COST_CONCURRENT)
        snprintf(whence, sizeof whence, "all ranks at once");
    else if (more)
        snprintf(whence, sizeof whence, "%s, own memory", node_cost_kinds[kind].kernel);
    svg_text(out, x, y, ANCHOR_START, "number", text);
    svg_text(out, x, y + 15, ANCHOR_START, "small", whence);
}

static void memory_words(const struct topo_node *n, char *out, size_t room)
{
    char size[24];
    str_rough_size((double)n->memory_bytes, size, sizeof size);
    if (n->memory_bytes > 0)
        snprintf(out, room, "%s %s", size, n->kind);
    else
        snprintf(out, room, "no memory");
}

static void card_title(const struct layout *l, const struct layout_card *card, char *out,
                       size_t room)
{
    const struct topo_node *n = &l->topology->nodes[card->node];
    char memory[64], cpus[CPUS_TEXT] = "none";
    memory_words(n, memory, sizeof memory);
    if (card->n) {
        const struct layout_cache *last = &l->caches[card->first + card->n - 1];
        const struct layout_core *end = &l->cores[last->first + last->n - 1];
        int first = l->cores[l->caches[card->first].first].first;
        cpus_text(l, first, end->first + end->n - first, cpus, sizeof cpus);
    }
    snprintf(out, room, "node %d: %s, CPUs %s%s", n->os, memory, cpus,
             n->allowed ? "" : ", not available to the daemon");
}

static void draw_card(const struct layout *l, const struct layout_card *card, struct buf *out)
{
    const struct topo_node *n = &l->topology->nodes[card->node];
    const struct layout_box *b = &card->box;
    char title[TITLE_TEXT], name[32], memory[64], class[40];
    double y = b->y + LAYOUT_PAD / 2.0 + 14;
    card_title(l, card, title, sizeof title);
    draw_box(out, card->n ? "card" : "card alone", b, 7, title);
    snprintf(class, sizeof class, "edge f%d", kind_colour(n));
    draw_box(out, class, &(struct layout_box){b->x, b->y + 7, 4, b->h - 14}, 2, "");
    snprintf(name, sizeof name, "node %d", n->os);
    memory_words(n, memory, sizeof memory);
    svg_text(out, b->x + LAYOUT_PAD + 4, y, ANCHOR_START, "name", name);
    svg_text(out, b->x + b->w - LAYOUT_PAD, y, ANCHOR_END, "quiet", memory);
    if (l->values_height > 0) {
        draw_value(l, node_costs_latency(l->costs), card->node, b->x + LAYOUT_PAD + 4, y + 25, out);
        draw_value(l, node_costs_bandwidth(l->costs), card->node,
                   b->x + LAYOUT_PAD + 4 + (b->w - 2 * LAYOUT_PAD) / 2, y + 25, out);
    }
    if (n->cache_bytes) {
        char size[24], words[64];
        str_rough_size((double)n->cache_bytes, size, sizeof size);
        snprintf(words, sizeof words, "behind a memory-side cache of %s", size);
        svg_text(out, b->x + LAYOUT_PAD + 4, y + l->values_height + 16, ANCHOR_START, "small",
                 words);
    }
    for (int i = 0; i < card->n; i++)
        draw_cache(l, &l->caches[card->first + i], out);
}

// ---- Packages -----------------------------------------------------------------------------------

static void group_words(const struct layout *l, const struct layout_group *g, char *out,
                        size_t room)
{
    int cores = 0, cpus = 0;
    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < l->cards[g->first + i].n; k++) {
            const struct layout_cache *c = &l->caches[l->cards[g->first + i].first + k];
            cores += c->n;
            for (int j = 0; j < c->n; j++)
                cpus += l->cores[c->first + j].n;
        }
    if (g->package < 0)
        snprintf(out, room, "memory without CPUs");
    else if (cores == cpus)
        snprintf(out, room, "package %d · %d cores", g->package, cores);
    else
        snprintf(out, room, "package %d · %d cores, %d CPUs", g->package, cores, cpus);
}

static void draw_groups(const struct layout *l, struct buf *out)
{
    for (int g = 0; g < l->n_groups; g++) {
        const struct layout_group *group = &l->groups[g];
        char words[80];
        group_words(l, group, words, sizeof words);
        draw_box(out, "package", &group->box, 10, "");
        svg_text(out, group->box.x + LAYOUT_PAD, group->box.y + LAYOUT_HEAD - 6, ANCHOR_START,
                 "quiet", words);
        for (int i = 0; i < group->n; i++)
            draw_card(l, &l->cards[group->first + i], out);
    }
}

// ---- The whole ----------------------------------------------------------------------------------

// Texts above the boxes: in two lines where there is room, else one below the other.
struct headings {
    struct buf title, line; // owned
    bool narrow;
};

static void headings_fini(struct headings *h)
{
    buf_free(&h->title);
    buf_free(&h->line);
}

static int fitting(const struct topology_picture *p, double character)
{
    return (int)((p->width - 2 * LAYOUT_MARGIN) / character);
}

static void find_headings(const struct topology_picture *p, struct headings *h)
{
    const struct topology *t = p->topology;
    char counts[80];
    snprintf(counts, sizeof counts, "%d CPUs · %d NUMA node%s", t->n_cpus, t->n_nodes,
             str_plural(t->n_nodes));
    buf_fmt(&h->title, "%s · %s · %s", p->node, t->cpu_model, counts);
    h->narrow = utf8_columns(buf_text(&h->title)) > fitting(p, TITLE_CHARACTER) ||
                utf8_columns(p->heading) > fitting(p, LINE_CHARACTER);
    if (!h->narrow) {
        buf_str(&h->line, p->heading);
        return;
    }
    buf_reset(&h->title);
    text_cut(&h->title, p->node, fitting(p, TITLE_CHARACTER));
    buf_str(&h->line, counts);
}

// Returns where the boxes begin.
static double draw_headings(const struct topology_picture *p, const struct headings *h,
                            struct buf *out)
{
    static const char between[] = " · ";
    double y = SVG_TOP;
    if (!h->narrow)
        return y + LAYOUT_GAP;
    int most = fitting(p, LINE_CHARACTER);
    svg_text_cut(out, LAYOUT_MARGIN, y += LINE_STEP, "quiet", p->topology->cpu_model, most);
    for (const char *at = p->heading, *end; *at; at = *end ? end + sizeof between - 1 : end) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        end = strstr(at, between);
        end = end ? end : at + strlen(at);
        buf_add(&line, at, (size_t)(end - at));
        buf_needs(out, &line);
        svg_text_cut(out, LAYOUT_MARGIN, y += LINE_STEP, "quiet", buf_text(&line), most);
    }
    return y + LAYOUT_GAP;
}

static void picture_notes(const struct layout *l, struct buf *out)
{
    const struct topology *t = l->topology;
    int off = 0;
    for (int i = 0; i < t->n_cpus; i++)
        off += !t->cpus[i].allowed;
    buf_str(out, l->core_side > 0
                     ? "a square is a core"
                     : "the cores of a cache are one bar, because there are more than ");
    if (!(l->core_side > 0))
        buf_fmt(out, "%d", TOPOLOGY_CORES_MAX);
    buf_str(out, ". ");
    if (l->n_cpus < t->n_cpus)
        buf_fmt(out, "%d CPUs belong to no node and are not drawn. ", t->n_cpus - l->n_cpus);
    if (off)
        buf_fmt(out, "pale: not available to the daemon (%d CPU%s). ", off, str_plural(off));
    if (t->n_kinds > 1)
        buf_str(out, "lighter squares are weaker kinds of cores. ");
    if (!l->costs)
        buf_str(out, "nothing is measured yet. ");
    else
        buf_str(out,
                "tables: CPUs of the node of the row to memory of the node of the column; dark "
                "is little, bright is much. ");
}

static double draw_tables(const struct layout *l, double top, struct buf *out, struct buf *notes,
                          double *right)
{
    const struct node_costs *c = l->costs;
    const enum node_cost_kind kinds[] = {c ? node_costs_latency(c) : NODE_COST_KINDS,
                                         c ? node_costs_bandwidth(c) : NODE_COST_KINDS};
    double x = LAYOUT_MARGIN, y = top, bottom = top, most = l->most - LAYOUT_MARGIN;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (kinds[i] == NODE_COST_KINDS || node_costs_pairs(c, kinds[i]) < 2)
            continue;
        struct node_table table = node_table_of(c, kinds[i], most - LAYOUT_MARGIN);
        if (x > LAYOUT_MARGIN && x + table.width > most) {
            x = LAYOUT_MARGIN;
            y = bottom + TABLE_GAP;
        }
        node_table_draw(&table, x, y, out);
        if (table.left_out)
            buf_fmt(notes, "the first %d nodes of each table are drawn, %d are left out. ",
                    NODE_TABLE_MAX, table.left_out);
        x += table.width + TABLE_GAP;
        *right = fmax(*right, x - TABLE_GAP + LAYOUT_MARGIN);
        bottom = fmax(bottom, y + table.height);
    }
    return bottom;
}

int topology_picture_write(const struct topology_picture *p, struct buf *out, struct err *err)
{
    struct layout l CLEANUP(topology_layout_fini) = {0};
    struct headings h CLEANUP(headings_fini) = {.title = BUF_INIT, .line = BUF_INIT};
    CLEANUP_BUF struct buf body = BUF_INIT, notes = BUF_INIT;
    double right = 0;
    find_headings(p, &h);
    draw_style(&body);
    if (topology_layout_init(&l, p->topology, p->costs, p->width, draw_headings(p, &h, &body),
                             err) < 0)
        return -1;
    draw_groups(&l, &body);
    picture_notes(&l, &notes);
    double bottom = draw_tables(&l, l.bottom + TABLE_GAP, &body, &notes, &right);
    bottom = fmax(bottom, l.bottom);
    buf_needs(out, &h.title);
    svg_write(out, &(struct svg_picture){.width = fmax(l.width, right),
                                         .height = bottom + LAYOUT_GAP,
                                         .title = buf_text(&h.title),
                                         .heading = &h.line,
                                         .body = &body,
                                         .notes = &notes});
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
}
