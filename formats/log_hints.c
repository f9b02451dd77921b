// SPDX-License-Identifier: Apache-2.0
// Line by line, the first mention of a node, a mode and a date is taken.
#include "formats/log_hints.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "model/run.h"

static bool starts_word(const char *line, const char *at)
{
    return at == line || !isalnum((unsigned char)at[-1]);
}

// Where the word begins, in any case, as a whole word; NULL: nowhere.
static const char *find_word(const char *line, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = line; (at = strcasestr(at, word)) != NULL; at += n)
        if (starts_word(line, at) && !isalnum((unsigned char)at[n]))
            return at;
    return NULL;
}

// "key: value", "key = value", "key=value": the value's first word.
static bool log_hints_value_of(const char *line, const char *key, char *out, size_t room)
{
    const char *at = find_word(line, key);
    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, " \t");
    if (*at != ':' && *at != '=')
        return false;
    at += 1 + strspn(at + 1, " \t\"'");
    size_t n = strcspn(at, " \t,;)\"'");
    if (n < 1 || n >= room)
        return false;
    memcpy(out, at, n);
    out[n] = '\0';
    return true;
}

// A number alone names a NUMA node, not a host.
static bool names_host(const char *text)
{
    return run_node_check(text, NULL) == 0 && text[strspn(text, "0123456789.")] != '\0';
}

static void read_node(struct hints *h, const char *line)
{
    static const char *const keys[] = {"hostname",        "host name",      "host", "nodename",
                                       "SLURMD_NODENAME", "SLURM_NODELIST", "node"};
    char value[sizeof h->node];
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        if (!log_hints_value_of(line, keys[i], value, sizeof value) || !names_host(value))
            continue;
        h->several_nodes |= *h->node && strcmp(h->node, value) != 0;
        if (!*h->node)
            memcpy(h->node, value, sizeof value);
        return;
    }
}

static void read_mode(struct hints *h, const char *line)
{
    const char *serial = find_word(line, "serial"), *both = find_word(line, "concurrent");
    h->command |= strstr(line, "argv[0]") != NULL;
    if (serial && !both)
        snprintf(h->mode, sizeof h->mode, "serial");
    else if (both && !serial)
        snprintf(h->mode, sizeof h->mode, "concurrent");
}

static void read_date(struct hints *h, const char *line)
{
    for (const char *at = line; !h->date_ms && *at; at++)
        if (isdigit((unsigned char)*at) && starts_word(line, at))
            clock_read(at, &h->date_ms, &h->zoned);
}

void hints_read(struct hints *h, const char *line)
{
    char method[sizeof h->method];
    read_node(h, line);
    read_mode(h, line);
    read_date(h, line);
    if (!*h->method && log_hints_value_of(line, "method", method, sizeof method))
        memcpy(h->method, method, sizeof method);
}
