// SPDX-License-Identifier: Apache-2.0
// What the two formats differ in: the tail _total of a counter's family, units, and the end.
#include "base/exposition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

const char *const exposition_types[EXPOSITION_TYPES] = {"text/plain",
                                                        "application/openmetrics-text"};

struct exposition exposition_to(struct buf *out, bool open)
{
    return (struct exposition){.out = out, .open = open};
}

const char *exposition_content_type(const struct exposition *e)
{
    return e->open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                   : "text/plain; version=0.0.4; charset=utf-8";
}

void exposition_end(struct exposition *e)
{
    if (e->open)
        buf_str(e->out, "# EOF\n");
}

// Firmware names CPUs as it likes. One byte that is not UTF-8 would spoil the whole scrape, and
// who reads a scrape on a terminal must not obey it.
static void put_escaped(struct buf *out, const char *text, bool quote)
{
    while (*text) {
        size_t n = *text == '\n' ? 1 : utf8_shown(text, UTF8_CHAR_MAX);
        if (*text == '\\' || *text == '\n' || (quote && *text == '"'))
            buf_char(out, '\\');
        if (n && *text != '\n')
            buf_add(out, text, n);
        else
            buf_char(out, n ? 'n' : '?');
        text += utf8_step(text, UTF8_CHAR_MAX);
    }
}

static const char *exposition_unit_of(const char *family)
{
    static const char *const units[] = {"bytes_per_second", "seconds", "bytes", "hertz", "ratio"};
    size_t n = strlen(family);
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        size_t k = strlen(units[i]);
        if (n > k && family[n - k - 1] == '_' && strcmp(family + n - k, units[i]) == 0)
            return units[i];
    }
    return NULL;
}

void exposition_begin(struct exposition *e, const char *family, const char *type, const char *help)
{
    e->counter = strcmp(type, "counter") == 0;
    snprintf(e->family, sizeof e->family, "%s", family);
    const char *tail = e->counter && !e->open ? "_total" : "";
    const char *unit = exposition_unit_of(family);
    buf_fmt(e->out, "# HELP %s%s ", family, tail);
    put_escaped(e->out, help, e->open);
    buf_fmt(e->out, "\n# TYPE %s%s %s\n", family, tail, type);
    if (e->open && unit)
        buf_fmt(e->out, "# UNIT %s %s\n", family, unit);
}

void exposition_sample(struct exposition *e, const char *const labels[][2], int n, double value)
{
    if (!isfinite(value))
        return;
    buf_fmt(e->out, "%s%s", e->family, e->counter ? "_total" : "");
    for (int i = 0; i < n; i++) {
        buf_char(e->out, i ? ',' : '{');
        buf_str(e->out, labels[i][0]);
        buf_str(e->out, "=\"");
        put_escaped(e->out, labels[i][1], true);
        buf_char(e->out, '"');
    }
    buf_fmt(e->out, "%s %.12g\n", n ? "}" : "", value);
}

void exposition_labelled(struct exposition *e, const char *label, const char *text, double value)
{
    const char *const labels[][2] = {{label, text}};
    exposition_sample(e, labels, 1, value);
}

void exposition_single(struct exposition *e, const char *family, const char *type, const char *help,
                       double value)
{
    if (value < 0)
        return;
    exposition_begin(e, family, type, help);
    exposition_sample(e, NULL, 0, value);
}
