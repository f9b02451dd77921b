// SPDX-License-Identifier: Apache-2.0
// Machines as pictures.
#include <math.h>
#include <stdlib.h>

#include "analysis/plot/picture.h"
#include "analysis/plot/topology_picture.h"
#include "base/cleanup.h"
#include "tests/unit/tap.h"

// Of a box that a small screen scrolls: four times 8 cores and their margins.
enum { NARROW_MOST = 440 };
static const char hostile[] = "</style><script>alert('x')</script>&";

// Packages of nodes of caches of cores; `extra` nodes are memory alone.
struct shape_of_machine {
    const char *name;
    int packages, nodes, caches, cores, threads, extra;
    const char *kind; // of the memory alone
};

static void machine_make(struct topology *t, const struct shape_of_machine *s)
{
    int nodes = s->packages * s->nodes, caches = nodes * s->caches, cores = caches * s->cores;
    *t = (struct topology){.n_nodes = nodes + s->extra,
                           .n_caches = caches,
                           .n_cpus = cores * s->threads,
                           .nodes = calloc((size_t)(nodes + s->extra), sizeof *t->nodes),
                           .caches = calloc((size_t)caches, sizeof *t->caches),
                           .cpus = calloc((size_t)(cores * s->threads), sizeof *t->cpus)};
    if (!t->nodes || !t->caches || !t->cpus)
        abort();
    snprintf(t->cpu_model, sizeof t->cpu_model, "%s", hostile);
    for (int i = 0; i < t->n_nodes; i++) {
        t->nodes[i] =
            (struct topo_node){.os = 2 * i,
                               .memory_bytes = (int64_t)64 << 30,
                               .allowed = true,
                               .n_cpus = i < nodes ? s->caches * s->cores * s->threads : 0};
        snprintf(t->nodes[i].kind, sizeof t->nodes[i].kind, "%s", i < nodes ? "dram" : s->kind);
    }
    for (int i = 0; i < caches; i++)
        t->caches[i] = (struct topo_cache){.level = 3, .bytes = 32 << 20};
    for (int i = 0; i < t->n_cpus; i++) {
        int core = i % cores;
        t->cpus[i] = (struct topo_cpu){.os = i,
                                       .core = core,
                                       .thread = i / cores,
                                       .kind = -1,
                                       .allowed = core != 1,
                                       .l3 = core / s->cores,
                                       .node = 2 * (core / s->cores / s->caches),
                                       .package = core / (s->cores * s->caches * s->nodes)};
    }
}

static void machine_measure(struct node_costs *c, const struct topology *t)
{
    node_costs_init(c, t);
    size_t n = (size_t)t->n_nodes;
    for (int k = 0; k < NODE_COST_KINDS; k += NODE_COST_TRIAD) {
        c->of[k] = calloc(n * n, sizeof *c->of[k]);
        for (int i = 0; c->of[k] && i < t->n_nodes; i++)
            for (int j = 0; j < t->n_nodes; j++) {
                double far = i == j ? 1 : t->nodes[j].n_cpus ? 2 : 3;
                double v = !t->nodes[i].n_cpus ? NAN : k ? 50000 / far : 90 * far + i + j;
                c->of[k][i * t->n_nodes + j] = (struct node_cost){v, v * 0.98, v * 1.02};
            }
        if (k == NODE_COST_TRIAD)
            break;
    }
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

static void picture_of(const struct shape_of_machine *s, bool measured, int width, struct buf *out)
{
    struct topology t CLEANUP(topology_fini);
    struct node_costs c CLEANUP(node_costs_fini) = {0};
    struct err err = {0};
    machine_make(&t, s);
    machine_measure(&c, &t);
    const struct topology_picture p = {.topology = &t,
                                       .costs = measured ? &c : NULL,
                                       .node = "nid001234",
                                       .heading = measured ? "idle latency: run 17" : "",
                                       .width = width};
    CHECK(topology_picture_write(&p, out, &err) == 0, "%s: a picture %s", s->name, err.text);
}

static const struct shape_of_machine small = {"two nodes", 1, 2, 2, 4, 2, 1, "cxl-dram"};

static void boxes_and_values(void)
{
    CLEANUP_BUF struct buf out = BUF_INIT, again = BUF_INIT;
    picture_of(&small, true, TOPOLOGY_WIDTH, &out);
    picture_of(&small, true, TOPOLOGY_WIDTH, &again);
    const char *svg = buf_text(&out);
    CHECK_STR(svg, buf_text(&again), "the same data give the same bytes");
    CHECK_INT(count(svg, "class=\"package\""), 2, "a package, and the memory without CPUs");
    CHECK_INT(count(svg, "class=\"card"), 3, "a card for each node");
    CHECK_INT(count(svg, "class=\"card alone\""), 1, "of which one has no CPUs");
    CHECK_INT(count(svg, "class=\"cache\""), 4, "caches");
    CHECK_INT(count(svg, "class=\"core k0"), 16, "and cores");
    CHECK(strstr(svg, ">core 1: CPUs 1,17, not available to the daemon</title>"),
          "a core names its CPUs and whether they may be used");
    CHECK(strstr(svg, ">90.0 ns<") && strstr(svg, ">50.0 GB/s<") && strstr(svg, ">from node 0<"),
          "nodes have their values, and memory alone those from the nearest node");
    CHECK(
        strstr(svg,
               "CPUs of node 0 to memory of node 2: 181.0 ns (177.4 … 184.6), 2.01 times its own"),
        "a cell says what it is");
    CHECK(strstr(svg, "idle latency: run 17"), "the heading says which runs");
    CHECK(!strstr(svg, "<script") && strstr(svg, "&lt;script"), "names are text, not markup");
    CHECK(!strstr(svg, "nan") && !strstr(svg, "inf"), "no coordinate that is no number");
}

static void nothing_measured(void)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    picture_of(&small, false, TOPOLOGY_WIDTH, &out);
    CHECK(strstr(buf_text(&out), "Nothing is measured yet") && !strstr(buf_text(&out), " ns<"),
          "without values the boxes alone");
}

static double width_of(const struct buf *svg)
{
    const char *at = strstr(buf_text(svg), "viewBox=\"0 0 ");
    return at ? atof(at + 13) : 0;
}

static void large_machines(void)
{
    static const struct shape_of_machine machines[] = {
        {"one node", 1, 1, 1, 2, 1, 0, ""},     {"16 sockets", 16, 1, 1, 28, 1, 0, ""},
        {"512 CPUs", 2, 4, 4, 16, 1, 1, "nvm"}, {"GPUs", 1, 1, 1, 72, 1, 8, "gpumemory"},
        {"HBM", 2, 4, 1, 14, 2, 8, "hbm"},      {"4096 CPUs", 16, 4, 4, 16, 1, 0, ""},
        {"128 nodes", 8, 16, 1, 16, 1, 0, ""},
    };
    for (size_t i = 0; i < COUNT_OF(machines); i++) {
        CLEANUP_BUF struct buf wide = BUF_INIT, narrow = BUF_INIT;
        picture_of(&machines[i], true, TOPOLOGY_WIDTH_MAX, &wide);
        picture_of(&machines[i], true, TOPOLOGY_WIDTH_MIN, &narrow);
        CHECK(wide.len < PLOT_BYTES_MAX, "%s: %zu bytes", machines[i].name, wide.len);
        CHECK(width_of(&wide) <= TOPOLOGY_WIDTH_MAX, "%s: as wide as requested, %.0f",
              machines[i].name, width_of(&wide));
        CHECK(width_of(&narrow) <= NARROW_MOST, "%s: on a small screen, %.0f", machines[i].name,
              width_of(&narrow));
        if (strcmp(machines[i].name, "4096 CPUs") == 0)
            CHECK(strstr(buf_text(&wide), "one bar, because there are more than 2048") &&
                      strstr(buf_text(&wide), ">16 cores<"),
                  "too many cores are a bar, and the picture says so");
        if (strcmp(machines[i].name, "128 nodes") == 0)
            CHECK(strstr(buf_text(&wide),
                         "The first 48 nodes of each table are drawn, 80 are left out"),
                  "a table has a limit, and the picture says so");
    }
}

// The title is bold and has capitals: 10.5 px a character. It may be wider than the machine.
static void title_fits(void)
{
    static const struct shape_of_machine tiny = {"two cores", 1, 1, 1, 2, 1, 0, ""};
    char title[120];
    CLEANUP_BUF struct buf svg = BUF_INIT;
    picture_of(&tiny, false, TOPOLOGY_WIDTH, &svg);
    int n = snprintf(title, sizeof title, "nid001234 . %s . 2 CPUs . 1 NUMA node", hostile);
    CHECK(width_of(&svg) >= 10.5 * n, "%d characters in %.0f px", n, width_of(&svg));
}

// Texts of others, of characters of several bytes and of two columns, on a small screen.
static void texts_are_cut_between_characters(void)
{
    static const char name[] = "äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöü",
                      wide[] = "处理器处理器处理器处理器处理器处理器处理器处理器处理器";
    for (int width = 300; width < 320; width++) {
        CLEANUP_BUF struct buf out = BUF_INIT;
        struct topology t CLEANUP(topology_fini);
        struct err err = {0};
        machine_make(&t, &small);
        snprintf(t.cpu_model, sizeof t.cpu_model, "%s", wide);
        const struct topology_picture p = {
            .topology = &t, .node = name, .heading = "äöüäöüäöüäöü · äöüäöüäöüäöü", .width = width};
        CHECK(topology_picture_write(&p, &out, &err) == 0, "%d wide: %s", width, err.text);
        const char *svg = buf_text(&out);
        CHECK(!strstr(svg, "\xef\xbf\xbd") && count(svg, "…") >= 2,
              "%d wide: no half of a character, and what is cut says so", width);
    }
}

int main(void)
{
    boxes_and_values();
    nothing_measured();
    large_machines();
    title_fits();
    texts_are_cut_between_characters();
    return tap_done();
}
