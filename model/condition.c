// SPDX-License-Identifier: Apache-2.0
// Conditions are kept in the order of events. When the list is full, the least severe one is
// left out, and counted.
#include "model/condition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const severity_names[SEVERITIES] = {"info", "notice", "warning", "error"};

const struct condition_info condition_kinds[CONDITION_KINDS] = {
#define CONDITION_ROW(id, name, severity) {name, SEVERITY_##severity},
    CONDITION_LIST(CONDITION_ROW)
#undef CONDITION_ROW
};

enum condition_kind condition_find(const char *name)
{
    for (int k = 0; k < CONDITION_KINDS; k++)
        if (strcmp(condition_kinds[k].name, name) == 0)
            return (enum condition_kind)k;
    return CONDITION_OTHER;
}

void condition_vset(struct condition *c, enum condition_kind kind, int64_t rank, const char *fmt,
                    va_list ap)
{
    *c = (struct condition){.kind = kind, .severity = condition_kinds[kind].severity, .rank = rank};
    vsnprintf(c->text, sizeof c->text, fmt, ap);
}

void condition_set(struct condition *c, enum condition_kind kind, int64_t rank, const char *fmt,
                   ...)
{
    va_list ap;
    va_start(ap, fmt);
    condition_vset(c, kind, rank, fmt, ap);
    va_end(ap);
}

void condition_write_members(const struct condition *c, struct jsonw *w)
{
    jsonw_text(w, "kind", condition_kinds[c->kind].name);
    jsonw_text(w, "severity", severity_names[c->severity]);
    if (c->rank >= 0)
        jsonw_i64(w, "rank", c->rank);
    else
        jsonw_null(w, "rank");
    jsonw_text(w, "text", c->text);
}

void condition_write_json(const struct condition *c, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    condition_write_members(c, w);
    jsonw_end(w);
}

void conditions_put(struct conditions *c, const struct condition *one)
{
    if (c->n < CONDITIONS_KEPT) {
        c->list[c->n++] = *one;
        return;
    }
    int least = c->n - 1;
    for (int i = c->n - 1; i >= 0; i--)
        if (c->list[i].severity < c->list[least].severity)
            least = i;
    c->left_out++;
    if (c->list[least].severity >= one->severity)
        return;
    size_t after = (size_t)(c->n - 1 - least);
    memmove(&c->list[least], &c->list[least + 1], after * sizeof c->list[0]);
    c->list[c->n - 1] = *one;
}

void conditions_add(struct conditions *c, enum condition_kind kind, int64_t rank, const char *fmt,
                    ...)
{
    struct condition one;
    va_list ap;
    va_start(ap, fmt);
    condition_vset(&one, kind, rank, fmt, ap);
    va_end(ap);
    conditions_put(c, &one);
}

void conditions_append(struct conditions *c, const struct conditions *more)
{
    for (int i = 0; i < more->n; i++)
        conditions_put(c, &more->list[i]);
    c->left_out += more->left_out;
}

static bool conditions_omitted(const struct conditions *c, struct condition *note)
{
    if (c->left_out)
        condition_set(note, CONDITION_OMITTED, -1,
                      "%" PRId64 " more conditions were left out, none more severe than these",
                      c->left_out);
    return c->left_out > 0;
}

void conditions_write_json(const struct conditions *c, struct jsonw *w, const char *key)
{
    struct condition note;
    jsonw_array(w, key);
    for (int i = 0; i < c->n; i++)
        condition_write_json(&c->list[i], w, NULL);
    if (conditions_omitted(c, &note))
        condition_write_json(&note, w, NULL);
    jsonw_end(w);
}

void condition_line(const struct condition *c, struct buf *out)
{
    if (c->severity >= SEVERITY_WARNING)
        buf_fmt(out, "%s: ", severity_names[c->severity]);
    if (c->rank >= 0)
        buf_fmt(out, "rank %" PRId64 ": ", c->rank);
    buf_str(out, c->text);
}

void conditions_lines(const struct conditions *c, struct buf *out)
{
    struct condition note;
    for (int i = 0; i < c->n; i++) {
        condition_line(&c->list[i], out);
        buf_char(out, '\n');
    }
    if (conditions_omitted(c, &note)) {
        condition_line(&note, out);
        buf_char(out, '\n');
    }
}

int condition_from_json(struct condition *c, const struct json *object, struct err *err)
{
    const char *kind = json_get_text(object, "kind", NULL);
    const char *severity = json_get_text(object, "severity", "");
    const char *text = json_get_text(object, "text", NULL);
    const struct json *rank = json_get(object, "rank");
    if (!kind)
        return err_set(err, ERR_INVALID, "kind", "must be a text");
    *c = (struct condition){.kind = condition_find(kind), .rank = -1};
    while (c->severity < SEVERITIES && strcmp(severity_names[c->severity], severity) != 0)
        c->severity++;
    if (c->severity == SEVERITIES)
        return err_set(err, ERR_INVALID, "severity", "must be info, notice, warning or error");
    if (rank && !json_is_null(rank) && (!json_i64(rank, &c->rank) || c->rank < 0))
        return err_set(err, ERR_INVALID, "rank", "must be a rank from 0, or null");
    if (!text || strlen(text) >= sizeof c->text)
        return err_set(err, ERR_INVALID, "text", "must be a text of at most %zu bytes",
                       sizeof c->text - 1);
    memcpy(c->text, text, strlen(text) + 1);
    return 0;
}
