// SPDX-License-Identifier: Apache-2.0
// The text of a refusal may change between versions; the list of parameters (GET /v1/benchmarks)
// and the version (GET /healthz) are members that stay.
#include "client/other_version.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "client/http.h"
#include "client/problem.h"

static const struct json *named(const struct json *list, const char *name)
{
    for (const struct json *v = json_first(list); v; v = json_next(v))
        if (strcmp(json_get_text(v, "name", ""), name) == 0)
            return v;
    return NULL;
}

static bool lists_choice(const struct json *choices, const char *value)
{
    for (const struct json *v = json_first(choices); v; v = json_next(v))
        if (json_text(v) && strcmp(json_text(v), value) == 0)
            return true;
    return false;
}

static bool takes(const struct json *told, const struct spec *s, const char *member)
{
    const struct benchmark *b = &benchmarks[s->benchmark];
    const struct json *theirs = named(json_get(told, "benchmarks"), b->name);
    const struct param *p = spec_param(s, member);
    char value[SPEC_TEXT_MAX];
    if (!theirs || !p)
        return theirs != NULL;
    const struct json *param = named(json_get(theirs, "params"), member);
    if (!param && !(param = named(json_get(told, "common"), member)))
        return false;
    if (!json_get(param, "choices"))
        return true;
    param_get_text(p, s, value, sizeof value);
    return lists_choice(json_get(param, "choices"), value);
}

enum other_version_lists other_version_lists(const struct json *told, const struct spec *s,
                                             const char *member)
{
    if (!json_first(json_get(told, "benchmarks")))
        return LISTS_NOTHING;
    return takes(told, s, member) ? LISTS_IT : LISTS_ANOTHER;
}

bool other_version_text(enum other_version_lists lists, const struct json *alive, char *text,
                        size_t room)
{
    static const char *const advice = "leave out what it does not know, or update it";
    const char *version = json_get_text(alive, "version", "");
    bool other = *version && strcmp(version, NUMAPROBE_VERSION) != 0;
    if (lists == LISTS_IT || (lists == LISTS_NOTHING && !other))
        return false;
    if (other)
        snprintf(text, room,
                 "numaprobed is version %.40s, this numaprobe " NUMAPROBE_VERSION ": %s", version,
                 advice);
    else
        snprintf(text, room, "numaprobed is of another version than this numaprobe: %s", advice);
    return true;
}

void other_version_hint(const struct cli *c, const struct spec *s, const char *member)
{
    static char text[OTHER_VERSION_ROOM]; // it is printed behind the error
    CLEANUP_JSON struct json *told = NULL, *alive = NULL;
    struct err none; // what cannot be read says nothing of the version
    if (http_json(c, "GET", "/v1/benchmarks", NULL, &told, &none) < 0)
        told = NULL;
    enum other_version_lists lists = other_version_lists(told, s, member);
    if (lists == LISTS_IT)
        return;
    if (http_json(c, "GET", "/healthz", NULL, &alive, &none) < 0)
        alive = NULL;
    if (other_version_text(lists, alive, text, sizeof text))
        problem_hint(text);
}
