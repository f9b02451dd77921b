// SPDX-License-Identifier: Apache-2.0
// A label that is no text, or a target that is no host, makes the document wrong as a whole: a list
// that is understood in part would let nodes disappear.
#include "nodes/sd.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "nodes/named.h"

struct sd_group {
    const struct json *targets;
    const char *node, *scheme, *class_hint, *partition;
};

static int sd_labels(struct sd_group *g, const struct json *labels, struct err *err)
{
    const struct {
        const char *label, **value;
    } known[] = {{"node", &g->node},
                 {"__scheme__", &g->scheme},
                 {"class", &g->class_hint},
                 {"partition", &g->partition}};
    if (labels && !json_is_object(labels))
        return err_set(err, ERR_INVALID, "labels", "labels must be an object of texts");
    for (const struct json *l = json_first(labels); l; l = json_next(l)) {
        if (!json_text(l))
            return err_set(err, ERR_INVALID, "labels", "label %.60s must be a text", json_name(l));
        for (size_t i = 0; i < COUNT_OF(known); i++)
            if (strcmp(json_name(l), known[i].label) == 0)
                *known[i].value = json_text(l);
    }
    if (g->node && json_count(g->targets) != 1)
        return err_set(err, ERR_INVALID, "labels",
                       "label node names one node, and there are %d targets",
                       json_count(g->targets));
    if (g->scheme && strcmp(g->scheme, "http") != 0 && strcmp(g->scheme, "https") != 0)
        return err_set(err, ERR_INVALID, "labels", "label __scheme__ must be http or https");
    return 0;
}

static int sd_target(const struct sd_group *g, const char *target, struct buf *out, struct err *err)
{
    char url[NAMED_URL_MAX + 1], host[NAMED_URL_MAX + 1];
    if (!target || !*target || strchr(target, '@'))
        return err_set(err, ERR_INVALID, "targets",
                       "a target must be a text, HOST:PORT, without a user");
    if (strpbrk(target, "/?#%\\") ||
        snprintf(url, sizeof url, "%s%s//%s", g->scheme ? g->scheme : "", g->scheme ? ":" : "",
                 target) >= (int)sizeof url)
        return err_set(err, ERR_INVALID, "targets", "the target \"%.60s\" must be HOST:PORT",
                       target);
    snprintf(host, sizeof host, "%.*s", (int)(*target == '[' ? 0 : strcspn(target, ":")), target);
    if (!g->node && !*host)
        return err_set(
            err, ERR_INVALID, "targets",
            "the target \"%.60s\" has no host that could name the node; label it with node",
            target);
    const struct named_node node = {.name = g->node ? g->node : host,
                                    .url = url,
                                    .class_hint = g->class_hint,
                                    .partitions = g->partition};
    return named_write(out, &node, err);
}

static int sd_group(const struct json *group, struct buf *out, struct err *err)
{
    struct sd_group g = {.targets = json_get(group, "targets")};
    if (!json_is_object(group) || !json_is_array(g.targets))
        return err_set(err, ERR_INVALID, "targets",
                       "a group must be {\"targets\": [\"HOST:PORT\"], \"labels\": {}}");
    if (sd_labels(&g, json_get(group, "labels"), err) < 0)
        return -1;
    for (const struct json *t = json_first(g.targets); t; t = json_next(t))
        if (sd_target(&g, json_text(t), out, err) < 0)
            return -1;
    return 0;
}

int sd_named(const char *text, size_t n, struct buf *out, struct err *err)
{
    CLEANUP_JSON struct json *root = json_parse_within(text, n, SD_MEMORY_MAX, err);
    if (!root)
        return -1;
    if (!json_is_array(root))
        return err_set(err, ERR_INVALID, "", "must be a list of groups of targets");
    int number = 1;
    for (const struct json *group = json_first(root); group; group = json_next(group), number++)
        if (sd_group(group, out, err) < 0)
            return err_prefix(err, "group %d", number);
    return 0;
}
