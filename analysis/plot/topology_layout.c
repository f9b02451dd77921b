// SPDX-License-Identifier: Apache-2.0
// CPUs are sorted so that each box is a run of neighbours. Sizes are found from the inside to the
// outside, and places from the outside to the inside.
#include "analysis/plot/topology_layout.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/plot/parts.h"
#include "base/cleanup.h"

// Sides of a core's square: the more cores the smaller.
static const struct {
    int cores; // of the machine, at most
    double side, gap;
    bool numbers;
} sizes[] = {
    {64, 24, 3, true},
    {256, 13, 3, false},
    {TOPOLOGY_CORES_MAX, 7, 2, false},
};

enum {
    CACHE_LEAST = 58, // width: its name
    BAR_HEIGHT = 10,
    CARD_LEAST = 206, // width inside: name and memory of a node, latency and bandwidth
    CARD_MOST = 300,
    VALUES_HEIGHT = 46,
};

void topology_layout_fini(struct layout *l)
{
    free(l->cpus);
    free(l->cores);
    free(l->caches);
    free(l->cards);
    free(l->groups);
}

// ---- What there is ------------------------------------------------------------------------------

// The package of a node's first CPU stands for the node.
static int package_of(const struct topology *t, int node)
{
    int package = -1;
    for (int i = 0; i < t->n_cpus; i++)
        if (t->cpus[i].node == t->nodes[node].os && (package < 0 || t->cpus[i].package < package))
            package = t->cpus[i].package;
    return package;
}

static int by_box(const void *a, const void *b)
{
    const struct topo_cpu *x = *(const struct topo_cpu *const *)a,
                          *y = *(const struct topo_cpu *const *)b;
    const int from[] = {x->node, x->l3, x->core, x->thread, x->os},
              to[] = {y->node, y->l3, y->core, y->thread, y->os};
    for (size_t i = 0; i < COUNT_OF(from); i++)
        if (from[i] != to[i])
            return from[i] < to[i] ? -1 : 1;
    return 0;
}

static void find_cores(struct layout *l)
{
    const struct topology *t = l->topology;
    for (int i = 0; i < t->n_cpus; i++)
        if (topology_node_index(t, t->cpus[i].node) >= 0)
            l->cpus[l->n_cpus++] = &t->cpus[i];
    qsort(l->cpus, (size_t)l->n_cpus, sizeof *l->cpus, by_box);
    for (int i = 0; i < l->n_cpus; i++) {
        const struct topo_cpu *cpu = l->cpus[i];
        struct layout_core *last = l->n_cores ? &l->cores[l->n_cores - 1] : NULL;
        int node = topology_node_index(t, cpu->node);
        if (!last || last->node != node || last->l3 != cpu->l3 || last->core != cpu->core)
            l->cores[l->n_cores++] = (struct layout_core){
                .node = node, .l3 = cpu->l3, .core = cpu->core, .first = i, .n = 1};
        else
            last->n++;
    }
}

static void find_caches(struct layout *l, struct layout_card *card)
{
    card->first = l->n_caches;
    for (int i = 0; i < l->n_cores; i++) {
        const struct layout_core *core = &l->cores[i];
        if (core->node != card->node)
            continue;
        struct layout_cache *last = card->n ? &l->caches[l->n_caches - 1] : NULL;
        if (last && last->l3 == core->l3) {
            last->n++;
            continue;
        }
        l->caches[l->n_caches++] = (struct layout_cache){.l3 = core->l3, .first = i, .n = 1};
        card->n++;
    }
}

static int by_package(const void *a, const void *b)
{
    const struct layout_group *x = a, *y = b;
    bool apart = (x->package < 0) != (y->package < 0);
    return apart ? (x->package < 0 ? 1 : -1) : x->package - y->package;
}

// One for each package, ascending, then one for the nodes without CPUs.
static void layout_find_groups(struct layout *l, const int *package)
{
    for (int i = 0; i < l->topology->n_nodes; i++) {
        int g = 0;
        while (g < l->n_groups && l->groups[g].package != package[i])
            g++;
        if (g == l->n_groups)
            l->groups[l->n_groups++] = (struct layout_group){.package = package[i]};
    }
    qsort(l->groups, (size_t)l->n_groups, sizeof *l->groups, by_package);
}

static void find_cards(struct layout *l, const int *package)
{
    for (int g = 0; g < l->n_groups; g++) {
        l->groups[g].first = l->n_cards;
        for (int i = 0; i < l->topology->n_nodes; i++)
            if (package[i] == l->groups[g].package) {
                l->cards[l->n_cards] = (struct layout_card){.node = i};
                find_caches(l, &l->cards[l->n_cards++]);
                l->groups[g].n++;
            }
    }
}

// ---- Sizes --------------------------------------------------------------------------------------

static int cores_across(int cores)
{
    return cores <= 8 ? cores : cores <= 32 ? 8 : 16;
}

static void size_cache(const struct layout *l, struct layout_cache *c)
{
    int across = cores_across(c->n), down = (c->n + across - 1) / across;
    double inner = across * l->core_step, height = down * l->core_step;
    if (!l->core_side) {
        inner = CACHE_LEAST;
        height = BAR_HEIGHT;
    }
    c->box.w = fmax(inner, CACHE_LEAST) + LAYOUT_PAD;
    c->box.h = LAYOUT_CACHE_HEAD + height + LAYOUT_PAD / 2.0;
}

// Places boxes side by side in a width, from (0, 0); rows are as high as their highest box.
struct flow {
    double width, gap; // at most
    double x, y, row;
    double right, bottom; // of all
};

static void flow_place(struct flow *f, struct layout_box *b)
{
    if (f->x > 0 && f->x + b->w > f->width) {
        f->x = 0;
        f->y += f->row + f->gap;
        f->row = 0;
    }
    b->x = f->x;
    b->y = f->y;
    f->x += b->w + f->gap;
    f->row = fmax(f->row, b->h);
    f->right = fmax(f->right, b->x + b->w);
    f->bottom = fmax(f->bottom, b->y + b->h);
}

// The width of rows that are equally long, of n boxes of width w.
static double even_width(int n, double w, double most)
{
    if (!n)
        return most;
    int across = (int)fmax(1, floor((most + LAYOUT_GAP) / (w + LAYOUT_GAP)));
    int rows = (n + across - 1) / across;
    return ((n + rows - 1) / rows) * (w + LAYOUT_GAP);
}

// Caches within their card. Places are relative to the card until all sizes are known.
static void size_card(struct layout *l, struct layout_card *card)
{
    const struct topo_node *node = &l->topology->nodes[card->node];
    double top = LAYOUT_PAD / 2.0 + LAYOUT_HEAD + l->values_height + (node->cache_bytes ? 16 : 0);
    double widest = 0;
    for (int i = 0; i < card->n; i++) {
        size_cache(l, &l->caches[card->first + i]);
        widest = fmax(widest, l->caches[card->first + i].box.w);
    }
    struct flow f = {.width = even_width(card->n, widest, CARD_MOST), .gap = LAYOUT_GAP / 2.0};
    for (int i = 0; i < card->n; i++)
        flow_place(&f, &l->caches[card->first + i].box);
    for (int i = 0; i < card->n; i++) {
        l->caches[card->first + i].box.x += LAYOUT_PAD;
        l->caches[card->first + i].box.y += top;
    }
    card->box.w = fmax(f.right, CARD_LEAST) + 2 * LAYOUT_PAD;
    card->box.h = top + f.bottom + (card->n ? LAYOUT_PAD : LAYOUT_PAD / 2.0);
}

// Cards of a group are equally large, so that they line up.
static void size_group(struct layout *l, struct layout_group *g, double most)
{
    double w = 0, h = 0;
    for (int i = 0; i < g->n; i++) {
        w = fmax(w, l->cards[g->first + i].box.w);
        h = fmax(h, l->cards[g->first + i].box.h);
    }
    struct flow f = {.width = even_width(g->n, w, most - 2 * LAYOUT_PAD), .gap = LAYOUT_GAP};
    for (int i = 0; i < g->n; i++) {
        struct layout_box *b = &l->cards[g->first + i].box;
        b->w = w;
        b->h = h;
        flow_place(&f, b);
        b->x += LAYOUT_PAD;
        b->y += LAYOUT_HEAD + LAYOUT_PAD / 2.0;
    }
    g->box.w = f.right + 2 * LAYOUT_PAD;
    g->box.h = f.bottom + LAYOUT_HEAD + 1.5 * LAYOUT_PAD;
}

// ---- Places -------------------------------------------------------------------------------------

static void move_box(struct layout_box *b, const struct layout_box *by)
{
    b->x += by->x;
    b->y += by->y;
}

static void place_cores(struct layout *l, const struct layout_cache *c)
{
    int across = cores_across(c->n);
    double left = c->box.x + (c->box.w - across * l->core_step + l->core_step - l->core_side) / 2;
    for (int i = 0; i < c->n; i++)
        l->cores[c->first + i].box =
            (struct layout_box){left + i % across * l->core_step,
                                c->box.y + LAYOUT_CACHE_HEAD + (double)(i / across) * l->core_step,
                                l->core_side, l->core_side};
}

static void place_group(struct layout *l, const struct layout_group *g)
{
    for (int i = 0; i < g->n; i++) {
        struct layout_card *card = &l->cards[g->first + i];
        move_box(&card->box, &g->box);
        for (int k = 0; k < card->n; k++) {
            move_box(&l->caches[card->first + k].box, &card->box);
            place_cores(l, &l->caches[card->first + k]);
        }
    }
}

static void choose_size(struct layout *l)
{
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        if (l->n_cores <= sizes[i].cores) {
            l->core_side = sizes[i].side;
            l->core_step = sizes[i].side + sizes[i].gap;
            l->core_numbers = sizes[i].numbers;
            return;
        }
}

static void lay_out_all(struct layout *l, double top)
{
    double most = fmax(l->most, TOPOLOGY_WIDTH_MIN) - 2 * LAYOUT_MARGIN;
    struct flow f = {.width = most, .gap = LAYOUT_GAP};
    choose_size(l);
    for (int i = 0; i < l->n_cards; i++)
        size_card(l, &l->cards[i]);
    for (int g = 0; g < l->n_groups; g++) {
        size_group(l, &l->groups[g], most);
        flow_place(&f, &l->groups[g].box);
    }
    for (int g = 0; g < l->n_groups; g++) {
        l->groups[g].box.x += LAYOUT_MARGIN;
        l->groups[g].box.y += top;
        place_group(l, &l->groups[g]);
    }
    l->width = f.right + 2 * LAYOUT_MARGIN;
    l->bottom = top + f.bottom;
}

int topology_layout_init(struct layout *l, const struct topology *t, const struct node_costs *costs,
                         int width, double top, struct err *err)
{
    size_t cpus = (size_t)t->n_cpus + 1, nodes = (size_t)t->n_nodes + 1;
    *l = (struct layout){
        .topology = t, .costs = costs, .most = width, .values_height = costs ? VALUES_HEIGHT : 0};
    l->cpus = calloc(cpus, sizeof *l->cpus);
    l->cores = calloc(cpus, sizeof *l->cores);
    l->caches = calloc(cpus, sizeof *l->caches);
    l->cards = calloc(nodes, sizeof *l->cards);
    l->groups = calloc(nodes, sizeof *l->groups);
    int *package = calloc(nodes, sizeof *package);
    if (!l->cpus || !l->cores || !l->caches || !l->cards || !l->groups || !package) {
        free(package);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
    }
    for (int i = 0; i < t->n_nodes; i++)
        package[i] = package_of(t, i);
    find_cores(l);
    layout_find_groups(l, package);
    find_cards(l, package);
    free(package);
    lay_out_all(l, top);
    return 0;
}
