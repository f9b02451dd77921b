// SPDX-License-Identifier: Apache-2.0
// From pages of summaries to findings: what counts, what is left out, and what is said.
#include "analysis/peers/fleet_findings.h"
#include "analysis/peers/fleet_findings_text.h"
#include "analysis/peers/fleet_order.h"
#include "analysis/peers/interned.h"
#include "analysis/peers/table.h"
#include "base/cleanup.h"
#include "tests/unit/analysis/fleet_pages.h"
#include "tests/unit/tap.h"

static struct fleet *fleet_with(int runs_max)
{
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = PAGES_NOW;
    o.runs_max = runs_max ? runs_max : o.runs_max;
    return fleet_new(&o, NULL);
}

static void test_names(void)
{
    struct interned s = {0};
    char text[16];
    CHECK_INT(interned_find(&s, "a"), -1, "nothing is there");
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "n%d", i);
        if (interned_add(&s, text, NULL) != i)
            break;
    }
    CHECK(s.n == 1000 && interned_add(&s, "n7", NULL) == 7 && interned_find(&s, "n999") == 999,
          "1,000 names have their numbers");
    CHECK_INT(interned_find(&s, "n1000"), -1, "others have none");
    interned_fini(&s);
}

static void test_filters(void)
{
    CLEANUP_FLEET struct fleet *f = fleet_with(4);
    unsigned long long seed = 301;
    const struct page_run usual = {.node = "n1", .class = "C", .config = "A", .noise = 0.001};
    for (int i = 0; i < 7; i++) {
        struct page_run r = usual;
        r.id = i + 1;
        r.measured_ms = PAGES_NOW - (7 - i) * PAGES_DAY;
        page_add(f, &r, &seed);
    }
    CHECK(f->runs == 4 && f->one[0].n == 4, "the newest four are kept");
    CHECK(f->one[0].runs[0].id == 7 && f->one[0].runs[3].id == 4, "the newest first");
    struct page_run r = usual;
    r.id = 7;
    r.measured_ms = PAGES_NOW - PAGES_DAY;
    page_add(f, &r, &seed);
    r.id = 8;
    r.failed = true;
    page_add(f, &r, &seed);
    r.failed = false;
    r.disturbed = 0.11;
    page_add(f, &r, &seed);
    r.disturbed = NAN;
    r.forced = true;
    page_add(f, &r, &seed);
    r.forced = false;
    r.bare = true;
    page_add(f, &r, &seed);
    r.bare = false;
    r.class = "";
    page_add(f, &r, &seed);
    r.class = "C";
    r.measured_ms = 0;
    page_add(f, &r, &seed);
    CHECK(f->left_out[LEFT_OUT_REPEATED] == 1 && f->left_out[LEFT_OUT_STATE] == 1 &&
              f->left_out[LEFT_OUT_DISTURBED] == 1 && f->left_out[LEFT_OUT_FORCED] == 1 &&
              f->left_out[LEFT_OUT_METRICS] == 1 && f->left_out[LEFT_OUT_CLASS] == 1 &&
              f->left_out[LEFT_OUT_DATE] == 1 && f->runs == 4,
          "what does not count is counted by reason");
    r.measured_ms = PAGES_NOW + 40 * PAGES_DAY;
    r.id = 9;
    page_add(f, &r, &seed);
    CHECK(f->one[0].runs[0].measured_ms == PAGES_NOW, "a clock that is ahead: measured now");
    int at = 0;
    CHECK_STR(fleet_facts_wanted(f, &at), "C", "facts of the class are wanted");
    CHECK_STR(fleet_facts_wanted(f, &at), "A", "and of the set-up");
    CHECK(fleet_facts_wanted(f, &at) == NULL && fleet_facts_wanted(f, &at) == NULL, "no others");
    at = 0;
    page_facts(f, "A", "bios_version=1.9.0 kernel=6.1");
    page_facts(f, "unknown", "x=y");
    fleet_facts_wanted(f, &at);
    CHECK(fleet_facts_wanted(f, &at) == NULL, "what is here is not wanted");
    CHECK_STR(fleet_fact(&f->config_facts[0], "kernel"), "6.1", "a fact");
    CHECK(fleet_fact(&f->config_facts[0], "x") == NULL, "one that is not there");
}

static void test_table(void)
{
    CLEANUP_FLEET struct fleet *f = fleet_with(0);
    unsigned long long seed = 302;
    long left_out[LEFT_OUT_KINDS] = {0};
    struct fleet_table t;
    char name[16];
    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 6; k++) {
            snprintf(name, sizeof name, "n%d", i);
            // n1 got another set-up before its last two runs, n2 was measured a month ago.
            struct page_run r = {.node = name,
                                 .class = "C",
                                 .id = k + 1,
                                 .noise = 0.001,
                                 .config = i == 1 && k >= 4 ? "B" : "A",
                                 .measured_ms =
                                     PAGES_NOW - (6 - k + (i == 2 ? 30 : 0)) * PAGES_DAY};
            page_add(f, &r, &seed);
        }
    CHECK(fleet_table_make(&t, f, 0, left_out, NULL) == 0, "a table");
    CHECK(t.in.nodes == 10 && t.in.metrics == 3 && t.in.probes == 1 && t.in.runs == 6, "its axes");
    CHECK(fleet_table_runs(&t, 0, 0) == 6 && fleet_table_runs(&t, 1, 0) == 2 &&
              fleet_table_runs(&t, 2, 0) == 0,
          "runs with the present set-up, that are not too old");
    CHECK(left_out[LEFT_OUT_SETUP] == 4 && left_out[LEFT_OUT_OLD] == 6 &&
              left_out[LEFT_OUT_RUNS] == 2 && left_out[LEFT_OUT_SMALL] == 0,
          "the others are counted");
    CHECK_STR(fleet_table_metric(&t, f, 2), "bandwidth.triad.peak.gbps", "a metric");
    CHECK(strcmp(fleet_table_unit(&t, f, 2), "GB/s") == 0 && t.more[2] && !t.more[0], "its unit");
    CHECK_INT(fleet_table_run(&t, f, 0, 0, 0)->id, 6, "the newest run");
    CHECK(fleet_table_run(&t, f, 2, 0, 0) != NULL || t.series[2] == -1, "of a node without runs");
    CHECK(fabsf(t.v[0] - 90) < 1 && t.day[0] == 20499, "values and days");
    fleet_table_fini(&t);
}

// 40 nodes; n7 is 6 % slow in one metric and has an older BIOS, n10 to n19 have other DIMMs and are
// 9 % slower, n30 became 3 % slower four days ago, n39 has two runs.
static void fill(struct fleet *f, unsigned long long *seed)
{
    char name[16];
    for (int i = 0; i < 40; i++)
        for (int k = i < 39 ? 0 : 23; k < 25; k++) {
            bool group = i >= 10 && i < 20, slower = i == 30 && k >= 20;
            snprintf(name, sizeof name, "n%02d", i);
            struct page_run r = {.node = name,
                                 .class = "C0FFEE",
                                 .id = k + 1,
                                 .noise = 0.002,
                                 .config = i == 7  ? "OLD"
                                           : group ? "DIMM"
                                                   : "NEW",
                                 .measured_ms = PAGES_NOW - (25 - k) * PAGES_DAY};
            double own = 1 + 0.002 * ((i * 7) % 5 - 2);
            r.factor[0] = own * (group ? 1.09 : 1) * (slower ? 1.03 : 1);
            r.factor[1] = own * (i == 7 ? 1.06 : 1);
            r.factor[2] = own * (group ? 1.08 : 1);
            page_add(f, &r, seed);
        }
    page_facts(f, "NEW", "bios_version=1.9.0 dimms=16x64G kernel=6.1 swappiness=60");
    page_facts(f, "OLD", "bios_version=1.8.2 dimms=16x64G kernel=6.1 swappiness=10");
    page_facts(f, "DIMM", "bios_version=1.9.0 dimms=16x32G kernel=6.1 swappiness=60");
}

static const struct fleet_finding *finding_of(const struct fleet_findings *list,
                                              const struct fleet *f, const char *node)
{
    for (int i = 0; i < list->n; i++)
        if (list->list[i].what != FINDING_GROUP &&
            strcmp(f->nodes.list[list->list[i].nodes[0]], node) == 0)
            return &list->list[i];
    return NULL;
}

static void check_outlier(const struct fleet_findings *list, const struct fleet *f)
{
    CLEANUP_BUF struct buf text = BUF_INIT, sentence = BUF_INIT;
    struct fleet_finding_cells cells;
    const struct fleet_finding *one = finding_of(list, f, "n07");
    CHECK(one && one->what == FINDING_OUTLIER && one->grade == PEERS_SURE,
          "n07 is an outlier, surely");
    if (!one)
        return;
    CHECK_STR(one->metric, "latency.n0.n1.median_ns", "in this metric");
    CHECK(fabs(one->percent - 6) < 1 && one->lo < one->percent && one->percent < one->hi &&
              one->hi - one->lo < 2,
          "by 6 %%: %.2f (%.2f to %.2f)", one->percent, one->lo, one->hi);
    CHECK(one->worse == 1 && one->of == 3 && one->n_peers == 39, "in one of three metrics");
    CHECK(fabs(one->value - 148.4) < 1.5 && fabs(one->peers - 140) < 1 && one->limit > 144 &&
              one->limit < 146,
          "its value, its peers' and the limit");
    CHECK(one->n_runs == 5 && one->runs[0] == 25 && one->since_ms == 0, "its runs; always so");
    CHECK(one->differs.n == 2 && strcmp(one->differs.list[0].name, "bios_version") == 0,
          "it differs from most in two facts, the weightier first");
    fleet_finding_cells(one, f, &cells);
    fleet_finding_differs(one, &text);
    fleet_finding_sentence(one, f, &sentence);
    printf("# %s\n", buf_text(&sentence));
    CHECK_STR(buf_text(&text), "bios_version 1.8.2 (100 % have 1.9.0), 1 more", "in words");
    CHECK(strstr(cells.value, " ns") && strstr(cells.diff, "+") && strstr(cells.diff, " % ±") &&
              strcmp(cells.also, "1/3") == 0 && strcmp(cells.since, "-") == 0,
          "as cells");
}

static const struct fleet_judged *judged_of(const struct fleet_findings *list,
                                            const struct fleet *f, const char *node)
{
    for (int i = 0; i < f->nodes.n; i++)
        if (strcmp(f->nodes.list[i], node) == 0)
            return &list->judged[i];
    return NULL;
}

// Every node has its worst metric, found or not.
static void check_judged(const struct fleet_findings *list, const struct fleet *f)
{
    const struct fleet_judged *slow = judged_of(list, f, "n07"), *was = judged_of(list, f, "n30"),
                              *group = judged_of(list, f, "n12");
    int judged = 0, fine = 0;
    for (int i = 0; i < f->nodes.n; i++) {
        const struct fleet_judged *one = &list->judged[i];
        judged += one->metric != NULL;
        fine += one->metric && one->grade == PEERS_FINE && !one->grouped && fabs(one->worse) < 3;
    }
    CHECK(judged == 39 && fine == 27, "all but one are judged, %d are fine", fine);
    CHECK(slow && slow->grade == PEERS_SURE && fabs(slow->worse - 6) < 1, "n07 is slow");
    CHECK_STR(slow->metric, "latency.n0.n1.median_ns", "in its worst metric");
    CHECK(was && was->grade > PEERS_FINE && fabs(was->worse - 3) < 0.7, "n30 against its past");
    CHECK(group && group->grouped && group->worse > 3, "n12 is of a group, %.1f %% slower",
          group->worse);
}

static void test_findings(void)
{
    CLEANUP_FLEET struct fleet *f = fleet_with(0);
    CLEANUP_BUF struct buf text = BUF_INIT, json = BUF_INIT, left = BUF_INIT;
    unsigned long long seed = 303;
    struct fleet_findings list;
    struct fleet_finding_cells cells;
    fill(f, &seed);
    CHECK(fleet_findings_find(&list, f, NULL) == 0, "findings");
    CHECK(list.n == 3 && list.classes == 1 && list.metrics == 3 && list.nodes == 40, "three");
    CHECK(list.tested == 39 && list.left_out[LEFT_OUT_RUNS] == 1, "a node has too few runs");
    check_outlier(&list, f);
    check_judged(&list, f);
    const struct fleet_finding *slower = finding_of(&list, f, "n30");
    CHECK(slower && slower->what == FINDING_SLOWER && slower->metric_at == 0, "n30 became slower");
    if (slower) {
        CHECK(fabs(slower->percent - 3) < 0.7 && fabs(slower->peers - 90) < 1, "by 3 %%: %.2f",
              slower->percent);
        CHECK(llabs(slower->since_ms - (PAGES_NOW - 5 * PAGES_DAY)) <= PAGES_DAY, "since then");
        fleet_finding_cells(slower, f, &cells);
        CHECK(strstr(cells.since, " Feb"), "on the %s", cells.since);
    }
    const struct fleet_finding *group = &list.list[list.n - 1];
    CHECK(group->what == FINDING_GROUP && group->n_nodes == 10 && group->worse == 2 &&
              group->of == 3,
          "ten nodes are a group, by two metrics");
    fleet_finding_sentence(group, f, &text);
    printf("# %s\n", buf_text(&text));
    CHECK(strstr(buf_text(&text), "10 nodes n[10-19]: ") &&
              strstr(buf_text(&text), ", all of them and no other: dimms 16x32G (others 16x64G)"),
          "because of their DIMMs");
    struct jsonw w = jsonw_to(&json);
    fleet_findings_write_json(&list, f, &w, NULL);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&json), json.len, NULL);
    const struct json *first = json_first(json_get(j, "findings"));
    CHECK(json_count(json_get(j, "findings")) == 3 && json_get_i64(j, "tested_nodes", 0) == 39,
          "as a document");
    CHECK_STR(json_get_text(first, "node", ""), "n07", "the sure and large one first");
    CHECK(json_count(json_get(first, "metrics")) == 1 &&
              strcmp(json_text(json_first(json_get(first, "metrics"))),
                     "latency.n0.n1.median_ns") == 0,
          "with the names of its metrics");
    CHECK(fabs(json_get_number(json_get(first, "worst"), "percent", 0) - 6) < 1,
          "its worst metric");
    CHECK_INT(json_get_i64(json_get(j, "left_out"), "too_few_runs", 0), 1, "what is left out");
    fleet_findings_left_out_text(&list, &left);
    CHECK_STR(buf_text(&left), "1 node has fewer than 3 runs", "in words");
    buf_reset(&text);
    fleet_findings_mirror_text(&list, &text);
    CHECK_STR(buf_text(&text), "no node is as far on the fast side", "the fast side");
    fleet_findings_fini(&list);
}

static int selected(const struct fleet *f, const char *metric, const char *where, int grade)
{
    CLEANUP_NODESET struct nodeset names = {0};
    struct fleet_findings list;
    CHECK(!where || nodeset_parse(&names, where, NULL, NULL) == 0, "names");
    CHECK(fleet_findings_find(&list, f, NULL) == 0, "findings");
    int sure = list.grades[PEERS_SURE], groups = list.groups;
    const struct fleet_findings_filter filter = {metric, where ? &names : NULL, grade};
    fleet_findings_select(&list, f, &filter);
    CHECK(list.grades[PEERS_SURE] == sure && list.groups == groups, "the counts are of all");
    int n = list.n;
    fleet_findings_fini(&list);
    return n;
}

static void test_selected_findings(void)
{
    CLEANUP_FLEET struct fleet *f = fleet_with(0);
    unsigned long long seed = 303;
    fill(f, &seed);
    CHECK_INT(selected(f, NULL, NULL, PEERS_FINE), 3, "without a filter: all");
    CHECK_INT(selected(f, "latency.n0.n1.median_ns", NULL, PEERS_FINE), 1, "n07");
    CHECK_INT(selected(f, "latency.local.dram.median_ns", NULL, PEERS_FINE), 2, "n30, the group");
    CHECK_INT(selected(f, "bandwidth.triad.peak.gbps", NULL, PEERS_FINE), 1,
              "the group, by a metric that is not its worst one");
    CHECK_INT(selected(f, "no.such", NULL, PEERS_FINE), 0, "of another metric");
    CHECK_INT(selected(f, NULL, "n[0-9]", PEERS_FINE), 0, "names are whole: n7 is not n07");
    CHECK_INT(selected(f, NULL, "n[00-12]", PEERS_FINE), 2, "a node of the group is enough");
    CHECK_INT(selected(f, NULL, "n[00-12]", PEERS_SURE), 1, "a group has no grade");
    CHECK_INT(selected(f, NULL, NULL, PEERS_SUSPECT) + selected(f, NULL, NULL, PEERS_SURE), 2,
              "each other one has one");
}

static const struct fleet_place *place_in(const struct fleet_place *list, int n, const char *metric)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].metric, metric) == 0)
            return &list[i];
    return NULL;
}

static void test_places(void)
{
    CLEANUP_FLEET struct fleet *f = fleet_with(0);
    CLEANUP_MEM struct fleet_place *slow = NULL, *group = NULL;
    unsigned long long seed = 303;
    fill(f, &seed);
    int n = fleet_places_find(&slow, f, interned_find(&f->nodes, "n07"), NULL);
    const struct fleet_place *one = place_in(slow, n, "latency.n0.n1.median_ns");
    CHECK(n == 3 && one, "its metrics");
    CHECK(one && one->percentile == 100 && one->z > 5, "the slowest of its peers, z %.1f",
          one ? one->z : 0);
    double sum = 0;
    for (int i = 20; i < 40; i++) {
        CLEANUP_MEM struct fleet_place *list = NULL;
        char name[8];
        snprintf(name, sizeof name, "n%02d", i);
        n = fleet_places_find(&list, f, interned_find(&f->nodes, name), NULL);
        const struct fleet_place *other = place_in(list, n, "latency.n0.n1.median_ns");
        if (other && isfinite(other->percentile)) {
            CHECK(other->percentile >= 0 && other->percentile < 100, "all others are below it");
            CHECK((other->z > 0) == (other->worse > 0), "z has the sign of the difference");
            sum += other->percentile;
        }
    }
    CHECK(sum > 0, "they are spread");
    n = fleet_places_find(&group, f, interned_find(&f->nodes, "n12"), NULL);
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(group[i].z));
    CHECK(most < 5, "a node of a hidden kind stands among those of its kind");
}

// The same runs in another order of nodes.
static struct fleet *arranged(bool backwards)
{
    struct fleet *f = fleet_with(0);
    char name[16];
    for (int at = 0; at < 24; at++) {
        int i = backwards ? 23 - at : at;
        unsigned long long seed = 400 + (unsigned)i;
        for (int k = 0; k < 5; k++) {
            snprintf(name, sizeof name, "n%02d", i);
            struct page_run r = {.node = name,
                                 .class = i % 2 ? "A" : "C",
                                 .config = i % 3 ? "B" : "D",
                                 .id = k + 1,
                                 .noise = 0.002,
                                 .measured_ms = PAGES_NOW - (5 - k) * PAGES_DAY};
            r.factor[0] = r.factor[1] = r.factor[2] = i == 5 || i == 6 ? 1.2 : 1;
            page_add(f, &r, &seed);
        }
    }
    page_facts(f, "B", "kernel=6.1");
    page_facts(f, "D", "kernel=6.2");
    CHECK(fleet_arrange(f, NULL) == 0, "is arranged");
    return f;
}

static void test_order(void)
{
    CLEANUP_FLEET struct fleet *f = arranged(false);
    CLEANUP_FLEET struct fleet *g = arranged(true);
    CLEANUP_BUF struct buf one = BUF_INIT, other = BUF_INIT;
    struct fleet_findings list;
    struct jsonw w = jsonw_to(&one), v = jsonw_to(&other);
    CHECK(strcmp(g->nodes.list[0], "n00") == 0 && strcmp(g->classes.list[0], "A") == 0 &&
              strcmp(g->configs.list[1], "D") == 0 && interned_find(&g->nodes, "n23") == 23,
          "numbers are in order of the names");
    CHECK(strcmp(fleet_fact(&g->config_facts[1], "kernel"), "6.2") == 0 && g->node[0].class == 1 &&
              g->node[0].config == 1 && g->one[g->node[7].series[0]].node == 7 &&
              g->one[0].runs[0].config == 1,
          "and everything follows them");
    CHECK(fleet_findings_find(&list, f, NULL) == 0 && list.n > 0, "a verdict");
    fleet_findings_write_json(&list, f, &w, NULL);
    fleet_findings_fini(&list);
    CHECK(fleet_findings_find(&list, g, NULL) == 0, "another");
    fleet_findings_write_json(&list, g, &v, NULL);
    fleet_findings_fini(&list);
    CHECK_STR(buf_text(&other), buf_text(&one), "that is the same, whoever responded first");
}

// The last node is slower by 20 % on its newest eight days. Of its runs those of some days lack the
// metric: of `lacking`, one bit each, the newest day is the lowest.
static struct fleet *lacking_fleet(int nodes, unsigned lacking, int days)
{
    struct fleet *f = fleet_with(0);
    unsigned long long seed = 77;
    char name[16];
    for (int i = 0; i < nodes; i++)
        for (int ago = days - 1; ago >= 0; ago--) {
            bool last = i == nodes - 1;
            snprintf(name, sizeof name, "n%02d", i);
            struct page_run r = {.node = name,
                                 .class = "A",
                                 .config = "S",
                                 .id = 100 - ago,
                                 .noise = 0.004,
                                 .factor = {last && ago < 8 ? 1.2 : 1},
                                 .lacking = last && lacking >> ago & 1,
                                 .measured_ms = PAGES_NOW - ago * PAGES_DAY - 1};
            page_add(f, &r, &seed);
        }
    return f;
}

// Of the only finding. Logs: the width of its interval.
static double lacking_width(int nodes, unsigned lacking, int days, struct fleet_finding *out)
{
    CLEANUP_FLEET struct fleet *f = lacking_fleet(nodes, lacking, days);
    struct fleet_findings list;
    *out = (struct fleet_finding){0};
    if (fleet_findings_find(&list, f, NULL) < 0)
        return NAN;
    if (list.n == 1)
        *out = list.list[0];
    fleet_findings_fini(&list);
    return log1p(out->hi / 100) - log1p(out->lo / 100);
}

static void test_lacking(void)
{
    struct fleet_finding one;
    lacking_width(24, 0x3, 12, &one);
    CHECK(one.n_runs == 5 && one.runs[0] == 98 && one.runs[4] == 94,
          "the newest two lack the metric: the evidence is runs 98 to 94, not %d to %d",
          (int)one.runs[0], (int)one.runs[4]);
    double five = lacking_width(24, 0, 5, &one), three = lacking_width(24, 0x5, 5, &one);
    CHECK(one.n_runs == 3 && one.runs[0] == 99 && one.runs[1] == 97 && one.runs[2] == 96,
          "three of five have it: %d", one.n_runs);
    CHECK(three > 1.15 * five && three < 1.35 * five,
          "and the interval is that of three: %.4f, of five %.4f", three, five);
    // Alone, against its past: eight runs that are slower, and so many before.
    double many = lacking_width(1, 0, 28, &one);
    CHECK(one.what == FINDING_SLOWER && one.n_peers == 0, "it is judged by its own past");
    double few = lacking_width(1, 0x3ff00, 28, &one);
    CHECK(one.what == FINDING_SLOWER && few > 1.07 * many && few < 1.13 * many,
          "whose runs count if they have the metric: %.4f, of all %.4f", few, many);
}

static void test_nothing(void)
{
    CLEANUP_FLEET struct fleet *f = fleet_with(0);
    CLEANUP_BUF struct buf json = BUF_INIT;
    struct fleet_findings list;
    CHECK(fleet_findings_find(&list, f, NULL) == 0 && list.n == 0 && list.tested == 0,
          "an empty fleet");
    struct jsonw w = jsonw_to(&json);
    fleet_findings_write_json(&list, f, &w, NULL);
    CHECK(strstr(buf_text(&json), "\"findings\":[]"), "has no findings");
    fleet_findings_fini(&list);
    unsigned long long seed = 304;
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        for (int k = 0; k < 5; k++)
            page_add(f,
                     &(struct page_run){.node = name,
                                        .class = "C",
                                        .id = k + 1,
                                        .measured_ms = PAGES_NOW - k * PAGES_DAY},
                     &seed);
    }
    CHECK(fleet_findings_find(&list, f, NULL) == 0 && list.n == 0 &&
              list.left_out[LEFT_OUT_SMALL] == 5,
          "five nodes are too few, and no set-up is known");
    fleet_findings_fini(&list);
}

int main(void)
{
    test_names();
    test_filters();
    test_table();
    test_findings();
    test_selected_findings();
    test_places();
    test_order();
    test_lacking();
    test_nothing();
    return tap_done();
}
