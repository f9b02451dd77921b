// SPDX-License-Identifier: Apache-2.0
// Interleaved memory is a number beyond all nodes: a bit for the kind, and a bit for each node.
// Such numbers stand where those of nodes do, in lists of targets, on axes and in paths.
#include "model/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { INTERLEAVED = 1 << 30, WEIGHTED = 1 << 29, NODES_MASK = (1 << TARGET_NODES) - 1 };

static const struct {
    const char *prefix, *words;
    char letter;
} kinds[] = {{"interleave:", "interleaved", 'i'}, {"weighted:", "interleaved by weight", 'w'}};

bool target_is_interleaved(int64_t target)
{
    return target >= INTERLEAVED && target <= (INTERLEAVED | WEIGHTED | NODES_MASK);
}

bool target_is_weighted(int64_t target)
{
    return target_is_interleaved(target) && (target & WEIGHTED);
}

int target_interleaved(unsigned nodes, bool weighted)
{
    return (int)(INTERLEAVED | (weighted ? WEIGHTED : 0) | (nodes & NODES_MASK));
}

unsigned target_nodes(int target)
{
    return target_is_interleaved(target) ? (unsigned)target & NODES_MASK : 0;
}

bool target_has(int target, int node)
{
    if (!target_is_interleaved(target))
        return target == node;
    return node >= 0 && node < TARGET_NODES && target_nodes(target) >> node & 1;
}

double target_share(int target, int node, const int *weights)
{
    double sum = 0, own = 0;
    if (!target_is_interleaved(target))
        return target == node;
    for (int i = 0; i < TARGET_NODES; i++) {
        bool counts = weights && target_is_weighted(target) && weights[i] > 0;
        double weight = !target_has(target, i) ? 0 : counts ? weights[i] : 1;
        sum += weight;
        own += i == node ? weight : 0;
    }
    return sum > 0 ? own / sum : 0;
}

// "0-3"
static void node_list(int64_t target, char *out, size_t room)
{
    int ids[TARGET_NODES], n = 0;
    for (int i = 0; i < TARGET_NODES; i++)
        if (target_has((int)target, i))
            ids[n++] = i;
    str_from_ids(ids, n, out, room);
}

void target_label(int64_t target, char *out, size_t room)
{
    char nodes[TARGET_LABEL_ROOM];
    if (target_is_interleaved(target)) {
        node_list(target, nodes, sizeof nodes);
        snprintf(out, room, "%s%s", kinds[target_is_weighted(target)].prefix, nodes);
    } else if (target < 0) {
        snprintf(out, room, "own");
    } else {
        snprintf(out, room, "%lld", (long long)target);
    }
}

void target_words(int64_t target, char *out, size_t room)
{
    char nodes[TARGET_LABEL_ROOM];
    node_list(target, nodes, sizeof nodes);
    if (target_is_interleaved(target))
        snprintf(out, room, "node%s %s, %s", str_plural_of(nodes), nodes,
                 kinds[target_is_weighted(target)].words);
    else
        snprintf(out, room, "node %lld", (long long)target);
}

void target_metric(int64_t target, char *out, size_t room)
{
    char nodes[TARGET_LABEL_ROOM];
    if (!target_is_interleaved(target)) {
        snprintf(out, room, "n%lld", (long long)target);
        return;
    }
    node_list(target, nodes, sizeof nodes);
    for (char *p = nodes; *p; p++)
        *p = *p == ',' ? '_' : *p;
    snprintf(out, room, "%c%s", kinds[target_is_weighted(target)].letter, nodes);
}

// --- Text ----------------------------------------------------------------------------------------

static int kind_of_text(const char *text)
{
    for (int i = 0; i < (int)COUNT_OF(kinds); i++)
        if (str_starts(text, kinds[i].prefix))
            return i;
    return -1;
}

bool target_is_policy(const char *text)
{
    return kind_of_text(text) >= 0 && !strchr(text, '+');
}

static int add_target(struct target_list *out, int target, const char *member, struct err *err)
{
    char label[TARGET_LABEL_ROOM];
    for (int i = 0; i < out->n; i++)
        if (out->list[i] == target) {
            target_label(target, label, sizeof label);
            return err_set(err, ERR_INVALID, member, "has %s twice", label);
        }
    if (out->n == TARGETS_MAX)
        return err_set(err, ERR_INVALID, member, "has more than %d targets", TARGETS_MAX);
    out->list[out->n++] = target;
    return 0;
}

// "0=3,1=1"
static int read_weights(struct target_list *out, char *text, unsigned *nodes, const char *member,
                        struct err *err)
{
    char *rest = NULL;
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        int node, weight, used = 0;
        if (item[strspn(item, "0123456789=")] || // sscanf() takes blanks and any length
            sscanf(item, "%9d=%9d%n", &node, &weight, &used) != 2 || item[used] ||
            node >= TARGET_NODES || weight < 1 || weight > TARGET_WEIGHT_MAX)
            return err_set(err, ERR_INVALID, member,
                           "\"%.40s\" is no NODE=WEIGHT with a node below %d and a weight of 1 to "
                           "%d",
                           item, TARGET_NODES, TARGET_WEIGHT_MAX);
        if (*nodes >> node & 1)
            return err_set(err, ERR_INVALID, member, "gives node %d two weights", node);
        *nodes |= 1u << node;
        out->weights[node] = weight;
    }
    return *nodes ? 0 : err_set(err, ERR_INVALID, member, "names no nodes to interleave over");
}

static int read_nodes(const char *text, unsigned *nodes, const char *member, struct err *err)
{
    CLEANUP_MEM int *ids = NULL;
    int n;
    if (strcmp(text, "all") == 0)
        return 0;
    if (str_to_ids(text, false, TARGETS_MAX, member, &ids, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if (ids[i] >= TARGET_NODES)
            return err_set(err, ERR_INVALID, member,
                           "node %d: memory can be interleaved over nodes below %d", ids[i],
                           TARGET_NODES);
        *nodes |= 1u << ids[i];
    }
    return 0;
}

static int read_interleaved(struct target_list *out, int kind, char *text, const char *member,
                            struct err *err)
{
    char *list = text + strlen(kinds[kind].prefix);
    unsigned nodes = 0;
    bool weights = kind == 1 && strchr(list, '=');
    if ((weights ? read_weights(out, list, &nodes, member, err)
                 : read_nodes(list, &nodes, member, err)) < 0)
        return -1;
    return add_target(out, target_interleaved(nodes, kind == 1), member, err);
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int read_plain(struct target_list *out, const char *text, const char *member,
                      struct err *err)
{
    CLEANUP_MEM int *ids = NULL;
    int n = 0;
    if (strcmp(text, "all") == 0) {
        out->all = true;
        return 0;
    }
    if (str_to_ids(text, false, TARGETS_MAX, member, &ids, &n, err) < 0)
        return -1;
    qsort(ids, (size_t)n, sizeof *ids, by_value);
    for (int i = 0; i < n; i++)
        if (add_target(out, ids[i], member, err) < 0)
            return -1;
    return 0;
}

int targets_read(struct target_list *out, const char *text, const char *member, struct err *err)
{
    struct target_list got = {0};
    CLEANUP_MEM char *copy = strdup(text);
    char *at = copy, *part;
    bool first = true;
    if (!copy)
        return err_set(err, ERR_NO_MEMORY, member, "no memory for a list");
    while ((part = strsep(&at, "+"))) {
        int kind = kind_of_text(part);
        if (kind < 0 && !first)
            return err_set(err, ERR_INVALID, member,
                           "has \"%.40s\" behind a +: interleave:NODES or weighted:NODES may "
                           "follow the nodes",
                           part);
        if ((kind >= 0 ? read_interleaved(&got, kind, part, member, err)
                       : read_plain(&got, part, member, err)) < 0)
            return -1;
        first = false;
    }
    *out = got;
    return 0;
}

// Weights count by their ratio.
static int check_weights(const struct target_list *l, const int *kernel, const char *member,
                         struct err *err)
{
    int first = -1, any = 0;
    bool weighted = false;
    for (int i = 0; i < l->n; i++)
        weighted |= target_is_weighted(l->list[i]);
    for (int i = 0; i < TARGET_NODES; i++)
        any |= kernel[i];
    if (!weighted)
        return 0;
    if (!any)
        return err_set(err, ERR_INVALID, member,
                       "is weighted, which this kernel does not offer (Linux 6.9): use interleave");
    for (int i = 0; i < TARGET_NODES; i++) {
        if (!l->weights[i])
            continue;
        first = first < 0 ? i : first;
        if (l->weights[i] * kernel[first] != l->weights[first] * kernel[i])
            return err_set(err, ERR_INVALID, member,
                           "has the weights %d=%d,%d=%d, the kernel has %d=%d,%d=%d: write them to "
                           "/sys/kernel/mm/mempolicy/weighted_interleave/node%d",
                           first, l->weights[first], i, l->weights[i], first, kernel[first], i,
                           kernel[i], i);
    }
    return 0;
}

int target_settle(int *target, const struct target_list *l, const struct target_machine *m,
                  const char *member, struct err *err)
{
    unsigned all = 0;
    if (!target_is_interleaved(*target))
        return m->check(m->ctx, *target, member, err);
    for (int i = 0; i < m->n; i++)
        all |= m->nodes[i] < TARGET_NODES ? 1u << m->nodes[i] : 0;
    if (!target_nodes(*target))
        *target = target_interleaved(all, target_is_weighted(*target));
    if (!target_nodes(*target))
        return m->check(m->ctx, -1, member, err);
    for (int node = 0; node < TARGET_NODES; node++)
        if (target_has(*target, node) && m->check(m->ctx, node, member, err) < 0)
            return -1;
    return check_weights(l, m->weights, member, err);
}

int targets_settle(int *out, int *n, const struct target_list *l, const struct target_machine *m,
                   const char *member, struct err *err)
{
    int got = 0;
    for (int i = 0; l->all && i < m->n && got < TARGETS_MAX; i++)
        out[got++] = m->nodes[i];
    for (int i = 0; i < l->n && got < TARGETS_MAX; i++) {
        int target = l->list[i];
        if (target_settle(&target, l, m, member, err) < 0)
            return -1;
        for (int k = 0; k < got; k++)
            if (out[k] == target)
                return err_set(err, ERR_INVALID, member, "has the same memory twice");
        out[got++] = target;
    }
    *n = got;
    return got ? 0 : m->check(m->ctx, -1, member, err);
}

void targets_write(const int *list, int n, char *out, size_t room)
{
    int ids[TARGETS_MAX] = {0}, n_ids = 0;
    char label[TARGET_LABEL_ROOM];
    for (int i = 0; i < n && !target_is_interleaved(list[i]); i++)
        ids[n_ids++] = list[i];
    str_from_ids(ids, n_ids, out, room);
    for (int i = n_ids; i < n; i++) {
        size_t used = strlen(out);
        target_label(list[i], label, sizeof label);
        snprintf(out + used, room - used, "%s%s", used ? "+" : "", label);
    }
}
