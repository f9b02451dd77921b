// SPDX-License-Identifier: Apache-2.0
// The last number of a name counts. A number with a zero in front keeps its width.
#include "fleet/services/name_runs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 9 }; // of a number that counts: it fits a long

void name_runs_end(struct name_runs *r)
{
    char text[192];
    if (r->n == 0)
        return;
    if (r->digits == 0)
        snprintf(text, sizeof text, "%s", r->prefix);
    else if (r->n == 1)
        snprintf(text, sizeof text, "%s%0*ld%s", r->prefix, r->digits, r->first, r->end);
    else
        snprintf(text, sizeof text, "%s[%0*ld-%0*ld]%s", r->prefix, r->digits, r->first, r->digits,
                 r->last, r->end);
    jsonw_text(r->w, NULL, text);
    r->n = 0;
}

// A run in which 9 is followed by 10 has no fixed width, so that it ends there.
static bool continues(const struct name_runs *r, const struct name_runs *one)
{
    return r->n > 0 && one->digits > 0 && one->digits == r->digits && one->first == r->last + 1 &&
           strcmp(one->prefix, r->prefix) == 0 && strcmp(one->end, r->end) == 0;
}

void name_runs_add(struct name_runs *r, const char *name)
{
    struct name_runs one = {.w = r->w, .n = 1};
    size_t end = strlen(name), begin;
    while (end > 0 && !isdigit((unsigned char)name[end - 1]))
        end--;
    for (begin = end; begin > 0 && isdigit((unsigned char)name[begin - 1]);)
        begin--;
    if (end - begin > DIGITS_MAX || end == 0)
        begin = end = strlen(name);
    one.digits = (int)(end - begin);
    one.first = one.last = strtol(name + begin, NULL, 10) * (one.digits > 0);
    snprintf(one.prefix, sizeof one.prefix, "%.*s", (int)begin, name);
    snprintf(one.end, sizeof one.end, "%s", name + end);
    if (continues(r, &one)) {
        r->last++;
        r->n++;
        return;
    }
    name_runs_end(r);
    *r = one;
}
