// SPDX-License-Identifier: Apache-2.0
// Each line keeps the kind of every node, so a look-up costs one byte per line.
#include "virtual/faults.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/str.h"
#include "model/nodeset.h"

static const struct {
    const char *name;
    double value; // default
} table[FAULT_KINDS] = {
    [FAULT_NONE] = {"none", 0},     [FAULT_REFUSES] = {"refuses", 0},
    [FAULT_SILENT] = {"silent", 0}, [FAULT_SLOW] = {"slow", 3},
    [FAULT_DRIPS] = {"drips", 10},  [FAULT_GARBAGE] = {"garbage", 0},
    [FAULT_CUT] = {"cut", 0},       [FAULT_CUTS] = {"cuts", 5},
    [FAULT_LENGTH] = {"length", 0}, [FAULT_ENDLESS] = {"endless", 0},
    [FAULT_JSON] = {"json", 0},     [FAULT_NAME] = {"name", 0},
    [FAULT_COPY] = {"copy", 0},     [FAULT_TEXT] = {"text", 0},
    [FAULT_CLOCK] = {"clock", 240}, [FAULT_GAPS] = {"gaps", 0},
    [FAULT_OLDER] = {"older", 0},   [FAULT_NEWER] = {"newer", 0},
    [FAULT_BUSY] = {"busy", 5},     [FAULT_UNAVAILABLE] = {"unavailable", 5},
    [FAULT_FAILS] = {"fails", 0},   [FAULT_FLAPS] = {"flaps", 2},
};

static const uint8_t mixed[] = {FAULT_REFUSES, FAULT_SILENT,  FAULT_SLOW,
                                FAULT_DRIPS,   FAULT_GARBAGE, FAULT_CUT};

static int fault_bad(struct err *err, const char *line, const char *what)
{
    return err_set(err, ERR_INVALID, "faults", "\"%.80s\": %s", line, what);
}

struct fault_nodes {
    struct nodeset set;
    double share; // below 0: the set counts
};

static void nodes_free(struct fault_nodes *n)
{
    nodeset_free(&n->set);
}

static int read_fault_nodes(const char *text, struct fault_nodes *n, struct err *err)
{
    char number[32];
    size_t len = strlen(text);
    n->share = -1;
    if (len < 2 || text[len - 1] != '%')
        return nodeset_parse(&n->set, text, NULL, err);
    snprintf(number, sizeof number, "%.*s", (int)(len - 1), text);
    if (!str_to_double(number, &n->share) || n->share < 0 || n->share > 100)
        return err_set(err, ERR_INVALID, "faults", "%.80s: must be 0%% to 100%%", text);
    return 0;
}

// "5-20", "5-" or "": always.
static bool read_period(const char *text, struct fault *f)
{
    char first[32];
    double from, until;
    const char *dash = strchr(text, '-');
    f->from_ms = 0;
    f->until_ms = INT64_MAX;
    if (!*text)
        return true;
    snprintf(first, sizeof first, "%.*s", (int)(dash ? dash - text : 0), text);
    if (!dash || !str_to_double(first, &from))
        return false;
    f->from_ms = (int64_t)(from * 1e3);
    if (!dash[1])
        return true;
    if (!str_to_double(dash + 1, &until) || until <= from)
        return false;
    f->until_ms = (int64_t)(until * 1e3);
    return true;
}

static int find_kind(const char *name)
{
    for (int k = 1; k < FAULT_KINDS; k++)
        if (strcmp(table[k].name, name) == 0)
            return k;
    return -1;
}

// Which nodes a share takes depends on the seed and on the line.
static bool in_share(const struct world *w, int line, int node, double share)
{
    const int64_t of[] = {world_get_options(w)->seed, line, node};
    return (double)(hash_bytes(of, sizeof of) % 10000) < share * 100;
}

static int set_kinds(struct fault *f, int line, const struct fault_nodes *nodes, int kind,
                     const struct world *w, struct err *err)
{
    int n = (int)world_get_options(w)->nodes, found = 0;
    char name[WORLD_NAME_ROOM];
    f->kinds = calloc((size_t)n, 1);
    if (!f->kinds)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for faults");
    for (int i = 0; i < n; i++) {
        world_name(w, i, name);
        if (nodes->share < 0 ? !nodeset_has(&nodes->set, name)
                             : !in_share(w, line, i, nodes->share))
            continue;
        f->kinds[i] = kind < 0 ? mixed[(size_t)found % COUNT_OF(mixed)] : (uint8_t)kind;
        found++;
    }
    f->flaps = memchr(f->kinds, FAULT_FLAPS, (size_t)n) != NULL;
    f->listens = f->flaps || memchr(f->kinds, FAULT_REFUSES, (size_t)n) != NULL;
    return 0;
}

static int read_line(struct faults *f, const char *line, const struct world *w, struct err *err)
{
    char nodes_text[1200] = "", name[40] = "", period[40] = "", rest[2] = "";
    struct fault_nodes nodes CLEANUP(nodes_free) = {0};
    struct fault *one = &f->list[f->n];
    if (sscanf(line, " %1199s %39s %39s %1s", nodes_text, name, period, rest) < 2 || *rest)
        return fault_bad(err, line, "must be NODES FAULT[=VALUE] [FROM-[UNTIL]]");
    if (f->n == FAULTS_MAX)
        return fault_bad(err, line, "is one line too many");
    char *value = strchr(name, '=');
    if (value)
        *value++ = '\0';
    int kind = find_kind(name);
    if (kind < 0 && strcmp(name, "mixed") != 0)
        return fault_bad(err, line, "is no fault that we know");
    one->value = kind < 0 ? table[FAULT_DRIPS].value : table[kind].value;
    if (value && (!str_to_double(value, &one->value) || !(one->value > 0) || one->value > 1e6))
        return fault_bad(err, line, "its value must be above 0");
    if (!read_period(period, one))
        return fault_bad(err, line, "the period must be FROM-UNTIL or FROM-, in seconds");
    if (read_fault_nodes(nodes_text, &nodes, err) < 0 ||
        set_kinds(one, f->n, &nodes, kind, w, err) < 0)
        return -1;
    f->n++;
    return 0;
}

int faults_read(struct faults *f, const char *text, const struct world *w, struct err *err)
{
    char line[1400];
    while (*text) {
        size_t n = strcspn(text, ";\n");
        if (n >= sizeof line)
            return fault_bad(err, text, "is too long");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        size_t blank = strspn(line, " \t");
        if (line[blank] && line[blank] != '#' && read_line(f, line, w, err) < 0)
            return -1;
        text += n + (text[n] != '\0');
    }
    return 0;
}

void faults_free(struct faults *f)
{
    for (int i = 0; i < f->n; i++)
        free(f->list[i].kinds);
    f->n = 0;
}

static bool fault_flaps(const struct fault *f, int64_t since_ms)
{
    return (since_ms - f->from_ms) / (int64_t)(f->value * 1e3) % 2 == 0;
}

enum fault_kind faults_now(const struct faults *f, int node, int64_t since_ms, double *value)
{
    for (int i = 0; i < f->n; i++) {
        const struct fault *one = &f->list[i];
        if (!one->kinds[node] || since_ms < one->from_ms || since_ms >= one->until_ms)
            continue;
        *value = one->value;
        if (one->kinds[node] == FAULT_FLAPS)
            return fault_flaps(one, since_ms) ? FAULT_REFUSES : FAULT_NONE;
        return (enum fault_kind)one->kinds[node];
    }
    return FAULT_NONE;
}

bool faults_refuses(const struct faults *f, int node, int64_t since_ms)
{
    double value;
    return faults_now(f, node, since_ms, &value) == FAULT_REFUSES;
}

static int64_t fault_next_change(const struct fault *f, int64_t since_ms, bool flaps)
{
    int64_t period = (int64_t)(f->value * 1e3);
    if (since_ms < f->from_ms)
        return f->from_ms;
    if (since_ms >= f->until_ms)
        return INT64_MAX;
    int64_t next = flaps ? f->from_ms + ((since_ms - f->from_ms) / period + 1) * period : INT64_MAX;
    return next < f->until_ms ? next : f->until_ms;
}

int64_t faults_next_change(const struct faults *f, int64_t since_ms)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < f->n; i++) {
        int64_t one = fault_next_change(&f->list[i], since_ms, f->list[i].flaps);
        if (f->list[i].listens && one < next)
            next = one;
    }
    return next;
}

void faults_write_json(const struct faults *f, const struct world *w, struct jsonw *out)
{
    jsonw_array(out, "faults");
    for (int i = 0; i < f->n; i++)
        for (int k = 1; k < FAULT_KINDS; k++) {
            CLEANUP_NODESET struct nodeset set = {0};
            CLEANUP_BUF struct buf folded = BUF_INIT;
            char name[WORLD_NAME_ROOM];
            for (int node = 0; node < world_get_options(w)->nodes; node++)
                if (f->list[i].kinds[node] == k) {
                    world_name(w, node, name);
                    nodeset_add(&set, name, NULL);
                }
            if (!set.n)
                continue;
            nodeset_sort(&set);
            nodeset_fold(&set, &folded);
            jsonw_object(out, NULL);
            jsonw_text(out, "fault", table[k].name);
            jsonw_text(out, "nodes", buf_text(&folded));
            jsonw_fixed(out, "value", f->list[i].value, 3);
            jsonw_fixed(out, "from_s", (double)f->list[i].from_ms / 1e3, 3);
            jsonw_fixed(out, "until_s",
                        f->list[i].until_ms == INT64_MAX ? NAN : (double)f->list[i].until_ms / 1e3,
                        3);
            jsonw_end(out);
        }
    jsonw_end(out);
}
