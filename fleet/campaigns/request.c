// SPDX-License-Identifier: Apache-2.0
// One function per member, in one table. A member that is not in the table is refused: a limit with
// a typing error must not be no limit.
#include "fleet/campaigns/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "model/spec.h"
#include "model/spec_request.h"

static const char *const each_by_names[] = {"", "rack", "class", "prefix", NULL};
static const char *const order_names[] = {"stalest", "name", NULL};
static const char *const through_names[] = {"daemon", "slurm", NULL};

struct member {
    const char *name;
    int (*read)(struct campaign_request *r, const struct json *v, const char *name,
                struct err *err);
};

static int member_unknown(const char *path, const struct member *list, struct err *err)
{
    CLEANUP_BUF struct buf names = BUF_INIT;
    for (const struct member *m = list; m->name; m++)
        buf_fmt(&names, "%s%s", m == list ? "" : ", ", m->name);
    return err_set(err, ERR_INVALID, path, "is unknown; the members are %s", buf_text(&names));
}

static int read_members(struct campaign_request *r, const struct json *object, const char *within,
                        const struct member *list, struct err *err)
{
    for (const struct json *v = json_first(object); v; v = json_next(v)) {
        char path[CAMPAIGN_NAME];
        const struct member *m = list;
        snprintf(path, sizeof path, "%s%s%.30s", within, *within ? "." : "", json_name(v));
        while (m->name && strcmp(m->name, json_name(v)) != 0)
            m++;
        if (!m->name)
            return member_unknown(path, list, err);
        if (m->read(r, v, path, err) < 0)
            return -1;
    }
    return 0;
}

static int member_whole(const struct json *v, const char *name, int64_t least, int64_t most,
                        int64_t *out, struct err *err)
{
    int64_t got;
    if (!json_i64(v, &got) || got < least || got > most)
        return err_set(err, ERR_INVALID, name, "must be a whole number from %lld to %lld",
                       (long long)least, (long long)most);
    *out = got;
    return 0;
}

static int member_choice(const struct json *v, const char *name, const char *const *choices,
                         int *out, struct err *err)
{
    CLEANUP_BUF struct buf list = BUF_INIT;
    const char *text = json_text(v);
    for (int i = 0; choices[i]; i++) {
        if (text && *text && strcmp(text, choices[i]) == 0) {
            *out = i;
            return 0;
        }
        buf_fmt(&list, "%s%s", list.len ? ", " : "", choices[i]);
    }
    return err_set(err, ERR_INVALID, name, "must be one of: %s", buf_text(&list));
}

// "12h" as ms; 0: it is none.
static int64_t duration_ms(const char *text)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}, {'w', 604800000}};
    char digits[8] = "";
    int64_t n = 0;
    size_t len = text ? strlen(text) : 0;
    if (len > 1 && len < sizeof digits)
        memcpy(digits, text, len - 1);
    for (size_t i = 0; *digits && str_to_i64(digits, &n) && n > 0 && i < COUNT_OF(units); i++)
        if (text[len - 1] == units[i].unit)
            return n * units[i].ms;
    return 0;
}

// `least`: as a user writes it.
static int member_duration(const struct json *v, const char *name, const char *least, int64_t *ms,
                           struct err *err)
{
    static const char most[] = "366d";
    const char *text = json_text(v);
    int64_t got = duration_ms(text);
    if (got < duration_ms(least) || got > duration_ms(most))
        return err_set(err, ERR_INVALID, name,
                       "must be a duration such as \"12h\" or \"7d\" (s, m, h, d, w), from %s to "
                       "%s%s%.20s%s",
                       least, most, text ? ", got \"" : "", text ? text : "", text ? "\"" : "");
    *ms = got;
    return 0;
}

// ---- Members ------------------------------------------------------------------------------------

static int member_name(struct campaign_request *r, const struct json *v, const char *name,
                       struct err *err)
{
    const char *text = json_text(v);
    if (!text || !*text || strlen(text) >= sizeof r->name || nodeset_name_check(text, NULL) < 0)
        return err_set(
            err, ERR_INVALID, name,
            "must be 1 to %zu letters, digits, '.', '-' and '_', and no '-' or '.' first",
            sizeof r->name - 1);
    snprintf(r->name, sizeof r->name, "%s", text);
    return 0;
}

static int member_nodes(struct campaign_request *r, const struct json *v, const char *name,
                        struct err *err)
{
    struct nodeset got = {0};
    if (!json_text(v))
        return err_set(err, ERR_INVALID, name, "must be a set of nodes such as \"n[1-100]\"");
    if (nodeset_parse_members(&got, json_text(v), NODESET_NAMES_MAX, err) < 0)
        return -1;
    nodeset_free(&r->nodes);
    r->nodes = got;
    return got.n ? 0 : err_set(err, ERR_INVALID, name, "has no node");
}

static int member_spec(struct campaign_request *r, const struct json *v, const char *name,
                       struct err *err)
{
    CLEANUP_MEM struct spec *s = malloc(sizeof *s);
    struct jsonw w = jsonw_to(&r->spec);
    char member[sizeof err->member];
    if (!s)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a specification");
    if (spec_from_json(s, v, NULL, err) < 0 || spec_check_request(s, err) < 0) {
        snprintf(member, sizeof member, "%s%s%.50s", name, *err->member ? "." : "", err->member);
        memcpy(err->member, member, sizeof member);
        return -1;
    }
    if (s->force)
        return err_set(err, ERR_INVALID, "spec.force",
                       "must be false: a campaign never disturbs what a node does");
    if (s->queue_s)
        return err_set(err, ERR_INVALID, "spec.queue_s",
                       "must be 0: the campaign itself comes again to nodes that are busy");
    snprintf(r->benchmark, sizeof r->benchmark, "%s", benchmarks[s->benchmark].name);
    json_write(v, &w, NULL);
    return 0;
}

static int member_at_once(struct campaign_request *r, const struct json *v, const char *name,
                          struct err *err)
{
    int64_t n = 0;
    if (member_whole(v, name, 1, CAMPAIGN_AT_ONCE_MAX, &n, err) < 0)
        return -1;
    r->rules.at_once = (int)n;
    return 0;
}

static int member_each_by(struct campaign_request *r, const struct json *v, const char *name,
                          struct err *err)
{
    return member_choice(v, name, each_by_names + 1, &r->each_by, err) < 0 ? -1 : (r->each_by++, 0);
}

static int member_each_n(struct campaign_request *r, const struct json *v, const char *name,
                         struct err *err)
{
    int64_t n = 0;
    if (member_whole(v, name, 1, CAMPAIGN_AT_ONCE_MAX, &n, err) < 0)
        return -1;
    r->rules.each_n = (int)n;
    return 0;
}

static int member_at_once_each(struct campaign_request *r, const struct json *v, const char *name,
                               struct err *err)
{
    static const struct member members[] = {{"by", member_each_by}, {"n", member_each_n}, {0}};
    if (json_is_object(v) && read_members(r, v, name, members, err) < 0)
        return -1;
    if (!r->each_by || !r->rules.each_n)
        return err_set(err, ERR_INVALID, name, "must have by and n: {\"by\":\"rack\",\"n\":2}");
    return 0;
}

static int member_window(struct campaign_request *r, const struct json *v, const char *name,
                         struct err *err)
{
    if (json_text(v) && hours_parse(&r->rules.window, json_text(v), err) == 0)
        return 0;
    if (!json_text(v))
        err_set(err, ERR_INVALID, name, "must be hours such as \"Sat-Sun 00:00-24:00\"");
    err->code = ERR_INVALID;
    snprintf(err->member, sizeof err->member, "%s", name);
    return -1;
}

static int member_budget(struct campaign_request *r, const struct json *v, const char *name,
                         struct err *err)
{
    enum { MINUTES_MAX = 1000000000 };
    double minutes;
    if (!json_number(v, &minutes) || !(minutes > 0) || minutes > MINUTES_MAX)
        return err_set(err, ERR_INVALID, name,
                       "must be a number of minutes above 0, and at most %d", MINUTES_MAX);
    r->rules.budget_s = 60 * minutes;
    return 0;
}

static int member_each(struct campaign_request *r, const struct json *v, const char *name,
                       struct err *err)
{
    return member_duration(v, name, CAMPAIGN_EACH_LEAST, &r->each_ms, err);
}

static int member_retry(struct campaign_request *r, const struct json *v, const char *name,
                        struct err *err)
{
    return member_duration(v, name, CAMPAIGN_RETRY_LEAST, &r->rules.retry_ms, err);
}

static int member_order(struct campaign_request *r, const struct json *v, const char *name,
                        struct err *err)
{
    return member_choice(v, name, order_names, &r->rules.order, err);
}

static int member_through(struct campaign_request *r, const struct json *v, const char *name,
                          struct err *err)
{
    int through = 0;
    if (member_choice(v, name, through_names, &through, err) < 0)
        return -1;
    r->by_slurm = through;
    return 0;
}

static int member_failed_percent(struct campaign_request *r, const struct json *v, const char *name,
                                 struct err *err)
{
    int64_t n = 0;
    if (member_whole(v, name, 0, 100, &n, err) < 0)
        return -1;
    r->rules.failed_percent = (int)n;
    return 0;
}

static int member_stop_after(struct campaign_request *r, const struct json *v, const char *name,
                             struct err *err)
{
    static const struct member members[] = {{"failed_percent", member_failed_percent}, {0}};
    return json_is_object(v)
               ? read_members(r, v, name, members, err)
               : err_set(err, ERR_INVALID, name, "must be an object: {\"failed_percent\":20}");
}

static int member_dry_run(struct campaign_request *r, const struct json *v, const char *name,
                          struct err *err)
{
    return json_bool(v, &r->dry_run) ? 0 : err_set(err, ERR_INVALID, name, "must be true or false");
}

static const struct member campaign_members[] = {
    {"name", member_name},
    {"nodes", member_nodes},
    {"spec", member_spec},
    {"at_once", member_at_once},
    {"at_once_each", member_at_once_each},
    {"window", member_window},
    {"budget_node_minutes", member_budget},
    {"each", member_each},
    {"retry_for", member_retry},
    {"order", member_order},
    {"through", member_through},
    {"stop_after", member_stop_after},
    {"dry_run", member_dry_run},
    {0},
};

int campaign_request_read(struct campaign_request *out, const struct json *object, struct err *err)
{
    CLEANUP_CAMPAIGN_REQUEST struct campaign_request r = {
        .rules = {.at_once = CAMPAIGN_AT_ONCE,
                  .retry_ms = (int64_t)CAMPAIGN_RETRY_H * 3600 * 1000,
                  .failed_percent = CAMPAIGN_FAILED_PERCENT}};
    if (!json_is_object(object))
        return err_set(err, ERR_INVALID, "", "must be a JSON object: {\"name\":…,\"spec\":{…}}");
    if (read_members(&r, object, "", campaign_members, err) < 0)
        return -1;
    if (!*r.name)
        return err_set(err, ERR_INVALID, "name", "is missing; for example \"weekly\"");
    if (!r.spec.len)
        return err_set(
            err, ERR_INVALID, "spec",
            "is missing; what POST /v1/runs of a node takes: {\"benchmark\":\"latency\"}");
    if (!buf_ok(&r.spec))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a campaign");
    *out = r;
    r = (struct campaign_request){0};
    return 0;
}

void campaign_request_fini(struct campaign_request *r)
{
    nodeset_free(&r->nodes);
    buf_free(&r->spec);
}
